/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/active.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/requests.h"
#include "sim/replay/hostclock.h"
#include "sim/timeline.h"

/* A free whose completion other streams hold up. */
typedef struct held_free {
    uint64_t t_ns; /* when they have passed */
    uint32_t row;
} held_free;

typedef struct rank_active {
    uint64_t now_bytes;             /* active */
    uint64_t tail_ns[MS_N_STREAMS]; /* end of what is issued */
    held_free *heap;                /* earliest first */
    uint32_t n_heap;
    ms_hostclock clock;
} rank_active;

typedef struct active_state {
    const ms_plan *plan;
    ms_arena *arena;
    ms_timeline *line;
    uint64_t launch_ns;
    uint32_t raises_capacity;
    rank_active *ranks;
    uint8_t *late; /* for ms_active_list, or NULL; then this, too */
    ms_active_seen *seen;
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
                     row->storage < graph->n_persistent;
    if (!may_share || graph->storage_asked_bytes[row->storage] == MS_UNSHARED)
        return row->bytes;
    return graph->storage_asked_bytes[row->storage];
}

uint8_t ms_active_foreign(const ms_plan *plan, const ms_row *row)
{
    if (row->waited || row->pool != MS_DEVICE_POOL)
        return 0;
    /* A collective records a stream of its own, NCCL's, for the buffers of the
     * stream that calls it (without TORCH_NCCL_AVOID_RECORD_STREAMS). */
    if (row->home > MS_HOME_COMPUTE && row->storage == MS_NONE)
        return row->streams;
    return (uint8_t)(row->streams & ~(1u << ms_active_home(plan, row)));
}

static uint16_t rank_of(const ms_plan *plan, uint32_t row)
{
    return plan->op[plan->row[row].op].rank;
}

/* ---- frees that wait ----------------------------------------------------- */

static void push(rank_active *rank, held_free item)
{
    held_free *heap = rank->heap;
    uint32_t i = rank->n_heap++;
    for (; i > 0 && heap[(i - 1) / 2].t_ns > item.t_ns; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = item;
}

static held_free pop(rank_active *rank)
{
    held_free *heap = rank->heap, first = heap[0];
    held_free last = heap[--rank->n_heap];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child + 1 < rank->n_heap && heap[child + 1].t_ns < heap[child].t_ns)
            child++;
        if (child >= rank->n_heap || heap[child].t_ns >= last.t_ns)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

static void complete_frees(active_state *state, rank_active *rank, uint32_t op)
{
    while (rank->n_heap > 0 && rank->heap[0].t_ns <= rank->clock.host_ns) {
        uint32_t row = pop(rank).row;
        if (state->late)
            state->seen[state->n_seen++] = (ms_active_seen){row, op};
        rank->now_bytes -= state->plan->row[row].bytes;
    }
}

/* ---- in host issue order ------------------------------------------------- */

static ms_err raise_to(active_state *state, uint32_t op, uint64_t bytes,
                       ms_fault *fault)
{
    ms_timeline *line = state->line;
    ms_rank_levels *levels = &line->ranks[state->plan->op[op].rank];
    if (bytes <= levels->active_peak_bytes)
        return MS_OK;
    levels->active_peak_bytes = bytes;
    if (line->n_raises == state->raises_capacity)
        line->raises =
            ms_arena_grow(state->arena, line->raises, &state->raises_capacity,
                          line->n_raises + 1, sizeof *line->raises);
    if (!line->raises)
        return ms_fail_nomem(fault);
    line->raises[line->n_raises++] = (struct ms_raise){op, bytes};
    return MS_OK;
}

/* The allocator looks for frees that have completed only when it allocates
 * (process_events); the blocks of one op are asked for at one instant of the
 * host, so that one look serves all of them. */
static ms_err allocate(active_state *state, rank_active *rank, uint32_t op,
                       ms_fault *fault)
{
    const ms_plan *plan = state->plan;
    uint32_t r = plan->op[op].alloc_at, end = plan->op[op + 1].alloc_at;
    uint64_t bytes = 0;
    if (r == end)
        return MS_OK;
    complete_frees(state, rank, op);
    for (; r < end; r++)
        if (plan->row[r].pool == MS_DEVICE_POOL)
            bytes += plan->row[r].bytes;
    rank->now_bytes += bytes;
    return raise_to(state, op, rank->now_bytes, fault);
}

static void release(active_state *state, uint32_t row)
{
    const ms_plan *plan = state->plan;
    rank_active *rank = &state->ranks[rank_of(plan, row)];
    uint8_t streams = ms_active_foreign(plan, &plan->row[row]);
    held_free item = {0, row};
    if (plan->row[row].pool != MS_DEVICE_POOL)
        return;
    if (streams == 0) {
        rank->now_bytes -= plan->row[row].bytes;
        return;
    }
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        if (streams & 1u << s && rank->tail_ns[s] > item.t_ns)
            item.t_ns = rank->tail_ns[s];
    if (state->late)
        state->late[row] = 1;
    push(rank, item);
}

/* An op that is issued is the end of its stream now. */
static ms_err walk(active_state *state, ms_fault *fault)
{
    const ms_plan *plan = state->plan;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        rank_active *rank = &state->ranks[plan->op[op].rank];
        ms_hostclock_sync(&rank->clock, op);
        MS_TRY(allocate(state, rank, op, fault));
        rank->tail_ns[plan->op[op].stream] = state->line->end_ns[op];
        ms_hostclock_issue(&rank->clock, op);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            release(state, plan->release[i]);
    }
    return MS_OK;
}

