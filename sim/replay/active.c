/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/active.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/requests.h"
#include "sim/replay/heldfrees.h"
#include "sim/replay/hostclock.h"
#include "sim/timeline.h"

typedef struct rank_active {
    uint64_t now_bytes;     /* active */
    ms_rank_levels *levels; /* the timeline's */
    ms_heldfrees held;      /* rows */
    ms_hostclock clock;
} rank_active;

typedef struct active_state {
    const ms_plan *plan;
    ms_arena *arena;
    ms_timeline *line;
    const ms_machine *machine;
    uint32_t raises_capacity;
    rank_active *ranks;
    ms_heldfrees_item *held; /* n_held, of all ranks */
    uint32_t n_held;
    ms_active_seen *seen; /* for ms_active_list, or NULL */
    uint32_t n_seen;
} active_state;

uint8_t ms_active_home(const ms_plan *plan, const ms_row *row)
{
    return row->home == MS_HOME_COMPUTE ? (uint8_t)MS_STREAM_COMPUTE
                                        : plan->op[row->op].stream;
}

uint64_t ms_active_memory(const ms_plan *plan, const ms_row *row)
{
    return row->home > MS_HOME_COMPUTE
               ? (uint64_t)MS_N_STREAMS + row->home - MS_HOME_REDUCE
               : ms_active_home(plan, row);
}

uint64_t ms_active_asked(const ms_plan *plan, const ms_row *row)
{
    const ms_graph *graph = plan->graph;
    bool may_share = row->pool == MS_DEVICE_POOL && row->bytes > 0 &&
                     graph->storage_asked_bytes != NULL &&
                     plan->n_stages == 0 && row->storage < graph->n_persistent;
    if (!may_share || graph->storage_asked_bytes[row->storage] == MS_UNSHARED)
        return row->bytes;
    return graph->storage_asked_bytes[row->storage];
}

ms_streams ms_active_foreign(const ms_plan *plan, const ms_row *row)
{
    if (row->streams == 0 || row->waited || row->pool != MS_DEVICE_POOL)
        return 0;
    /* A collective records a stream of its own, NCCL's, for the buffers of the
     * stream that calls it (without TORCH_NCCL_AVOID_RECORD_STREAMS). */
    if (row->home > MS_HOME_COMPUTE && row->storage == MS_NONE)
        return row->streams;
    return (ms_streams)(row->streams & ~(1u << ms_active_home(plan, row)));
}

/* ---- in host issue order ------------------------------------------------- */

static void complete_frees(active_state *state, rank_active *rank, uint32_t op)
{
    while (rank->held.first_ns <= rank->clock.host_ns) {
        uint32_t row = (uint32_t)ms_heldfrees_pop(&rank->held, state->held);
        if (state->seen)
            state->seen[state->n_seen++] = (ms_active_seen){row, op};
        rank->now_bytes -= state->plan->row[row].bytes;
    }
}

static ms_err make_room(active_state *state, ms_fault *fault)
{
    ms_timeline *line = state->line;
    uint32_t capacity = state->raises_capacity;
    line->raises = ms_arena_grow(state->arena, line->raises, &capacity,
                                 line->n_raises + 1, sizeof *line->raises);
    state->raises_capacity = capacity;
    return line->raises ? MS_OK : ms_fail_nomem(fault);
}

static ms_err raise_to(active_state *state, rank_active *rank, uint32_t op,
                       ms_fault *fault)
{
    ms_timeline *line = state->line;
    uint64_t bytes = rank->now_bytes;
    if (bytes <= rank->levels->active_peak_bytes)
        return MS_OK;
    rank->levels->active_peak_bytes = bytes;
    if (line->n_raises == state->raises_capacity)
        MS_TRY(make_room(state, fault));
    line->raises[line->n_raises++] = (struct ms_raise){op, bytes};
    return MS_OK;
}

/* The allocator looks for frees that have completed only when it allocates
 * (process_events); the blocks of one op are asked for at one instant of the
 * host, so that one look serves all of them. */
