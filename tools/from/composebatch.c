/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sizes of a step, of which two or three give the others:
 *
 *     global = micro x accumulate x ranks
 *     ranks  = gpus / (tensor x context x pipeline)
 *
 * torchtitan says what a rank has (batch.local), which a pipeline cuts into
 * micro-batches of batch.stages samples.  Composer's micro-batches have at most
 * batch.most samples of what a rank has, and the last one what is left. */

#include "tools/from/compose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sizes {
    uint64_t micro, accumulate, global, divided;
} sizes;

static ms_err read_gpus(ms_compose *c, ms_fault *fault)
{
    const char *typed = ms_composeput_typed(c, "gpus");
    uint64_t node = 0, nodes = 0;
    MS_TRY(ms_facts_number(c->facts, "gpus", &c->gpus, fault));
    if (c->gpus == 0) {
        MS_TRY(ms_facts_number(c->facts, "gpus.node", &node, fault));
        MS_TRY(ms_facts_number(c->facts, "nodes", &nodes, fault));
        c->gpus = node * (nodes > 0 ? nodes : 1);
    }
    if (typed == NULL)
        return MS_OK;
    uint64_t number = strtoull(typed, NULL, 10);
    if (number != c->gpus)
        MS_TRY(ms_composeput_wins(c, "--gpus", typed,
                                  ms_facts_find(c->facts, "gpus"), fault));
    c->gpus = strchr(typed, ',') == NULL ? number : 0;
    return MS_OK;
}

/* Ranks that run one model together. */
static ms_err read_divided(const ms_compose *c, uint64_t *divided,
                           ms_fault *fault)
{
    static const char *const names[] = {"tensor", "context", "pipeline"};
    *divided = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t degree;
        MS_TRY(ms_composepolicies_degree(c, names[i], &degree, fault));
        *divided *= degree;
    }
    return MS_OK;
}

/* torchtitan: data ranks are those of its two degrees, where both are given. */
static ms_err read_degrees(const ms_compose *c, uint64_t *ranks,
                           ms_fault *fault)
{
    uint64_t shards, replicas;
    MS_TRY(ms_facts_number(c->facts, "fsdp.shards", &shards, fault));
    MS_TRY(ms_facts_number(c->facts, "fsdp.replicas", &replicas, fault));
    *ranks = shards * (replicas > 0 ? replicas : 1);
    return MS_OK;
}

static ms_err read_ranks(ms_compose *c, sizes *s, ms_fault *fault)
{
    MS_TRY(read_gpus(c, fault));
    MS_TRY(read_divided(c, &s->divided, fault));
    if (c->gpus == 0) {
        MS_TRY(read_degrees(c, &c->ranks, fault));
        c->gpus = c->ranks * s->divided;
        return MS_OK;
    }
    c->ranks = c->gpus / s->divided;
    if (c->ranks * s->divided == c->gpus)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL,
                   "say --gpus, or change the degrees in the file",
                   "%" PRIu64 " GPUs are no multiple of the %" PRIu64
                   " ranks that tensor, context and pipeline parallelism take",
                   c->gpus, s->divided);
}

/* torchtitan before 2025-04 counts a pipeline's micro-batches; 0: it does
 * not. */
static ms_err read_pieces(const ms_compose *c, uint64_t stages,
                          uint64_t *pieces, ms_fault *fault)
{
    const char *value = ms_facts_value(c->facts, "batch.pieces");
    *pieces = stages;
    return value != NULL && strcmp(value, "stages") == 0
               ? MS_OK
               : ms_facts_number(c->facts, "batch.pieces", pieces, fault);
}

static ms_err read_micro(const ms_compose *c, sizes *s, ms_fault *fault)
{
    uint64_t local, pipeline, stage, pieces;
    MS_TRY(ms_facts_number(c->facts, "batch.micro", &s->micro, fault));
    MS_TRY(ms_facts_number(c->facts, "batch.global", &s->global, fault));
    MS_TRY(
        ms_facts_number(c->facts, "batch.accumulate", &s->accumulate, fault));
    MS_TRY(ms_facts_number(c->facts, "batch.local", &local, fault));
    MS_TRY(ms_facts_number(c->facts, "batch.stages", &stage, fault));
    MS_TRY(ms_composepolicies_degree(c, "pipeline", &pipeline, fault));
    MS_TRY(read_pieces(c, pipeline, &pieces, fault));
    if (local == 0)
        return MS_OK;
    if (pieces > 0 && local % pieces == 0)
        stage = local / pieces;
    if (pipeline > 1 && stage > 0 && local % stage == 0 && s->global == 0) {
        s->accumulate = local / stage;
        local = stage;
    }
    s->micro = local;
    return MS_OK;
}

