/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/repeat/rounds.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/replay/streams/inorder.h"
#include "sim/timeline.h"

#include <string.h>

typedef struct finder {
    const ms_timeline *line;
    const ms_plan *plan;
    const ms_roundcut *cut;
    ms_rounds *rounds;
    uint32_t *number; /* per op, among those of its rank */
    uint32_t *row;    /* per row, the same */
    uint32_t *sync; /* of a rank: rows of plan.sync, and before which of its */
    uint32_t *before; /* ops, as an index of rounds.op, each stands */
} finder;

/* ---- ops and rows by rank ------------------------------------------------ */

static void list_ops(const finder *it)
{
    const ms_plan *plan = it->plan;
    uint32_t *at = it->rounds->op_at, *op = it->rounds->op;
    for (uint32_t i = 0; i < plan->n_ops; i++)
        at[plan->op[i].rank + 1]++;
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        at[r + 1] += at[r];
    /* at[r] runs ahead to at[r + 1], and all are put back. */
    for (uint32_t i = 0; i < plan->n_ops; i++)
        op[at[plan->op[i].rank]++] = i;
    for (uint32_t r = plan->n_ranks; r > 0; r--)
        at[r] = at[r - 1];
    at[0] = 0;
}

static void number_all(const finder *it)
{
    const ms_plan *plan = it->plan;
    const ms_rounds *rounds = it->rounds;
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        uint32_t n = 0;
        for (uint32_t i = rounds->op_at[r]; i < rounds->op_at[r + 1]; i++) {
            const ms_plan_op *op = &plan->op[rounds->op[i]];
            it->number[rounds->op[i]] = i;
            for (uint32_t row = op->alloc_at; row < op[1].alloc_at; row++)
                it->row[row] = n++;
        }
    }
}

static ms_err take_all(finder *it, ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = it->plan;
    ms_rounds *rounds = it->rounds;
    uint32_t n = plan->n_ranks;
    rounds->op = ms_arena_take_raw(arena, plan->n_ops, sizeof *rounds->op);
    rounds->op_at = ms_arena_take(arena, n + 1u, sizeof *rounds->op_at);
    rounds->ranks = ms_arena_take(arena, n, sizeof *rounds->ranks);
    it->number = ms_arena_take_raw(arena, plan->n_ops, sizeof *it->number);
    it->row = ms_arena_take_raw(arena, plan->n_rows, sizeof *it->row);
    it->sync = ms_arena_take_raw(arena, plan->n_sync, sizeof *it->sync);
    it->before = ms_arena_take_raw(arena, plan->n_sync, sizeof *it->before);
    if (rounds->op == NULL || rounds->op_at == NULL || rounds->ranks == NULL ||
        it->number == NULL || it->row == NULL || it->sync == NULL ||
        it->before == NULL)
        return ms_fail_nomem(fault);
    list_ops(it);
    number_all(it);
    return MS_OK;
}

/* ---- where rounds begin -------------------------------------------------- */

/* From `from` on the first op of the rank that runs the micro-batch forward, or
 * MS_NONE. */
static uint32_t forward_of(const finder *it, uint32_t rank, uint32_t from,
                           uint32_t micro_batch)
{
    const ms_rounds *rounds = it->rounds;
    for (uint32_t i = from; i < rounds->op_at[rank + 1]; i++) {
        const ms_plan_op *op = &it->plan->op[rounds->op[i]];
        if (op->stream == MS_STREAM_COMPUTE && op->pass == MS_FORWARD &&
            op->micro_batch == micro_batch)
            return i;
    }
    return MS_NONE;
}

static uint32_t rows_before(const finder *it, uint32_t i)
{
    return it->row[it->plan->op[it->rounds->op[i]].alloc_at];
}

/* All rounds have the same number of ops. */
static bool find_rank(const finder *it, uint32_t rank)
{
    struct ms_rounds_rank *own = &it->rounds->ranks[rank];
    const ms_roundcut *cut = it->cut;
    uint32_t micro_batch = cut->cut - cut->before * cut->round;
    uint32_t at = forward_of(it, rank, it->rounds->op_at[rank], micro_batch);
    own->first = at;
    for (uint32_t k = 0; k < cut->before + MS_ROUNDS_BEHIND; k++) {
        micro_batch += cut->round;
        uint32_t next =
            at != MS_NONE ? forward_of(it, rank, at, micro_batch) : MS_NONE;
        if (next == MS_NONE || (k > 0 && next - at != own->ops))
            return false;
        own->ops = next - at;
        at = next;
    }
    own->end = at;
    own->cut = at - MS_ROUNDS_BEHIND * own->ops;
    own->rows = rows_before(it, at) - rows_before(it, at - own->ops);
    return true;
}

