/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what two runs of a model hold differently, each at an instant of its
 * own: tensor by tensor, then in groups. */

#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tools/alive/alive.h"
#include "tools/job/result.h"

/* What became of a tensor that one run does not hold at its instant: plan ops
 * of that run, or MS_NONE. */
typedef struct trail {
    uint32_t end;  /* the op after which it was last freed before the instant */
    uint32_t next; /* the op that makes it after the instant */
} trail;

typedef struct differ {
    const ms_alive *runs; /* two of them */
    ms_matches all;
    trail *trails[2]; /* by match */
} differ;

static bool differs(const ms_match *match)
{
    return match->bytes[0] != match->bytes[1];
}

static ms_err match_rows(differ *d, ms_arena *arena, ms_fault *fault)
{
    MS_TRY(ms_match_tensors(&d->runs[0], &d->runs[1], arena, &d->all, fault));
    for (int s = 0; s < 2; s++) {
        const ms_alive *run = &d->runs[s];
        const ms_plan *plan = run->result->plan;
        for (uint32_t i = 0; i < run->n; i++) {
            ms_match *match = ms_match_find(&d->all, plan, run->rows[i]);
            match->bytes[s] += plan->row[run->rows[i]].bytes;
            if (match->first[s] == MS_NONE)
                match->first[s] = i;
        }
    }
    return MS_OK;
}

static void follow(differ *d, int s, const uint32_t *ends)
{
    const ms_result *result = d->runs[s].result;
    const ms_plan *plan = result->plan;
    uint32_t now = d->runs[s].instant.now;
    for (uint32_t row = 0; row < plan->n_rows; row++) {
        uint32_t op = plan->row[row].op;
        if (plan->row[row].pool != MS_DEVICE_POOL ||
            plan->op[op].rank != result->report->told)
            continue;
        const ms_match *match = ms_match_find(&d->all, plan, row);
        if (match == NULL || match->first[s] != MS_NONE)
            continue;
        trail *it = &d->trails[s][match - d->all.rows];
        if (op < now)
            it->end = ends[row];
        else if (it->next == MS_NONE)
            it->next = op;
    }
}

static ms_err find_trails(differ *d, ms_arena *arena, ms_fault *fault)
{
    for (int s = 0; s < 2; s++) {
        uint32_t *ends;
        d->trails[s] = ms_arena_take_raw(arena, d->all.n + 1, sizeof(trail));
        if (d->trails[s] == NULL)
            return ms_fail_nomem(fault);
        for (uint32_t i = 0; i < d->all.n; i++)
            d->trails[s][i] = (trail){MS_NONE, MS_NONE};
        MS_TRY(ms_why_ends(d->runs[s].result->plan, arena, &ends, fault));
        follow(d, s, ends);
    }
    return MS_OK;
}

static ms_fate fate_of(trail left)
{
    if (left.end == MS_NONE)
        return (ms_fate){.why = left.next == MS_NONE ? MS_WHY_NOT_MADE
                                                     : MS_WHY_NOT_YET,
                         .reader = MS_NONE};
    return (ms_fate){.why = left.next == MS_NONE ? MS_WHY_FREED
                                                 : MS_WHY_FREED_AGAIN,
                     .reader = left.end};
}

static ms_alike group_of(const differ *d, uint32_t m)
{
    const ms_match *match = &d->all.rows[m];
    int from = match->first[0] == MS_NONE;
    ms_alike group = ms_alive_one(&d->runs[from], match->first[from]);
    group.member = m;
    for (int s = 0; s < 2; s++) {
        const ms_alive *run = &d->runs[s];
        ms_fate fate = match->first[s] != MS_NONE ? run->fates[match->first[s]]
                                                  : fate_of(d->trails[s][m]);
        group.side[s] = ms_alive_side(run->result->plan, fate, match->bytes[s]);
    }
    return group;
}

ms_err ms_differ_find(const ms_alive runs[2], ms_arena *arena,
                      ms_alike **groups, uint32_t *n, ms_fault *fault)
{
    differ d = {.runs = runs};
    *n = 0;
    MS_TRY(match_rows(&d, arena, fault));
    MS_TRY(find_trails(&d, arena, fault));
    *groups = ms_arena_take(arena, d.all.n + 1, sizeof **groups);
    if (*groups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t m = 0; m < d.all.n; m++)
        if (differs(&d.all.rows[m]))
            (*groups)[(*n)++] = group_of(&d, m);
    *n = ms_groups_merge(*groups, *n, NULL);
    while (*n > 0 && ms_groups_gap(&(*groups)[*n - 1]) == 0)
        --*n;
    return MS_OK;
}
