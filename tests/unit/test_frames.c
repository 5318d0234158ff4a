/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The frames of a pipeline's ranks lie in one another: no two ranks touch one
 * cell, and however many there are, a frame of all is a few of one. */
#include "sim/expand/views/frames.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/stage.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <stdlib.h>

#define MODEL                                                                  \
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 64, "   \
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}"

static ms_arena keep, trial;

/* Per cell the rank that touches it + 1. */
typedef struct toucher {
    const ms_graph *graph;
    uint32_t *owner, rank;
    uint64_t offset;
} toucher;

static void touch(const toucher *it, uint32_t s)
{
    uint32_t *owner = &it->owner[s + it->offset];
    if (s < it->graph->n_persistent)
        return;
    ck_assert_msg(*owner == 0 || *owner == it->rank + 1,
                  "ranks %u and %u both touch storage %u", it->rank, *owner - 1,
                  s);
    *owner = it->rank + 1;
}

static void touch_ops(const toucher *it, uint32_t first, uint32_t end)
{
    const ms_graph *graph = it->graph;
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        touch(it, graph->in[i]);
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++)
        touch(it, graph->out[i]);
}

static void check_apart(const ms_graph *graph, const ms_program *program,
                        const ms_frames *frames)
{
    toucher it = {.graph = graph};
    it.owner = calloc(frames->width + graph->n_storages, sizeof *it.owner);
    ck_assert_ptr_nonnull(it.owner);
    for (uint32_t i = 0; i < program->n_stages; i++) {
        const ms_stage *stage = &program->stages[i];
        it.rank = stage->rank;
        it.offset = frames->offset[stage->rank];
        touch_ops(&it, graph->forward_at[stage->first],
                  graph->forward_at[stage->last + 1]);
        touch_ops(&it, graph->backward_at[stage->last + 1],
                  graph->backward_at[stage->first]);
    }
    free(it.owner);
}

/* How many frames of one rank that of all is wide. */
static double lay(const char *policy)
{
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    ms_frames frames;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = 64;
    ms_err err =
        inlined_step(MODEL, policy, &job, &keep, &trial, &result, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", policy, fault.what);
    const ms_graph *graph = result.graph;
    ms_program program = *result.program;
    ck_assert_int_eq(ms_stage_find(graph, &program, &trial, &fault), MS_OK);
    ck_assert_int_eq(ms_frames_lay(graph, &program, &trial, &frames, &fault),
                     MS_OK);
    check_apart(graph, &program, &frames);
    return (double)frames.width / (graph->n_storages - graph->n_persistent);
}

/* Of a bidirectional pipeline two ranks have each stage. */
static const struct order {
    const char *policy;
    double most;
} orders[] = {
    {"microbatch:64+pipeline:%u", 4},
    {"microbatch:64+pipeline:%u,schedule=interleaved,chunks=2", 4},
    {"microbatch:64+pipeline:%u+checkpoint:full", 4},
    {"microbatch:64+pipeline:%u,schedule=dualpipe", 8},
};

START_TEST(ranks_lie_in_one_another)
{
    for (uint32_t stages = 2; stages <= 32; stages *= 2) {
        char policy[120];
        snprintf(policy, sizeof policy, orders[_i].policy, stages);
        ck_assert_double_le(lay(policy), orders[_i].most);
    }
}
END_TEST

Suite *suite_frames(void)
{
    Suite *suite = suite_create("frames");
    TCase *tcase = tcase_create("frames");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, ranks_lie_in_one_another, 0,
                        sizeof orders / sizeof *orders);
    suite_add_tcase(suite, tcase);
    return suite;
}
