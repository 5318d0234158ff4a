/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings of other programs: what each syntax says, what each format means,
 * and what is refused. */
#include "graphs/training.h"
#include "tests/tests.h"
#include "tools/from/compose.h"
#include "tools/from/formats.h"
#include "tools/from/versions.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;
static ms_pairs pairs;
static ms_facts facts;
static const ms_format *format;

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
    facts = (ms_facts){.arena = &arena};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static ms_err read_text(const char *text)
{
    return ms_formats_read("file", text, strlen(text), &arena, &pairs, &format,
                           &fault);
}

static const char *value(const char *key)
{
    const ms_pair *pair = ms_pairs_find(&pairs, key);
    return pair != NULL ? pair->value : "(absent)";
}

/* ---- syntaxes ------------------------------------------------------------ */

START_TEST(json)
{
    ck_assert_int_eq(
        read_text("{\"zero_optimization\": {\"stage\": 2, \"b\": 5e8},\n"
                  " \"betas\": [0.9, 0.95], \"list\": [{\"x\": null}, true]}"),
        MS_OK);
    ck_assert_str_eq(format->name, "DeepSpeed");
    ck_assert_str_eq(value("zero_optimization.b"), "5e8");
    ck_assert_str_eq(value("betas"), "0.9,0.95");
    ck_assert_str_eq(value("list.0.x"), "null");
    ck_assert_str_eq(value("list.1"), "true");
}
END_TEST

START_TEST(yaml)
{
    if (!ms_yamlpairs_is_there())
        return;
    ck_assert_int_eq(read_text("# ü\nbase_model: a/b\nbf16: yes\nlora_r:\n"
                               "fsdp:\n  - full_shard\n  - auto_wrap\n"
                               "micro_batch_size: 1_0\nmixed: 'no'\n"
                               "datasets:\n  - path: x\n    type: y\n"
                               "peft: {}\n"),
                     MS_OK);
    ck_assert_str_eq(format->name, "axolotl");
    ck_assert_str_eq(value("bf16"), "true");
    ck_assert_str_eq(value("lora_r"), "null");
    ck_assert_str_eq(value("fsdp"), "full_shard,auto_wrap");
    ck_assert_str_eq(value("micro_batch_size"), "10");
    ck_assert_str_eq(value("mixed"), "no");
    ck_assert_str_eq(value("datasets.0.type"), "y");
    ck_assert_str_eq(value("peft"), "{}");
    ck_assert_uint_eq(ms_pairs_line(&pairs, ms_pairs_find(&pairs, "bf16")->at),
                      3);
}
END_TEST

START_TEST(toml)
{
    ck_assert_int_eq(
        read_text(
            "[training]\nseq_len = 8_192 # tokens\nx.\"y z\" = 'a\\b'\n"
            "list = [\n  \"a\", # one\n  \"b\",\n]\n"
            "point = {a = 1, b.c = true}\ntext = \"\"\"\none\\\n  two\"\"\"\n"
            "[[stage]]\nat = \"\\u00e9\\n\"\nf = -1.5e-3\n"),
        MS_OK);
    ck_assert_str_eq(format->name, "torchtitan");
    ck_assert_str_eq(value("training.seq_len"), "8192");
    ck_assert_str_eq(value("training.x.y z"), "a\\b");
    ck_assert_str_eq(value("training.list"), "a,b");
    ck_assert_str_eq(value("training.point.b.c"), "true");
    ck_assert_str_eq(value("training.text"), "onetwo");
    ck_assert_str_eq(value("stage.12.at"), "\u00e9\n");
    ck_assert_str_eq(value("stage.12.f"), "-1.5e-3");
}
END_TEST

