/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/search/fitstages.h"
#include "policies/common/policy.h"
#include "policies/schedule/normmeeting.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "sim/stage.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/search/fitcosts.h"

#include <string.h>

/* ---- what a schedule says ------------------------------------------------ */

/* Of a schedule of so many micro-batches, by rank: how many chunks' sets are
 * there at most when a backward begins, and behind the first of each stage. */
typedef struct ms_fitstages_flight {
    uint16_t option[MS_FIT_N_AXES]; /* whose it is */
    ms_fitcosts_layout layout;
    uint32_t n_ranks;
    uint32_t *rank;         /* by stage */
    uint32_t *most, *later; /* by rank */
} flight;

static void look_at_turns(const ms_schedule *schedule, uint32_t r,
                          uint8_t *begun, flight *f)
{
    uint32_t now = 0, open = 0;
    for (uint32_t k = 0; k < f->layout.n; k++)
        open += f->rank[k] == r;
    for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1]; i++) {
        const ms_turn *turn = &schedule->turns[i];
        f->layout.pairs |= turn->pairs;
        now += turn->kind == MS_TURN_FORWARD;
        if (turn->kind == MS_TURN_BACKWARD ||
            turn->kind == MS_TURN_GRAD_INPUT) {
            f->most[r] = now > f->most[r] ? now : f->most[r];
            if (open == 0 && now > f->later[r])
                f->later[r] = now;
            now--;
        }
        if ((turn->kind == MS_TURN_BACKWARD ||
             turn->kind == MS_TURN_GRAD_WEIGHT) &&
            !begun[turn->stage]) {
            begun[turn->stage] = 1;
            open--;
        }
    }
}

static ms_err make_flight(const ms_schedule *schedule, ms_arena *arena,
                          flight *f, ms_fault *fault)
{
    uint32_t n = schedule->n_stages;
    f->n_ranks = schedule->n_ranks;
    f->rank = ms_arena_take(arena, 3 * (size_t)n, sizeof *f->rank);
    f->most = ms_arena_take(arena, 2 * (size_t)f->n_ranks, sizeof *f->most);
    uint8_t *begun = ms_arena_take(arena, n, 1);
    if (f->rank == NULL || f->most == NULL || begun == NULL)
        return ms_fail_nomem(fault);
    uint32_t *first = f->rank + n, *last = first + n;
    f->later = f->most + f->n_ranks;
    f->layout = (ms_fitcosts_layout){n, first, last,
                                     .splits = ms_schedule_splits(schedule)};
    for (uint32_t k = 0; k < n; k++) {
        f->rank[k] = schedule->stages[k].rank;
        first[k] = schedule->stages[k].first;
        last[k] = schedule->stages[k].last;
    }
    for (uint32_t r = 0; r < f->n_ranks; r++)
        look_at_turns(schedule, r, begun, f);
    return MS_OK;
}

/* The point's options but for these two. */
static void key_of(const ms_fit_point *point, ms_fit_axis_id a,
                   ms_fit_axis_id b, uint16_t *key)
{
    memcpy(key, point->option, sizeof point->option);
    key[a] = key[b] = 0;
}

static ms_err find_flight(ms_fitstages *of, const ms_fit_point *point,
                          const ms_job *job, ms_arena *trial,
                          const ms_expand_opts *opts, const ms_result *result,
                          flight **found, ms_fault *fault)
{
    uint16_t key[MS_FIT_N_AXES];
    ms_schedule schedule;
    key_of(point, MS_FIT_SHARE, MS_FIT_CHECKPOINT, key);
    for (uint32_t i = 0; i < MS_FITSTAGES_FLIGHTS; i++) {
        *found = of->flights[i];
        if (*found != NULL && memcmp((*found)->option, key, sizeof key) == 0)
            return MS_OK;
    }
    uint32_t at = of->next_flight++ % MS_FITSTAGES_FLIGHTS;
    ms_arena *arena = &of->flights_arena[at];
    of->flights[at] = NULL;
    ms_arena_reset(arena);
    flight *f = ms_arena_take(arena, 1, sizeof *f);
    if (f == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_jobprogram_schedule(job, trial, opts, result,
                                  result->shape.micro_batches, &schedule,
                                  fault));
    MS_TRY(make_flight(&schedule, arena, f, fault));
    memcpy(f->option, key, sizeof key);
    *found = of->flights[at] = f;
    return MS_OK;
}