/* ---- do they repeat? ----------------------------------------------------- */

static bool same_row(const finder *it, uint32_t a_row, uint32_t b_row,
                     uint32_t rank)
{
    const ms_row *a = &it->plan->row[a_row], *b = &it->plan->row[b_row];
    return it->row[a_row] + it->rounds->ranks[rank].rows == it->row[b_row] &&
           a->bytes == b->bytes && a->storage == b->storage &&
           (a->storage != MS_NONE || a->buffer == b->buffer) &&
           a->pool == b->pool && a->streams == b->streams &&
           a->home == b->home && a->waited == b->waited &&
           a->pool == MS_DEVICE_POOL;
}

static bool same_lists(const finder *it, const ms_plan_op *a,
                       const ms_plan_op *b)
{
    const uint32_t *release = it->plan->release;
    uint32_t rows = a[1].alloc_at - a->alloc_at;
    uint32_t releases = a[1].release_at - a->release_at;
    if (rows != b[1].alloc_at - b->alloc_at ||
        releases != b[1].release_at - b->release_at)
        return false;
    for (uint32_t i = 0; i < rows; i++)
        if (!same_row(it, a->alloc_at + i, b->alloc_at + i, a->rank))
            return false;
    for (uint32_t i = 0; i < releases; i++)
        if (!same_row(it, release[a->release_at + i],
                      release[b->release_at + i], a->rank))
            return false;
    return true;
}

/* What an op waits for is a round later, too. */
static bool same_waits(const finder *it, uint32_t a, uint32_t b)
{
    const uint32_t *at = it->plan->wait_at, *wait = it->plan->wait;
    uint32_t n = at == NULL ? 0 : at[a + 1] - at[a];
    if (at != NULL && n != at[b + 1] - at[b])
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = wait[at[a] + i], y = wait[at[b] + i];
        uint32_t rank = it->plan->op[x].rank;
        if (rank != it->plan->op[y].rank ||
            it->number[x] + it->rounds->ranks[rank].ops != it->number[y])
            return false;
    }
    return true;
}

/* From the last round before the cut on, what ops wait for lies in rounds or
 * behind them; for what that round waits for, in rounds. */
static bool waits_for_rounds(const finder *it, uint32_t rank)
{
    const ms_rounds *rounds = it->rounds;
    const uint32_t *at = it->plan->wait_at;
    const struct ms_rounds_rank *own = &rounds->ranks[rank];
    if (at == NULL)
        return true;
    for (uint32_t i = own->cut - own->ops; i < rounds->op_at[rank + 1]; i++) {
        uint32_t op = rounds->op[i];
        for (uint32_t k = at[op]; k < at[op + 1]; k++) {
            uint32_t other = it->plan->wait[k];
            const struct ms_rounds_rank *theirs =
                &rounds->ranks[it->plan->op[other].rank];
            if (it->number[other] < theirs->first ||
                (i < own->cut && it->number[other] >= theirs->end))
                return false;
        }
    }
    return true;
}

static bool same_op(const finder *it, uint32_t a, uint32_t b)
{
    const ms_plan_op *x = &it->plan->op[a], *y = &it->plan->op[b];
    const ms_timeline *line = it->line;
    uint64_t ns = it->rounds->period_ns;
    bool follows = x->micro_batch == MS_NONE
                       ? y->micro_batch == MS_NONE
                       : x->micro_batch + it->cut->round == y->micro_batch;
    return follows && x->ns == y->ns && x->of == y->of && x->pass == y->pass &&
           x->stream == y->stream && x->cut == y->cut &&
           line->start_ns[a] + ns == line->start_ns[b] &&
           line->end_ns[a] + ns == line->end_ns[b] &&
           line->gap_cause[a] == line->gap_cause[b] && same_lists(it, x, y) &&
           same_waits(it, a, b);
}

/* ---- hosts --------------------------------------------------------------- */

static uint32_t list_syncs(const finder *it, uint32_t rank)
{
    const ms_plan *plan = it->plan;
    const ms_rounds *rounds = it->rounds;
    uint32_t n = 0, i = rounds->op_at[rank];
    for (uint32_t k = 0; k < plan->n_sync; k++) {
        if (plan->sync[k].rank != rank)
            continue;
        while (i < rounds->op_at[rank + 1] && rounds->op[i] < plan->sync[k].op)
            i++;
        it->sync[n] = k;
        it->before[n++] = i;
    }
    return n;
}