START_TEST(command_words)
{
    ck_assert_int_eq(
        read_text("#!/bin/sh\nGPUS_PER_NODE=8\nNNODES=${N:-2}\n"
                  "WORLD_SIZE=$(($GPUS_PER_NODE * NNODES))\n"
                  "ARGS=(\n  --num-layers 12 # --hidden-size 1\n"
                  "  --hidden-size\n  512\n  --bf16\n)\n"
                  "MORE=\"--seq-length 64 --swiglu\"\n"
                  "torchrun --nnodes=$NNODES x.py ${ARGS[@]} $MORE \\\n"
                  "  --recompute-modules mlp moe --split '1, 2'\n"
                  "python eval.py\n"),
        MS_OK);
    ck_assert_str_eq(format->name, "Megatron-LM");
    ck_assert_str_eq(value("$WORLD_SIZE"), "16");
    ck_assert_str_eq(value("nnodes"), "2");
    ck_assert_str_eq(value("num-layers"), "12");
    ck_assert_str_eq(value("hidden-size"), "512");
    ck_assert_str_eq(value("bf16"), "true");
    ck_assert_str_eq(value("seq-length"), "64");
    ck_assert_str_eq(value("swiglu"), "true");
    ck_assert_str_eq(value("recompute-modules"), "mlp,moe");
    ck_assert_str_eq(value("split"), "1, 2");
}
END_TEST

/* Branches of a script: what is not taken is not read, what only the shell
 * knows is, and is marked. */
static const struct {
    const char *text, *tensor; /* --tensor-model-parallel-size; NULL: absent */
    bool maybe;
} branches[] = {
    {"N=2\nif [ $N -gt 1 ]; then\nTP=4\nelse TP=8; fi\n", "4", false},
    {"N=1\nif [ $N -gt 1 ]; then\nTP=4\nelse TP=8; fi\n", "8", false},
    {"if [ $N -gt 1 ]; then\nTP=4\nelse TP=8; fi\n", "8", true},
    {"TP=1\nif [[ \"fp8\" == 'fp8' ]]; then TP=2\nfi\n", "2", false},
    {"TP=1\nif [ \"\" != x ] && [ -f y ]; then TP=2\nfi\n", "2", true},
    {"TP=1\nif [ -z \"\" ]; then TP=2; fi; if test x; then :; fi\n", "2",
     false},
    {"M=7\nif [[ $M -eq 8 ]]; then TP=1\nelif [[ $M == 7 ]]; then TP=2\n"
     "elif [[ $M -eq 7 ]]; then TP=3\nelse TP=4\nfi\n",
     "2", false},
    {"M=7\nif grep x y; then TP=1\nelif [[ $M == 7 ]]; then TP=2\nfi\n", "2",
     true},
    {"A=1\nif [ $A -le 0 ]; then if [ -f x ]; then TP=1; fi; fi\nTP=3\n", "3",
     false},
    {"case $X in\na) TP=1 ;;\n*) TP=2 ;;\nesac\n", "2", true},
    {"cat <<'END' >x\nif you read this\nTP=9\nEND\nTP=${T:-'4'}\n", "4", false},
};

START_TEST(branches_of_scripts)
{
    for (size_t i = 0; i < sizeof branches / sizeof branches[0]; i++) {
        const char *text =
            ms_arena_format(&arena,
                            "%spretrain_gpt.py --num-layers 2 --hidden-size 8 "
                            "\"--tensor-model-parallel-size $TP\"\n",
                            branches[i].text);
        ck_assert_ptr_nonnull(text);
        ck_assert_int_eq(read_text(text), MS_OK);
        const ms_pair *pair =
            ms_pairs_find(&pairs, "tensor-model-parallel-size");
        ck_assert_ptr_nonnull(pair);
        ck_assert_str_eq(pair->value, branches[i].tensor);
        ck_assert_msg(pair->maybe == branches[i].maybe, "%s", branches[i].text);
    }
}
END_TEST

/* ---- what is refused ----------------------------------------------------- */

