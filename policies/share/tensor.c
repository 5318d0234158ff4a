/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensor parallelism: ranks next to each other split each layer, and with sp
 * the sequence between.  How a model's layers are split its kernels decide when
 * it is lowered (graphs/parallel/shards.h). */
#include "policies/common/policy.h"
#include "policies/common/ranknames.h"
#include "sim/shape.h"

enum { RANKS, SEQUENCE, PLAN, OVERLAP, REGATHER, ORDER, N_PARAMS };
enum { MEGATRONS, HUGGING_FACES };

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "ranks",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = 1024,
               .help = "ranks that split each layer"},
    [SEQUENCE] = {.name = "sp",
                  .type = MS_PARAM_FLAG,
                  .help = "where layers are whole each has a part of the "
                          "sequence: norms, dropouts, residual sums"},
    [PLAN] = {.name = "plan",
              .type = MS_PARAM_WORD,
              .words = "megatron|hf",
              .help = "embedding and logits are split by vocabulary, too; hf: "
                      "as tp_plan=\"auto\" of Hugging Face has them, each rank "
                      "has the whole embedding and gathers the logits"},
    [OVERLAP] = {.name = "overlap",
                 .type = MS_PARAM_FLAG,
                 .help = "with sp: exchanges go in pieces beside those of "
                         "products: with Megatron's kernels in buffers of "
                         "Transformer Engine's (tp_comm_overlap), with torch's "
                         "through symmetric memory (async tensor parallel, "
                         "under torch.compile)"},
    [REGATHER] = {.name = "regather",
                  .type = MS_PARAM_INT,
                  .low = 0,
                  .high = 1,
                  .help = "with sp, 0: what products have gathered is saved, "
                          "1: backward gathers it again (nanotron's "
                          "tp_recompute_allgather); default 1 with Megatron's "
                          "kernels and nanotron's, 0 with torch's"},
    [ORDER] = MS_RANKNAMES_PARAM,
};

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    MS_TRY(ms_ranknames_read("tensor:order", &values[ORDER], shape, fault));
    shape->whole_ends = values[PLAN].number == HUGGING_FACES;
    if (shape->whole_ends && values[SEQUENCE].given)
        return ms_fail(fault, MS_EUSAGE, "tensor:plan=hf", "leave sp out",
                       "Hugging Face's plans leave the sequence whole");
    if (values[OVERLAP].given && !values[SEQUENCE].given)
        return ms_fail(fault, MS_EUSAGE, "tensor:overlap", "add sp",
                       "what is exchanged in pieces is parts of the sequence");
    if (values[REGATHER].given && !values[SEQUENCE].given)
        return ms_fail(fault, MS_EUSAGE, "tensor:regather", "add sp",
                       "what is gathered are parts of the sequence");
    shape->overlaps = values[OVERLAP].given;
    if (values[REGATHER].given)
        shape->regather =
            values[REGATHER].number == 0 ? MS_REGATHER_NOT : MS_REGATHER_AGAIN;
    return ms_policy_split_layers("tensor", (uint32_t)values[RANKS].number,
                                  values[SEQUENCE].given, shape, fault);
}

const ms_policy ms_policy_tensor = {
    .name = "tensor",
    .summary = "ranks split each layer: attention by heads, MLPs by columns "
               "and rows",
    .example = "tensor:4,sp",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
};
