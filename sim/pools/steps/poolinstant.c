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
            any ? ms_timeline_event(line, level->peak_event).op_act >> 1
                : MS_NONE;
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

void ms_poolinstant_look(const ms_plan *plan, uint32_t op, const ms_pool *pool,
                         struct ms_pooled_moment *look)
{
    const ms_row *next = next_request(plan, op);
    uint64_t stream = next ? ms_active_memory(plan, next) : 0;
    ms_torch_segment_view idle;
    *look = (struct ms_pooled_moment){
        .op = op,
        .next_bytes = next ? next->bytes : 0,
        .allocated_bytes = ms_torchview_current(pool, MS_TORCH_ALLOCATED_BYTES),
        .reserved_bytes = ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES)};
    for (uint32_t row = ms_torchview_idle(pool, 0, &idle); row != MS_NONE;
         row = ms_torchview_idle(pool, row + 1, &idle)) {
        look->idle_bytes += idle.bytes;
        if (idle.bytes > look->largest_idle_bytes)
            look->largest_idle_bytes = idle.bytes;
        if (next &&
            idle.bytes >= ms_pool_least(pool, &idle, next->bytes, stream))
            look->usable_bytes += idle.bytes;
    }
}
