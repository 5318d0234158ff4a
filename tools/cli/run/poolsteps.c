/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps of several lengths through a pool, a line each. */

#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "tools/cli/run/run.h"
#include "tools/job/allocator.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"
#include "tools/words/words.h"

#include <stdio.h>
#include <string.h>

static ms_label count_cell(uint64_t n)
{
    return n > 0 ? ms_quantity_count(n) : (ms_label){"-"};
}

static void put_step(const ms_pooled *pooled, uint16_t rank, uint32_t k,
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
    snprintf(cell, sizeof cell, "%.1f %%",
             ms_poolwords_unused(step->reserved_peak_bytes,
                                 step->allocated_peak_bytes));
    ms_screen_right(text, 9, cell);
    snprintf(cell, sizeof cell, "%.1f %%",
             ms_poolwords_fragmentation(pooled, rank, k + 1));
    ms_screen_right(text, 9, cell);
    ms_screen_right(text, 9, count_cell(step->segments).s);
    ms_screen_right(text, 8, count_cell(step->retries).s);
    ms_text_add(text, "\n");
}

/* Says when the highest level of reserved bytes is first reached, and whether
 * fragmentation grows from step to step. */
static void put_growth(const ms_pooled *pooled, uint16_t rank, ms_text *words)
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

void ms_poolsteps_put(const ms_summary *summary, ms_text *text)
{
    const ms_report *report = summary->result->report;
    const ms_pooled *pooled = report->pooled;
    ms_text words = {.arena = summary->arena};
    size_t from = text->length;
    if (summary->job->lengths == NULL || pooled == NULL)
        return;
    ms_text_add(text,
                "%ssteps:      length    allocated     reserved   "
                "  idle    frag. segments retries%s\n",
                summary->style->faint, summary->style->plain);
    for (uint32_t k = 0; k < pooled->setup.steps; k++)
        put_step(pooled, report->told, k, text);
    ms_narrow_table(text, from);
    put_growth(pooled, report->told, &words);
    ms_textlines_put("most:", MS_TEXTLINES_INDENT, &words, text);
    if (summary->job->program != NULL ||
        pooled->setup.heap.kind != MS_POOL_TORCH ||
        strstr(summary->job->allocator->spec, "expandable") != NULL)
        return;
    ms_text_add(text, "%s", "try:      ");
    ms_settings_compare(summary->arguments, summary->policy,
                        summary->job->allocator->spec, text);
    ms_text_add(text, "\n");
}
