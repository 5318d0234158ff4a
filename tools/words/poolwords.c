/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words for what a step reserves from an allocator that is simulated. */

#include "sim/pools/place/placement.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <stdio.h>
#include <string.h>

static void put_idle(const struct ms_pooled_moment *at, ms_text *words)
{
    if (at->op == MS_NONE)
        return;
    ms_text_add(words, "; at the peak %s of it is idle",
                ms_quantity_size(at->idle_bytes).s);
    if (at->idle_bytes == 0)
        return;
    ms_text_add(words, ", the largest block %s",
                ms_quantity_size(at->largest_idle_bytes).s);
    if (at->next_bytes == 0)
        return;
    ms_text_add(words, "; %s could serve the next request (%s)",
                at->usable_bytes > 0 ? ms_quantity_size(at->usable_bytes).s
                                     : "none of it",
                ms_quantity_size(at->next_bytes).s);
}

/* A step in its steady state calls cudaMalloc no more. Calls are counted
 * because each of them stops the device until it is done. */
static void put_calls(const ms_pooled_rank *rank, ms_text *words)
{
    if (rank->device_allocs > 0)
        ms_text_add(words, "; the step asks the device %llu time%s",
                    (unsigned long long)rank->device_allocs,
                    rank->device_allocs == 1 ? "" : "s");
    if (rank->retries > 0)
        ms_text_add(words,
                    "; cached memory was given back %llu time%s to make "
                    "room",
                    (unsigned long long)rank->retries,
                    rank->retries == 1 ? "" : "s");
}

/* The numbers that PyTorch's message of OutOfMemoryError gives, in one clause.
 */
static void put_oom(const ms_pooled *pooled, ms_text *words)
{
    const ms_pooled_oom *oom = &pooled->lack;
    uint8_t kind = pooled->setup.heap.kind;
    ms_text_add(words, "%s is out of memory in ",
                kind == MS_POOL_TORCH ? "PyTorch" : ms_pool_types[kind]);
    if (oom->step == 0)
        ms_text_add(words, "construction");
    else
        ms_text_add(words, "step %u", oom->step);
    ms_text_add(words, ", asked for %s: %s free of %s, ",
                ms_quantity_size(oom->requested_bytes).s,
                ms_quantity_size(oom->free_bytes).s,
                ms_quantity_size(oom->total_bytes).s);
    if (oom->allowed_bytes != UINT64_MAX)
        ms_text_add(words, "%s allowed, ",
                    ms_quantity_size(oom->allowed_bytes).s);
    ms_text_add(words, "%s allocated, %s reserved but not allocated; ",
                ms_quantity_size(oom->allocated_bytes).s,
                ms_quantity_size(oom->reserved_bytes - oom->allocated_bytes).s);
}

/* An arena's addresses are planned before the step runs, so it does not run out
 * in the middle: the plan is too high from the start. */
static void put_too_high(const ms_pooled_oom *oom, ms_text *words)
{
    ms_text_add(words, "%s are free of %s, not enough for the plan; ",
                ms_quantity_size(oom->free_bytes).s,
                ms_quantity_size(oom->total_bytes).s);
}

/* A heap may reserve more than it ever uses: the highest address that was used
 * says how much would have been enough. Some heaps move blocks, which takes
 * time. */
static void put_heap_use(const ms_pooled_rank *rank, ms_text *words)
{
    const ms_pool_stats *told = &rank->told;
    ms_label touched = ms_quantity_size(told->touched_bytes);
    if (told->touched_bytes > 0 &&
        strcmp(touched.s, ms_quantity_size(rank->reserved_peak_bytes).s) != 0)
        ms_text_add(words, ", used up to %s", touched.s);
    if (told->moves > 0)
        ms_text_add(words, "; the step moves %s blocks, %s, to defragment",
                    ms_quantity_count(told->moves).s,
                    ms_quantity_size(told->moved_bytes).s);
}

static void put_plan(const ms_pooled *pooled, const ms_pooled_rank *rank,
                     ms_text *words)
{
    uint8_t order = pooled->setup.heap.order;
    uint64_t bound_bytes = rank->active_peak_bytes;
    ms_text_add(words, "arena by %s: %s reserved",
                order < MS_PLACEMENT_N_RULES ? ms_placement_rows[order].name
                                             : "the best order",
                ms_quantity_size(rank->reserved_peak_bytes).s);
    if (bound_bytes > 0)
        ms_text_add(
            words, ", %.2f %% over what is allocated at most",
            100 *
                ((double)rank->reserved_peak_bytes / (double)bound_bytes - 1));
    put_idle(&rank->at_peak, words);
}

