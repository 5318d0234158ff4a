/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What nvidia-smi showed, against what memsim says that it shows. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#define MIB (UINT64_C(1) << 20)

/* BERT large with a head for two classes, 335,143,938 parameters (its numbers,
 * not its file). */
static const char bert_large[] =
    "{\"model_type\": \"bert\","
    " \"architectures\": [\"BertForSequenceClassification\"],"
    " \"vocab_size\": 30522, \"hidden_size\": 1024,"
    " \"num_hidden_layers\": 24, \"num_attention_heads\": 16,"
    " \"intermediate_size\": 4096, \"max_position_embeddings\": 512,"
    " \"type_vocab_size\": 2, \"num_labels\": 2}";

static uint64_t mib_of(const ms_result *result)
{
    return (ms_capacity_used(result->report) + MIB - 1) / MIB;
}

/* "Model memory anatomy" of Hugging Face's documentation (truth/published
 * hf_anatomy_model_loaded): the context and kernels of one V100, loaded
 * eagerly, are 1343 MiB with a first tensor, 2631 with the model there.  The
 * shortest step that there is comes on top. */
START_TEST(model_loaded)
{
    truth_begin();
    const ms_result *result = truth_run_json(
        bert_large,
        "bert-large --set model.head=classes:2 --device v100-16gb-sxm2 "
        "--set training.cuda_loading=eager --set training.mode=inference "
        "--precision fp32 --sequence 1 --framework torch-1.13 "
        "--set training.cublas_workspace=0 --allocator torch");
    truth_compare("nvidia-smi", "bert-large loaded", "parameters", 335143938,
                  result->graph->parameters);
    truth_compare("nvidia-smi", "bert-large loaded", "device used, MiB", 2631,
                  mib_of(result));
    truth_end();
}
END_TEST

/* stas00/ml-engineering training/performance (744d01e1): a process
 * of two goes from 0.55 to 2.00 GiB with its first barrier, 1485 MiB; nccl
 * issue 1685: a connection of a channel is 10485760 bytes to receive and
 * 2097152 to send. */
START_TEST(nccl)
{
    const char *words = "gpt2 --device a100 -p ddp:dp=2 "
                        "--set training.nccl_channels=%d";
    truth_begin();
    uint64_t bytes = truth_run(words, 0)->report->outside.nccl_bytes;
    truth_compare("nvidia-smi", "first barrier of two", "NCCL, MiB", 1485,
                  bytes / MIB);
    uint64_t two = truth_run(words, 2)->report->outside.nccl_bytes;
    uint64_t one = truth_run(words, 1)->report->outside.nccl_bytes;
    truth_compare("nvidia-smi", "connection of a channel", "bytes",
                  10485760 + 2097152, two - one);
    truth_end();
}
END_TEST

Suite *suite_smi(void)
{
    Suite *suite = suite_create("smi");
    TCase *tcase = tcase_create("smi");
    tcase_add_test(tcase, model_loaded);
    tcase_add_test(tcase, nccl);
    suite_add_tcase(suite, tcase);
    return suite;
}
