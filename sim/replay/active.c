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
    uint32_t next; /* on its stream, or MS_NONE */
} held_free;

/* The frees that one stream holds up longest.  Its ops end one behind the
 * other, so that the frees that come later complete later, too. */
typedef struct held_queue {
    uint32_t first, last; /* MS_NONE: it is empty */
} held_queue;

typedef struct rank_active {
    uint64_t now_bytes;             /* active */
    uint64_t tail_ns[MS_N_STREAMS]; /* end of what is issued */
    held_queue held[MS_N_STREAMS];
    uint64_t first_ns; /* when the first of all of them completes */
    uint8_t first;     /* and on which stream */
    ms_hostclock clock;
} rank_active;

typedef struct active_state {
    const ms_plan *plan;
    ms_arena *arena;
    ms_timeline *line;
    const ms_machine *machine;
    uint32_t raises_capacity;
    rank_active *ranks;
    held_free *held; /* n_held, of all ranks */
    uint32_t n_held;
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
                     plan->n_stages == 0 && row->storage < graph->n_persistent;
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

/* ---- frees that wait ----------------------------------------------------- */

/* It waits for stream s, and for no other longer. */
static void push(active_state *state, rank_active *rank, uint32_t s,
                 uint32_t row)
{
    uint64_t t_ns = rank->tail_ns[s];
    held_queue *queue = &rank->held[s];
    uint32_t i = state->n_held++;
    state->held[i] = (held_free){t_ns, row, MS_NONE};
    if (queue->first == MS_NONE)
        queue->first = i;
    else
        state->held[queue->last].next = i;
    queue->last = i;
    if (t_ns < rank->first_ns) {
        rank->first_ns = t_ns;
        rank->first = (uint8_t)s;
    }
}

/* The first of the heads of the queues. */
static void find_first(const active_state *state, rank_active *rank)
{
    rank->first_ns = UINT64_MAX;
    for (uint32_t s = 0; s < MS_N_STREAMS; s++) {
        uint32_t head = rank->held[s].first;
        if (head == MS_NONE || state->held[head].t_ns >= rank->first_ns)
            continue;
        rank->first_ns = state->held[head].t_ns;
        rank->first = (uint8_t)s;
    }
}

static uint32_t pop(const active_state *state, rank_active *rank)
{
    held_queue *queue = &rank->held[rank->first];
    const held_free *item = &state->held[queue->first];
    queue->first = item->next;
    find_first(state, rank);
    return item->row;
}

static void complete_frees(active_state *state, rank_active *rank, uint32_t op)
{
    while (rank->first_ns <= rank->clock.host_ns) {
        uint32_t row = pop(state, rank);
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

/* A row of rank's. */
static void release(active_state *state, rank_active *rank, uint32_t row)
{
    const ms_plan *plan = state->plan;
    uint32_t streams = ms_active_foreign(plan, &plan->row[row]), last;
    if (plan->row[row].pool != MS_DEVICE_POOL)
        return;
    if (streams == 0) {
        rank->now_bytes -= plan->row[row].bytes;
        return;
    }
    last = (uint32_t)__builtin_ctz(streams);
    for (uint32_t s = last + 1; streams >> s != 0; s++)
        if (streams >> s & 1u && rank->tail_ns[s] > rank->tail_ns[last])
            last = s;
    if (state->late)
        state->late[row] = 1;
    push(state, rank, last, row);
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
            release(state, rank, plan->release[i]);
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

static ms_err open_ranks(active_state *state, uint32_t n, ms_fault *fault)
{
    const ms_plan *plan = state->plan;
    state->held = ms_arena_take_raw(state->arena, n, sizeof *state->held);
    state->ranks =
        ms_arena_take(state->arena, plan->n_ranks, sizeof *state->ranks);
    if (!state->ranks || !state->held)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        rank_active *rank = &state->ranks[r];
        for (uint32_t s = 0; s < MS_N_STREAMS; s++)
            rank->held[s].first = MS_NONE;
        rank->first_ns = UINT64_MAX;
        rank->clock = ms_hostclock_open(state->line, state->machine, r);
    }
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
    active_state state = {
        .plan = plan, .arena = arena, .line = line, .machine = machine};
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
    active_state state = {
        .plan = plan, .arena = arena, .line = &own, .machine = machine};
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
