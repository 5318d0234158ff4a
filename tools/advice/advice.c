/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searches for sets of changes with which the step fits. Every set is replayed,
 * so nothing is promised that does not hold. */

#include "tools/advice/advice.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <string.h>

/* Above this the tries would take longer than the run. */
#define MAX_OPS 1000000u
/* Ops of graphs and plans that are replayed: a few tenths of a second. */
#define OPS_OF_A_PRICE 2000000u
/* The next count of micro-batches is this many times the last: every divisor
 * of the batch would be too many replays; soften() looks closer. */
#define COARSE 4
#define ROUNDS 6u /* changes of a price that are added, one after the other */
#define PROOFS 3u
#define SLOW 2u /* times the step as it is */

typedef struct outcome {
    bool valid, fits;
    uint64_t peak_bytes, reserved_bytes, capacity_bytes, step_ns;
    int64_t headroom_bytes;
} outcome;

/* A set that was replayed: the ways of a search cross again and again. */
typedef struct known {
    ms_changes set;
    bool exact;
    outcome is;
    uint64_t ops;
} known;

typedef struct search {
    const ms_job *job;
    const ms_result *now;
    int64_t margin_bytes; /* what the pool takes beyond the live bytes */
    /* ops replayed so far, and the most before a proof */
    uint64_t ops, most_ops;
    uint32_t tries;
    /* replays go through the pool, because policies with a budget fill it */
    bool by_pool;
    /* a bit per row of the table that costs nothing and is refused */
    uint64_t refused;
    ms_arena scratch; /* memory of one replay */
    ms_lowerings kept;
    known *known; /* n_known */
    uint32_t n_known, known_capacity;
    ms_arena memory; /* of known */
    ms_fault *fault;
} search;

/* A set of changes and what it leads to. */
typedef struct state {
    ms_changes set;
    outcome is;
} state;

static outcome outcome_of(const ms_result *result)
{
    const ms_report *report = result->report;
    const ms_peak *peak = &report->ranks[report->worst].peak;
    return (outcome){.valid = true,
                     .fits = report->fits,
                     .peak_bytes = peak->allocated_bytes,
                     .reserved_bytes = peak->reserved_bytes,
                     .capacity_bytes = report->capacity_bytes,
                     .step_ns = result->report->ranks[0].time.step_ns,
                     .headroom_bytes = report->headroom_bytes};
}

/* ---- one set ------------------------------------------------------------- */

static ms_err try_new(search *s, known *it)
{
    ms_fault own = {.caret = -1};
    ms_job job;
    ms_result tried;
    ms_arena_reset(&s->scratch);
    ms_err err =
        ms_changes_job(&it->set, s->job, s->now, &s->scratch, &job, &own);
    if (err == MS_OK)
        err = ms_changes_step(&job, it->exact, s->now, &s->kept, &s->scratch,
                              &tried, &own);
    if (err == MS_OK) {
        it->is = outcome_of(&tried);
        it->ops = tried.graph->n_ops + tried.plan->n_ops;
    }
    return ms_fail_but_refusal(err, &own, s->fault);
}

/* What is known counts as replayed: the search ends where it would have. */
static ms_err replay(search *s, const ms_changes *set, bool exact, outcome *is)
{
    uint32_t i = 0;
    *is = (outcome){0};
    if (exact && s->ops > s->most_ops)
        return MS_OK;
    while (i < s->n_known && (s->known[i].exact != exact ||
                              !ms_changes_same(&s->known[i].set, set)))
        i++;
    if (i == s->n_known) {
        known it = {.set = *set, .exact = exact};
        MS_TRY(try_new(s, &it));
        s->known = ms_arena_grow(&s->memory, s->known, &s->known_capacity,
                                 s->n_known + 1, sizeof *s->known);
        if (s->known == NULL)
            return ms_fail_nomem(s->fault);
        s->known[s->n_known++] = it;
    }
    *is = s->known[i].is;
    s->ops += s->known[i].ops;
    s->tries++;
    return MS_OK;
}

/* Replays without the pool, which is faster. The set fits if what the pool adds
 * (the margin) is left over from the job's own capacity. */
static ms_err try_set(search *s, const ms_changes *set, outcome *is)
{
    MS_TRY(replay(s, set, !s->by_pool, is));
    is->headroom_bytes -=
        (int64_t)(is->capacity_bytes - s->now->report->capacity_bytes);
    is->fits = is->fits && is->headroom_bytes >= s->margin_bytes;
    return MS_OK;
}

