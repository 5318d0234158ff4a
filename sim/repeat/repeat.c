/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/repeat/repeat.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/replay/streams/inorder.h"
#include "sim/report.h"

#include <stddef.h>
#include <string.h>

/* Three that are compared, two behind them, and three at the beginning, whose
 * gradients are new or whose copies are not yet in step. */
#define LEAST_MICRO_BATCHES 8u
#define BEHIND 2u  /* micro-batches behind the one that repeats */
#define WINDOWS 2u /* periods that are compared with the next */

/* Two neighbouring periods, `ops` long each. */
typedef struct periods {
    const ms_timeline *line;
    const ms_plan *plan;
    uint32_t ops, rows, syncs;
    uint64_t ns;
} periods;

/* ---- is it periodic? ----------------------------------------------------- */

/* The first op of a micro-batch, or MS_NONE. */
static uint32_t begin_of(const ms_plan *plan, uint32_t micro_batch)
{
    for (uint32_t op = 1; op < plan->n_ops; op++)
        if (plan->op[op].of != MS_NONE &&
            plan->op[op].micro_batch == micro_batch)
            return op;
    return MS_NONE;
}

static uint32_t syncs_before(const ms_plan *plan, uint32_t op)
{
    uint32_t n = 0;
    while (n < plan->n_sync && plan->sync[n].op < op)
        n++;
    return n;
}

static bool same_row(const periods *p, uint32_t row)
{
    const ms_row *a = &p->plan->row[row], *b = &p->plan->row[row + p->rows];
    return a->bytes == b->bytes && a->storage == b->storage &&
           (a->storage != MS_NONE || a->buffer == b->buffer) &&
           a->op + p->ops == b->op && a->category == b->category &&
           a->pool == b->pool && a->streams == b->streams &&
           a->saved == b->saved && a->home == b->home && a->waited == b->waited;
}

static bool same_lists(const periods *p, uint32_t op)
{
    const ms_plan *plan = p->plan;
    const ms_plan_op *a = &plan->op[op], *b = &plan->op[op + p->ops];
    uint32_t n = a[1].release_at - a->release_at;
    if (a->alloc_at + p->rows != b->alloc_at ||
        a[1].alloc_at + p->rows != b[1].alloc_at ||
        n != b[1].release_at - b->release_at)
        return false;
    for (uint32_t row = a->alloc_at; row < a[1].alloc_at; row++)
        if (!same_row(p, row))
            return false;
    for (uint32_t i = 0; i < n; i++)
        if (plan->release[a->release_at + i] + p->rows !=
            plan->release[b->release_at + i])
            return false;
    return true;
}

/* The ops that an op waits for must be one period later, too. */
static bool same_waits(const periods *p, uint32_t op)
{
    const uint32_t *at = p->plan->wait_at, *wait = p->plan->wait;
    if (at == NULL)
        return true;
    uint32_t n = at[op + 1] - at[op];
    if (n != at[op + p->ops + 1] - at[op + p->ops])
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (wait[at[op] + i] + p->ops != wait[at[op + p->ops] + i])
            return false;
    return true;
}

static bool same_op(const periods *p, uint32_t op)
{
    const ms_plan_op *a = &p->plan->op[op], *b = &p->plan->op[op + p->ops];
    const ms_timeline *line = p->line;
    bool follows = a->micro_batch + 1 == b->micro_batch ||
                   (a->micro_batch == MS_NONE && b->micro_batch == MS_NONE);
    return follows && a->ns == b->ns && a->of == b->of && a->pass == b->pass &&
           a->stream == b->stream &&
           line->start_ns[op] + p->ns == line->start_ns[op + p->ops] &&
           line->end_ns[op] + p->ns == line->end_ns[op + p->ops] &&
           same_lists(p, op) && same_waits(p, op);
}

