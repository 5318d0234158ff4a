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
#include "tools/search/fitpoint.h"

#include <stdlib.h>
#include <string.h>

#define ROUND 32u /* replays between two looks at the results */

typedef struct search {
    ms_fit *fit;
    ms_fitpoint_seat *workers;
    uint32_t *list; /* of points at work */
    uint32_t n;
    ms_fault *faults; /* by item of the round */
    bool replays;     /* false: the items get bounds */
    bool proof;       /* replays go through the allocator */
} search;

static uint64_t least_cost(const ms_fit_point *point)
{
    return point->bound.step_ns * point->weight;
}

/* ---- a round, on all threads --------------------------------------------- */

static void work(void *of, uint32_t i, uint32_t thread)
{
    search *s = of;
    ms_fit_point *point = &s->fit->all[s->list[i]];
    s->faults[i] = (ms_fault){.caret = -1};
    if (s->replays)
        ms_fitpoint_replay(s->fit, point, &s->workers[thread], s->proof,
                           &s->faults[i]);
    else
        ms_fitpoint_bound(s->fit, point, &s->workers[thread], &s->faults[i]);
}

/* A refusal by a policy ends this set-up, not the search. */
static bool done(void *of, uint32_t i)
{
    search *s = of;
    ms_fault *fault = &s->faults[i];
    ms_fit_point *point = &s->fit->all[s->list[i]];
    if (point->first != NULL && !s->replays) /* it lies with the worker */
        point->first =
            ms_arena_text(s->fit->arena, point->first, strlen(point->first));
    if (ms_fail_is_refusal(fault->err)) {
        ms_fault *kept = &s->fit->refusal;
        point->state = MS_FIT_REFUSED;
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
    uint64_t cost = ms_fitjudge_cost(x), other = ms_fitjudge_cost(y);
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
    uint64_t cost = ms_fitjudge_cost(x), other = ms_fitjudge_cost(y);
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

/* The last of the equals in the front so far: it has the most headroom. */
static uint32_t find_best(const ms_fit *fit)
{
    uint32_t n = ms_fitjudge_equals(fit, fit->front, fit->n_front);
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
        uint64_t cost = ms_fitjudge_cost(other);
        bool same = cost == least && need_of(other) == least_bytes;
        if (cost > least)
            return false;
        if (need_of(other) <= least_bytes && (fit->front[k] < i || !same))
            return true;
    }
    return false;
}

/* Could the point, by its bounds, be the fastest, the best or the leanest? */
static bool may_win(const ms_fit *fit, const ms_fit_point *point)
{
    uint32_t best = find_best(fit);
    const ms_fit_point *fastest = &fit->all[fit->fastest];
    if (point->bound.peak_bytes < fit->all[fit->leanest].reserved_bytes &&
        fit->goal == MS_FIT_MEMORY)
        return true;
    if (fit->goal == MS_FIT_MEMORY)
        return false;
    if (least_cost(point) < ms_fitjudge_cost(fastest))
        return true;
    return point->bound.peak_bytes < fit->all[best].reserved_bytes &&
           least_cost(point) / (100 + ms_fitjudge_band(fastest)) <=
               ms_fitjudge_cost(fastest) / 100;
}

/* Is it a pipeline that a point of the front is nearly as good as? */
static bool is_close(const ms_fit *fit, const ms_fit_point *point)
{
    uint64_t bytes = point->bound.peak_bytes, cost = least_cost(point);
    if (point->option[MS_FIT_PIPELINE] == 0 || fit->fastest == MS_NONE ||
        may_win(fit, point))
        return false;
    bytes += bytes / 100 * MS_FIT_CLOSE;
    cost += cost / 100 * MS_FIT_CLOSE;
    for (uint32_t k = 0; k < fit->n_front; k++)
        if (need_of(&fit->all[fit->front[k]]) <= bytes &&
            ms_fitjudge_cost(&fit->all[fit->front[k]]) <= cost)
            return true;
    return false;
}

static uint8_t ruled_out(const ms_fit *fit, uint32_t i)
{
    const ms_fit_point *point = &fit->all[i];
    if (point->state != MS_FIT_OPEN || fit->exhaustive)
        return point->state;
    if (ms_fitjudge_is_too_big(fit, point))
        return MS_FIT_TOO_BIG;
    if (ms_fitjudge_is_bound_far(fit, point))
        return MS_FIT_TOO_SLOW;
    return is_beaten(fit, i) || is_close(fit, point) ? MS_FIT_BEATEN
                                                     : MS_FIT_OPEN;
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

/* Those of the list from `from` on. */
static ms_err sort(search *s, uint32_t from, bool by_memory, ms_fault *fault)
{
    uint32_t *list = s->list + from, n = s->n - from;
    key *keys = ms_arena_take(s->fit->arena, n + 1, sizeof *keys);
    if (keys == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        const ms_fit_point *point = &s->fit->all[list[i]];
        uint64_t bytes = point->bound.peak_bytes, cost = least_cost(point);
        keys[i] =
            (key){by_memory ? bytes : cost, by_memory ? cost : bytes, list[i]};
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (uint32_t i = 0; i < n; i++)
        list[i] = keys[i].point;
    return MS_OK;
}

/* Set-ups of one graph come one after the other for their bounds, and of these
 * those of one schedule. */
static ms_err sort_by_graph(search *s, ms_fault *fault)
{
    static const ms_fit_axis_id axes[] = {
        MS_FIT_TENSOR,   MS_FIT_CONTEXT, MS_FIT_EXPERT,   MS_FIT_MICROBATCH,
        MS_FIT_PIPELINE, MS_FIT_SHARE,   MS_FIT_SCHEDULE, MS_FIT_CHECKPOINT};
    key *keys = ms_arena_take(s->fit->arena, s->n + 1, sizeof *keys);
    if (keys == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < s->n; i++) {
        keys[i] = (key){0, 0, s->list[i]};
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++)
            keys[i].first = keys[i].first * s->fit->axes[axes[a]].n +
                            s->fit->all[s->list[i]].option[axes[a]];
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

/* Is what could be faster replayed? */
static bool has_fastest(const search *s, uint32_t from)
{
    const ms_fit *fit = s->fit;
    return fit->fastest != MS_NONE && fit->goal != MS_FIT_MEMORY &&
           least_cost(&fit->all[s->list[from]]) >=
               ms_fitjudge_cost(&fit->all[fit->fastest]);
}

/* With pipelines those that follow the fastest go from the least memory upward:
 * so the best is found early, and others need not be replayed. */
static ms_err replay_list(search *s, ms_fault *fault)
{
    const ms_fit *fit = s->fit;
    bool by_cost = fit->axes[MS_FIT_PIPELINE].n > 1;
    for (uint32_t from = 0; from < s->n;) {
        if (by_cost && has_fastest(s, from)) {
            MS_TRY(sort(s, from, true, fault));
            by_cost = false;
        }
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
    MS_TRY(sort_by_graph(s, fault));
    MS_TRY(run_items(s, 0, s->n, fault));
    thin(s, 0);
    MS_TRY(sort(s, 0, fit->any || fit->goal == MS_FIT_MEMORY, fault));
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
    MS_TRY(sort(s, 0, true, fault));
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
    for (uint32_t t = 0; s->workers != NULL && t < s->fit->threads; t++)
        ms_fitpoint_leave(s->fit, &s->workers[t]);
}

/* Points that are too far from the goal go behind the front, in their order. By
 * memory they are at its head (it is ordered by time), so a memmove does not
 * do. */
static void close_front(ms_fit *fit)
{
    uint32_t *front = fit->front, n = 0, far = 0;
    uint32_t *behind = fit->rows; /* rows are not used before fitproof.c */
    for (uint32_t k = 0; k < fit->n_front; k++)
        if (ms_fitjudge_is_far(fit, &fit->all[front[k]]))
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