/* ---- what the graph says ------------------------------------------------- */

typedef struct ms_fitstages_costs {
    uint16_t option[MS_FIT_N_AXES]; /* whose they are */
    bool splits;
    ms_arena *arena; /* where they lie */
    ms_fitcosts of;
} costs;

static ms_err find_costs(ms_fitstages *of, const ms_fit_point *point,
                         const ms_job *job, ms_arena *trial,
                         const ms_expand_opts *opts, const ms_result *result,
                         bool splits, costs **found, ms_fault *fault)
{
    uint16_t key[MS_FIT_N_AXES];
    key_of(point, MS_FIT_SCHEDULE, MS_FIT_CHECKPOINT, key);
    for (uint32_t i = 0; i < MS_FITSTAGES_COSTS; i++) {
        *found = of->costs[i];
        if (*found != NULL && (*found)->splits == splits &&
            memcmp((*found)->option, key, sizeof key) == 0)
            return MS_OK;
    }
    uint32_t at = of->next_costs++ % MS_FITSTAGES_COSTS;
    ms_arena *arena = &of->costs_arena[at];
    of->costs[at] = NULL;
    ms_arena_reset(arena);
    costs *c = ms_arena_take(arena, 1, sizeof *c);
    if (c == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_fitcosts_make(job, trial, opts, result, arena, &c->of, fault));
    memcpy(c->option, key, sizeof key);
    c->splits = splits;
    c->arena = arena;
    *found = of->costs[at] = c;
    return MS_OK;
}

/* ---- the point ----------------------------------------------------------- */

/* Of each stage what its checkpoints keep and run again. */
typedef struct load {
    uint64_t kept, again_ns;
    uint64_t made;          /* again, for the first backward of a segment */
    uint32_t blocks, first; /* that it has, that are checkpointed */
} load;

static uint64_t between(const uint64_t *sums, uint32_t first, uint32_t last)
{
    return sums[last + 1] - sums[first];
}

/* The stage with its first k blocks checkpointed. */
static void load_first(const ms_graph *graph, const ms_fitcosts *c,
                       uint32_t first, uint32_t last, uint32_t k, load *of)
{
    uint32_t end = first, n = 0, before = MS_NONE;
    for (uint32_t u = first; u <= last; u++) {
        uint32_t block = graph->n_blocks > 0 ? graph->unit_block[u] : u;
        n += block != MS_NONE && block != before;
        before = block;
        if (n <= k)
            end = u + 1;
    }
    *of = (load){.blocks = n, .first = k < n ? k : n};
    if (k == 0)
        end = first;
    of->kept =
        c->kept[MS_FITCOSTS_FULL][end] - c->kept[MS_FITCOSTS_FULL][first] +
        c->kept[MS_FITCOSTS_NONE][last + 1] - c->kept[MS_FITCOSTS_NONE][end];
    of->again_ns =
        c->again[MS_FITCOSTS_FULL][end] - c->again[MS_FITCOSTS_FULL][first];
}

/* Of a stage of segments the least that one of them makes again. */
static uint64_t least_made(const ms_graph *graph, const ms_fitcosts *c,
                           uint32_t first, uint32_t last)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t u = first; u <= last && graph->n_blocks > 0;) {
        uint32_t end = u, block = graph->unit_block[u];
        while (end <= last && graph->unit_block[end] == block)
            end++;
        uint64_t open =
            c->kept[MS_FITCOSTS_NONE][end] - c->kept[MS_FITCOSTS_NONE][u];
        uint64_t kept =
            c->kept[MS_FITCOSTS_FULL][end] - c->kept[MS_FITCOSTS_FULL][u];
        if (block != MS_NONE && open - kept < least)
            least = open > kept ? open - kept : 0;
        u = end;
    }
    return least == UINT64_MAX ? 0 : least;
}

