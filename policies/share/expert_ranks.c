/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expert parallelism: ranks have a part of each layer's experts each, and
 * exchange the tokens that go there (graphs/parallel/expertops.h).  They are
 * ranks that share the rest as before, so that experts have a grid of their own
 * over the same ranks: expert-tensor, expert, expert-data (Megatron-LM,
 * core/parallel_state.py, expert_decoder_rank_generator). */
#include "policies/common/policy.h"
#include "policies/common/ranknames.h"
#include "sim/shape.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS, TENSOR, CAPACITY, IMBALANCE, DISPATCH, ORDER, N_PARAMS };

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "ranks",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = 4096,
               .help = "ranks that divide the experts of a layer"},
    [TENSOR] = {.name = "etp",
                .type = MS_PARAM_INT,
                .low = 1,
                .high = 1024,
                .help = "ranks that split each expert; default those of "
                        "tensor"},
    [CAPACITY] = {.name = "capacity",
                  .type = MS_PARAM_NUMBERS,
                  .help = "rows of an expert over the average, padded; "
                          "default as the model says, or dropless"},
    [IMBALANCE] = {.name = "imbalance",
                   .type = MS_PARAM_NUMBERS,
                   .help = "dropless: rows of the fullest rank over those of "
                           "an average one; or a load of each expert, A/B/C or "
                           "@FILE, from which that follows"},
    [DISPATCH] = {.name = "dispatch",
                  .type = MS_PARAM_WORD,
                  .words = "nccl|deepep",
                  .help = "nccl: a row for each expert of a token, by "
                          "all-to-all; deepep: a token once for each rank, "
                          "through buffers of its own"},
    [ORDER] = MS_RANKNAMES_PARAM,
};

/* ---- numbers ------------------------------------------------------------- */

/* How many numbers there are; one alone is positive. */
static uint32_t count(const char *text)
{
    uint32_t n = 1;
    for (; *text != '\0'; text++)
        n += *text == '/';
    return n;
}

/* The sum of the numbers from the first on; text goes on behind them. */
static double sum(const char **text, uint32_t n)
{
    double all = 0;
    for (uint32_t i = 0; i < n; i++) {
        char *end;
        all += strtod(*text, &end);
        *text = *end == '/' ? end + 1 : end;
    }
    return all;
}

/* The fullest rank's rows over the average: neighbours in the list lie on one
 * rank. */
static double fullest(const char *text, uint32_t experts, uint32_t ranks)
{
    double most = 0, all = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        double own = sum(&text, experts / ranks);
        most = own > most ? own : most;
        all += own;
    }
    return most * ranks / all;
}

/* A load of each of n experts. */
static ms_err read_loads(const char *text, uint32_t n, uint32_t ranks,
                         ms_shape *shape, ms_fault *fault)
{
    char hint[96];
    snprintf(hint, sizeof hint, "give %u loads", (n / ranks + 1) * ranks);
    if (n % ranks != 0)
        return ms_fail(fault, MS_EUSAGE, "expert:imbalance", hint,
                       "the loads of %u experts do not divide among %u ranks",
                       n, ranks);
    shape->expert_imbalance = fullest(text, n, ranks);
    shape->expert_loads = n;
    if (shape->expert_imbalance > 0)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "expert:imbalance",
                   "give those that have rows more than 0",
                   "all %u experts have a load of 0", n);
}

static ms_err read_imbalance(const ms_policy_value *value, uint32_t ranks,
                             ms_shape *shape, ms_fault *fault)
{
    uint32_t n = count(value->text);
    if (n > 1)
        return read_loads(value->text, n, ranks, shape, fault);
    shape->expert_imbalance = strtod(value->text, NULL);
    shape->expert_loads = 0;
    if (shape->expert_imbalance < 1)
        return ms_fail(fault, MS_EUSAGE, "expert:imbalance",
                       "type 1 where all ranks have as many",
                       "the fullest rank has no fewer rows than an average "
                       "one: %s",
                       value->text);
    if (shape->expert_imbalance > ranks)
        return ms_fail(fault, MS_EUSAGE, "expert:imbalance",
                       "one rank has all rows at most",
                       "of %u ranks the fullest cannot have %s times the rows "
                       "of an average one",
                       ranks, value->text);
    return MS_OK;
}

static ms_err read_capacity(const ms_policy_value *value, ms_shape *shape,
                            ms_fault *fault)
{
    shape->expert_capacity = strtod(value->text, NULL);
    return count(value->text) == 1
               ? MS_OK
               : ms_fail(fault, MS_EUSAGE, "expert:capacity",
                         "type capacity=1.25, for example",
                         "all experts have the same capacity");
}

/* ---- the grid ------------------------------------------------------------ */