/* How many frees may have to wait. */
static uint32_t count_foreign(const ms_plan *plan)
{
    uint32_t n = 0;
    if (!plan->wait_at)
        return 0; /* one stream: active is allocated */
    for (uint32_t r = 0; r < plan->n_rows; r++)
        n += ms_active_foreign(plan, &plan->row[r]) != 0;
    return n;
}

/* Each rank's heap has room for its frees that may wait, of n in all.  n_heap
 * counts them first, and is set back to an empty heap. */
static void share_heap(active_state *state, held_free *heap, uint32_t n)
{
    const ms_plan *plan = state->plan;
    state->ranks[0].n_heap = plan->n_ranks == 1 ? n : 0;
    for (uint32_t r = 0; plan->n_ranks > 1 && r < plan->n_rows; r++)
        state->ranks[rank_of(plan, r)].n_heap +=
            ms_active_foreign(plan, &plan->row[r]) != 0;
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        state->ranks[r].heap = heap;
        heap += state->ranks[r].n_heap;
        state->ranks[r].n_heap = 0;
    }
}

static ms_err open_ranks(active_state *state, uint32_t n, ms_fault *fault)
{
    const ms_plan *plan = state->plan;
    held_free *heap = ms_arena_take_raw(state->arena, n, sizeof *heap);
    state->ranks =
        ms_arena_take(state->arena, plan->n_ranks, sizeof *state->ranks);
    if (!state->ranks || !heap)
        return ms_fail_nomem(fault);
    share_heap(state, heap, n);
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        state->ranks[r].clock =
            ms_hostclock_open(state->line, state->launch_ns, r);
    return MS_OK;
}

static ms_err run(active_state *state, uint32_t n, ms_fault *fault)
{
    MS_TRY(open_ranks(state, n, fault));
    return walk(state, fault);
}

ms_err ms_active_book(const ms_plan *plan, const ms_machine *machine,
                      ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    active_state state = {.plan = plan,
                          .arena = arena,
                          .line = line,
                          .launch_ns = machine->launch_ns};
    uint32_t n = count_foreign(plan);
    return n == 0 ? MS_OK : run(&state, n, fault);
}

ms_err ms_active_list(const ms_timeline *line, const ms_machine *machine,
                      ms_arena *arena, uint8_t **late,
                      const ms_active_seen **seen, uint32_t *n, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    bool apart = line->by_device || machine->paging.page_bytes > 0;
    uint32_t most = apart ? 0 : count_foreign(plan);
    ms_timeline own = *line; /* whose peaks are told again */
    active_state state = {.plan = plan,
                          .arena = arena,
                          .line = &own,
                          .launch_ns = machine->launch_ns};
    *late = NULL;
    *n = 0;
    if (most == 0)
        return MS_OK;
    own.raises = NULL;
    own.n_raises = 0;
    own.ranks = ms_arena_take(arena, plan->n_ranks, sizeof *own.ranks);
    state.late = ms_arena_take(arena, plan->n_rows, 1);
    state.seen = ms_arena_take_raw(arena, most, sizeof *state.seen);
    if (!own.ranks || !state.late || !state.seen)
        return ms_fail_nomem(fault);
    MS_TRY(run(&state, most, fault));
    *late = state.late;
    *seen = state.seen;
    *n = state.n_seen;
    return MS_OK;
}