static bool is_typed(const ms_compose *c)
{
    return ms_composeput_typed(c, "training.batch") != NULL ||
           ms_composeput_typed(c, "global-batch") != NULL;
}

static ms_err tell_uneven(ms_compose *c, const sizes *s, uint64_t each,
                          ms_fault *fault)
{
    return ms_facts_say(
        c->facts, &c->facts->warnings, fault,
        "%s: of the %" PRIu64
        " samples of a GPU the last micro-batch has %" PRIu64
        ": memsim has %" PRIu64 " in all %" PRIu64,
        ms_facts_place(c->facts, ms_facts_find(c->facts, "batch.most")), each,
        each % s->micro, s->micro, s->accumulate);
}

#define MOST_DIVIDED (1u << 20) /* so large a batch is one micro-batch */

/* The fewest micro-batches of at most batch.most samples, all alike, that the
 * typed batch divides into; lists have one. */
static void divide_typed(const ms_compose *c, sizes *s)
{
    const char *batch = ms_composeput_typed(c, "training.batch");
    const char *global = ms_composeput_typed(c, "global-batch");
    char *end;
    uint64_t each = strtoull(batch != NULL ? batch : global, &end, 10);
    if (batch == NULL)
        each /= c->ranks > 0 ? c->ranks : 1;
    s->global = 0;
    s->accumulate = 1;
    if (*end != '\0' || each > MOST_DIVIDED)
        return;
    s->accumulate = (each + s->micro - 1) / s->micro;
    while (s->accumulate > 0 && each % s->accumulate != 0)
        s->accumulate++;
}

/* llmfoundry/utils/config_utils.py, calculate_batch_size_info */
static ms_err read_most(ms_compose *c, sizes *s, ms_fault *fault)
{
    const ms_fact *global = ms_facts_find(c->facts, "batch.global");
    uint64_t most;
    MS_TRY(ms_facts_number(c->facts, "batch.most", &most, fault));
    if (most == 0)
        return MS_OK;
    s->micro = most;
    if (is_typed(c)) {
        divide_typed(c, s);
        return MS_OK;
    }
    if (s->global == 0)
        return MS_OK;
    if (c->ranks == 0)
        return ms_facts_say(c->facts, &c->facts->told, fault,
                            "%s: %" PRIu64
                            " samples a step of the whole job: --gpus says how "
                            "many micro-batches each has, memsim has one",
                            ms_facts_place(c->facts, global), s->global);
    if (s->global % c->ranks != 0)
        return ms_facts_fail(
            global, fault, "correct the file, or say --gpus",
            "%" PRIu64 " samples a step do not divide into %" PRIu64 " ranks",
            s->global, c->ranks);
    uint64_t each = s->global / c->ranks;
    s->micro = most < each ? most : each;
    s->accumulate = (each + s->micro - 1) / s->micro;
    s->global = s->micro * s->accumulate * c->ranks;
    return each % s->micro == 0 ? MS_OK : tell_uneven(c, s, each, fault);
}

