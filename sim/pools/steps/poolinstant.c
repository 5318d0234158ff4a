/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pools/steps/poolinstant.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/timeline.h"

ms_err ms_poolinstant_guess(const ms_timeline *line, bool brief,
                            ms_arena *arena, struct ms_pooled_moment **looks,
                            ms_fault *fault)
{
    uint32_t n = line->plan->n_ranks;
    struct ms_pooled_moment *of = ms_arena_take(arena, n, sizeof *of);
    if (of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t rank = 0; rank < n; rank++) {
        const ms_level *level = &line->ranks[rank].pool[MS_DEVICE_POOL];
        bool any = !brief && level->peak_bytes > 0;
        of[rank].op =
            any ? line->events[level->peak_event].op_act >> 1 : MS_NONE;
    }
    *looks = of;
    return MS_OK;
}

bool ms_poolinstant_found(const ms_timeline *line,
                          struct ms_pooled_moment *looks, ms_pooled *out)
{
    bool found = true;
    for (uint32_t rank = 0; rank < line->plan->n_ranks; rank++) {
        struct ms_pooled_moment *peak = &out->ranks[rank].at_peak;
        if (out->setup.brief)
            peak->op = MS_NONE;
        found = found && looks[rank].op == peak->op;
        if (looks[rank].op == peak->op)
            *peak = looks[rank];
        else
            looks[rank] = (struct ms_pooled_moment){.op = peak->op};
    }
    return found;
}

/* The next row that op's rank asks for after op. */
static const ms_row *next_request(const ms_plan *plan, uint32_t op)
{
    uint16_t rank = plan->op[op].rank;
    for (uint32_t r = plan->op[op + 1].alloc_at; r < plan->n_rows; r++)
        if (plan->row[r].pool == MS_DEVICE_POOL && plan->row[r].bytes > 0 &&
            plan->op[plan->row[r].op].rank == rank)
            return &plan->row[r];
    return NULL;
}

static void look_at(const ms_torch_block_view *block, uint64_t served_bytes,
                    struct ms_pooled_moment *at)
{
    if (block->state != MS_TORCH_INACTIVE)
        return;
    at->idle_bytes += block->bytes;
    if (block->bytes > at->largest_idle_bytes)
        at->largest_idle_bytes = block->bytes;
    if (block->bytes >= served_bytes)
        at->usable_bytes += block->bytes;
}

ms_err ms_poolinstant_look(const ms_plan *plan, uint32_t op,
                           const ms_pool *pool, ms_arena *arena,
                           struct ms_pooled_moment *at, ms_fault *fault)
{
    const ms_row *next = next_request(plan, op);
    ms_torch_snapshot shot;
    *at = (struct ms_pooled_moment){.op = op};
    MS_TRY(ms_torchview_snapshot(pool, arena, &shot, fault));
    at->next_bytes = next ? next->bytes : 0;
    at->allocated_bytes = ms_torchview_current(pool, MS_TORCH_ALLOCATED_BYTES);
    at->reserved_bytes = ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES);
    for (uint32_t i = 0; i < shot.n_segments; i++) {
        const ms_torch_segment_view *segment = &shot.segments[i];
        uint64_t served_bytes = UINT64_MAX;
        if (next)
            served_bytes = ms_pool_least(pool, segment, next->bytes,
                                         ms_active_memory(plan, next));
        for (uint32_t b = 0; b < segment->n_blocks; b++)
            look_at(&segment->blocks[b], served_bytes, at);
    }
    return MS_OK;
}
