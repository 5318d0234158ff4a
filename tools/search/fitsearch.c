/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The search: lower bounds for all set-ups, replays for those that could
 * matter.
 *
 * It goes in stages: first set-ups that leave host memory and disk alone, then
 * swap, then each way to offload. In a stage every set-up gets its bounds; then
 * set-ups are replayed in the order of their least times, a round of them at a
 * time. Between rounds the search passes over what can no longer matter:
 *
 *     too big    its least memory is more than there is: it cannot fit;
 *     beaten     a set-up that fits needs no more than its least memory and
 *                costs no more than its least time: it is not in the front;
 *     too slow   its least cost (or, by memory, its least memory) is further
 *                from the goal than MS_FIT_FAR times one that fits.
 *
 * When nothing fits at the end, set-ups that are too big are replayed from the
 * least memory upward, until the least memory of the next is no less than the
 * smallest found. What is passed over depends on results alone, and these are
 * looked at only between rounds of a fixed size: so any number of threads gives
 * the same answer. */

#include "graphs/machines/accuracy.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/search/fit.h"

#include <stdlib.h>
#include <string.h>

#define ROUND 32u /* replays between two looks at the results */

typedef struct worker {
    ms_points_seat seat;
    ms_arena words; /* memory of the policies' text */
} worker;

typedef struct search {
    ms_fit *fit;
    worker *workers;
    uint32_t *list; /* of points at work */
    uint32_t n;
    ms_fault *faults; /* by item of the round */
    bool replays;     /* false: the items get bounds */
    bool proof;       /* replays go through the allocator */
} search;

/* ---- one point ----------------------------------------------------------- */

static ms_err job_of(const ms_fit *fit, const ms_fit_point *point, worker *at,
                     ms_job *job, ms_fault *fault)
{
    ms_arena_reset(&at->words);
    MS_TRY(ms_fitsetup_job(fit, point, &at->words, job, fault));
    job->brief = true;
    return MS_OK;
}

static void note(const ms_report *report, ms_fit_point *point)
{
    const ms_rank_report *rank = &report->ranks[report->worst];
    point->state = MS_FIT_REPLAYED;
    point->host_short_bytes = ms_capacity_short(report, MS_HOST_POOL);
    point->nvme_short_bytes = ms_capacity_short(report, MS_NVME_POOL);
    point->far_full = point->host_short_bytes + point->nvme_short_bytes > 0;
    point->status = report->status;
    point->fits = report->fits;
    point->peak_bytes = rank->peak.allocated_bytes;
    point->reserved_bytes = rank->peak.reserved_bytes;
    point->step_ns = rank->time.step_ns;
    point->recompute_ns = rank->time.recompute_ns;
    point->stall_ns = rank->time.stall_ns;
    point->exposed_comm_ns = rank->time.exposed_comm_ns;
    point->host_peak_bytes = report->host_peak_bytes;
    point->host_reserved_peak_bytes = report->far[MS_HOST_POOL].reserved_bytes;
    point->used_bytes = ms_capacity_used(report);
    point->headroom_bytes = report->headroom_bytes;
    point->tokens_per_second = report->tokens_per_second;
    point->error_percent = rank->time.error_percent;
    point->measured_runs = rank->time.measured_runs;
}

static ms_err replay(const ms_fit *fit, ms_fit_point *point, worker *at,
                     bool proof, ms_fault *fault)
{
    ms_result result;
    ms_job job;
    MS_TRY(job_of(fit, point, at, &job, fault));
    if (proof)
        job = ms_fitsetup_proof(fit, &job);
    MS_TRY(ms_points_step(fit->points, &at->seat, &job, &result, fault));
    note(result.report, point);
    point->proven = proof;
    if (!proof)
        point->fits_exact = point->fits;
    return MS_OK;
}

uint64_t ms_fitsearch_cost(const ms_fit_point *point)
{
    return point->step_ns * point->weight;
}

static uint64_t least_cost(const ms_fit_point *point)
{
    return point->bound.step_ns * point->weight;
}

static bool is_too_big(const ms_fit *fit, const ms_fit_point *point)
{
    return point->bound.peak_bytes > fit->capacity_bytes - fit->context_bytes;
}

static bool is_far(uint64_t value, uint64_t best)
{
    return value / MS_FIT_FAR_NUMERATOR > best / MS_FIT_FAR_DENOMINATOR;
}