/* Two of the three sizes give the third. */
static ms_err complete(ms_compose *c, sizes *s, ms_fault *fault)
{
    const ms_fact *global = ms_facts_find(c->facts, "batch.global");
    const ms_fact *given = ms_facts_find(c->facts, "batch.accumulate");
    bool said = ms_facts_is_said(given);
    uint64_t each = s->micro * (said ? s->accumulate : 1);
    if (s->global > 0 && c->ranks == 0 && each > 0 && said &&
        s->global % each == 0) {
        c->ranks = s->global / each;
        c->gpus = c->ranks * s->divided;
        return ms_facts_say(
            c->facts, &c->facts->told, fault,
            "%" PRIu64 " GPUs: %s divides its %" PRIu64 " samples so", c->gpus,
            ms_facts_place(c->facts, global), s->global);
    }
    if (s->global > 0 && c->ranks > 0 && s->micro == 0)
        s->micro = s->global / (c->ranks * (said ? s->accumulate : 1));
    each = s->micro * (said ? s->accumulate : 1);
    if (s->global > 0 && c->ranks > 0 && !said && each > 0)
        s->accumulate = s->global / (each * c->ranks);
    if (s->accumulate == 0)
        s->accumulate = 1;
    if (is_typed(c) || s->global == 0 || c->ranks == 0 || s->micro == 0 ||
        s->micro * s->accumulate * c->ranks == s->global)
        return MS_OK;
    return ms_facts_fail(global, fault, "correct the file, or say --gpus",
                         "%" PRIu64 " samples a step are not %" PRIu64
                         " a micro-batch x %" PRIu64 " micro-batches x %" PRIu64
                         " ranks",
                         s->global, s->micro, s->accumulate, c->ranks);
}

static ms_err put_number(ms_compose *c, const char *option, uint64_t number,
                         ms_fault *fault)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return ms_composeput_option(c, option, text, fault);
}

/* Micro-batches of which no file says how large they are have a sample each,
 * as memsim's own batch has. */
static ms_err put_each(ms_compose *c, const sizes *s, ms_fault *fault)
{
    if (s->accumulate < 2)
        return MS_OK;
    MS_TRY(ms_facts_say(
        c->facts, &c->facts->warnings, fault,
        "%s: no file says how many samples each of the %" PRIu64
        " micro-batches has: 1; --batch N for all of a GPU's",
        ms_facts_place(c->facts, ms_facts_find(c->facts, "batch.accumulate")),
        s->accumulate));
    return put_number(c, "batch", s->accumulate, fault);
}

static ms_err put_batch(ms_compose *c, const sizes *s, ms_fault *fault)
{
    const char *typed = ms_composeput_typed(c, "training.batch");
    const char *global = ms_composeput_typed(c, "global-batch");
    const ms_fact *micro = ms_facts_find(c->facts, "batch.micro");
    if (micro == NULL)
        micro = ms_facts_find(c->facts, "batch.local");
    if (micro == NULL)
        micro = ms_facts_find(c->facts, "batch.most");
    if (typed != NULL || global != NULL)
        return micro == NULL
                   ? MS_OK
                   : ms_composeput_wins(
                         c, typed != NULL ? "--batch" : "--global-batch",
                         typed != NULL ? typed : global, micro, fault);
    if (s->micro > 0 && s->global > 0 && c->ranks == 0 && s->accumulate == 1 &&
        ms_facts_find(c->facts, "batch.most") == NULL)
        MS_TRY(ms_facts_say(
            c->facts, &c->facts->warnings, fault,
            "%s: %" PRIu64 " samples a step of the whole job: --gpus says how "
            "many micro-batches a GPU has; memsim has one",
            ms_facts_place(c->facts, ms_facts_find(c->facts, "batch.global")),
            s->global));
    if (s->micro > 0)
        return put_number(c, "batch", s->micro * s->accumulate, fault);
    if (s->global == 0)
        return put_each(c, s, fault);
    return ms_facts_say(
        c->facts, &c->facts->warnings, fault,
        "%s: %" PRIu64 " samples a step of the whole job: say "
        "--gpus to divide them; memsim's batch is 1",
        ms_facts_place(c->facts, ms_facts_find(c->facts, "batch.global")),
        s->global);
}

ms_err ms_composebatch_put(ms_compose *c, ms_fault *fault)
{
    sizes s = {0};
    MS_TRY(read_ranks(c, &s, fault));
    MS_TRY(read_micro(c, &s, fault));
    MS_TRY(read_most(c, &s, fault));
    MS_TRY(complete(c, &s, fault));
    if (s.accumulate > 1) {
        c->micro_batches = ms_arena_format(c->arena, "%" PRIu64, s.accumulate);
        if (c->micro_batches == NULL)
            return ms_fail_nomem(fault);
    }
    if (c->gpus > 1 && ms_composeput_typed(c, "gpus") == NULL)
        MS_TRY(put_number(c, "gpus", c->gpus, fault));
    return put_batch(c, &s, fault);
}