static const struct {
    const char *text, *where, *what;
} bad[] = {
    {"", "file", "empty"},
    {"{\"zero_optimization\": {\"stage\": 2", "file:1:", ""},
    {"{\"model_type\": \"llama\"}", "file", "this is a model"},
    {"{\"a\": 1}", "file", "no format"},
    {"{\"a\": 1, \"a\": 2}", "file:1:", ""},
    {"[training]\nseq_len = 1\nseq_len = 2\n", "file:3:1", "twice, in line 2"},
    {"[training]\nseq_len = \n", "file:2:", "here a value stands"},
    {"[training\nseq_len = 1\n", "file:1:", "name ends in ]"},
    {"[training]\nx = \"ab\n", "file:2:", "a string ends"},
    {"[training]\nx = 1979-05-27\ny = 07:32:00\n", "file:3:", "no number"},
    {"[training]\nx = [1, [2]]\n", "file:2:", "an array here"},
    {"[training]\nx = 1 y = 2\n", "file:2:", "a line ends behind"},
    {"[training]\nx = \"\\q\"\n", "file:2:", "no such escape"},
    {"--num-layers 12 --lr \"1e-4\n", "file:1:", "this quote does not end"},
    {"if [ 1 -eq 2 ]\n--num-layers 12\n", "file:3:", "an if has no then"},
};

START_TEST(refused)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fault = (ms_fault){.caret = -1};
        ck_assert_int_eq(read_text(bad[i].text), MS_EINPUT);
        ck_assert_msg(
            strncmp(fault.where, bad[i].where, strlen(bad[i].where)) == 0,
            "%s: %s", bad[i].text, fault.where);
        ck_assert_msg(strstr(fault.what, bad[i].what) != NULL, "%s: %s",
                      bad[i].text, fault.what);
    }
}
END_TEST

START_TEST(refused_yaml)
{
    static const char *const texts[] = {"base_model: [a, b\nx: 1\n",
                                        "base_model: &a x\ny: *a\n",
                                        "base_model: x\n---\ny: 1\n",
                                        "base_model: x\nbase_model: y\n",
                                        "a: b: c\n",
                                        "[1]: 2\nbase_model: x\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fault = (ms_fault){.caret = -1};
        ms_err err = read_text(texts[i]);
        ck_assert_int_eq(err, ms_yamlpairs_is_there() ? MS_EINPUT : MS_EUSAGE);
        ck_assert(strncmp(fault.where, "file", 4) == 0);
    }
}
END_TEST

/* ---- what files mean ----------------------------------------------------- */

/* Reads the texts one behind the other, beside words that were typed, and
 * writes the command that they are. */
static ms_err understand(const char *const *texts, const char *typed,
                         const char **command)
{
    const char *words[16];
    char *line = ms_arena_text(&arena, typed, strlen(typed));
    uint32_t n = 0;
    ms_arguments arguments, out;
    ms_text text = {.arena = &arena};
    facts = (ms_facts){.arena = &arena};
    for (char *w = strtok(line, " "); w != NULL; w = strtok(NULL, " "))
        words[n++] = w;
    ck_assert_int_eq(
        ms_options_parse(MS_FOR_RUN, words, n, &arena, &arguments, &fault),
        MS_OK);
    for (; *texts != NULL; texts++) {
        ms_pairs *of = ms_arena_take(&arena, 1, sizeof *of);
        MS_TRY(ms_formats_read("file", *texts, strlen(*texts), &arena, of,
                               &format, &fault));
        MS_TRY(ms_versions_read(&facts, format, of, &fault));
    }
    MS_TRY(ms_facts_settle(&facts, 1024, &fault));
    MS_TRY(ms_compose_arguments(&facts, MS_FOR_RUN, &arguments, &arena, &out,
                                &fault));
    ms_settings_again("run", &out, &text);
    *command = text.bytes + strlen("memsim run ");
    return MS_OK;
}

