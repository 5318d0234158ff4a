/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/schedule/schedule.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdio.h>
#include <string.h>

const char ms_schedule_letters[MS_N_TURNS] = {
    [MS_TURN_FORWARD] = 'F',
    [MS_TURN_BACKWARD] = 'B',
    [MS_TURN_GRAD_INPUT] = 'I',
    [MS_TURN_GRAD_WEIGHT] = 'W',
};

ms_err ms_schedule_default(const ms_graph *graph, uint32_t micro_batches,
                           ms_arena *arena, ms_schedule *schedule,
                           ms_fault *fault)
{
    ms_stage *stage = ms_arena_take(arena, 1, sizeof *stage);
    uint32_t *turn_at = ms_arena_take(arena, 2, sizeof *turn_at);
    ms_turn *turns =
        ms_arena_take_raw(arena, 2 * (size_t)micro_batches, sizeof *turns);
    if (stage == NULL || turn_at == NULL || turns == NULL)
        return ms_fail_nomem(fault);
    stage->last = graph->n_units - 1;
    for (uint32_t m = 0; m < micro_batches; m++) {
        turns[turn_at[1]++] = (ms_turn){.micro_batch = m};
        turns[turn_at[1]++] =
            (ms_turn){.micro_batch = m, .kind = MS_TURN_BACKWARD};
    }
    *schedule = (ms_schedule){.n_stages = 1,
                              .stages = stage,
                              .n_ranks = 1,
                              .n_micro_batches = micro_batches,
                              .turn_at = turn_at,
                              .turns = turns};
    return MS_OK;
}

uint16_t ms_schedule_rank(const ms_schedule *schedule, uint32_t stage,
                          uint32_t micro_batch)
{
    if (schedule->rank_of == NULL)
        return schedule->stages[stage].rank;
    return schedule
        ->rank_of[(size_t)stage * schedule->n_micro_batches + micro_batch];
}

bool ms_schedule_splits(const ms_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->turn_at[schedule->n_ranks]; i++)
        if (schedule->turns[i].kind == MS_TURN_GRAD_WEIGHT)
            return true;
    return false;
}

ms_err ms_schedule_stage_of(const ms_graph *graph, const ms_schedule *schedule,
                            ms_arena *arena, uint32_t **stage_of,
                            ms_fault *fault)
{
    *stage_of = ms_arena_take(arena, graph->n_units, sizeof **stage_of);
    if (*stage_of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < schedule->n_stages; k++)
        for (uint32_t u = schedule->stages[k].first;
             u <= schedule->stages[k].last; u++)
            (*stage_of)[u] = k;
    return MS_OK;
}

/* ---- what makes one wrong ------------------------------------------------ */

static ms_err check_stages(const ms_graph *graph, const ms_schedule *schedule,
                           ms_fault *fault)
{
    uint32_t next = 0;
    for (uint32_t k = 0; k < schedule->n_stages; k++) {
        const ms_stage *stage = &schedule->stages[k];
        if (stage->first != next || stage->last < stage->first ||
            stage->last >= graph->n_units || stage->rank >= schedule->n_ranks)
            return ms_fail(fault, MS_EINPUT, NULL,
                           "let the stages be the units in order",
                           "stage %u has units %u-%u of rank %u; the next unit "
                           "is %u of %u",
                           k, stage->first, stage->last, (unsigned)stage->rank,
                           next, graph->n_units);
        next = stage->last + 1;
    }
    if (next == graph->n_units)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL,
                   "let the stages be the units in order",
                   "no stage has units %u-%u", next, graph->n_units - 1);
}

static const char *name_of(const ms_schedule *schedule)
{
    return schedule->name != NULL ? schedule->name : "schedule";
}

static const char once[] =
    "a stage runs each micro-batch forward once (F), then backward once (B), "
    "or as I and later W";

