/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Context parallelism: ranks divide the sequence of the same samples.  To all
 * that share states they are data ranks like others, with other tokens; only
 * attention exchanges between them (graphs/parallel/contextops.h). */
#include "policies/common/policy.h"
#include "policies/common/ranknames.h"
#include "sim/shape.h"

#include <stdio.h>

enum { RANKS, MODE, SPLIT, IMPL, RANK, ORDER, N_PARAMS };
enum { ZIGZAG, PLAIN };
enum { TRANSFORMER_ENGINES, RING_FLASH_ATTENTIONS };

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "ranks",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = 1024,
               .help = "ranks that divide the sequence"},
    [MODE] = {.name = "mode",
              .type = MS_PARAM_WORD,
              .words = "auto|a2a|ring|allgather",
              .help = "a2a: for attention each has all of the sequence and a "
                      "part of the heads (Ulysses), of keys and values a copy "
                      "of one where there are fewer; ring: keys and values go "
                      "round, causal work is balanced; allgather: each gathers "
                      "all of them; auto: ring with Megatron's kernels, else "
                      "a2a"},
    [SPLIT] = {.name = "split",
               .type = MS_PARAM_WORD,
               .words = "zigzag|plain",
               .help = "ring: each rank has a piece of the sequence from its "
                       "begin and one from its end, causal work is the same; "
                       "plain: one piece, all wait for the last rank, which "
                       "attends to all"},
    [IMPL] = {.name = "impl",
              .type = MS_PARAM_WORD,
              .words = "te|rfa",
              .help = "ring: Transformer Engine's, which holds all that comes "
                      "round (default), or ring-flash-attention's, which sums "
                      "results in fp32 (default with split=plain)"},
    [RANK] = {.name = "rank",
              .type = MS_PARAM_INT,
              .low = 0,
              .high = 1023,
              .help = "ring: tell of this rank alone, from 0; default the "
                      "last, which works and holds most, and with split=plain "
                      "what each of up to 64 has and does"},
    [ORDER] = MS_RANKNAMES_PARAM,
};

/* Only a ring's ranks differ, and are dealt their tokens in two ways. */
static ms_err read_ring(const ms_policy_value *values, ms_shape *shape,
                        ms_fault *fault)
{
    uint32_t ranks = shape->context_ranks;
    char hint[64];
    for (uint32_t i = SPLIT; i <= RANK; i++)
        if (values[i].given && shape->context_mode == MS_CONTEXT_AUTO)
            shape->context_mode = MS_CONTEXT_RING;
    for (uint32_t i = SPLIT; i <= RANK; i++)
        if (values[i].given && shape->context_mode != MS_CONTEXT_RING)
            return ms_fail(
                fault, MS_EUSAGE, "context", "take mode=ring, or leave it out",
                "%s= is of rings: with this mode all ranks are alike",
                params[i].name);
    shape->context_plain = values[SPLIT].number == PLAIN;
    shape->context_flash =
        shape->context_plain || values[IMPL].number == RING_FLASH_ATTENTIONS;
    shape->context_rank =
        values[RANK].given ? (uint32_t)values[RANK].number : ranks - 1;
    shape->context_asked = values[RANK].given;
    if (shape->context_plain && values[IMPL].given &&
        values[IMPL].number == TRANSFORMER_ENGINES)
        return ms_fail(fault, MS_EUSAGE, "context:split=plain",
                       "take impl=rfa, or split=zigzag",
                       "Transformer Engine's ring deals causal sequences in "
                       "zigzag alone");
    snprintf(hint, sizeof hint, "type a rank from 0 to %u", ranks - 1);
    if (shape->context_rank >= ranks)
        return ms_fail(fault, MS_EUSAGE, "context:rank", hint,
                       "there is no rank %u among %u", shape->context_rank,
                       ranks);
    return MS_OK;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    uint32_t ranks = (uint32_t)context->values[RANKS].number;
    MS_TRY(ms_ranknames_read("context:order", &context->values[ORDER], shape,
                             fault));
    if (shape->data_ranks <= 1)
        shape->data_ranks = ranks;
    MS_TRY(ms_policy_check_groups("context", "context:", shape->data_ranks,
                                  ranks, fault));
    shape->context_ranks = ranks;
    shape->context_mode = (uint8_t)context->values[MODE].number;
    return read_ring(context->values, shape, fault);
}

const ms_policy ms_policy_context_ranks = {
    .name = "context",
    .summary = "ranks divide the sequence; attention goes over all of it",
    .example = "context:4,mode=ring",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
};
