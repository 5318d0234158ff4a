/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a real pool makes of a step, in words. */

#include "tools/tools.h"

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

/* A steady step asks the device for nothing; each call stops it. */
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

/* What the pool would say itself. */
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

/* A plan does not run out: it is too high from the start. */
static void put_too_high(const ms_pooled_oom *oom, ms_text *words)
{
    ms_text_add(words, "%s are free of %s, not enough for the plan; ",
                ms_quantity_size(oom->free_bytes).s,
                ms_quantity_size(oom->total_bytes).s);
}

/* Of a heap: how far up it was ever used, and what its order costs. */
static void put_told(const ms_pooled_rank *rank, ms_text *words)
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
            words, ", %.2f %% over what is live at most",
            100 *
                ((double)rank->reserved_peak_bytes / (double)bound_bytes - 1));
    put_idle(&rank->at_peak, words);
}

static void put_kind(const ms_pooled_setup *setup, ms_text *words)
{
    ms_text_add(words, "%s", ms_pool_types[setup->heap.kind]);
    if (setup->heap.kind == MS_POOL_TORCH)
        ms_text_add(words, " %s", ms_torch_versions[setup->torch.version]);
    ms_text_add(words, ", %u %s", setup->steps,
                setup->steps > 1 ? "steps" : "step");
}

void ms_poolwords_put(const ms_report *report, ms_text *words)
{
    const ms_pooled *pooled = report->pooled;
    const ms_pooled_rank *rank = &pooled->ranks[report->worst];
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
    put_told(rank, words);
    put_idle(&rank->at_peak, words);
    put_calls(rank, words);
}
