/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a real pool makes of a step, in words. */

#include "tools/tools.h"

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

static void put_oom(const ms_pooled_oom *oom, ms_text *words)
{
    uint64_t cached_bytes = oom->reserved_bytes - oom->allocated_bytes;
    ms_text_add(words, "PyTorch is out of memory in ");
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
                ms_quantity_size(cached_bytes).s);
}

void ms_poolwords_put(const ms_report *report, ms_text *words)
{
    const ms_pooled *pooled = report->pooled;
    const ms_pooled_rank *rank = &pooled->ranks[report->worst];
    if (pooled->oom)
        put_oom(&pooled->lack, words);
    ms_text_add(words, "%storch %s, %u %s: %s reserved",
                pooled->oom ? "with enough, " : "",
                ms_torch_versions[pooled->setup.torch.version],
                pooled->setup.steps, pooled->setup.steps > 1 ? "steps" : "step",
                ms_quantity_size(rank->reserved_peak_bytes).s);
    if (rank->segments > 0)
        ms_text_add(words, " in %llu segments",
                    (unsigned long long)rank->segments);
    put_idle(&rank->at_peak, words);
    put_calls(rank, words);
}