/* The host catches up with the device in each period alike. */
static bool same_syncs(const periods *p, uint32_t from)
{
    const ms_plan *plan = p->plan;
    uint32_t first = syncs_before(plan, from);
    for (uint32_t k = first; k < first + p->syncs; k++) {
        const struct ms_plan_sync *a = &plan->sync[k], *b = &a[p->syncs];
        if (k + p->syncs >= plan->n_sync || a->op + p->ops != b->op ||
            (a->until == MS_NONE) != (b->until == MS_NONE) ||
            (a->until != MS_NONE && a->until + p->ops != b->until) ||
            p->line->passed_ns[k + 1] + p->ns !=
                p->line->passed_ns[k + 1 + p->syncs])
            return false;
    }
    return true;
}

/* Without a sync the host runs further ahead with each period, or is behind. */
static bool host_keeps(const periods *p, const ms_machine *machine,
                       uint32_t from)
{
    uint64_t host_ns = 0;
    bool foreign = false;
    if (p->syncs > 0)
        return true;
    for (uint32_t op = from; op < from + p->ops; op++) {
        const ms_plan_op *it = &p->plan->op[op];
        host_ns += ms_inorder_issue_ns(machine, it);
        for (uint32_t row = it->alloc_at; row < it[1].alloc_at; row++)
            foreign |= ms_active_foreign(p->plan, &p->plan->row[row]) != 0;
    }
    /* A host that runs ahead sees later and later, from period to period, that
     * what it freed is free. */
    return host_ns == p->ns || (host_ns < p->ns && !foreign);
}

static bool repeats(const periods *p, const ms_machine *machine, uint32_t from)
{
    for (uint32_t op = from; op < from + WINDOWS * p->ops; op++)
        if (!same_op(p, op))
            return false;
    for (uint32_t w = 0; w < WINDOWS; w++)
        if (!same_syncs(p, from + w * p->ops))
            return false;
    return host_keeps(p, machine, from);
}

bool ms_repeat_find(const ms_timeline *line, const ms_machine *machine,
                    ms_repeat *repeat)
{
    const ms_plan *plan = line->plan;
    uint32_t n = plan->n_micro_batches, at[WINDOWS + 2];
    if (n < LEAST_MICRO_BATCHES || machine->wall || machine->book_device ||
        plan->n_ranks > 1 || line->pooled != NULL)
        return false;
    for (uint32_t i = 0; i < WINDOWS + 2; i++) {
        at[i] = begin_of(plan, n - BEHIND - WINDOWS - 1 + i);
        if (at[i] == MS_NONE || (i > 1 && at[i] - at[i - 1] != at[1] - at[0]))
            return false;
    }
    periods p = {.line = line, .plan = plan, .ops = at[1] - at[0]};
    p.rows = plan->op[at[1]].alloc_at - plan->op[at[0]].alloc_at;
    p.syncs = syncs_before(plan, at[1]) - syncs_before(plan, at[0]);
    p.ns = line->start_ns[at[1]] - line->start_ns[at[0]];
    if (!repeats(&p, machine, at[0]))
        return false;
    *repeat = (ms_repeat){.first = at[WINDOWS],
                          .end = at[WINDOWS + 1],
                          .micro_batch = n - BEHIND - 1,
                          .period_ns = p.ns};
    return true;
}

/* ---- the report ---------------------------------------------------------- */

/* The fields of a rank's report that add up over the step lie from SUMS to
 * SUMS_END; the levels, which must be equal, lie from LEVELS to SUMS. */
#define SUMS offsetof(ms_rank_report, time)
#define SUMS_END offsetof(ms_rank_report, in_flight_micro_batches)
#define LEVELS offsetof(ms_rank_report, category_peaks)

/* sum + times * (sum - fewer); false: it is too large. */
static bool stretch(uint64_t fewer, uint64_t times, uint64_t *sum)
{
    uint64_t more;
    return *sum >= fewer &&
           !__builtin_mul_overflow(*sum - fewer, times, &more) &&
           !__builtin_add_overflow(*sum, more, sum);
}