static void put_kind(const ms_pooled_setup *setup, ms_text *words)
{
    ms_text_add(words, "%s", ms_pool_types[setup->heap.kind]);
    if (setup->heap.kind == MS_POOL_TORCH)
        ms_text_add(words, " %s", ms_torchconf_versions[setup->torch.version]);
    ms_text_add(words, ", %u %s", setup->steps,
                setup->steps > 1 ? "steps" : "step");
}

void ms_poolwords_put(const ms_report *report, ms_text *words)
{
    const ms_pooled *pooled = report->pooled;
    const ms_pooled_rank *rank = &pooled->ranks[report->told];
    if (pooled->setup.heap.kind == MS_POOL_ARENA) {
        if (pooled->oom)
            put_too_high(&pooled->lack, words);
        put_plan(pooled, rank, words);
        return;
    }
    if (pooled->oom) {
        put_oom(pooled, words);
        ms_text_add(words, "with enough, ");
    }
    put_kind(&pooled->setup, words);
    ms_text_add(words, ": %s reserved",
                ms_quantity_size(rank->reserved_peak_bytes).s);
    if (rank->segments > 0)
        ms_text_add(words, " in %llu segment%s",
                    (unsigned long long)rank->segments,
                    rank->segments == 1 ? "" : "s");
    put_heap_use(rank, words);
    put_idle(&rank->at_peak, words);
    put_calls(rank, words);
}

/* PyTorch's error without the total sizes, which other lines give. Where not
 * even the model fits (step 0), the verdict says that already. */
static void put_error(const ms_pooled_oom *oom, ms_text *words)
{
    ms_text_add(words,
                "PyTorch raises OutOfMemoryError in step %u: tried to allocate "
                "%s, %s free, %s reserved but unallocated",
                oom->step, ms_quantity_size(oom->requested_bytes).s,
                ms_quantity_size(oom->free_bytes).s,
                ms_quantity_size(oom->reserved_bytes - oom->allocated_bytes).s);
}

void ms_poolwords_brief(const ms_report *report, ms_text *words)
{
    const ms_pooled *pooled = report->pooled;
    const ms_pooled_rank *rank = &pooled->ranks[report->told];
    if (pooled->oom && pooled->lack.step > 0)
        put_error(&pooled->lack, words);
    else if (rank->retries > 0)
        ms_text_add(words,
                    "cached memory is given back %llu time%s to make room, "
                    "each stops the device",
                    (unsigned long long)rank->retries,
                    rank->retries == 1 ? "" : "s");
}

/* ---- step by step -------------------------------------------------------- */

double ms_poolwords_unused(uint64_t reserved_bytes, uint64_t allocated_bytes)
{
    if (reserved_bytes == 0)
        return 0;
    return 100 * (1 - (double)allocated_bytes / (double)reserved_bytes);
}

double ms_poolwords_fragmentation(const ms_pooled *pooled, uint16_t rank,
                                  uint32_t n)
{
    uint64_t allocated_bytes = 0, reserved_bytes = 0;
    for (uint32_t k = 0; k < n; k++) {
        const ms_pooled_step *step =
            &pooled->steps[(size_t)k * pooled->n_ranks + rank];
        if (step->allocated_peak_bytes > allocated_bytes)
            allocated_bytes = step->allocated_peak_bytes;
        if (step->reserved_peak_bytes > reserved_bytes)
            reserved_bytes = step->reserved_peak_bytes;
    }
    return ms_poolwords_unused(reserved_bytes, allocated_bytes);
}

ms_label ms_poolwords_length(const ms_pooled *pooled, uint32_t step)
{
    ms_label label = {"-"};
    ms_pooled_kind kind = {0};
    if (pooled->n_kinds > 0)
        kind = pooled->kinds[(step - 1) % pooled->n_kinds];
    bool batches = false;
    for (uint32_t i = 1; i < pooled->n_kinds; i++)
        batches |= pooled->kinds[i].batch != pooled->kinds[0].batch;
    if (kind.sequence == 0)
        snprintf(label.s, sizeof label.s, "%llux",
                 (unsigned long long)kind.batch);
    else if (batches)
        snprintf(label.s, sizeof label.s, "%llux%llu",
                 (unsigned long long)kind.batch,
                 (unsigned long long)kind.sequence);
    else
        snprintf(label.s, sizeof label.s, "%llu",
                 (unsigned long long)kind.sequence);
    return label;
}