/* The numbers of experts' ranks below and above that divide these GPUs. */
static ms_err refuse(uint32_t gpus, uint32_t ranks, uint32_t etp,
                     ms_fault *fault)
{
    char hint[96];
    uint32_t low = ranks, high = ranks, most = gpus / etp;
    while (low > 1 && (low > most || gpus % (low * etp) != 0))
        low--;
    while (high < most && gpus % (high * etp) != 0)
        high++;
    snprintf(hint, sizeof hint, "expert:%u would; or take %u GPUs", low,
             (gpus / (ranks * etp) + 1) * ranks * etp);
    if (high <= most && high != low)
        snprintf(hint, sizeof hint, "expert:%u and expert:%u would", low, high);
    return ms_fail(fault, MS_EUSAGE, "expert", hint,
                   "%u GPUs with the same layers do not divide into groups of "
                   "%u x %u (experts x what splits each)",
                   gpus, ranks, etp);
}

/* Without a policy that says how many ranks there are, there are as many as
 * these experts need, in whole groups of those that divide a sequence. */
static ms_err divide(uint32_t ranks, uint32_t etp, ms_shape *shape,
                     ms_fault *fault)
{
    uint32_t inner = ms_shape_tensor(shape);
    uint32_t stages = shape->pipeline_ranks > 1 ? shape->pipeline_ranks : 1;
    uint32_t need = ranks * etp, group = ms_shape_context(shape);
    uint32_t gpus =
        shape->is_shared ? ms_shape_beside(shape) : shape->gpus / stages;
    if (gpus > 0 && gpus % need != 0)
        return refuse(gpus, ranks, etp, fault);
    if (!shape->is_shared)
        shape->data_ranks = group;
    while (!shape->is_shared && shape->data_ranks * inner % need != 0)
        shape->data_ranks += group;
    uint32_t parts = ms_shape_parts(shape) * inner;
    return parts % need == 0 ? MS_OK : refuse(parts, ranks, etp, fault);
}

static ms_err check_etp(uint32_t etp, const ms_shape *shape, ms_fault *fault)
{
    uint32_t inner = ms_shape_tensor(shape);
    char hint[64];
    uint32_t less = etp < inner ? etp : inner;
    while (inner % less != 0)
        less--;
    snprintf(hint, sizeof hint, "etp=%u would", less);
    return inner % etp == 0
               ? MS_OK
               : ms_fail(fault, MS_EUSAGE, "expert:etp", hint,
                         "%u ranks that split layers do not divide into groups "
                         "of %u",
                         inner, etp);
}

static ms_err check_beside(const ms_shape *shape, ms_fault *fault)
{
    if (shape->expert_ranks > 0)
        return ms_fail(fault, MS_EUSAGE, "expert", "leave expert_ranks out",
                       "which ranks divide the states of experts follows from "
                       "who has which experts");
    if (shape->reshard_ranks > 0)
        return ms_fail(fault, MS_EUSAGE, "expert", "leave reshard_ranks out",
                       "ranks that have a part of experts are no neighbours");
    if (shape->flat_step.used || shape->part == MS_PART_FLAT ||
        shape->part == MS_PART_BLOCKS)
        return ms_fail(fault, MS_EUSAGE, "expert",
                       "take zero or fsdp (impl=2) beside it",
                       "how flat buffers of all states are divided where ranks "
                       "have other experts is not known yet");
    return MS_OK;
}

static ms_err check_values(const ms_policy_value *values, uint32_t ranks,
                           ms_fault *fault)
{
    if (values[CAPACITY].given && values[IMBALANCE].given)
        return ms_fail(fault, MS_EUSAGE, "expert:imbalance",
                       "leave one of the two out",
                       "with a capacity all experts have as many rows, padded");
    if (values[DISPATCH].number && ranks == 1)
        return ms_fail(fault, MS_EUSAGE, "expert:dispatch", "leave it out",
                       "one rank dispatches nothing to others");
    return MS_OK;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    uint32_t ranks = (uint32_t)values[RANKS].number;
    uint32_t inner = ms_shape_tensor(shape);
    uint32_t etp =
        values[TENSOR].given ? (uint32_t)values[TENSOR].number : inner;
    MS_TRY(ms_ranknames_read("expert:order", &values[ORDER], shape, fault));
    MS_TRY(check_etp(etp, shape, fault));
    MS_TRY(check_values(values, ranks, fault));
    if (values[CAPACITY].given)
        MS_TRY(read_capacity(&values[CAPACITY], shape, fault));
    if (values[IMBALANCE].given)
        MS_TRY(read_imbalance(&values[IMBALANCE], ranks, shape, fault));
    shape->expert_policy = true;
    if (ranks == 1 && etp == inner)
        return MS_OK;
    MS_TRY(check_beside(shape, fault));
    MS_TRY(divide(ranks, etp, shape, fault));
    shape->expert_split = ranks;
    shape->expert_deep = values[DISPATCH].number;
    shape->expert_tensor = etp;
    shape->expert_ranks = ms_shape_parts(shape) * inner / (ranks * etp);
    return MS_OK;
}

const ms_policy ms_policy_expert_ranks = {
    .name = "expert",
    .summary = "ranks divide the experts of a layer; tokens go to them and "
               "back",
    .example = "expert:8",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
};