static bool is_lower(uint64_t bytes, uint64_t than)
{
    return bytes < than - than / 100;
}

static bool is_longer(uint64_t t_ns, uint64_t than)
{
    return t_ns > than + than / 100;
}

static const ms_change_use *in_slot(const ms_changes *set, const char *slot)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (strcmp(set->use[i].row->slot, slot) == 0)
            return &set->use[i];
    return NULL;
}

/* Is the change of the allocator? Then only a replay through it shows what it
 * does. */
static bool is_of_pool(const ms_change *row)
{
    return strcmp(row->slot, "allocator") == 0;
}

/* The next count of micro-batches that divides the batch and is at least
 * `times` the last one; 0: there is none. */
static int64_t next_count(const search *s, int64_t last, int64_t times)
{
    int64_t batch = s->now->training.batch, count = last * times;
    if (s->now->shape.fixed != 0 || last >= batch)
        return 0;
    while (count < batch && batch % count != 0)
        count++;
    return count < batch ? count : batch;
}

/* The next use of a row after *use (use->row NULL: the first); false: there is
 * none. */
static bool next_use(const search *s, const ms_change *row, int64_t times,
                     ms_change_use *use)
{
    bool first = use->row == NULL;
    int64_t count = first ? s->now->shape.micro_batches : use->count;
    if (first && !ms_changes_apply_to(row, s->job, s->now))
        return false;
    *use = (ms_change_use){row, 0};
    if (!ms_changes_counts(row))
        return first;
    use->count = next_count(s, count, times);
    return use->count > 0;
}

/* ---- more and fewer changes ---------------------------------------------- */

/* Adds all changes that cost nothing and do no harm. Some help only together
 * with others, so those that did not help are trimmed at the end, not here. */
static ms_err add_free(search *s, state *at)
{
    for (uint32_t r = 0; r < ms_changes_table_n && !at->is.fits; r++) {
        const ms_change *row = &ms_changes_table[r];
        ms_change_use use = {0};
        const ms_change_use *there = in_slot(&at->set, row->slot);
        state next = *at;
        if (row->costs != MS_COSTS_NOTHING || is_of_pool(row) ||
            (s->refused >> r & 1u) != 0 ||
            (there != NULL && there->row == row) || !next_use(s, row, 2, &use))
            continue;
        ms_changes_add(&next.set, use);
        MS_TRY(try_set(s, &next.set, &next.is));
        s->refused |= (uint64_t)!next.is.valid << r;
        if (!next.is.valid || is_longer(next.is.step_ns, at->is.step_ns) ||
            next.is.reserved_bytes > at->is.reserved_bytes)
            continue;
        if (there == NULL ||
            is_lower(next.is.reserved_bytes, at->is.reserved_bytes))
            *at = next;
    }
    return MS_OK;
}

/* Bytes of the excess that the next state saves per ns that it adds. The least
 * time is a hundredth of the step, so that a change that costs nothing is not
 * infinitely good. */
static double worth(const search *s, const state *at, const outcome *next)
{
    double saved = (double)at->is.reserved_bytes - (double)next->reserved_bytes;
    double over = (double)s->margin_bytes - (double)at->is.headroom_bytes;
    double least = (double)at->is.step_ns / 100 + 1;
    double more = (double)next->step_ns - (double)at->is.step_ns;
    return (saved < over ? saved : over) / (more > least ? more : least);
}

/* Is the outcome better than the best one of this round so far? */
static bool is_better(const search *s, const outcome *is, const state *at,
                      const outcome *best)
{
    if (!is->valid ||
        (!is->fits && !is_lower(is->reserved_bytes, at->is.reserved_bytes)))
        return false;
    if (!best->valid || is->fits != best->fits)
        return !best->valid || is->fits;
    return is->fits ? is->step_ns < best->step_ns
                    : worth(s, at, is) > worth(s, at, best);
}

static ms_err try_row(search *s, const ms_change *row, const state *at,
                      state *best)
{
    ms_change_use use = {0};
    while (next_use(s, row, COARSE, &use)) {
        const ms_change_use *there = in_slot(&at->set, row->slot);
        state next = *at;
        if (there != NULL && there->row == row && there->count >= use.count)
            continue;
        ms_changes_add(&next.set, use);
        MS_TRY(try_set(s, &next.set, &next.is));
        if (is_better(s, &next.is, at, &best->is))
            *best = next;
    }
    return MS_OK;
}