/* Does the host wait in each round alike, for all that is under way?  *each:
 * how often, in a round. */
static bool same_syncs(const finder *it, uint32_t rank, uint32_t *each)
{
    const struct ms_rounds_rank *own = &it->rounds->ranks[rank];
    const uint64_t *passed_ns = it->line->passed_ns;
    uint32_t n = list_syncs(it, rank), first = 0;
    *each = 0;
    while (first < n && it->before[first] < own->first)
        first++;
    for (uint32_t k = first; k < n && it->before[k] < own->first + own->ops;
         k++)
        ++*each;
    if (*each == 0)
        return n == 0;
    for (uint32_t k = first; k < n && it->before[k] + own->ops < own->end;
         k++) {
        uint32_t next = k + *each;
        if (next >= n || it->before[next] != it->before[k] + own->ops ||
            it->plan->sync[it->sync[k]].until != MS_NONE ||
            it->plan->sync[it->sync[next]].until != MS_NONE ||
            passed_ns == NULL ||
            passed_ns[it->sync[k] + 1] + it->rounds->period_ns !=
                passed_ns[it->sync[next] + 1])
            return false;
    }
    return true;
}

/* A host that waits in each round is a period later in the next.  Without a
 * sync one that is faster than its device is further ahead from round to round:
 * nothing waits for it in rounds, and nothing may behind them, where it would
 * be ahead by so many rounds more. */
static bool host_keeps(const finder *it, const ms_machine *machine,
                       uint32_t rank)
{
    const ms_rounds *rounds = it->rounds;
    struct ms_rounds_rank *own = &rounds->ranks[rank];
    uint32_t syncs;
    if (!same_syncs(it, rank, &syncs))
        return false;
    if (syncs > 0) {
        own->host_ns = rounds->period_ns;
        return true;
    }
    for (uint32_t i = own->first; i < own->first + own->ops; i++)
        own->host_ns +=
            ms_inorder_issue_ns(machine, &it->plan->op[rounds->op[i]]);
    if (own->host_ns >= rounds->period_ns)
        return own->host_ns == rounds->period_ns;
    for (uint32_t i = own->cut; i < rounds->op_at[rank + 1]; i++)
        if (it->line->gap_cause[rounds->op[i]] == MS_GAP_HOST)
            return false;
    return true;
}

/* What a round takes it gives back. */
static bool is_level(const finder *it, const struct ms_rounds_rank *own)
{
    uint64_t bytes = 0;
    for (uint32_t i = own->first; i < own->first + own->ops; i++) {
        const ms_plan_op *op = &it->plan->op[it->rounds->op[i]];
        for (uint32_t row = op->alloc_at; row < op[1].alloc_at; row++)
            bytes += it->plan->row[row].bytes;
        for (uint32_t k = op->release_at; k < op[1].release_at; k++)
            bytes -= it->plan->row[it->plan->release[k]].bytes;
    }
    return bytes == 0;
}

static bool repeats(const finder *it, const ms_machine *machine, uint32_t rank)
{
    const ms_rounds *rounds = it->rounds;
    struct ms_rounds_rank *own = &rounds->ranks[rank];
    for (uint32_t i = own->first; i + own->ops < own->end; i++)
        if (!same_op(it, rounds->op[i], rounds->op[i + own->ops]))
            return false;
    return waits_for_rounds(it, rank) && is_level(it, own) &&
           host_keeps(it, machine, rank);
}

static bool is_plain(const ms_plan *plan, const ms_machine *machine)
{
    if (machine->wall || machine->book_device || machine->paging.page_bytes > 0)
        return false;
    for (uint32_t row = 0; row < plan->n_rows; row++)
        if (plan->row[row].pool != MS_DEVICE_POOL)
            return false;
    return true;
}

ms_err ms_rounds_find(const ms_timeline *line, const ms_machine *machine,
                      const ms_roundcut *cut, ms_arena *arena,
                      ms_rounds *rounds, bool *found, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    finder it = {.line = line, .plan = plan, .cut = cut, .rounds = rounds};
    *found = false;
    if (!is_plain(plan, machine))
        return MS_OK;
    MS_TRY(take_all(&it, arena, fault));
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        if (!find_rank(&it, r))
            return MS_OK;
    uint32_t first = rounds->ranks[0].first;
    rounds->period_ns =
        line->start_ns[rounds->op[first + rounds->ranks[0].ops]] -
        line->start_ns[rounds->op[first]];
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        if (!repeats(&it, machine, r))
            return MS_OK;
    *found = true;
    return MS_OK;
}