static const struct {
    const char *texts[3], *typed, *command;
    const char *warning; /* a part of the first one; NULL: there is none */
} meant[] = {
    {{"{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 2, "
      "\"gradient_accumulation_steps\": 2, \"fp16\": {\"enabled\": true}, "
      "\"zero_optimization\": {\"stage\": 2, \"stage3_max_live_parameters\": "
      "1}}"},
     "gpt2",
     "gpt2 --gpus 8 --batch 4 --precision fp16-mixed -p "
     "deepspeed:2+microbatch:2",
     NULL},
    {{"{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 2, "
      "\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": "
      "\"nvme\"}, \"offload_optimizer\": {\"device\": \"cpu\"}}}"},
     "gpt2 --gpus 4 -p checkpoint:full",
     "gpt2 --batch 8 --precision fp32 -p "
     "deepspeed:3+offload:optimizer/params/gradients,params_to=nvme,pin=0+"
     "microbatch:4 --gpus 4 -p checkpoint:full",
     NULL},
    {{"{\"bf16\": {\"enabled\": \"auto\"}, \"zero_optimization\": {\"stage\": "
      "3,"
      " \"reduce_bucket_size\": \"auto\"}}",
      "{\"output_dir\": \"x\", \"per_device_train_batch_size\": 4, \"bf16\": "
      "true, \"optim\": \"paged_adamw_8bit\"}"},
     "gpt2 --gpus 2",
     "gpt2 --batch 4 --precision bf16-mixed --optimizer adamw-8bit --set "
     "clip_norm=1.0 --kernels sdpa -p "
     "deepspeed:3,reduce_bucket_size=1048576+uvm:optimizer --gpus 2",
     NULL},
    {{"{\"output_dir\": \"x\", \"fsdp\": \"full_shard auto_wrap offload\", "
      "\"fsdp_config\": {\"backward_prefetch\": \"backward_post\"}, \"bf16\": "
      "true, \"torch_compile\": true}"},
     "gpt2 --gpus 2 --batch 1",
     "gpt2 --precision bf16-mixed --set clip_norm=1.0 --optimizer adamw "
     "--kernels sdpa -p "
     "fsdp:strategy=full_shard,prefetch=post,impl=1+offload:optimizer/params/"
     "gradients --gpus 2 --batch 1",
     "torch_compile=true: torch.compile"},
    {{"[model]\nname = \"qwen3\"\nflavor = "
      "\"8B\"\n[training]\nlocal_batch_size "
      "= 2\nseq_len = 4096\nunknown = 1\n[parallelism]\n"
      "data_parallel_shard_degree = 2\ndata_parallel_replicate_degree = 4\n"
      "[activation_checkpoint]\nmode = \"selective\"\n"},
     "",
     "qwen3-8b --gpus 8 --batch 2 --precision bf16-mixed --sequence 4096 --set "
     "clip_norm=1.0 --optimizer adamw --set optimizer_impl=fused --set "
     "hold_output=none -p "
     "fsdp:units=split,reshard=but_last,shard=2+checkpoint:each=2",
     "file:7: training.unknown=1"},
    {{"[model]\nname = \"llama3\"\nflavor = \"405B\"\n[training]\n"
      "local_batch_size = 32\nseq_len = 8192\n[parallelism]\n"
      "tensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n"
      "pipeline_parallel_degree = 8\n"
      "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
      "pipeline_parallel_microbatch_size = 4\n"
      "pipeline_parallel_last_stage_less_layers = 2\n"
      "[activation_checkpoint]\nmode = \"full\"\n"},
     "--gpus 512",
     "llama-3.1-405b --set model.code=llama --batch 32 --precision bf16-mixed "
     "--sequence 8192 --set clip_norm=1.0 --optimizer adamw --set "
     "optimizer_impl=fused --set hold_output=none -p tensor:8,sp,overlap+"
     "pipeline:8,schedule=interleaved,impl=torch,chunks=2,less=1/2+"
     "fsdp:units=split+checkpoint:full+microbatch:8 --gpus 512",
     NULL},
    {{"--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size "
      "100 "
      "--seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 "
      "--global-batch-size 16 --tensor-model-parallel-size 2 "
      "--pipeline-model-parallel-size 2 --bf16 --use-distributed-optimizer "
      "--recompute-granularity selective --recompute-modules mlp core_attn"},
     "--gpus 8 --optimizer sgd",
     "gpt2 --set model.layers=4 --set model.hidden=64 --set model.heads=4 "
     "--set "
     "model.positions=64 --set model.vocab=100 --set model.vocab_pad_to=256 "
     "--batch 8 --precision bf16-mixed --sequence 64 --kernels megatron --set "
     "clip_norm=1.0 -p "
     "tensor:2+pipeline:2+zero:1,impl=megatron,overlap_grad_reduce=0+"
     "checkpoint:modules=mlp/core_attn+microbatch:8 --gpus 8 --optimizer sgd",
     NULL},
    /* experts behind one dense layer, latent attention, a gate's width */
    {{"--num-layers 4 --hidden-size 768 --num-attention-heads 4 --swiglu "
      "--seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 "
      "--tokenizer-type Llama2Tokenizer --num-experts 8 --moe-router-topk 2 "
      "--moe-grouped-gemm --moe-layer-freq '([0]*1+[1]*3)' "
      "--moe-shared-expert-intermediate-size 96 --moe-router-pre-softmax "
      "--multi-latent-attention --q-lora-rank 24 --kv-channels 9"},
     "",
     "gpt2 --set model.layers=4 --set model.hidden=768 --set model.heads=4 "
     "--set model.activation=swiglu --set model.positions=64 --set "
     "model.experts=8 --set model.expert_weights=gate --set model.top_k=2 "
     "--set model.shared_ffn=96 --set model.q_rank=24 --set "
     "model.kv_rank=512 --set model.plain_dim=128 --set "
     "model.rotary_dim=64 --set model.value_dim=128 --set model.ffn=2048 "
     "--set model.dense=1 --set model.expert_score=softmax --set "
     "model.expert_norm=false --set model.vocab=32000 --set "
     "model.vocab_pad_to=128 --batch 1 --precision fp32 --sequence 64 "
     "--kernels megatron --optimizer adamw --set clip_norm=1.0",
     NULL},
    {{"torchrun x/pretrain_bert.py --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 4 --max-position-embeddings 64 "
      "--tokenizer-type BertWordPieceLowerCase --micro-batch-size 2"},
     "",
     "bert-large --set model.norm=pre --set model.embedding_norm=false "
     "--set model.head=bert --set model.layers=2 --set model.hidden=64 "
     "--set model.heads=4 --set model.positions=64 --set model.vocab=30522 "
     "--set model.vocab_pad_to=128 --batch 2 --precision fp32 --kernels "
     "megatron --optimizer adamw --set clip_norm=1.0",
     NULL},
    {{"--encoder-num-layers 2 --decoder-num-layers 3 --hidden-size 64 "
      "--num-attention-heads 4 --kv-channels 16 --encoder-seq-length 64 "
      "--decoder-seq-length 32 --max-position-embeddings 64 "
      "--tokenizer-type BertWordPieceCase --vocab-extra-ids 100 "
      "--micro-batch-size 2"},
     "",
     "megatron-t5 --set model.layers=2 --set model.decoder_layers=3 --set "
     "model.hidden=64 --set model.heads=4 --set model.head_dim=16 --set "
     "model.targets=32 --set model.positions=64 --set model.vocab=29096 "
     "--set model.vocab_pad_to=128 --batch 2 --precision fp32 --sequence "
     "64 --kernels megatron --optimizer adamw --set clip_norm=1.0",
     NULL},
    /* states divide among the ranks of a sequence; one word more for the end */
    {{"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --vocab-size "
      "128 --tokenizer-type NullTokenizer --max-position-embeddings 64 "
      "--micro-batch-size 1 --context-parallel-size 2 "
      "--use-distributed-optimizer --fp8-format hybrid --fp8-param-gather"},
     "--gpus 2",
     "gpt2 --set model.layers=2 --set model.hidden=64 --set model.heads=4 "
     "--set model.positions=64 --set model.vocab=129 --set "
     "model.vocab_pad_to=128 --batch 1 --precision fp8-primary --kernels "
     "megatron --optimizer adamw --set clip_norm=1.0 -p "
     "context:2+zero:1,impl=megatron,overlap_grad_reduce=0 --gpus 2",
     NULL},
};

