/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"

#include <check.h>
#include <string.h>

/* ---- levels -------------------------------------------------------------- */

enum { UNBORN, ALIVE, DEAD }; /* states of a row */

typedef struct running_level {
    const ms_timeline *line;
    uint64_t bytes[MS_N_CATEGORIES], host_bytes, total_bytes, peak_bytes;
    uint32_t peak_event;
    uint64_t t_ns;
    uint32_t n; /* events so far, including those of other ranks */
    uint16_t rank;
} running_level;

static uint16_t rank_of(const ms_plan *plan, uint32_t row)
{
    return plan->op[plan->row[row].op].rank;
}

/* Goes to the rank's next event, or to the end. */
static void skip_others(running_level *now)
{
    const ms_timeline *line = now->line;
    while (now->n < line->n_events &&
           rank_of(line->plan, line->events[now->n].row) != now->rank)
        now->n++;
}

static void step_level(running_level *now, uint32_t row, bool allocates)
{
    const ms_plan *plan = now->line->plan;
    uint64_t bytes = plan->row[row].bytes, sum = 0;
    bool device = plan->row[row].pool == MS_DEVICE_POOL;
    uint64_t *level =
        device ? &now->bytes[plan->row[row].category] : &now->host_bytes;
    HOLDS(allocates || *level >= bytes, "event %u", now->n);
    *level = allocates ? *level + bytes : *level - bytes;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum += now->bytes[c];
    now->total_bytes = sum;
    if (sum > now->peak_bytes) {
        now->peak_bytes = sum;
        now->peak_event = now->n;
    }
    now->n++;
}

static void check_peak(running_level *now)
{
    const ms_level *level = &now->line->ranks[now->rank].pool[MS_DEVICE_POOL];
    skip_others(now);
    HOLDS(now->n == now->line->n_events, "%u events", now->n);
    HOLDS(level->peak_bytes == now->peak_bytes, "%llu",
          (unsigned long long)now->peak_bytes);
    HOLDS(level->peak_event == now->peak_event, "event %u", now->peak_event);
    HOLDS(level->now_bytes == now->total_bytes, "at the end");
    HOLDS(now->host_bytes == 0 || now->line->plan->graph->storage_pool,
          "host memory at the end");
}

/* The device time at which an event of the host is booked: when its op starts
 * or ends, but no later than the next op of the compute stream that is issued
 * behind it. */
static uint64_t booked_ns(const ms_timeline *line, uint32_t op, uint64_t t_ns)
{
    const ms_plan *plan = line->plan;
    for (uint32_t later = op + 1; later < plan->n_ops; later++)
        if (plan->op[later].rank == plan->op[op].rank &&
            plan->op[later].stream == MS_STREAM_COMPUTE)
            return t_ns < line->start_ns[later] ? t_ns : line->start_ns[later];
    return t_ns;
}

static void check_event(running_level *now, uint32_t row, uint32_t op,
                        bool allocates, uint64_t t_ns)
{
    skip_others(now);
    HOLDS(now->n < now->line->n_events, "%u events", now->n);
    const ms_event *event = &now->line->events[now->n];
    now->t_ns = laws_larger(now->t_ns, booked_ns(now->line, op, t_ns));
    HOLDS(event->row == row, "event %u is of row %u", now->n, event->row);
    HOLDS(event->op_act == (op << 1 | allocates), "event %u", now->n);
    HOLDS(event->t_ns == now->t_ns, "event %u", now->n);
    HOLDS(now->line->plan->op[op].stream != MS_STREAM_COMPUTE ||
              event->t_ns == t_ns,
          "event %u", now->n);
    step_level(now, row, allocates);
}

/* Of one rank's one stream the events follow from its ops. */
static void check_walk(const ms_plan *plan, const ms_timeline *line)
{
    ms_timeline bare = *line;
    ms_eventwalk walk, late;
    uint32_t middle = line->n_events / 2;
    if (plan->n_ranks > 1 || plan->wait_at || line->by_device)
        return;
    bare.events = NULL;
    ms_timeline_walk(&bare, 0, &walk);
    ms_timeline_walk(&bare, middle, &late);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *is = ms_timeline_next(&walk), *was = &line->events[e];
        const ms_event one = ms_timeline_event(&bare, e);
        HOLDS(memcmp(is, was, sizeof *is) == 0, "event %u", e);
        HOLDS(memcmp(&one, was, sizeof one) == 0, "event %u", e);
        HOLDS(e < middle || ms_timeline_next(&late)->row == was->row,
              "event %u", e);
    }
    HOLDS(ms_timeline_peek(&walk) == NULL, "%u events", line->n_events);
}