/* Adds changes of these prices (a bit each), one after the other, until the
 * step fits. Of changes that train something else it takes the first that
 * helps, because the table lists first what changes least. */
static ms_err grow(search *s, unsigned prices, state *at)
{
    bool first = prices == 1u << MS_COSTS_TRAINING;
    for (uint32_t round = 0; round < ROUNDS && !at->is.fits; round++) {
        state best = {0};
        for (uint32_t r = 0; r < ms_changes_table_n; r++)
            if ((prices >> ms_changes_table[r].costs & 1u) != 0 &&
                !is_of_pool(&ms_changes_table[r]) && !(first && best.is.valid))
                MS_TRY(try_row(s, &ms_changes_table[r], at, &best));
        if (!best.is.valid)
            break;
        if (first)
            round = ROUNDS;
        *at = best;
        MS_TRY(add_free(s, at));
    }
    return MS_OK;
}

/* Does the next state serve as well without the row, in no more time? A change
 * that costs no time must save a tenth of the step to be worth a word. */
static bool does_as_well(const ms_change *row, const outcome *next,
                         const outcome *is)
{
    uint64_t most_ns = is->step_ns;
    if (row->costs != MS_COSTS_TIME)
        most_ns += most_ns / 10;
    return next->valid && !is_longer(next->step_ns, most_ns) &&
           (is->fits ? next->fits : next->reserved_bytes <= is->reserved_bytes);
}

/* Prefers what takes less time; but among changes of the numbers the ones that
 * the table lists first, which change them less. */
static bool is_milder(const ms_change *row, const ms_change *than,
                      const outcome *next, const outcome *is)
{
    if (row < than && row->costs == MS_COSTS_NUMERICS)
        return next->step_ns <= is->step_ns + is->step_ns / 10;
    return next->step_ns < is->step_ns;
}

/* Replaces a change by a milder one of the same slot, if the step still fits.
 */
static ms_err soften(search *s, const ms_change *old, state *at)
{
    for (uint32_t r = 0; r < ms_changes_table_n; r++) {
        const ms_change *row = &ms_changes_table[r];
        ms_change_use use = {0};
        if (strcmp(row->slot, old->slot) != 0 || row->costs > old->costs)
            continue;
        while (next_use(s, row, 2, &use)) {
            state next = *at;
            const ms_change_use *there = in_slot(&at->set, row->slot);
            if (there->row == row && there->count <= use.count)
                break;
            ms_changes_add(&next.set, use);
            MS_TRY(try_set(s, &next.set, &next.is));
            if (next.is.valid && next.is.fits &&
                is_milder(row, there->row, &next.is, &at->is))
                *at = next;
        }
    }
    return MS_OK;
}

/* Leaves out the changes that are not needed, the most expensive first. */
static ms_err trim(search *s, state *at)
{
    for (int costs = MS_N_COSTS - 1; costs >= 0; costs--)
        for (uint32_t i = at->set.n; i-- > 0;) {
            const ms_change *row = at->set.use[i].row;
            state next = *at;
            if ((int)row->costs != costs)
                continue;
            ms_changes_drop(&next.set, i);
            MS_TRY(try_set(s, &next.set, &next.is));
            if (does_as_well(row, &next.is, &at->is))
                *at = next;
            else if (at->is.fits && costs != MS_COSTS_NOTHING)
                MS_TRY(soften(s, row, at));
        }
    return MS_OK;
}

/* ---- proof --------------------------------------------------------------- */

static const ms_change *pool_row(const search *s)
{
    for (uint32_t r = 0; r < ms_changes_table_n; r++)
        if (is_of_pool(&ms_changes_table[r]) &&
            ms_changes_apply_to(&ms_changes_table[r], s->job, s->now))
            return &ms_changes_table[r];
    return NULL;
}

/* Replays the set as run would, through the pool. If it does not fit only
 * because of the pool, the pool's own change is added. */
static ms_err prove(search *s, state *at)
{
    const ms_change *row = pool_row(s);
    MS_TRY(replay(s, &at->set, false, &at->is));
    if (row == NULL || (at->is.valid && at->is.fits))
        return MS_OK;
    state next = *at;
    ms_changes_add(&next.set, (ms_change_use){row, 0});
    MS_TRY(replay(s, &next.set, false, &next.is));
    if (next.is.valid && (!at->is.valid || next.is.fits))
        *at = next;
    return MS_OK;
}

/* The prices of changes that a way may use, in turn: first its own price alone,
 * then also changes that take time. */