static bool same_levels(const ms_rank_report *a, const ms_rank_report *b)
{
    const ms_peak *p = &a->peak, *q = &b->peak;
    return p->allocated_bytes == q->allocated_bytes &&
           p->active_bytes == q->active_bytes &&
           p->requested_bytes == q->requested_bytes &&
           p->reserved_bytes == q->reserved_bytes &&
           a->in_flight_micro_batches == b->in_flight_micro_batches &&
           memcmp((const char *)a + LEVELS, (const char *)b + LEVELS,
                  SUMS - LEVELS) == 0;
}

/* Everything between SUMS and SUMS_END is a uint64_t that adds up, so that the
 * fields can be walked as an array; a new field among them is stretched, too.
 */
static bool stretch_rank(const ms_rank_report *fewer, uint64_t times,
                         ms_rank_report *rank)
{
    if (!same_levels(fewer, rank))
        return false;
    for (size_t at = SUMS; at < SUMS_END; at += sizeof(uint64_t)) {
        uint64_t less, sum;
        memcpy(&less, (const char *)fewer + at, sizeof less);
        memcpy(&sum, (const char *)rank + at, sizeof sum);
        if (!stretch(less, times, &sum))
            return false;
        memcpy((char *)rank + at, &sum, sizeof sum);
    }
    return true;
}

static void stretch_flops(double fewer, uint64_t times, double *flops)
{
    *flops += (double)times * (*flops - fewer);
}

static void move_micro_batch(const ms_repeat *repeat, uint32_t times,
                             uint32_t *micro_batch)
{
    if (*micro_batch != MS_NONE && *micro_batch > repeat->micro_batch)
        *micro_batch += times;
}

/* A peak behind what repeats is so much later. */
static void move_peak(const ms_repeat *repeat, uint64_t times, ms_peak *peak)
{
    if (peak->event == MS_NONE || peak->plan_op < repeat->end)
        return;
    peak->t_ns += times * repeat->period_ns;
    move_micro_batch(repeat, (uint32_t)times, &peak->micro_batch);
}

bool ms_repeat_report(const ms_repeat *repeat, const ms_report *fewer,
                      uint64_t times, ms_report *report)
{
    ms_rank_report *rank = &report->ranks[0];
    if (rank->time.step_ns - fewer->ranks[0].time.step_ns !=
            repeat->period_ns ||
        memcmp(fewer->far, report->far, sizeof report->far) != 0 ||
        !stretch_rank(&fewer->ranks[0], times, rank) ||
        !stretch(fewer->recomputed_ops, times, &report->recomputed_ops))
        return false;
    stretch_flops(fewer->forward_flops, times, &report->forward_flops);
    stretch_flops(fewer->backward_flops, times, &report->backward_flops);
    stretch_flops(fewer->recompute_flops, times, &report->recompute_flops);
    stretch_flops(fewer->optimizer_flops, times, &report->optimizer_flops);
    move_peak(repeat, times, &rank->peak);
    report->repeats = (uint32_t)times;
    return true;
}

/* ---- the timeline -------------------------------------------------------- */

void ms_repeat_move(const ms_repeat *repeat, uint32_t times, ms_plan *plan,
                    ms_timeline *line)
{
    uint64_t more_ns = times * repeat->period_ns;
    uint32_t sync = syncs_before(plan, repeat->end);
    for (uint32_t op = repeat->end; op < plan->n_ops; op++) {
        line->start_ns[op] += more_ns;
        line->end_ns[op] += more_ns;
        move_micro_batch(repeat, times, &plan->op[op].micro_batch);
    }
    for (uint32_t e = 0; line->events != NULL && e < line->n_events; e++)
        if (line->events[e].op_act >> 1 >= repeat->end)
            line->events[e].t_ns += more_ns;
    for (uint32_t i = 0; i < plan->n_marks; i++)
        move_micro_batch(repeat, times, &plan->marks[i].micro_batch);
    for (uint32_t k = sync; line->passed_ns != NULL && k < plan->n_sync; k++)
        line->passed_ns[k + 1] += more_ns;
    line->step_ns += more_ns;
    plan->n_micro_batches += times;
    plan->repeated = repeat->micro_batch;
    plan->repeats = times;
}
