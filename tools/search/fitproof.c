/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fit shows is proven: replayed as memsim run would, through the
 * allocator. A set-up that does not fit there is not shown; the next one takes
 * its place. */

#include "tools/search/fit.h"

#include <stdlib.h>
#include <string.h>

/* Of a front; evenly spread where it has more points. */
#define MOST_PROOFS 32u
#define MOST_EQUALS 8u /* of a front of pipelines */
#define LAST_TRIES 64u /* by memory, where none of the front fits */

/* ---- rows ---------------------------------------------------------------- */

typedef struct key {
    uint64_t cost, bytes;
    uint32_t point;
} key;

static int by_cost(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

/* Sorts rows by cost and drops those that another row beats: the allocator can
 * change the order of the exact replays. */
static ms_err sort_rows(ms_fit *fit, ms_fault *fault)
{
    key *keys = ms_arena_take(fit->arena, fit->n_rows + 1, sizeof *keys);
    uint32_t n = 0;
    if (keys == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < fit->n_rows; i++) {
        const ms_fit_point *point = &fit->all[fit->rows[i]];
        keys[i] =
            (key){ms_fitjudge_cost(point), point->reserved_bytes, fit->rows[i]};
    }
    qsort(keys, fit->n_rows, sizeof *keys, by_cost);
    for (uint32_t i = 0; i < fit->n_rows; i++)
        if (n == 0 || keys[i].bytes < fit->all[fit->rows[n - 1]].reserved_bytes)
            fit->rows[n++] = keys[i].point;
    fit->n_rows = n;
    return MS_OK;
}

static void reverse(uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t one = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = one;
    }
}

/* Turns the equals round: in order of cost, memory falls, so the last of them
 * has the most headroom, and comes first. */
static ms_err order_rows(ms_fit *fit, ms_fault *fault)
{
    MS_TRY(sort_rows(fit, fault));
    fit->n_equal = ms_fitjudge_equals(fit, fit->rows, fit->n_rows);
    if (fit->n_rows > 0) {
        fit->fastest = fit->rows[0];
        fit->leanest = fit->rows[fit->n_rows - 1];
    }
    reverse(fit->rows, fit->n_equal);
    fit->best = fit->n_rows > 0 ? fit->rows[0] : MS_NONE;
    return MS_OK;
}

static void keep_fitting(ms_fit *fit, const uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (fit->all[list[i]].state == MS_FIT_REPLAYED &&
            fit->all[list[i]].fits)
            fit->rows[fit->n_rows++] = list[i];
        else
            fit->n_failed++;
}

/* ---- proofs -------------------------------------------------------------- */

/* The k-th of `most` indices into n points: evenly spread, with both ends. */
static uint32_t tried(uint32_t n, uint32_t most, uint32_t k)
{
    return n <= most || most < 2
               ? k
               : (uint32_t)((uint64_t)k * (n - 1) / (most - 1));
}

/* Of the steps of pipelines, which are long, as many are proven as are shown:
 * of the equals, whose last one is the best, and of the others. */
static uint32_t choose_pipelines(const ms_fit *fit, const uint32_t *list,
                                 uint32_t n, uint32_t *tries)
{
    uint32_t equal = ms_fitjudge_equals(fit, list, n), others = n - equal;
    uint32_t most = others > 0 ? MOST_EQUALS : MS_FIT_ROWS, n_tries = 0;
    uint32_t first = equal < most ? equal : most;
    uint32_t rest = MS_FIT_ROWS - first < others ? MS_FIT_ROWS - first : others;
    for (uint32_t k = 0; k < first; k++)
        tries[n_tries++] = list[tried(equal, first, k)];
    for (uint32_t k = 0; k < rest; k++)
        tries[n_tries++] = list[equal + tried(others, rest, k)];
    return n_tries;
}

static ms_err prove(ms_fit *fit, const uint32_t *list, uint32_t n,
                    ms_fault *fault)
{
    uint32_t tries[MOST_PROOFS] = {0},
             n_tries = n < MOST_PROOFS ? n : MOST_PROOFS;
    for (uint32_t k = 0; k < n_tries; k++)
        tries[k] = list[tried(n, MOST_PROOFS, k)];
    if (fit->axes[MS_FIT_PIPELINE].n > 1)
        n_tries = choose_pipelines(fit, list, n, tries);
    if (fit->proof != NULL)
        MS_TRY(ms_fitsearch_replay(fit, tries, n_tries, true, fault));
    keep_fitting(fit, tries, n_tries);
    return MS_OK;
}

/* Tries all set-ups that fit exactly, the one with the most headroom first: it
 * leaves most to fragmentation. */
static ms_err prove_leanest(ms_fit *fit, ms_fault *fault)
{
    key *keys = ms_arena_take(fit->arena, fit->n_all + 1, sizeof *keys);
    uint32_t n = 0;
    if (keys == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < fit->n_all; i++) {
        const ms_fit_point *point = &fit->all[i];
        if (point->state == MS_FIT_REPLAYED && point->fits && !point->proven)
            keys[n++] =
                (key){point->reserved_bytes, ms_fitjudge_cost(point), i};
    }
    qsort(keys, n, sizeof *keys, by_cost);
    for (uint32_t i = 0; i < n && i < LAST_TRIES && fit->n_rows == 0; i++)
        MS_TRY(prove(fit, &keys[i].point, 1, fault));
    return MS_OK;
}

ms_err ms_fitproof_one(ms_fit *fit, uint32_t point, ms_fault *fault)
{
    if (point == MS_NONE)
        return MS_OK;
    return ms_fitsearch_replay(fit, &point, 1, fit->proof != NULL, fault);
}

static bool is_on_device(const ms_fit_point *point)
{
    return point->option[MS_FIT_OFFLOAD] == 0 &&
           point->option[MS_FIT_SWAP] == 0;
}

/* The first row that keeps all on the device; else what the search found, if it
 * is proven to fit. */
static ms_err prove_on_device(ms_fit *fit, ms_fault *fault)
{
    for (uint32_t i = 0; i < fit->n_rows; i++)
        if (is_on_device(&fit->all[fit->rows[i]])) {
            fit->on_device = fit->rows[i];
            return MS_OK;
        }
    MS_TRY(ms_fitproof_one(fit, fit->on_device, fault));
    if (fit->on_device != MS_NONE && !fit->all[fit->on_device].fits)
        fit->on_device = MS_NONE;
    return MS_OK;
}

ms_err ms_fitproof_run(ms_fit *fit, ms_fault *fault)
{
    fit->n_rows = fit->n_failed = 0;
    MS_TRY(prove(fit, fit->front, fit->n_front, fault));
    if (fit->n_rows == 0)
        MS_TRY(prove(fit, fit->front + fit->n_front,
                     fit->n_whole - fit->n_front, fault));
    if (fit->n_rows == 0 && fit->proof != NULL)
        MS_TRY(prove_leanest(fit, fault));
    if (fit->n_rows == 0 && fit->leanest != MS_NONE)
        fit->smallest = fit->leanest;
    fit->fastest = MS_NONE;
    MS_TRY(order_rows(fit, fault));
    if (fit->best != MS_NONE)
        return prove_on_device(fit, fault);
    fit->on_device = MS_NONE;
    MS_TRY(ms_fitproof_one(fit, fit->smallest, fault));
    return ms_fitproof_one(fit, fit->smallest_far, fault);
}