static const unsigned prices[MS_N_COSTS][2] = {
    [MS_COSTS_TIME] = {1u << MS_COSTS_TIME, 0},
    [MS_COSTS_NUMERICS] = {1u << MS_COSTS_NUMERICS,
                           1u << MS_COSTS_NUMERICS | 1u << MS_COSTS_TIME},
    [MS_COSTS_TRAINING] = {1u << MS_COSTS_TRAINING,
                           1u << MS_COSTS_TRAINING | 1u << MS_COSTS_TIME},
};

/* Finds a way of a price, starting from where the free changes led. When the
 * proof fails, the margin grows by what was lacking and the search is repeated;
 * a way that never fits is returned as it was found. */
static ms_err find_way(search *s, ms_costs costs, const state *from, state *way)
{
    for (uint32_t k = 0; k < PROOFS; k++) {
        *way = *from;
        way->is.fits =
            way->is.fits && way->is.headroom_bytes >= s->margin_bytes;
        /* with a larger margin more of the free changes may be needed */
        if (k > 0)
            MS_TRY(add_free(s, way));
        for (int turn = 0; turn < 2; turn++)
            MS_TRY(grow(s, prices[costs][turn], way));
        if (!way->is.fits)
            return MS_OK;
        MS_TRY(trim(s, way));
        if (way->set.n == 0)
            return MS_OK;
        MS_TRY(prove(s, way));
        if (!way->is.valid || way->is.fits)
            return MS_OK;
        /* headroom is negative here */
        s->margin_bytes -= way->is.headroom_bytes;
    }
    return MS_OK;
}

/* ---- what is reported ---------------------------------------------------- */

static ms_advice_way way_of(const search *s, const state *at)
{
    ms_costs costs = ms_changes_costs(&at->set);
    if (costs <= MS_COSTS_TIME)
        costs = at->is.step_ns > outcome_of(s->now).step_ns ? MS_COSTS_TIME
                                                            : MS_COSTS_NOTHING;
    return (ms_advice_way){.set = at->set,
                           .costs = costs,
                           .peak_bytes = at->is.peak_bytes,
                           .reserved_bytes = at->is.reserved_bytes,
                           .step_ns = at->is.step_ns,
                           .fits = at->is.fits};
}

/* A way that fits and costs more than those before it is reported only where it
 * is faster. */
static bool is_told(const ms_advice *advice, const ms_advice_way *way)
{
    for (uint32_t i = 0; i < advice->n_fitting; i++)
        if (!is_longer(advice->ways[i].step_ns, way->step_ns))
            return false;
    return true;
}

/* least: the way that comes nearest to fitting. */
static void take_way(const search *s, const state *at, ms_advice *advice,
                     state *least)
{
    if (at->set.n == 0 || !at->is.valid)
        return;
    ms_advice_way way = way_of(s, at);
    if (way.fits && is_told(advice, &way)) {
        uint32_t n = advice->n_fitting;
        bool same = n > 0 && advice->ways[n - 1].costs == way.costs;
        advice->n_fitting = n + !same;
        advice->ways[advice->n_fitting - 1] = way;
    }
    if (!least->is.valid || at->is.reserved_bytes < least->is.reserved_bytes)
        *least = *at;
}

/* A step that takes many times as long is worse for most people than lower
 * precision: it goes behind that. */
static void put_slow_back(const search *s, ms_advice *advice)
{
    uint64_t most_ns = SLOW * outcome_of(s->now).step_ns;
    for (uint32_t i = 0; i + 1 < advice->n_fitting; i++) {
        ms_advice_way slow = advice->ways[i], next = advice->ways[i + 1];
        if (slow.step_ns <= most_ns || next.step_ns > most_ns ||
            next.costs == MS_COSTS_TRAINING)
            continue;
        advice->ways[i] = next;
        advice->ways[i + 1] = slow;
    }
}

/* Reports a way that does not fit, without changes that are of no use, and as
 * run would show it.  Without them it may fit: then it is the only one. */
static ms_err take_nearest(search *s, state *at, ms_advice *advice)
{
    uint64_t bytes = advice->n > 0 ? advice->ways[advice->n - 1].reserved_bytes
                                   : outcome_of(s->now).reserved_bytes;
    if (!at->is.valid || at->set.n == 0)
        return MS_OK;
    MS_TRY(trim(s, at));
    MS_TRY(prove(s, at));
    if (!at->is.valid || at->set.n == 0 ||
        !is_lower(at->is.reserved_bytes, bytes))
        return MS_OK;
    ms_advice_way way = way_of(s, at);
    advice->n_fitting = way.fits;
    advice->n = way.fits ? 0 : advice->n;
    advice->ways[advice->n++] = way;
    return MS_OK;
}