/* A file has rows and cells, what a policy wrote has ranks and their turns. */
static ms_err fail_turn(const ms_schedule *schedule, uint32_t rank,
                        uint32_t turn, const char *what, ms_fault *fault)
{
    const ms_turn *it = &schedule->turns[turn];
    const char *name = name_of(schedule);
    char where[256], which[48];
    if (schedule->column != NULL) {
        snprintf(where, sizeof where, "%s:%u:%u", name, rank + 1,
                 schedule->column[turn]);
        name = where;
    }
    snprintf(which, sizeof which, "turn %u of rank %u, ",
             turn - schedule->turn_at[rank], rank);
    return ms_fail(fault, MS_EINPUT, name, once, "%s%u%c%u%s %s",
                   schedule->column != NULL ? "" : which, it->stage,
                   ms_schedule_letters[it->kind], it->micro_batch,
                   schedule->column != NULL ? "" : ",", what);
}

/* The cell of the last turn that the rank runs of the stage and micro-batch, or
 * of its last of all. */
static uint32_t cell_of(const ms_schedule *schedule, uint32_t rank,
                        uint32_t stage, uint32_t micro_batch)
{
    uint32_t first = schedule->turn_at[rank], end = schedule->turn_at[rank + 1];
    for (uint32_t i = end; i-- > first;)
        if (schedule->turns[i].stage == stage &&
            schedule->turns[i].micro_batch == micro_batch)
            return schedule->column[i];
    return end > first ? schedule->column[end - 1] : 1;
}

static ms_err fail_stage(const ms_schedule *schedule, uint32_t stage,
                         uint32_t micro_batch, bool forward, ms_fault *fault)
{
    uint32_t rank = ms_schedule_rank(schedule, stage, micro_batch);
    const char *name = name_of(schedule);
    char where[256], which[24];
    if (schedule->column != NULL) {
        snprintf(where, sizeof where, "%s:%u:%u", name, rank + 1,
                 cell_of(schedule, rank, stage, micro_batch));
        name = where;
    }
    snprintf(which, sizeof which, "rank %u, ", rank);
    return ms_fail(fault, MS_EINPUT, name, once,
                   "%sstage %u does not run micro-batch %u %s",
                   schedule->column != NULL ? "" : which, stage, micro_batch,
                   forward ? "backward to its end" : "forward");
}

/* What has been run, as bits of ms_turn_kind. */
static const char *wrong_with(uint8_t kind, unsigned ran)
{
    unsigned forward = 1u << MS_TURN_FORWARD, whole = 1u << MS_TURN_BACKWARD;
    unsigned input = 1u << MS_TURN_GRAD_INPUT;
    if (ran & 1u << kind)
        return "comes twice";
    if (kind != MS_TURN_FORWARD && !(ran & forward))
        return "comes before its forward";
    if (kind == MS_TURN_GRAD_WEIGHT && !(ran & input))
        return "comes before the gradients of its inputs";
    if ((kind == MS_TURN_BACKWARD && ran & input) ||
        (kind == MS_TURN_GRAD_INPUT && ran & whole))
        return "comes beside another backward of it";
    return NULL;
}

static bool may_pair(const ms_schedule *schedule, uint32_t rank, uint32_t turn)
{
    const ms_turn *it = &schedule->turns[turn], *other = it + 1;
    return it->kind == MS_TURN_FORWARD &&
           turn + 1 < schedule->turn_at[rank + 1] &&
           other->kind == MS_TURN_BACKWARD &&
           (other->stage != it->stage || other->micro_batch != it->micro_batch);
}

static ms_err check_turns(const ms_schedule *schedule, uint8_t *ran,
                          ms_fault *fault)
{
    uint32_t n = schedule->n_micro_batches;
    for (uint32_t r = 0; r < schedule->n_ranks; r++)
        for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1];
             i++) {
            const ms_turn *turn = &schedule->turns[i];
            if (turn->stage >= schedule->n_stages || turn->micro_batch >= n)
                return fail_turn(schedule, r, i, "is not there", fault);
            if (ms_schedule_rank(schedule, turn->stage, turn->micro_batch) != r)
                return fail_turn(schedule, r, i, "is another rank's", fault);
            uint8_t *cell = &ran[(size_t)turn->stage * n + turn->micro_batch];
            const char *wrong = wrong_with(turn->kind, *cell);
            if (wrong != NULL)
                return fail_turn(schedule, r, i, wrong, fault);
            *cell |= (uint8_t)(1u << turn->kind);
            if (turn->pairs && !may_pair(schedule, r, i))
                return fail_turn(schedule, r, i,
                                 "has no other one's backward behind it to "
                                 "pair with",
                                 fault);
        }
    return MS_OK;
}