START_TEST(understood)
{
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        const char *command = NULL;
        ms_err err = understand(meant[i].texts, meant[i].typed, &command);
        ck_assert_msg(err == MS_OK, "%s: %s %s", meant[i].texts[0], fault.where,
                      fault.what);
        ck_assert_str_eq(command, meant[i].command);
        if (meant[i].warning == NULL)
            ck_assert_msg(facts.warnings.n == 0, "%s", facts.warnings.all[0]);
        else
            ck_assert_ptr_nonnull(
                strstr(facts.warnings.all[0], meant[i].warning));
    }
}
END_TEST

static const struct {
    const char *texts[3], *typed, *what, *hint;
} contrary[] = {
    {{"{\"gradient_accumulation_steps\": 2, \"zero_optimization\": {\"stage\": "
      "1}}",
      "{\"output_dir\": \"x\", \"gradient_accumulation_steps\": 4}"},
     "gpt2",
     "gradient_accumulation_steps=4 contradicts another file",
     "file:1 says gradient_accumulation_steps=2"},
    {{"{\"train_batch_size\": 30, \"train_micro_batch_size_per_gpu\": 2, "
      "\"gradient_accumulation_steps\": 2}"},
     "gpt2 --gpus 4",
     "30 samples a step are not 2",
     "--gpus"},
    {{"{\"bf16\": {\"enabled\": true}, "
      "\"fp16\": {\"enabled\": true}}"},
     "gpt2",
     "both on",
     "leave one"},
    {{"--num-layers 4 --hidden-size 8 --img-h 8"}, "", "img-h", "MODEL"},
    {{"--num-layers 4 --hidden-size 8 --num-experts 8 --moe-layer-freq "
      "'([1]*2+[0]*2)'"},
     "",
     "\"([1]*2+[0]*2)\" is no order of layers",
     "([0]*A+[1]*B)"},
    {{"--num-layers 4 --hidden-size 8 --num-experts 8 --moe-layer-freq "
      "[0]*99999"},
     "",
     "is no order of layers",
     "([0]*A+[1]*B)"},
    {{"--num-layers 4 --hidden-size 8 --micro-batch-size $B"},
     "",
     "\"$B\" is not a whole number",
     "variable"},
    {{"--num-layers 4 --tensor-model-parallel-size 3 --micro-batch-size 1"},
     "gpt2 --gpus 8",
     "8 GPUs are no multiple of the 3 ranks",
     "--gpus"},
};

