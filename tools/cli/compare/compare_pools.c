/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Variants that differ in their memory pools: what each pool makes of the
 * step, and which one helps. */

#include "sim/pools/steps/pooled.h"
#include "tools/cli/compare/compare.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/textlines.h"
#include "tools/words/words.h"

#include <stdio.h>
#include <string.h>

const ms_pooled_rank *ms_compare_pools_rank(const ms_variant *variant)
{
    const ms_report *report = &variant->record.report;
    return variant->refused != NULL || report->pooled == NULL
               ? NULL
               : &report->pooled->ranks[report->told];
}

static const ms_pooled *pooled_of(const ms_variant *variant)
{
    return variant->record.report.pooled;
}

/* ---- cells --------------------------------------------------------------- */

static ms_label size_or_none(uint64_t bytes)
{
    return bytes > 0 ? ms_quantity_size(bytes) : (ms_label){"-"};
}

static ms_label count_or_none(uint64_t n)
{
    return n > 0 ? ms_quantity_count(n) : (ms_label){"-"};
}

/* The most that was reserved over all steps, shown where it is not what the
 * last step reserves. */
static ms_label most_cell(const ms_pooled *pooled, const ms_pooled_rank *rank)
{
    const ms_pooled_step *last =
        &pooled->steps[(size_t)(pooled->setup.steps - 1) * pooled->n_ranks];
    uint64_t last_bytes = last[rank - pooled->ranks].reserved_peak_bytes;
    return rank->reserved_most_bytes > last_bytes
               ? ms_quantity_size(rank->reserved_most_bytes)
               : (ms_label){"-"};
}

static ms_label fragmentation_cell(const ms_pooled *pooled,
                                   const ms_pooled_rank *rank)
{
    ms_label cell;
    double percent = ms_poolwords_fragmentation(
        pooled, (uint8_t)(rank - pooled->ranks), pooled->setup.steps);
    snprintf(cell.s, sizeof cell.s, "%.1f %%", percent);
    return cell;
}

static ms_label segments_cell(const ms_pooled *pooled,
                              const ms_pooled_rank *rank)
{
    (void)pooled;
    return count_or_none(rank->segments);
}

static ms_label idle_cell(const ms_pooled *pooled, const ms_pooled_rank *rank)
{
    (void)pooled;
    return size_or_none(rank->at_peak.idle_bytes);
}

static ms_label largest_cell(const ms_pooled *pooled,
                             const ms_pooled_rank *rank)
{
    (void)pooled;
    return size_or_none(rank->at_peak.largest_idle_bytes);
}

static ms_label next_cell(const ms_pooled *pooled, const ms_pooled_rank *rank)
{
    (void)pooled;
    return size_or_none(rank->at_peak.next_bytes);
}

static ms_label usable_cell(const ms_pooled *pooled, const ms_pooled_rank *rank)
{
    (void)pooled;
    return size_or_none(rank->at_peak.usable_bytes);
}

static ms_label retries_cell(const ms_pooled *pooled,
                             const ms_pooled_rank *rank)
{
    (void)pooled;
    return count_or_none(rank->retries);
}

static ms_label oom_cell(const ms_pooled *pooled, const ms_pooled_rank *rank)
{
    ms_label cell = {"-"};
    (void)rank;
    if (pooled->oom && pooled->lack.step == 0)
        return (ms_label){"at the start"};
    if (pooled->oom)
        snprintf(cell.s, sizeof cell.s, "in step %u", pooled->lack.step);
    return cell;
}

const ms_compare_pool_row ms_compare_pools_rows[] = {
    {"reserved most", most_cell},   {"fragmentation", fragmentation_cell},
    {"segments", segments_cell},    {"idle at peak", idle_cell},
    {"  largest", largest_cell},    {"  next request", next_cell},
    {"  could serve", usable_cell}, {"retries", retries_cell},
    {"out of memory", oom_cell},
};
const uint32_t ms_compare_pools_n_rows =
    sizeof ms_compare_pools_rows / sizeof ms_compare_pools_rows[0];

