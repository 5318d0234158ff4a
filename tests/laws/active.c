/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The oracle of active bytes: at every allocation it looks at every row. */
#include "sim/machine.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"

#include <check.h>

enum { UNBORN, LIVES, FREED, DEAD };

typedef struct active_walk {
    const ms_plan *plan;
    const ms_timeline *line;
    uint8_t *state;
    /* of a freed row: the time at which all other streams that read it have
     * passed */
    uint64_t *until_ns;
    uint64_t host_ns, peak_bytes, allocated_bytes;
    uint16_t rank; /* its ops are walked; rows of other ranks stay UNBORN */
} active_walk;

/* The rank's bytes on the device in states from LIVES to last. */
static uint64_t bytes_in(const active_walk *walk, uint8_t last)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < walk->plan->n_rows; r++)
        if (walk->plan->row[r].pool == MS_DEVICE_POOL &&
            walk->state[r] >= LIVES && walk->state[r] <= last)
            bytes += walk->plan->row[r].bytes;
    return bytes;
}

static void see(active_walk *walk)
{
    uint64_t active_bytes = bytes_in(walk, FREED);
    uint64_t allocated_bytes = bytes_in(walk, LIVES);
    LAW(active_bytes >= allocated_bytes);
    if (active_bytes > walk->peak_bytes)
        walk->peak_bytes = active_bytes;
    if (allocated_bytes > walk->allocated_bytes)
        walk->allocated_bytes = allocated_bytes;
}

static void allocate(active_walk *walk, uint32_t op)
{
    const ms_plan *plan = walk->plan;
    if (plan->op[op].alloc_at == plan->op[op + 1].alloc_at)
        return;
    for (uint32_t r = 0; r < plan->n_rows; r++)
        if (walk->state[r] == FREED && walk->until_ns[r] <= walk->host_ns)
            walk->state[r] = DEAD;
    for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at; r++)
        walk->state[r] = LIVES;
    see(walk);
}

/* Frees a row after op: other streams may still read it, so it stays active
 * until the last op on them that is issued by now has ended. */
static void drop(active_walk *walk, uint32_t op, uint32_t r)
{
    const ms_plan *plan = walk->plan;
    const ms_row *row = &plan->row[r];
    uint8_t home = row->home == MS_HOME_COMPUTE ? 0 : plan->op[row->op].stream;
    walk->state[r] = DEAD;
    for (uint32_t i = 0; i <= op; i++) {
        uint8_t stream = plan->op[i].stream;
        if (plan->op[i].rank != walk->rank || row->waited || !plan->wait_at ||
            stream == home || !(row->streams >> stream & 1u))
            continue;
        walk->state[r] = FREED;
        if (walk->line->end_ns[i] > walk->until_ns[r])
            walk->until_ns[r] = walk->line->end_ns[i];
    }
    see(walk);
}

static void wait_for(active_walk *walk, uint32_t op)
{
    const ms_plan *plan = walk->plan;
    for (uint32_t s = 0; s < plan->n_sync; s++)
        for (uint32_t i = 0; plan->sync[s].op == op && i < op; i++)
            if (plan->sync[s].rank == walk->rank &&
                plan->op[i].rank == walk->rank &&
                (plan->sync[s].until == MS_NONE || plan->sync[s].until == i) &&
                walk->line->end_ns[i] > walk->host_ns)
                walk->host_ns = walk->line->end_ns[i];
}

static void check_rank(active_walk *walk, const ms_rank_levels *levels,
                       const ms_machine *machine)
{
    const ms_plan *plan = walk->plan;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        wait_for(walk, op);
        if (plan->op[op].rank != walk->rank)
            continue;
        allocate(walk, op);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            drop(walk, op, plan->release[i]);
        if (plan->op[op].ns > 0 &&
            (machine->recorded >> plan->op[op].pass & 1u) == 0)
            walk->host_ns +=
                machine->launch_ns + machine->framework_ns[plan->op[op].pass];
    }
    LAW(levels->active_peak_bytes == walk->peak_bytes);
    LAW(levels->reserved_peak_bytes == walk->peak_bytes);
    LAW(levels->pool[MS_DEVICE_POOL].peak_bytes == walk->allocated_bytes);
}

void laws_check_active(const ms_plan *plan, const ms_timeline *line,
                       const ms_machine *machine)
{
    ms_arena arena = {0};
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        active_walk walk = {.plan = plan, .line = line, .rank = (uint16_t)rank};
        walk.state = ms_arena_take(&arena, plan->n_rows, 1);
        walk.until_ns = ms_arena_take(&arena, plan->n_rows, sizeof(uint64_t));
        check_rank(&walk, &line->ranks[rank], machine);
    }
    ms_arena_free(&arena);
}

/* A row notes exactly the streams that use it, but for the one that it was made
 * on. */
void laws_check_streams(const ms_plan *plan)
{
    ms_arena arena = {0};
    ms_streams *used = ms_arena_take(&arena, plan->n_rows, sizeof *used);
    for (uint32_t op = 0; op < plan->n_ops; op++)
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            used[plan->use[i]] |= (ms_streams)(1u << plan->op[op].stream);
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint8_t home = (uint8_t)(1u << plan->op[plan->row[r].op].stream);
        if (plan->wait_at)
            LAW((plan->row[r].streams | home) == (used[r] | home));
        else
            LAW(plan->row[r].streams == 0);
    }
    ms_arena_free(&arena);
}