static uint64_t level_of(const ms_fitcosts *c, const flight *f,
                         const load *loads, uint32_t r)
{
    uint64_t state = 0, grads = 0, kept = UINT64_MAX, made = UINT64_MAX;
    for (uint32_t s = 0; s < f->layout.n; s++) {
        if (f->rank[s] != r)
            continue;
        state += between(c->state, f->layout.first[s], f->layout.last[s]);
        grads += between(c->grads, f->layout.first[s], f->layout.last[s]);
        kept = loads[s].kept < kept ? loads[s].kept : kept;
        made = loads[s].made < made ? loads[s].made : made;
    }
    state += made;
    uint64_t first = state + f->most[r] * kept;
    uint64_t later = f->later[r] > 0 ? state + grads + f->later[r] * kept : 0;
    return first > later ? first : later;
}

/* The fewest checkpoints with which the rank keeps to the limit. */
static void choose_first(const ms_graph *graph, const ms_fitcosts *c,
                         const flight *f, uint64_t limit, uint32_t r,
                         load *loads)
{
    uint32_t k = 0, most = 1;
    while (k < most) {
        most = 0;
        for (uint32_t s = 0; s < f->layout.n; s++) {
            if (f->rank[s] != r)
                continue;
            load_first(graph, c, f->layout.first[s], f->layout.last[s], k,
                       &loads[s]);
            most = loads[s].blocks > most ? loads[s].blocks : most;
        }
        if (level_of(c, f, loads, r) <= limit)
            return;
        k++;
    }
    for (uint32_t s = 0; s < f->layout.n; s++)
        if (f->rank[s] == r)
            load_first(graph, c, f->layout.first[s], f->layout.last[s], most,
                       &loads[s]);
}

static ms_err list_first(const flight *f, const load *loads, ms_arena *arena,
                         bool exhaustive, ms_fit_point *point, ms_fault *fault)
{
    ms_text words = {.arena = arena};
    bool none = true, all = true;
    for (uint32_t s = 0; s < f->layout.n; s++) {
        none &= loads[s].first == 0;
        all &= loads[s].first == loads[s].blocks;
        ms_text_add(&words, "%s%u", s > 0 ? "/" : "", loads[s].first);
    }
    if (words.failed)
        return ms_fail_nomem(fault);
    point->first = words.bytes;
    if ((none || all) && !exhaustive)
        point->state = MS_FIT_BEATEN;
    return MS_OK;
}

static uint32_t way_of(const ms_fit *fit, const ms_fit_point *point)
{
    static const char *const labels[MS_FITCOSTS_WAYS] = {"none", "selective",
                                                         "full"};
    const ms_fit_axis *axis = &fit->axes[MS_FIT_CHECKPOINT];
    const char *label =
        ms_fitsetup_option(fit, point, MS_FIT_CHECKPOINT)->choice->label;
    for (uint32_t way = 0; way < MS_FITCOSTS_WAYS && label != NULL; way++)
        if (strcmp(label, labels[way]) == 0)
            return way;
    return axis->fixed && !axis->given ? MS_FITCOSTS_NONE : MS_FITCOSTS_WAYS;
}

/* Where attention keeps its scores nowhere, none are made again. */
static bool is_none(const ms_fitcosts *c, uint32_t way)
{
    size_t size = (c->n_units + 1u) * sizeof *c->kept[way];
    return memcmp(c->kept[way], c->kept[MS_FITCOSTS_NONE], size) == 0 &&
           memcmp(c->again[way], c->again[MS_FITCOSTS_NONE], size) == 0;
}

/* What checkpoints keep that are given is not known here: nothing. */
static ms_err find_loads(ms_fitstages *of, const ms_fit *fit,
                         ms_fit_point *point, const ms_graph *graph,
                         const ms_fitcosts *c, const flight *f, load *loads,
                         ms_fault *fault)
{
    const ms_fit_option *option =
        ms_fitsetup_option(fit, point, MS_FIT_CHECKPOINT);
    uint64_t context = point->bound.context_bytes;
    uint64_t limit =
        context < fit->capacity_bytes ? fit->capacity_bytes - context : 0;
    uint32_t way = way_of(fit, point);
    if (option->choice->values == MS_FIT_SPARE) {
        limit -= limit / 100 * option->value;
        for (uint32_t r = 0; r < f->n_ranks; r++)
            choose_first(graph, c, f, limit, r, loads);
        return list_first(f, loads, &of->lists, fit->exhaustive, point, fault);
    }
    if (way == MS_FITCOSTS_SELECTIVE && is_none(c, way) && !fit->exhaustive)
        point->state = MS_FIT_BEATEN;
    for (uint32_t s = 0; s < f->layout.n && way < MS_FITCOSTS_WAYS; s++) {
        loads[s].kept =
            between(c->kept[way], f->layout.first[s], f->layout.last[s]);
        loads[s].again_ns =
            between(c->again[way], f->layout.first[s], f->layout.last[s]);
        if (way == MS_FITCOSTS_FULL)
            loads[s].made =
                least_made(graph, c, f->layout.first[s], f->layout.last[s]);
    }
    return MS_OK;
}