/* ---- step by step -------------------------------------------------------- */

/* Steps count from 1; the result is 0 where there is no such step. */
static uint64_t reserved_in_step(const ms_variant *variant, uint32_t step)
{
    const ms_pooled_rank *rank = ms_compare_pools_rank(variant);
    if (rank == NULL || step > pooled_of(variant)->setup.steps)
        return 0;
    const ms_pooled *pooled = pooled_of(variant);
    return pooled
        ->steps[(size_t)(step - 1) * pooled->n_ranks +
                (size_t)(rank - pooled->ranks)]
        .reserved_peak_bytes;
}

uint32_t ms_compare_pools_steps(const ms_comparison *c)
{
    uint32_t steps = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (ms_compare_pools_rank(&c->variants[i]) == NULL)
            continue;
        const ms_pooled *pooled = pooled_of(&c->variants[i]);
        if (pooled->n_kinds > 1 && pooled->setup.steps > steps)
            steps = pooled->setup.steps;
    }
    return steps;
}

ms_label ms_compare_pools_label(const ms_comparison *c, uint32_t step)
{
    ms_label label = {""};
    for (uint32_t i = 0; i < c->n; i++) {
        if (reserved_in_step(&c->variants[i], step) == 0)
            continue;
        const ms_pooled *pooled = c->variants[i].record.report.pooled;
        ms_label own = ms_poolwords_length(pooled, step);
        if (label.s[0] == '\0')
            snprintf(label.s, sizeof label.s, "%u: %.24s", step, own.s);
        else if (strcmp(strchr(label.s, ' ') + 1, own.s) != 0)
            snprintf(label.s, sizeof label.s, "%u:", step);
    }
    return label;
}

ms_label ms_compare_pools_cell(const ms_comparison *c, uint32_t variant,
                               uint32_t row)
{
    const ms_pooled_rank *rank = ms_compare_pools_rank(&c->variants[variant]);
    return rank == NULL ? (ms_label){"-"}
                        : ms_compare_pools_rows[row].cell(
                              c->variants[variant].record.report.pooled, rank);
}

/* The cell of one step, counted from 1. */
ms_label ms_compare_pools_step_cell(const ms_comparison *c, uint32_t variant,
                                    uint32_t step)
{
    uint64_t bytes = reserved_in_step(&c->variants[variant], step);
    return bytes == 0 ? (ms_label){"-"} : ms_quantity_size(bytes);
}

/* Where all have PyTorch's pool with its defaults, the row "reserved" says
 * all. */
bool ms_compare_pools_tell(const ms_comparison *c)
{
    const char *first = c->variants[c->base].allocator;
    bool any = strcmp(first, "torch") != 0 || ms_compare_pools_steps(c) > 0;
    for (uint32_t i = 0; i < c->n; i++)
        any |= c->variants[i].refused == NULL &&
               strcmp(c->variants[i].allocator, first) != 0;
    return any;
}

/* ---- which one helps ----------------------------------------------------- */

/* Says whether two variants differ in their pools alone. For saved results
 * it relies on what they say of themselves. */
static bool is_beside(const ms_variant *a, const ms_variant *b)
{
    if (a->refused != NULL || b->refused != NULL)
        return false;
    if (a->file == NULL && b->file == NULL)
        return strcmp(a->beside, b->beside) == 0;
    return strcmp(a->record.model, b->record.model) == 0 &&
           strcmp(a->policy, b->policy) == 0 &&
           strcmp(a->setup, b->setup) == 0 && strcmp(a->device, b->device) == 0;
}

static uint64_t reserved_of(const ms_variant *variant)
{
    return ms_compare_pools_rank(variant)->reserved_most_bytes;
}

static bool is_better(const ms_variant *a, const ms_variant *b)
{
    bool a_lacks = pooled_of(a)->oom, b_lacks = pooled_of(b)->oom;
    return a_lacks != b_lacks ? b_lacks : reserved_of(a) < reserved_of(b);
}