static ms_err check_all_ran(const ms_schedule *schedule, const uint8_t *ran,
                            ms_fault *fault)
{
    unsigned forward = 1u << MS_TURN_FORWARD;
    unsigned whole = forward | 1u << MS_TURN_BACKWARD;
    unsigned halves =
        forward | 1u << MS_TURN_GRAD_INPUT | 1u << MS_TURN_GRAD_WEIGHT;
    for (uint32_t k = 0; k < schedule->n_stages; k++)
        for (uint32_t m = 0; m < schedule->n_micro_batches; m++) {
            uint8_t bits = ran[(size_t)k * schedule->n_micro_batches + m];
            if (bits == whole || bits == halves)
                continue;
            return fail_stage(schedule, k, m, bits & forward, fault);
        }
    return MS_OK;
}

/* From the ranks of the first micro-batch to those of another. */
static ms_err check_copies(const ms_schedule *schedule, uint32_t *to,
                           ms_fault *fault)
{
    uint32_t n = schedule->n_ranks, *from = to + n;
    for (uint32_t m = 0; m < schedule->n_micro_batches; m++) {
        for (uint32_t r = 0; r < n; r++)
            to[r] = from[r] = MS_NONE;
        for (uint32_t k = 0; k < schedule->n_stages; k++) {
            uint32_t a = ms_schedule_rank(schedule, k, 0);
            uint32_t b = ms_schedule_rank(schedule, k, m);
            if (b < n && (m > 0 || schedule->stages[k].rank == b) &&
                (to[a] == MS_NONE || to[a] == b) &&
                (from[b] == MS_NONE || from[b] == a)) {
                to[a] = b;
                from[b] = a;
                continue;
            }
            return ms_fail(fault, MS_EINPUT, name_of(schedule),
                           "let stages that share a rank for one micro-batch "
                           "share one for all",
                           "stage %u runs micro-batch %u on rank %u, whose "
                           "other stages are not those of rank %u",
                           k, m, b, a);
        }
    }
    return MS_OK;
}

ms_err ms_schedule_check(const ms_graph *graph, const ms_schedule *schedule,
                         ms_fault *fault)
{
    ms_arena scratch = {0};
    MS_TRY(check_stages(graph, schedule, fault));
    uint8_t *ran = ms_arena_take(
        &scratch, (size_t)schedule->n_stages * schedule->n_micro_batches, 1);
    uint32_t *to =
        ms_arena_take_raw(&scratch, 2 * (size_t)schedule->n_ranks, sizeof *to);
    ms_err err = ran == NULL || to == NULL ? ms_fail_nomem(fault) : MS_OK;
    if (err == MS_OK && schedule->rank_of != NULL)
        err = check_copies(schedule, to, fault);
    if (err == MS_OK)
        err = check_turns(schedule, ran, fault);
    if (err == MS_OK)
        err = check_all_ran(schedule, ran, fault);
    ms_arena_free(&scratch);
    return err;
}

/* ---- the turns of a program ---------------------------------------------- */

/* The stage whose units the call runs, or that of which it is a copy. */
static uint32_t stage_with(const ms_program *program, const ms_call *call)
{
    uint32_t i = 0, first = 0;
    for (; i < program->n_stages; i++) {
        const ms_stage *stage = &program->stages[i];
        if (stage->rank == call->rank && stage->first <= call->unit &&
            call->unit <= stage->last)
            break;
    }
    while (i < program->n_stages &&
           program->stages[first].first != program->stages[i].first)
        first++;
    return first;
}

static uint8_t kind_of(const ms_call *call)
{
    if (call->run.pass == MS_FORWARD)
        return MS_TURN_FORWARD;
    if (!call->run.half)
        return MS_TURN_BACKWARD;
    return call->run.pass == MS_GRAD_WEIGHT ? MS_TURN_GRAD_WEIGHT
                                            : MS_TURN_GRAD_INPUT;
}

ms_turn ms_schedule_turn_of(const ms_program *program, const ms_call *call)
{
    return (ms_turn){.stage = stage_with(program, call),
                     .micro_batch = call->micro_batch,
                     .kind = kind_of(call),
                     .pairs = call->run.pairs};
}