START_TEST(contradictions)
{
    for (size_t i = 0; i < sizeof contrary / sizeof contrary[0]; i++) {
        const char *command;
        fault = (ms_fault){.caret = -1};
        ck_assert_int_eq(
            understand(contrary[i].texts, contrary[i].typed, &command),
            MS_EINPUT);
        ck_assert_msg(strstr(fault.what, contrary[i].what) != NULL, "%s",
                      fault.what);
        ck_assert_msg(strstr(fault.hint, contrary[i].hint) != NULL, "%s",
                      fault.hint);
    }
}
END_TEST

/* ---- tables -------------------------------------------------------------- */

/* Settings that rows name are settings of memsim; words of theirs and ours are
 * not empty where they must not be. */
START_TEST(tables)
{
    for (uint32_t f = 0; f < ms_formats_n; f++) {
        const ms_format *of = ms_formats_all[f];
        for (uint32_t i = 0; i < of->n_keys; i++) {
            const ms_formatkey *row = &of->keys[i];
            ck_assert(row->to != NULL || row->warns != NULL ||
                      row->harmless != NULL);
            ck_assert(*row->key != '\0' || row->fallback != NULL);
            if (row->to != NULL && strncmp(row->to, "training.", 9) == 0)
                ck_assert_msg(ms_training_row(row->to) != MS_NONE, "%s",
                              row->to);
        }
    }
}
END_TEST

Suite *suite_from(void)
{
    Suite *suite = suite_create("from");
    TCase *cases = tcase_create("from");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, json);
    tcase_add_test(cases, yaml);
    tcase_add_test(cases, toml);
    tcase_add_test(cases, command_words);
    tcase_add_test(cases, branches_of_scripts);
    tcase_add_test(cases, refused);
    tcase_add_test(cases, refused_yaml);
    tcase_add_test(cases, understood);
    tcase_add_test(cases, contradictions);
    tcase_add_test(cases, tables);
    suite_add_tcase(suite, cases);
    return suite;
}