void laws_check_levels(const ms_plan *plan, const ms_timeline *line)
{
    check_walk(plan, line);
    for (uint32_t e = 1; e < line->n_events; e++)
        HOLDS(line->events[e].t_ns >= line->events[e - 1].t_ns, "event %u", e);
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        running_level now = {.line = line, .rank = (uint16_t)rank};
        for (uint32_t op = 0; op < plan->n_ops; op++) {
            if (plan->op[op].rank != rank)
                continue;
            for (uint32_t r = plan->op[op].alloc_at;
                 r < plan->op[op + 1].alloc_at; r++)
                check_event(&now, r, op, true, line->start_ns[op]);
            for (uint32_t i = plan->op[op].release_at;
                 i < plan->op[op + 1].release_at; i++)
                check_event(&now, plan->release[i], op, false,
                            line->end_ns[op]);
        }
        check_peak(&now);
    }
}

/* By row the end of the last op that uses or frees it. */
static uint64_t *last_ends(const ms_plan *plan, const ms_timeline *line,
                           ms_arena *arena)
{
    uint64_t *last_ns = laws_take(arena, plan->n_rows, sizeof *last_ns);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint64_t end_ns = line->end_ns[op];
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            last_ns[plan->use[i]] = laws_larger(last_ns[plan->use[i]], end_ns);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            last_ns[plan->release[i]] =
                laws_larger(last_ns[plan->release[i]], end_ns);
    }
    return last_ns;
}

static void check_rank_levels(running_level *now, const uint64_t *last_ns,
                              uint8_t *state)
{
    const ms_timeline *line = now->line;
    const ms_plan *plan = line->plan;
    for (skip_others(now); now->n < line->n_events; skip_others(now)) {
        const ms_event *event = &line->events[now->n];
        uint32_t r = event->row;
        bool allocates = event->op_act & 1u;
        HOLDS(event->t_ns >= now->t_ns, "event %u", now->n);
        HOLDS(state[r] == (allocates ? UNBORN : ALIVE), "event %u", now->n);
        HOLDS(event->t_ns ==
                  (allocates ? line->start_ns[plan->row[r].op] : last_ns[r]),
              "event %u", now->n);
        state[r] = allocates ? ALIVE : DEAD;
        now->t_ns = event->t_ns;
        step_level(now, r, allocates);
    }
    check_peak(now);
}

void laws_check_device_levels(const ms_plan *plan, const ms_timeline *line)
{
    ms_arena arena = {0};
    uint64_t *last_ns = last_ends(plan, line, &arena);
    uint8_t *state = laws_take(&arena, plan->n_rows, 1);
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        running_level now = {.line = line, .rank = (uint16_t)rank};
        check_rank_levels(&now, last_ns, state);
    }
    ms_arena_free(&arena);
}

/* ---- the report ---------------------------------------------------------- */

static void check_times(const ms_timeline *line, const ms_times *time)
{
    uint64_t sum = time->forward_ns + time->backward_ns + time->recompute_ns +
                   time->optimizer_ns + time->exposed_comm_ns + time->stall_ns +
                   time->memory_wait_ns + time->page_wait_ns + time->bubble_ns +
                   time->host_bound_ns + time->idle_ns;
    HOLDS(time->step_ns == line->step_ns, "step");
    HOLDS(sum == time->step_ns, "parts sum to %llu", (unsigned long long)sum);
}

/* A time that is exposed was waited for while something was under way: it is no
 * longer than that was busy. */
static void check_overlap(const ms_rank_report *rank)
{
    uint64_t exposed_ns = rank->stalls_ns[MS_CAUSE_PACK], bytes = 0, sent = 0;
    for (uint32_t group = 0; group < MS_GROUP_NAMES; group++)
        sent += rank->group_bytes[group];
    HOLDS(sent == rank->comm_bytes, "groups send %llu",
          (unsigned long long)sent);
    for (int link = 0; link < MS_N_LINKS; link++) {
        const ms_link_use *use = &rank->links[link];
        HOLDS(use->time.exposed_ns <= use->time.busy_ns, "link %d", link);
        HOLDS(use->network_bytes <= use->bytes, "link %d", link);
        exposed_ns += use->time.exposed_ns;
        bytes += use->bytes;
    }
    HOLDS(exposed_ns == rank->time.exposed_comm_ns + rank->time.stall_ns,
          "links expose %llu", (unsigned long long)exposed_ns);
    HOLDS(rank->comm.exposed_ns <= rank->comm.busy_ns, "collectives");
    HOLDS(rank->comm.exposed_ns == rank->time.exposed_comm_ns, "collectives");
    HOLDS(rank->copies.exposed_ns <= rank->copies.busy_ns, "copies");
    HOLDS(bytes == rank->h2d_bytes + rank->d2h_bytes + rank->comm_bytes +
                       rank->nvme_bytes,
          "links move %llu", (unsigned long long)bytes);
}