bool ms_fitsearch_is_far(const ms_fit *fit, const ms_fit_point *point)
{
    if (fit->fastest == MS_NONE)
        return false;
    if (fit->goal == MS_FIT_MEMORY)
        return is_far(point->reserved_bytes,
                      fit->all[fit->leanest].reserved_bytes);
    return is_far(ms_fitsearch_cost(point),
                  ms_fitsearch_cost(&fit->all[fit->fastest]));
}

/* Is the point too far from the goal even at its lower bounds? */
static bool is_bound_far(const ms_fit *fit, const ms_fit_point *point)
{
    ms_fit_point least = {.reserved_bytes = point->bound.peak_bytes,
                          .step_ns = point->bound.step_ns,
                          .weight = point->weight};
    return ms_fitsearch_is_far(fit, &least);
}

/* The graph alone comes first, because it is cheaper: where it rules the set-up
 * out, no program is made. */
static ms_err find_bound(const ms_fit *fit, ms_fit_point *point, worker *at,
                         ms_fault *fault)
{
    ms_expand_opts opts;
    ms_result result;
    ms_job job;
    MS_TRY(job_of(fit, point, at, &job, fault));
    MS_TRY(ms_points_lower(fit->points, &at->seat, &job, &result, fault));
    point->bound = ms_fitbounds_graph(result.graph, &result.shape);
    if (is_too_big(fit, point) || is_bound_far(fit, point))
        return MS_OK;
    MS_TRY(ms_jobprogram_make(&job, &at->seat.arena, &opts, &result, fault));
    return ms_fitbounds_program(result.graph, result.program, &opts,
                                &at->seat.arena, &point->bound, fault);
}

/* ---- a round, on all threads --------------------------------------------- */

static void work(void *of, uint32_t i, uint32_t thread)
{
    search *s = of;
    ms_fit_point *point = &s->fit->all[s->list[i]];
    s->faults[i] = (ms_fault){.caret = -1};
    if (s->replays)
        replay(s->fit, point, &s->workers[thread], s->proof, &s->faults[i]);
    else
        find_bound(s->fit, point, &s->workers[thread], &s->faults[i]);
}

/* A refusal by a policy ends this set-up, not the search. */
static bool done(void *of, uint32_t i)
{
    search *s = of;
    ms_fault *fault = &s->faults[i];
    if (ms_fail_is_refusal(fault->err)) {
        ms_fault *kept = &s->fit->refusal;
        s->fit->all[s->list[i]].state = MS_FIT_REFUSED;
        if (kept->err == MS_OK)
            *kept = *fault;
    }
    return fault->err == MS_OK || ms_fail_is_refusal(fault->err);
}

/* Works on the items [from, to) of the list, on all threads. */
static ms_err run_items(search *s, uint32_t from, uint32_t to, ms_fault *fault)
{
    search part = *s;
    part.list = s->list + from;
    part.n = to - from;
    MS_TRY(ms_workers_run(part.n, s->fit->threads, work, done, NULL, &part,
                          fault));
    for (uint32_t i = 0; i < part.n; i++)
        if (part.faults[i].err != MS_OK &&
            !ms_fail_is_refusal(part.faults[i].err)) {
            *fault = part.faults[i];
            return fault->err;
        }
    return MS_OK;
}

/* ---- what is found ------------------------------------------------------- */

static uint64_t need_of(const ms_fit_point *point)
{
    return point->reserved_bytes;
}

/* Is a faster than b? Of equally fast ones the smaller is, then the one listed
 * first. */
static bool is_before(const ms_fit *fit, uint32_t a, uint32_t b)
{
    const ms_fit_point *x = &fit->all[a], *y = &fit->all[b];
    uint64_t cost = ms_fitsearch_cost(x), other = ms_fitsearch_cost(y);
    if (cost != other)
        return cost < other;
    if (need_of(x) != need_of(y))
        return need_of(x) < need_of(y);
    return a < b;
}

static bool is_smaller(const ms_fit *fit, uint32_t a, uint32_t b)
{
    const ms_fit_point *x = &fit->all[a], *y = &fit->all[b];
    if (need_of(x) != need_of(y))
        return need_of(x) < need_of(y);
    uint64_t cost = ms_fitsearch_cost(x), other = ms_fitsearch_cost(y);
    return cost != other ? cost < other : a < b;
}

static void look_at(ms_fit *fit, uint32_t i)
{
    if (fit->all[i].state != MS_FIT_REPLAYED)
        return;
    uint32_t *smallest =
        fit->all[i].far_full ? &fit->smallest_far : &fit->smallest;
    if (*smallest == MS_NONE || is_smaller(fit, i, *smallest))
        *smallest = i;
    if (fit->all[i].fits &&
        (fit->fastest == MS_NONE || is_before(fit, i, fit->fastest)))
        fit->fastest = i;
    if (fit->all[i].fits &&
        (fit->leanest == MS_NONE || is_smaller(fit, i, fit->leanest)))
        fit->leanest = i;
}