static ms_err allocate(active_state *state, rank_active *rank, uint32_t op,
                       ms_fault *fault)
{
    const ms_plan_op *it = &state->plan->op[op];
    const ms_row *row = state->plan->row + it[0].alloc_at;
    const ms_row *end = state->plan->row + it[1].alloc_at;
    uint64_t bytes = 0;
    if (row == end)
        return MS_OK;
    complete_frees(state, rank, op);
    for (; row < end; row++)
        bytes += row->pool == MS_DEVICE_POOL ? row->bytes : 0;
    rank->now_bytes += bytes;
    return raise_to(state, rank, op, fault);
}

/* A row of rank's. */
static void release(active_state *state, rank_active *rank, uint32_t row)
{
    const ms_row *it = &state->plan->row[row];
    uint32_t streams = ms_active_foreign(state->plan, it);
    if (streams == 0)
        rank->now_bytes -= it->pool == MS_DEVICE_POOL ? it->bytes : 0;
    else
        ms_heldfrees_push(&rank->held, state->held, state->n_held++, streams,
                          row);
}

/* An op that is issued is the end of its stream now. */
static ms_err walk(active_state *all, ms_fault *fault)
{
    active_state own = *all, *state = &own; /* in registers */
    const ms_plan *plan = state->plan;
    const uint32_t *list = plan->release;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        const ms_plan_op *it = &plan->op[op];
        rank_active *rank = &state->ranks[it->rank];
        ms_hostclock_sync(&rank->clock, op);
        MS_TRY(allocate(state, rank, op, fault));
        rank->held.tail_ns[it->stream] = state->line->end_ns[op];
        ms_hostclock_issue(&rank->clock, op);
        uint32_t i = it[0].release_at, end = it[1].release_at;
        for (; i < end; i++)
            release(state, rank, list[i]);
    }
    *all = own;
    return MS_OK;
}

/* Does any free have to wait?  With one stream active is allocated. */
static bool any_waits(const ms_plan *plan)
{
    for (uint32_t r = 0; plan->wait_at && r < plan->n_rows; r++)
        if (ms_active_foreign(plan, &plan->row[r]) != 0)
            return true;
    return false;
}

static ms_err open_ranks(active_state *state, ms_fault *fault)
{
    const ms_plan *plan = state->plan;
    uint32_t n = plan->op[plan->n_ops].release_at;
    state->held = ms_arena_take_raw(state->arena, n, sizeof *state->held);
    state->ranks =
        ms_arena_take(state->arena, plan->n_ranks, sizeof *state->ranks);
    if (!state->ranks || !state->held)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        rank_active *rank = &state->ranks[r];
        rank->held.first_ns = UINT64_MAX;
        rank->levels = &state->line->ranks[r];
        rank->clock = ms_hostclock_open(state->line, state->machine, r);
    }
    return MS_OK;
}

static ms_err run(active_state *state, ms_fault *fault)
{
    MS_TRY(open_ranks(state, fault));
    return walk(state, fault);
}

ms_err ms_active_book(const ms_plan *plan, const ms_machine *machine,
                      ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    active_state state = {
        .plan = plan, .arena = arena, .line = line, .machine = machine};
    return any_waits(plan) ? run(&state, fault) : MS_OK;
}

ms_err ms_active_list(const ms_timeline *line, const ms_machine *machine,
                      ms_arena *arena, uint8_t **late,
                      const ms_active_seen **seen, uint32_t *n, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    bool apart = line->by_device || machine->paging.page_bytes > 0;
    ms_timeline own = *line; /* whose peaks are told again */
    active_state state = {
        .plan = plan, .arena = arena, .line = &own, .machine = machine};
    *late = NULL;
    *n = 0;
    if (apart || !any_waits(plan))
        return MS_OK;
    own.raises = NULL;
    own.n_raises = 0;
    own.ranks = ms_arena_take(arena, plan->n_ranks, sizeof *own.ranks);
    *late = ms_arena_take(arena, plan->n_rows, 1);
    state.seen = ms_arena_take_raw(arena, plan->op[plan->n_ops].release_at,
                                   sizeof *state.seen);
    if (!own.ranks || !*late || !state.seen)
        return ms_fail_nomem(fault);
    MS_TRY(run(&state, fault));
    for (uint32_t i = 0; i < state.n_held; i++)
        (*late)[state.held[i].what] = 1;
    *seen = state.seen;
    *n = state.n_seen;
    return MS_OK;
}