static uint64_t sum_of(const uint64_t *bytes)
{
    uint64_t sum = 0;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum += bytes[c];
    return sum;
}

static bool counts_at(const ms_plan *plan, const struct ms_plan_mark *mark,
                      uint32_t row)
{
    return plan->row[row].category != MS_WORKSPACE &&
           plan->row[row].pool == MS_DEVICE_POOL &&
           rank_of(plan, row) == mark->rank;
}

/* The level at a mark, summed naively over the ops and releases before it. */
static uint64_t level_at(const ms_plan *plan, const struct ms_plan_mark *mark)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < plan->op[mark->op + 1].alloc_at; r++)
        if (counts_at(plan, mark, r))
            bytes += plan->row[r].bytes;
    for (uint32_t i = 0; i < mark->releases; i++)
        if (counts_at(plan, mark, plan->release[i]))
            bytes -= plan->row[plan->release[i]].bytes;
    return bytes;
}

static void check_marks(const ms_plan *plan, const ms_rank_report *rank)
{
    uint32_t last = plan->n_micro_batches - 1;
    for (uint32_t m = 0; m < plan->n_marks; m++) {
        const struct ms_plan_mark *mark = &plan->marks[m];
        bool late = mark->mark > MS_MARK_AFTER_FORWARD;
        if (mark->rank != rank->rank)
            continue;
        HOLDS(plan->op[mark->op].rank == mark->rank, "mark %u", m);
        HOLDS(mark->releases >= plan->op[mark->op].release_at &&
                  mark->releases <= plan->op[mark->op + 1].release_at,
              "mark %u", m);
        if (mark->micro_batch == (late ? last : 0))
            HOLDS(rank->levels[mark->mark] == level_at(plan, mark), "mark %u",
                  mark->mark);
    }
}

static void check_rank(const ms_timeline *line, const ms_rank_report *rank)
{
    running_level now = {.line = line, .rank = rank->rank};
    uint64_t highest[MS_N_CATEGORIES] = {0}, at_peak[MS_N_CATEGORIES] = {0};
    for (skip_others(&now); now.n < line->n_events; skip_others(&now)) {
        uint32_t e = now.n;
        step_level(&now, line->events[e].row, line->events[e].op_act & 1u);
        for (int c = 0; c < MS_N_CATEGORIES; c++) {
            highest[c] = laws_larger(highest[c], now.bytes[c]);
            if (e == rank->peak.event)
                at_peak[c] = now.bytes[c];
        }
    }
    for (int c = 0; c < MS_N_CATEGORIES; c++) {
        HOLDS(rank->category_peaks[c] == highest[c], "category %d", c);
        HOLDS(rank->peak.by_category[c] == at_peak[c], "category %d", c);
    }
    HOLDS(rank->peak.allocated_bytes == now.peak_bytes, "peak");
    HOLDS(sum_of(rank->peak.by_category) == now.peak_bytes, "breakdown");
    for (int p = 0; p < MS_N_PHASES; p++) {
        uint64_t bytes = rank->phase_peaks_with_workspace[p];
        HOLDS(bytes <= now.peak_bytes, "phase %d", p);
        HOLDS(sum_of(rank->phase_by_category[p]) == bytes, "phase %d", p);
    }
    HOLDS(rank->parameters_bytes <= highest[MS_PARAMETERS], "buffers are not");
    check_times(line, &rank->time);
    check_overlap(rank);
}

void laws_check_report(const ms_timeline *line, const ms_report *report,
                       bool in_host_order)
{
    HOLDS(report->n_ranks == line->plan->n_ranks, "%u ranks", report->n_ranks);
    for (uint32_t r = 0; r < report->n_ranks; r++) {
        HOLDS(report->ranks[r].rank == r, "rank %u", r);
        check_rank(line, &report->ranks[r]);
        if (in_host_order)
            check_marks(line->plan, &report->ranks[r]);
    }
}