/* What is further from the goal than that is not in the front. */
#define MOST_BAND                                                              \
    (100 * (MS_FIT_FAR_NUMERATOR - MS_FIT_FAR_DENOMINATOR) /                   \
         MS_FIT_FAR_DENOMINATOR -                                              \
     1)

uint32_t ms_fitsearch_band(const ms_fit_point *fastest)
{
    uint32_t percent = (uint32_t)fastest->error_percent;
    if (fastest->measured_runs == 0)
        return MS_ACCURACY_UNKNOWN;
    return percent < MOST_BAND ? percent : MOST_BAND;
}

uint32_t ms_fitsearch_equals(const ms_fit *fit, const uint32_t *list,
                             uint32_t n)
{
    uint32_t k = 0;
    if (fit->goal == MS_FIT_MEMORY || n == 0)
        return n;
    const ms_fit_point *first = &fit->all[list[0]];
    uint32_t most = 100 + ms_fitsearch_band(first);
    while (k < n && ms_fitsearch_cost(&fit->all[list[k]]) / most <=
                        ms_fitsearch_cost(first) / 100)
        k++;
    return k;
}

/* The last of the equals in the front so far: it has the most headroom. */
static uint32_t find_best(const ms_fit *fit)
{
    uint32_t n = ms_fitsearch_equals(fit, fit->front, fit->n_front);
    return n > 0 ? fit->front[n - 1] : MS_NONE;
}

/* Puts a point that fits into the front, in order of cost, and takes out the
 * points that it beats. */
static void join_front(ms_fit *fit, uint32_t i)
{
    uint32_t at = 0, n = 0;
    if (fit->all[i].state != MS_FIT_REPLAYED || !fit->all[i].fits)
        return;
    while (at < fit->n_front && is_before(fit, fit->front[at], i))
        at++;
    if (at > 0 &&
        need_of(&fit->all[fit->front[at - 1]]) <= need_of(&fit->all[i]))
        return;
    for (n = at; n < fit->n_front; n++) /* beaten: slower and no smaller */
        if (need_of(&fit->all[fit->front[n]]) < need_of(&fit->all[i]))
            break;
    memmove(fit->front + at + 1, fit->front + n,
            (fit->n_front - n) * sizeof *fit->front);
    fit->front[at] = i;
    fit->n_front = fit->n_front - (n - at) + 1;
}

/* ---- what cannot matter -------------------------------------------------- */

/* Is there a point in the front that is no worse than the lower bounds of i? Of
 * two equal points the one listed later is beaten, so that one stays. */
static bool is_beaten(const ms_fit *fit, uint32_t i)
{
    uint64_t least_bytes = fit->all[i].bound.peak_bytes;
    uint64_t least = least_cost(&fit->all[i]);
    for (uint32_t k = 0; k < fit->n_front; k++) {
        const ms_fit_point *other = &fit->all[fit->front[k]];
        uint64_t cost = ms_fitsearch_cost(other);
        bool same = cost == least && need_of(other) == least_bytes;
        if (cost > least)
            return false;
        if (need_of(other) <= least_bytes && (fit->front[k] < i || !same))
            return true;
    }
    return false;
}

static uint8_t ruled_out(const ms_fit *fit, uint32_t i)
{
    const ms_fit_point *point = &fit->all[i];
    if (point->state != MS_FIT_OPEN || fit->exhaustive)
        return point->state;
    if (is_too_big(fit, point))
        return MS_FIT_TOO_BIG;
    if (is_bound_far(fit, point))
        return MS_FIT_TOO_SLOW;
    return is_beaten(fit, i) ? MS_FIT_BEATEN : MS_FIT_OPEN;
}

/* Takes points that are ruled out off the list. */
static void thin(search *s, uint32_t from)
{
    uint32_t n = from;
    for (uint32_t k = from; k < s->n; k++) {
        ms_fit_point *point = &s->fit->all[s->list[k]];
        point->state = ruled_out(s->fit, s->list[k]);
        if (point->state == MS_FIT_OPEN)
            s->list[n++] = s->list[k];
    }
    s->n = n;
}

/* ---- a stage ------------------------------------------------------------- */

typedef struct key {
    uint64_t first, second;
    uint32_t point;
} key;