/* Without the pool the step may fit as it is: then only what the pool adds is
 * too much, and that is the margin. */
static ms_err begin(search *s, state *from)
{
    *from = (state){0};
    MS_TRY(try_set(s, &from->set, &from->is));
    if (!from->is.valid)
        from->is = outcome_of(s->now);
    if (from->is.fits)
        s->margin_bytes = from->is.headroom_bytes + 1;
    from->is.fits = false;
    return MS_OK;
}

/* Is there a way with the same numbers and the same time already? Then the
 * search can end. */
static bool is_as_good(const search *s, const ms_advice *advice)
{
    return advice->n_fitting > 0 && advice->ways[0].costs <= MS_COSTS_TIME &&
           !is_longer(advice->ways[0].step_ns, outcome_of(s->now).step_ns);
}

static ms_err find_ways(search *s, ms_advice *advice)
{
    state from, free = {0}, least = {0}, way;
    s->most_ops = OPS_OF_A_PRICE;
    MS_TRY(begin(s, &from));
    if (s->margin_bytes > 0)
        MS_TRY(prove(s, &free));
    MS_TRY(add_free(s, &from));
    if (!free.is.fits || free.set.n == 0)
        MS_TRY(find_way(s, MS_COSTS_NOTHING, &from, &free));
    take_way(s, &free, advice, &least);
    for (int c = MS_COSTS_TIME; c < MS_N_COSTS; c++) {
        if (is_as_good(s, advice))
            break;
        s->most_ops = s->ops + OPS_OF_A_PRICE;
        MS_TRY(find_way(s, (ms_costs)c, &from, &way));
        take_way(s, &way, advice, &least);
    }
    put_slow_back(s, advice);
    advice->n = advice->n_fitting;
    if (advice->n > 0)
        return MS_OK;
    MS_TRY(take_nearest(s, &free, advice));
    return advice->n_fitting > 0 ? MS_OK : take_nearest(s, &least, advice);
}

/* Has the spec policies with a budget? They fill what room they are left. */
static bool fills(const ms_spec *spec)
{
    for (uint32_t i = 0; i < spec->n; i++)
        if (spec->items[i].policy->measures != NULL &&
            spec->items[i].policy->measures(spec->items[i].values))
            return true;
    return false;
}

static void close_search(search *s)
{
    ms_lowerings_free(&s->kept);
    ms_arena_free(&s->memory);
    ms_arena_free(&s->scratch);
}

ms_err ms_advice_find(const ms_job *job, const ms_result *result,
                      ms_advice *advice, ms_fault *fault)
{
    search s = {.job = job,
                .now = result,
                .by_pool = fills(&job->spec),
                .fault = fault};
    *advice = (ms_advice){0};
    if (job->program != NULL || result->plan->n_ops > MAX_OPS)
        return MS_OK;
    ms_err err = find_ways(&s, advice);
    advice->tries = s.tries;
    close_search(&s);
    return err;
}

/* Finds the first change that costs nothing and lowers the peak. */
static ms_err find_lower(search *s, ms_advice *advice)
{
    uint64_t now_bytes = outcome_of(s->now).reserved_bytes;
    for (uint32_t r = 0; r < ms_changes_table_n && advice->n == 0; r++) {
        const ms_change *row = &ms_changes_table[r];
        state at = {0};
        ms_change_use use = {0};
        if (row->costs > MS_COSTS_NOTHING || !next_use(s, row, 2, &use))
            continue;
        ms_changes_add(&at.set, use);
        MS_TRY(replay(s, &at.set, false, &at.is));
        if (at.is.valid && is_lower(at.is.reserved_bytes, now_bytes) &&
            way_of(s, &at).costs == MS_COSTS_NOTHING)
            advice->ways[advice->n++] = way_of(s, &at);
    }
    return MS_OK;
}

ms_err ms_advice_lower(const ms_job *job, const ms_result *result,
                       ms_advice *advice, ms_fault *fault)
{
    search s = {.job = job, .now = result, .fault = fault};
    *advice = (ms_advice){0};
    if (job->program != NULL || result->plan->n_ops > MAX_OPS)
        return MS_OK;
    ms_err err = find_lower(&s, advice);
    advice->tries = s.tries;
    close_search(&s);
    return err;
}