bool ms_compare_pools_group(const ms_comparison *c, uint32_t variant,
                            ms_compare_pool_group *group)
{
    const ms_variant *all = c->variants;
    *group = (ms_compare_pool_group){.first = variant, .best = variant};
    if (ms_compare_pools_rank(&all[variant]) == NULL)
        return false;
    for (uint32_t i = 0; i < c->n && group->n < MS_VARIANTS_MOST; i++) {
        if (ms_compare_pools_rank(&all[i]) == NULL ||
            !is_beside(&all[variant], &all[i]) ||
            (i != variant &&
             strcmp(all[variant].allocator, all[i].allocator) == 0))
            continue;
        if (i < variant)
            return false;
        group->of[group->n++] = i;
        if (is_better(&all[i], &all[group->best]))
            group->best = i;
    }
    return group->n > 1;
}

static void put_gap(uint64_t bytes, uint64_t than_bytes, ms_text *words)
{
    bool less = bytes < than_bytes;
    uint64_t gap = less ? than_bytes - bytes : bytes - than_bytes;
    ms_text_add(words, "%s %s", ms_quantity_size(gap).s,
                less ? "less" : "more");
    if (than_bytes > 0)
        ms_text_add(words, " (%s%.1f %%)", less ? "-" : "+",
                    100.0 * (double)gap / (double)than_bytes);
}

/* Writes "helps: fits where ... is out of memory", or what it reserves. */
static void put_help(const ms_variant *it, const ms_variant *first,
                     ms_text *words)
{
    uint64_t bytes = reserved_of(it), than_bytes = reserved_of(first);
    bool lacks = pooled_of(it)->oom, first_lacks = pooled_of(first)->oom;
    bool helps = is_better(it, first);
    ms_text_put(words, it->allocator, strlen(it->allocator));
    ms_text_add(words, helps ? " helps: " : " does not help: ");
    if (lacks != first_lacks)
        ms_text_add(words, "%s out of memory, ", lacks ? "it is" : "it is not");
    else if (lacks)
        ms_text_add(words, "still out of memory, ");
    if (bytes == than_bytes)
        ms_text_add(words, "%s reserved, as before", ms_quantity_size(bytes).s);
    else {
        ms_text_add(words, "%s reserved, ", ms_quantity_size(bytes).s);
        put_gap(bytes, than_bytes, words);
    }
    ms_text_add(words, lacks ? ", with memory enough" : "");
}

static void put_group(const ms_comparison *c,
                      const ms_compare_pool_group *group, ms_text *text)
{
    const ms_variant *first = &c->variants[group->first];
    const ms_variant *best = &c->variants[group->best];
    ms_text words = {.arena = text->arena};
    if (first->file == NULL && first->beside[0] != '\0')
        ms_text_add(&words, "%s: ", first->beside);
    ms_text_put(&words, first->allocator, strlen(first->allocator));
    ms_text_add(&words, " reserves %s%s",
                ms_quantity_size(reserved_of(first)).s,
                pooled_of(first)->oom ? ", out of memory" : "");
    for (uint32_t i = 1; i < group->n; i++) {
        ms_text_add(&words, "; ");
        put_help(&c->variants[group->of[i]], first, &words);
    }
    if (group->n > 2 && best == first)
        ms_text_add(&words, "; none of the others helps this model");
    else if (group->n > 2) {
        ms_text_add(&words, "; ");
        ms_text_put(&words, best->allocator, strlen(best->allocator));
        ms_text_add(&words, " helps most");
    }
    ms_textlines_put("pools:", MS_TEXTLINES_INDENT, &words, text);
}

void ms_compare_pools_write(const ms_comparison *c, ms_text *text)
{
    ms_compare_pool_group group;
    bool any = false;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ms_compare_pools_group(c, i, &group))
            continue;
        ms_text_add(text, any ? "" : "\n");
        any = true;
        put_group(c, &group, text);
    }
}