/* Where steps overlap, ranks wait for no other's begin or end. */
static bool overlaps(const ms_job *job)
{
    const ms_policy_value *how =
        ms_policy_given(&job->spec, "pipeline", "optimizer");
    return how != NULL && how->number == MS_NORM_POSTVALIDATE;
}

static uint64_t time_of(const flight *f, const ms_fitcosts_turns *times,
                        const load *loads, uint32_t r, uint64_t micro_batches,
                        bool alone)
{
    uint64_t head = 0, tail = 0, work = 0, weights = 0;
    uint32_t first = 0;
    while (f->rank[first] != r)
        first++;
    for (uint32_t s = 0; s < first; s++) {
        head += times[s].forward_ns;
        tail += f->layout.splits ? times[s].input_ns : times[s].whole_ns;
    }
    for (uint32_t s = first; s < f->layout.n; s++) {
        if (f->rank[s] != r)
            continue;
        work += times[s].forward_ns + loads[s].again_ns +
                (f->layout.splits ? times[s].input_ns + times[s].weight_ns
                                  : times[s].whole_ns);
        weights += times[s].weight_ns;
    }
    if (alone)
        return micro_batches * work;
    uint64_t own = head + micro_batches * work;
    uint64_t back = own - micro_batches * weights + tail;
    return own > back ? own : back;
}

static ms_err bound(ms_fitstages *of, const ms_fit *fit, ms_fit_point *point,
                    const ms_job *job, ms_arena *trial,
                    const ms_expand_opts *opts, const ms_result *result,
                    ms_fault *fault)
{
    ms_fitcosts_turns *times;
    flight *f;
    costs *c;
    MS_TRY(find_flight(of, point, job, trial, opts, result, &f, fault));
    MS_TRY(find_costs(of, point, job, trial, opts, result, f->layout.splits, &c,
                      fault));
    MS_TRY(ms_fitcosts_time(&c->of, result->graph, &f->layout, c->arena, trial,
                            &times, fault));
    load *loads = ms_arena_take(trial, f->layout.n, sizeof *loads);
    if (loads == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(find_loads(of, fit, point, result->graph, &c->of, f, loads, fault));
    for (uint32_t r = 0; r < f->n_ranks; r++) {
        uint64_t bytes = level_of(&c->of, f, loads, r);
        uint64_t ns = time_of(f, times, loads, r, result->shape.micro_batches,
                              overlaps(job));
        if (bytes > point->bound.peak_bytes)
            point->bound.peak_bytes = bytes;
        if (ns > point->bound.step_ns)
            point->bound.step_ns = ns;
    }
    return MS_OK;
}

ms_err ms_fitstages_bound(ms_fitstages *of, const ms_fit *fit,
                          ms_fit_point *point, const ms_job *job,
                          ms_arena *trial, ms_result *result, ms_fault *fault)
{
    ms_expand_opts opts;
    MS_TRY(ms_jobprogram_begin(job, trial, &opts, result, fault));
    point->bound.context_bytes = result->machine->context_bytes;
    return bound(of, fit, point, job, trial, &opts, result, fault);
}

void ms_fitstages_close(ms_fitstages *of)
{
    for (uint32_t i = 0; i < MS_FITSTAGES_COSTS; i++)
        ms_arena_free(&of->costs_arena[i]);
    for (uint32_t i = 0; i < MS_FITSTAGES_FLIGHTS; i++)
        ms_arena_free(&of->flights_arena[i]);
    ms_arena_free(&of->lists);
    *of = (ms_fitstages){0};
}
