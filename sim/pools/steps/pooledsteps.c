/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pools/steps/pooledsteps.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/timeline.h"

const ms_timeline *ms_pooledsteps_line(const ms_pooled_setup *setup,
                                       const ms_pooled_course *course,
                                       const ms_timeline *line, uint32_t step)
{
    if (step == setup->steps)
        return line;
    if (step == 1 && course->first)
        return course->first;
    return course->n == 0 ? line : course->kinds[(step - 1) % course->n].line;
}

uint64_t ms_pooledsteps_level(const ms_timeline *line)
{
    uint64_t bytes = 0;
    for (uint16_t rank = 0; rank < line->plan->n_ranks; rank++) {
        uint64_t peak_bytes = line->ranks[rank].pool[MS_DEVICE_POOL].peak_bytes;
        bytes = peak_bytes > bytes ? peak_bytes : bytes;
    }
    return bytes;
}

const ms_timeline *ms_pooledsteps_highest(const ms_pooled_course *course,
                                          const ms_timeline *line)
{
    const ms_timeline *highest = line;
    for (uint32_t i = 0; i < course->n; i++)
        if (ms_pooledsteps_level(course->kinds[i].line) >
            ms_pooledsteps_level(highest))
            highest = course->kinds[i].line;
    return highest;
}

bool ms_pooledsteps_empties(const ms_plan *plan, const ms_plan_op *at)
{
    return at->of != MS_NONE && at->micro_batch == 0 &&
           at->pass != MS_RECOMPUTE &&
           (plan->graph->op_flags[at->of] & MS_OP_EMPTIES) != 0;
}

ms_err ms_pooledsteps_open(ms_pooled *out, uint32_t n_ranks, ms_arena *arena,
                           ms_fault *fault)
{
    out->n_ranks = n_ranks;
    out->steps = ms_arena_take(arena, (size_t)out->setup.steps * n_ranks,
                               sizeof *out->steps);
    return out->steps ? MS_OK : ms_fail_nomem(fault);
}

static ms_pooled_step *step_of(const ms_pooled *out, uint32_t step,
                               uint32_t rank)
{
    return &out->steps[(size_t)(step - 1) * out->n_ranks + rank];
}

void ms_pooledsteps_count(ms_pooled *out, uint32_t step, uint32_t rank,
                          const ms_torch_stats *stats, bool from)
{
    ms_pooled_step *row = step_of(out, step, rank);
    /* At the start of a step the row is zero and takes the counters as they
     * are; at its end it becomes the difference. */
    const ms_torch_stat(*of)[MS_TORCH_N_SCOPES] = stats->of;
    row->device_allocs = stats->device_allocs - row->device_allocs;
    row->device_frees = stats->device_frees - row->device_frees;
    row->retries = stats->retries - row->retries;
    if (from)
        return;
    row->allocated_peak_bytes = of[MS_TORCH_ALLOCATED_BYTES][MS_TORCH_ALL].peak;
    row->reserved_peak_bytes = of[MS_TORCH_RESERVED_BYTES][MS_TORCH_ALL].peak;
    row->allocated_bytes = of[MS_TORCH_ALLOCATED_BYTES][MS_TORCH_ALL].current;
    row->reserved_bytes = of[MS_TORCH_RESERVED_BYTES][MS_TORCH_ALL].current;
    row->segments = of[MS_TORCH_SEGMENT][MS_TORCH_ALL].current;
}

void ms_pooledsteps_close(ms_pooled *out, uint32_t rank)
{
    ms_pooled_rank *it = &out->ranks[rank];
    const ms_pooled_step *last = step_of(out, out->setup.steps, rank);
    it->device_allocs = last->device_allocs;
    it->device_frees = last->device_frees;
    for (uint32_t step = 1; step <= out->setup.steps; step++) {
        uint64_t bytes = step_of(out, step, rank)->reserved_peak_bytes;
        if (bytes <= it->reserved_most_bytes)
            continue;
        it->reserved_most_bytes = bytes;
        it->most_step = step;
    }
}

void ms_pooledsteps_planned(ms_pooled *out)
{
    for (uint32_t rank = 0; rank < out->n_ranks; rank++) {
        ms_pooled_rank *it = &out->ranks[rank];
        out->steps[rank] =
            (ms_pooled_step){.allocated_peak_bytes = it->allocated_peak_bytes,
                             .reserved_peak_bytes = it->reserved_peak_bytes,
                             .allocated_bytes = it->allocated_bytes,
                             .reserved_bytes = it->reserved_peak_bytes,
                             .segments = it->segments,
                             .device_allocs = it->device_allocs,
                             .device_frees = it->device_frees,
                             .retries = it->retries};
        ms_pooledsteps_close(out, rank);
    }
}

void ms_pooledsteps_exact(const ms_timeline *line, ms_pooled *out)
{
    for (uint16_t rank = 0; rank < line->plan->n_ranks; rank++)
        out->ranks[rank].exact_bytes =
            line->pooled ? line->pooled->ranks[rank].exact_bytes
                         : line->ranks[rank].reserved_peak_bytes;
}

uint32_t ms_pooledsteps_same_op(const ms_timeline *line, const ms_timeline *now,
                                uint32_t op)
{
    const ms_plan *plan = line->plan;
    const ms_plan_op *as = &now->plan->op[op];
    if (now == line)
        return op;
    for (uint32_t i = 0; i < plan->n_ops; i++)
        if (plan->op[i].of == as->of && plan->op[i].pass == as->pass &&
            plan->op[i].rank == as->rank &&
            plan->op[i].micro_batch == as->micro_batch)
            return i;
    return 0;
}
