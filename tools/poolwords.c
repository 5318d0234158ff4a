/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a real pool makes of a step, in words. */

#include "tools/explain.h"
#include "tools/lengths.h"

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

/* ---- step by step -------------------------------------------------------- */

/* So much more is reserved than is allocated; 0 of nothing. */
static double beyond_percent(uint64_t reserved_bytes, uint64_t allocated_bytes)
{
    if (reserved_bytes == 0)
        return 0;
    return 100 * (1 - (double)allocated_bytes / (double)reserved_bytes);
}

double ms_poolwords_fragmentation(const ms_pooled *pooled, uint8_t rank,
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
    return beyond_percent(reserved_bytes, allocated_bytes);
}

static ms_label count_cell(uint64_t n)
{
    return n > 0 ? ms_quantity_count(n) : (ms_label){"-"};
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

static void put_step(const ms_pooled *pooled, uint8_t rank, uint32_t k,
                     ms_text *text)
{
    const ms_pooled_step *step =
        &pooled->steps[(size_t)k * pooled->n_ranks + rank];
    char cell[32];
    snprintf(cell, sizeof cell, "%u", k + 1);
    ms_screen_right(text, 6, cell);
    ms_screen_right(text, 12, ms_poolwords_length(pooled, k + 1).s);
    ms_screen_right(text, 13, ms_quantity_size(step->allocated_peak_bytes).s);
    ms_screen_right(text, 13, ms_quantity_size(step->reserved_peak_bytes).s);
    snprintf(
        cell, sizeof cell, "%.1f %%",
        beyond_percent(step->reserved_peak_bytes, step->allocated_peak_bytes));
    ms_screen_right(text, 9, cell);
    snprintf(cell, sizeof cell, "%.1f %%",
             ms_poolwords_fragmentation(pooled, rank, k + 1));
    ms_screen_right(text, 9, cell);
    ms_screen_right(text, 9, count_cell(step->segments).s);
    ms_screen_right(text, 8, count_cell(step->retries).s);
    ms_text_add(text, "\n");
}

/* How far the largest is reached, and whether fragmentation grows. */
static void put_growth(const ms_pooled *pooled, uint8_t rank, ms_text *words)
{
    const ms_pooled_rank *of = &pooled->ranks[rank];
    uint32_t n = pooled->setup.steps;
    double first = ms_poolwords_fragmentation(pooled, rank, 1);
    double last = ms_poolwords_fragmentation(pooled, rank, n);
    ms_text_add(words,
                "%s reserved at most, first in step %u; beyond the most that "
                "a step so far allocates (frag.) is %.1f %% in step 1",
                ms_quantity_size(of->reserved_most_bytes).s, of->most_step,
                first);
    if (n > 1)
        ms_text_add(words, ", %.1f %% in step %u", last, n);
}

void ms_poolwords_steps(const ms_summary *summary, ms_text *text)
{
    const ms_report *report = &summary->result->report;
    const ms_pooled *pooled = report->pooled;
    ms_text words = {.arena = summary->arena};
    if (summary->job->lengths == NULL || pooled == NULL)
        return;
    ms_text_add(text,
                "%ssteps:      length    allocated     reserved   "
                "unused    frag. segments retries%s\n",
                summary->style->faint, summary->style->plain);
    for (uint32_t k = 0; k < pooled->setup.steps; k++)
        put_step(pooled, report->worst, k, text);
    put_growth(pooled, report->worst, &words);
    ms_tell_words("most:", MS_TELL_INDENT, &words, text);
    if (summary->job->program != NULL ||
        strstr(summary->job->allocator->spec, "expandable") != NULL)
        return;
    ms_text_add(text, "%s", "try:      ");
    ms_settings_compare(summary->arguments, summary->policy,
                        summary->job->allocator->spec, text);
    ms_text_add(text, "\n");
}