static int by_key(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

static ms_err sort(search *s, bool by_memory, ms_fault *fault)
{
    key *keys = ms_arena_take(s->fit->arena, s->n, sizeof *keys);
    if (keys == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < s->n; i++) {
        const ms_fit_point *point = &s->fit->all[s->list[i]];
        uint64_t bytes = point->bound.peak_bytes, cost = least_cost(point);
        keys[i] = (key){by_memory ? bytes : cost, by_memory ? cost : bytes,
                        s->list[i]};
    }
    qsort(keys, s->n, sizeof *keys, by_key);
    for (uint32_t i = 0; i < s->n; i++)
        s->list[i] = keys[i].point;
    return MS_OK;
}

static ms_err replay_items(search *s, uint32_t from, uint32_t to,
                           ms_fault *fault)
{
    s->replays = true;
    MS_TRY(run_items(s, from, to, fault));
    for (uint32_t k = from; k < to; k++) {
        look_at(s->fit, s->list[k]);
        join_front(s->fit, s->list[k]);
    }
    return MS_OK;
}

static ms_err replay_list(search *s, ms_fault *fault)
{
    const ms_fit *fit = s->fit;
    for (uint32_t from = 0; from < s->n;) {
        uint32_t to = s->n - from > ROUND ? from + ROUND : s->n;
        MS_TRY(replay_items(s, from, to, fault));
        if (fit->any && fit->fastest != MS_NONE)
            return MS_OK;
        from = to;
        thin(s, from);
    }
    return MS_OK;
}

static uint32_t stage_of(const ms_fit_point *point)
{
    uint32_t offload = point->option[MS_FIT_OFFLOAD];
    return offload > 0 ? offload + 1 : point->option[MS_FIT_SWAP] > 0;
}

static ms_err search_stage(search *s, uint32_t stage, ms_fault *fault)
{
    ms_fit *fit = s->fit;
    s->n = 0;
    for (uint32_t i = 0; i < fit->n_all; i++)
        if (stage_of(&fit->all[i]) == stage && fit->all[i].state == MS_FIT_OPEN)
            s->list[s->n++] = i;
    s->replays = false;
    MS_TRY(run_items(s, 0, s->n, fault));
    thin(s, 0);
    MS_TRY(sort(s, fit->any || fit->goal == MS_FIT_MEMORY, fault));
    return replay_list(s, fault);
}

/* ---- when nothing fits --------------------------------------------------- */

static ms_err find_smallest(search *s, ms_fault *fault)
{
    ms_fit *fit = s->fit;
    s->n = 0;
    for (uint32_t i = 0; i < fit->n_all; i++)
        if (fit->all[i].state == MS_FIT_TOO_BIG)
            s->list[s->n++] = i;
    MS_TRY(sort(s, true, fault));
    for (uint32_t from = 0; from < s->n;) {
        uint32_t to = from;
        while (to < s->n && to - from < ROUND &&
               (fit->smallest == MS_NONE ||
                fit->all[s->list[to]].bound.peak_bytes <=
                    need_of(&fit->all[fit->smallest])))
            to++;
        if (to == from)
            return MS_OK;
        MS_TRY(replay_items(s, from, to, fault));
        from = to;
    }
    return MS_OK;
}

/* ---- the search ---------------------------------------------------------- */

static ms_err open_search(search *s, ms_fault *fault)
{
    ms_fit *fit = s->fit;
    uint32_t threads = fit->threads > 1 ? fit->threads : 1;
    s->workers = ms_arena_take(fit->arena, threads, sizeof *s->workers);
    s->list = ms_arena_take(fit->arena, fit->n_all, sizeof *s->list);
    s->faults = ms_arena_take(fit->arena, fit->n_all, sizeof *s->faults);
    fit->front = ms_arena_take(fit->arena, fit->n_all + 1, sizeof *fit->front);
    fit->rows = ms_arena_take(fit->arena, fit->n_all + 1, sizeof *fit->rows);
    if (fit->rows == NULL || s->workers == NULL || s->list == NULL ||
        s->faults == NULL || fit->front == NULL)
        return ms_fail_nomem(fault);
    fit->best = fit->fastest = fit->leanest = fit->on_device = MS_NONE;
    fit->smallest = fit->smallest_far = MS_NONE;
    fit->n_front = 0;
    fit->refusal = (ms_fault){.caret = -1};
    return MS_OK;
}

static void close_search(search *s)
{
    for (uint32_t t = 0; s->workers != NULL && t < s->fit->threads; t++) {
        ms_points_leave(s->fit->points, &s->workers[t].seat);
        ms_arena_free(&s->workers[t].words);
    }
}

/* Points that are too far from the goal go behind the front, in their order. By
 * memory they are at its head (it is ordered by time), so a memmove does not
 * do. */
static void close_front(ms_fit *fit)
{
    uint32_t *front = fit->front, n = 0, far = 0;
    uint32_t *behind = fit->rows; /* rows are not used before fitproof.c */
    for (uint32_t k = 0; k < fit->n_front; k++)
        if (ms_fitsearch_is_far(fit, &fit->all[front[k]]))
            behind[far++] = front[k];
        else
            front[n++] = front[k];
    memcpy(front + n, behind, far * sizeof *front);
    fit->n_whole = fit->n_front;
    fit->n_front = n;
    memset(fit->count, 0, sizeof fit->count);
    for (uint32_t i = 0; i < fit->n_all; i++)
        fit->count[fit->all[i].state]++;
}

/* Replays the set-up that fitted at the value before: often it fits again, and
 * the search ends. */
static ms_err try_hint(search *s, ms_fault *fault)
{
    ms_fit *fit = s->fit;
    s->n = 0;
    for (uint32_t i = 0; i < fit->n_all && fit->hint != NULL; i++)
        if (memcmp(fit->all[i].option, fit->hint->option,
                   sizeof fit->hint->option) == 0)
            s->list[s->n++] = i;
    return replay_items(s, 0, s->n, fault);
}

static ms_err run_search(search *s, ms_fault *fault)
{
    ms_fit *fit = s->fit;
    MS_TRY(try_hint(s, fault));
    for (uint32_t stage = 0; stage <= fit->axes[MS_FIT_OFFLOAD].n; stage++) {
        if (fit->any && fit->fastest != MS_NONE)
            break;
        MS_TRY(search_stage(s, stage, fault));
        if (stage == 0)
            fit->on_device = find_best(fit);
    }
    if (fit->fastest == MS_NONE && !fit->any)
        MS_TRY(find_smallest(s, fault));
    close_front(fit);
    fit->best = find_best(fit);
    return MS_OK;
}

ms_err ms_fitsearch_run(ms_fit *fit, ms_fault *fault)
{
    search s = {.fit = fit};
    fit->threads = fit->threads > 1 ? fit->threads : 1;
    ms_err err = open_search(&s, fault);
    if (err == MS_OK)
        err = run_search(&s, fault);
    close_search(&s);
    return err;
}

/* ---- points beside the search -------------------------------------------- */

/* Replays a list beside the search, on all threads. It leaves fit->refusal,
 * which is of the search, as it was. */
static ms_err run_beside(ms_fit *fit, uint32_t *list, uint32_t n, bool proof,
                         ms_fault *fault)
{
    ms_fault kept = fit->refusal;
    search s = {
        .fit = fit, .list = list, .n = n, .replays = true, .proof = proof};
    fit->threads = fit->threads > 1 ? fit->threads : 1;
    s.workers = ms_arena_take(fit->arena, fit->threads, sizeof *s.workers);
    s.faults = ms_arena_take(fit->arena, n + 1, sizeof *s.faults);
    if (s.workers == NULL || s.faults == NULL)
        return ms_fail_nomem(fault);
    ms_err err = run_items(&s, 0, n, fault);
    close_search(&s);
    if (kept.err != MS_OK)
        fit->refusal = kept;
    return err;
}

ms_err ms_fitsearch_replay(ms_fit *fit, const uint32_t *list, uint32_t n,
                           bool proof, ms_fault *fault)
{
    uint32_t *open = ms_arena_take(fit->arena, n + 1, sizeof *open), n_open = 0;
    if (open == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        const ms_fit_point *point = &fit->all[list[i]];
        if (point->state != MS_FIT_REFUSED && point->proven == false &&
            (proof || point->state != MS_FIT_REPLAYED))
            open[n_open++] = list[i];
    }
    return run_beside(fit, open, n_open, proof, fault);
}

/* The points take the place of fit->all, which is not made yet. */
ms_err ms_fitsearch_probe(ms_fit *fit, ms_fit_point *points, uint32_t n,
                          ms_fault *fault)
{
    ms_fit beside = *fit;
    uint32_t *list = ms_arena_take(fit->arena, n + 1, sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(fault);
    beside.all = points;
    beside.n_all = n;
    for (uint32_t i = 0; i < n; i++)
        list[i] = i;
    return run_beside(&beside, list, n, false, fault);
}
