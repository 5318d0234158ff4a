/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/tape.h"

#include "sim/machine.h"
#include "sim/replay/hostclock.h"
#include "sim/timeline.h"

/* ---- what waits for other streams ---------------------------------------- */

/* Memory that goes late, by the stream that holds it up longest: those that
 * come later complete later (sim/replay/active.h). */
typedef struct late_queues {
    const ms_tape *tape;
    const ms_timeline *line;
    uint64_t tail_ns[MS_N_STREAMS]; /* end of what is issued */
    uint32_t first[MS_N_STREAMS], last[MS_N_STREAMS]; /* or MS_NONE */
    uint32_t *next;                                   /* per entry of late */
    uint64_t *passed_ns;
    uint32_t n; /* entries that have come */
    uint64_t now_bytes, most_bytes;
} late_queues;

static void hold(late_queues *it, uint32_t entry)
{
    uint32_t streams = it->tape->late[entry].streams, last = 0;
    for (uint32_t s = MS_N_STREAMS; s-- > 0;)
        if (streams >> s & 1u &&
            (!(streams >> last & 1u) || it->tail_ns[s] >= it->tail_ns[last]))
            last = s;
    it->passed_ns[entry] = it->tail_ns[last];
    it->next[entry] = MS_NONE;
    if (it->first[last] == MS_NONE)
        it->first[last] = entry;
    else
        it->next[it->last[last]] = entry;
    it->last[last] = entry;
}

static void complete(late_queues *it, uint64_t host_ns)
{
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        while (it->first[s] != MS_NONE &&
               it->passed_ns[it->first[s]] <= host_ns) {
            it->now_bytes -= it->tape->late[it->first[s]].bytes;
            it->first[s] = it->next[it->first[s]];
        }
}

static void book(late_queues *it, const ms_machine *machine)
{
    const ms_plan *plan = &it->tape->plan;
    ms_hostclock clock = ms_hostclock_open(it->line, machine, 0);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        const ms_tape_level *level = &it->tape->level[op];
        ms_hostclock_sync(&clock, op);
        if (level->takes)
            complete(it, clock.host_ns);
        it->now_bytes += level->taken_bytes;
        if (it->now_bytes > it->most_bytes)
            it->most_bytes = it->now_bytes;
        it->tail_ns[plan->op[op].stream] = it->line->end_ns[op];
        ms_hostclock_issue(&clock, op);
        it->now_bytes -= level->given_bytes;
        for (; it->n < it->tape->n_late && it->tape->late[it->n].op == op;
             it->n++)
            hold(it, it->n);
    }
}

static ms_err find_active(ms_tape *tape, const ms_timeline *line,
                          const ms_machine *machine, uint64_t start_bytes,
                          ms_folded *folded, ms_fault *fault)
{
    late_queues it = {.tape = tape,
                      .line = line,
                      .now_bytes = start_bytes,
                      .most_bytes = folded->peak_bytes};
    folded->active_bytes = folded->peak_bytes;
    if (tape->n_late == 0)
        return MS_OK;
    it.next = ms_arena_take_raw(&tape->arena, tape->n_late, sizeof *it.next);
    it.passed_ns =
        ms_arena_take_raw(&tape->arena, tape->n_late, sizeof *it.passed_ns);
    if (it.next == NULL || it.passed_ns == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        it.first[s] = MS_NONE;
    book(&it, machine);
    folded->active_bytes = it.most_bytes;
    return MS_OK;
}

/* ---- other memories ------------------------------------------------------ */

/* The highest level of each of these memories, in host order. */
static void find_far(const ms_plan *plan, struct ms_far_memory *far)
{
    uint64_t now_bytes[MS_N_POOLS] = {0};
    for (uint32_t op = 0; op < plan->n_ops && plan->n_rows > 0; op++) {
        const ms_plan_op *it = &plan->op[op];
        for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
            uint8_t pool = plan->row[r].pool;
            now_bytes[pool] += plan->row[r].bytes;
            if (now_bytes[pool] > far[pool].peak_bytes)
                far[pool].peak_bytes = now_bytes[pool];
        }
        for (uint32_t i = it->release_at; i < it[1].release_at; i++) {
            const ms_row *row = &plan->row[plan->release[i]];
            now_bytes[row->pool] -= row->bytes;
        }
    }
}

ms_err ms_taperun(ms_tape *tape, const ms_machine *machine,
                  uint64_t start_bytes, ms_folded *folded, ms_fault *fault)
{
    ms_timeline line;
    ms_rank_report rank = {0};
    ms_report report = {.n_ranks = 1, .ranks = &rank};
    MS_TRY(ms_tape_end(tape, fault));
    MS_TRY(ms_replay_clock(&tape->plan, machine, &tape->arena, &line, fault));
    MS_TRY(ms_times_measure(&line, &tape->arena, &report, fault));
    MS_TRY(find_active(tape, &line, machine, start_bytes, folded, fault));
    find_far(&tape->plan, report.far);
    MS_TRY(ms_hostmemory_measure(&line, machine, &tape->arena, &report, fault));
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        folded->far[pool] = report.far[pool];
    folded->time = rank.time;
    folded->step_ns = line.step_ns;
    folded->recompute_ns = rank.time.recompute_ns;
    return MS_OK;
}
