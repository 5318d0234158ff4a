/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints several traces for people: a table for each allocator, with a row for
 * each trace, and which allocates most and why. */

#include "sim/names.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/cli/diff/diff.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>

/* ---- the tables ---------------------------------------------------------- */

static void put_size(const ms_alloc_pool *pool, ms_text *text, uint32_t columns,
                     ms_torch_measure measure, bool at_end)
{
    const ms_torch_stat *stat = &pool->stats.of[measure][MS_TORCH_ALL];
    uint64_t bytes = at_end ? stat->current : stat->peak;
    ms_screen_right(text, columns, ms_quantity_size(bytes).s);
}

static const struct {
    const char *label;
    uint32_t columns;
} heads[] = {{"allocated", 11},  {"reserved", 12}, {"fragmentation", 15},
             {"at the end", 12}, {"retries", 9},   {"ooms", 6}};

static void put_row(const ms_alloc_run *run, uint32_t p, const ms_style *style,
                    ms_text *text)
{
    const ms_alloc_pool *pool = &run->pools[p];
    uint64_t allocated = ms_alloc_traces_peak(run, p, MS_TORCH_ALLOCATED_BYTES);
    uint64_t reserved = ms_alloc_traces_peak(run, p, MS_TORCH_RESERVED_BYTES);
    char cell[32], safe[512];
    bool failed = pool->stats.ooms > 0;
    put_size(pool, text, heads[0].columns, MS_TORCH_ALLOCATED_BYTES, false);
    put_size(pool, text, heads[1].columns, MS_TORCH_RESERVED_BYTES, false);
    snprintf(cell, sizeof cell, "%.1f %%",
             reserved > 0 ? 100 * (1 - (double)allocated / (double)reserved)
                          : 0.0);
    ms_screen_right(text, heads[2].columns, cell);
    put_size(pool, text, heads[3].columns, MS_TORCH_ALLOCATED_BYTES, true);
    ms_screen_right(text, heads[4].columns,
                    ms_quantity_count(pool->stats.retries).s);
    ms_text_add(text, "%s", failed ? style->bad : "");
    ms_screen_right(text, heads[5].columns,
                    ms_quantity_count(pool->stats.ooms).s);
    ms_text_add(text, "%s  %s\n", failed ? style->plain : "",
                ms_screen_safe(run->source.name, safe, sizeof safe));
}

static void put_table(const ms_alloc_traces *traces, uint32_t p,
                      const ms_style *style, ms_text *text)
{
    char safe[256];
    ms_text_add(text, "\n");
    if (traces->runs[0].n_pools > 1)
        ms_text_add(text, "[%u] %s\n", p + 1,
                    ms_screen_safe(traces->runs[0].pools[p].as.spec, safe,
                                   sizeof safe));
    size_t from = text->length;
    ms_text_add(text, "%s", style->strong);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        ms_screen_right(text, heads[i].columns, heads[i].label);
    ms_text_add(text, "  trace%s\n", style->plain);
    for (uint32_t i = 0; i < traces->n; i++)
        put_row(&traces->runs[i], p, style, text);
    ms_narrow_table(text, from);
}

static void put_name(const ms_alloc_run *run, ms_text *words)
{
    ms_text_put(words, run->source.name, strlen(run->source.name));
}

/* ---- lines --------------------------------------------------------------- */

static const char *device_of(const ms_alloc_run *run, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    ms_alloc_text_device(run, false, &text);
    return text.failed ? "" : text.bytes;
}

/* Once where all are alike. */
static void put_devices(const ms_alloc_traces *traces, ms_text *text)
{
    const char *first = device_of(&traces->runs[0], text->arena);
    bool alike = true;
    char safe[256];
    for (uint32_t i = 1; i < traces->n; i++)
        alike &= strcmp(first, device_of(&traces->runs[i], text->arena)) == 0;
    for (uint32_t i = 0; i < (alike ? 1 : traces->n); i++) {
        if (!alike)
            ms_text_add(
                text, "%s: ",
                ms_screen_safe(traces->runs[i].source.name, safe, sizeof safe));
        ms_text_add(text, "%s\n", device_of(&traces->runs[i], text->arena));
    }
}

static void put_head(const ms_alloc_traces *traces, const ms_style *style,
                     ms_text *text)
{
    uint64_t ops = 0, allocs = 0;
    for (uint32_t i = 0; i < traces->n; i++) {
        ops += traces->runs[i].pools[0].follow.play.n_ops;
        allocs += traces->runs[i].pools[0].follow.play.n_allocs;
    }
    ms_text_add(text, "%s%u traces: %s operations, %s allocations%s\n",
                style->strong, traces->n, ms_quantity_count(ops).s,
                ms_quantity_count(allocs).s, style->plain);
    put_devices(traces, text);
}

/* Says whether some pool followed the record, and none differs from it. */
static bool is_as_recorded(const ms_alloc_run *run, const ms_style *style,
                           ms_text *text)
{
    bool given = false, same = true;
    char safe[256], name[260];
    ms_screen_safe(run->source.name, safe, sizeof safe);
    snprintf(name, sizeof name, "%s: ", safe);
    for (uint32_t p = 0; p < run->n_pools; p++) {
        const ms_allocfollow *follow = &run->pools[p].follow;
        if (!run->source.is_recorded || !follow->given)
            continue;
        given = true;
        if (follow->result.n_different == 0)
            continue;
        same = false;
        ms_alloc_text_different(name, &run->pools[p], style, text);
    }
    return given && same;
}

/* Those that are replayed as they were recorded, as a count, and each that is
 * not. */
static void put_recorded(const ms_alloc_traces *traces, const ms_style *style,
                         ms_text *text)
{
    uint32_t n_same = 0;
    for (uint32_t i = 0; i < traces->n; i++)
        n_same += is_as_recorded(&traces->runs[i], style, text);
    if (n_same > 0)
        ms_text_add(text, "%sas recorded:%s %u of %u traces\n", style->good,
                    style->plain, n_same, traces->n);
}

/* ---- growth -------------------------------------------------------------- */

static uint64_t left_by(const ms_alloc_run *run)
{
    return run->pools[0]
        .stats.of[MS_TORCH_ALLOCATED_BYTES][MS_TORCH_ALL]
        .current;
}

/* Is more allocated at the end of each but the first than of the one before? */
static bool each_leaves_more(const ms_alloc_traces *traces)
{
    for (uint32_t i = 1; i < traces->n; i++)
        if (left_by(&traces->runs[i]) <= left_by(&traces->runs[i - 1]))
            return false;
    return traces->n > 2;
}

/* From the first trace to the last; what grows most stands first. */
static void put_growth(const ms_alloc_traces *traces, ms_text *text)
{
    const ms_alloc_run *first = &traces->runs[0];
    const ms_alloc_run *last = &traces->runs[traces->n - 1];
    const ms_alloc_leaks *leaks = traces->leaks;
    ms_text words = {.arena = text->arena};
    if (leaks == NULL && each_leaves_more(traces))
        ms_text_add(&words, "at the end of each more is allocated: where they "
                            "are successive steps of one run, --leaks tells "
                            "what grows");
    if (leaks != NULL && leaks->n_found > 0) {
        const ms_alloc_group *group = &leaks->groups[leaks->found[0]];
        uint64_t grown = ms_alloc_leaks_growth(leaks, leaks->found[0]);
        ms_text_add(&words, "allocated at the end: %s in ",
                    ms_quantity_size(left_by(first)).s);
        put_name(first, &words);
        ms_text_add(&words, ", %s in ", ms_quantity_size(left_by(last)).s);
        put_name(last, &words);
        ms_text_add(&words, "; most of what grows, %s in %u traces, is of ",
                    ms_quantity_size(grown).s, leaks->n_points);
        if (group->site != MS_NONE)
            ms_text_put(&words, leaks->sites[group->site],
                        strlen(leaks->sites[group->site]));
        else
            ms_text_add(&words, "requests of %s",
                        ms_quantity_size(group->bytes).s);
    }
    if (words.length > 0)
        ms_textlines_put(leaks != NULL ? "growth:" : "note:",
                         MS_TEXTLINES_INDENT, &words, text);
}

/* ---- the verdict --------------------------------------------------------- */

static void put_cause(const ms_alloc_traces *traces, ms_text *words)
{
    const ms_pairings_group *group = &traces->pairs.groups[0];
    bool given = traces->runs[traces->highest].pools[0].follow.given;
    const char *name;
    if (traces->pairs.n == 0)
        return;
    name = ms_diff_text_name(group);
    ms_text_add(words, "; the largest difference%s is %s, ",
                given ? "" : " that was recorded",
                ms_diff_text_gap(group->gap).s);
    if (group->count[1] > 0)
        ms_diff_text_count(group, 1, words);
    else
        ms_text_add(words, "nothing");
    if (group->count[0] > 0) {
        ms_text_add(words, " against ");
        ms_diff_text_count(group, 0, words);
    }
    if (group->category < MS_N_CATEGORIES) {
        ms_text_add(words, ", ");
        ms_textlines_category(group->category, words);
    }
    ms_text_add(words, ", of ");
    ms_text_put(words, name, strlen(name));
}

static void put_verdict(const ms_alloc_traces *traces, ms_text *text)
{
    const ms_alloc_run *highest = &traces->runs[traces->highest];
    const ms_alloc_run *reserves = &traces->runs[traces->most_reserved];
    ms_text words = {.arena = text->arena};
    ms_label peak = ms_quantity_size(
        ms_alloc_traces_peak(highest, 0, MS_TORCH_ALLOCATED_BYTES));
    if (traces->gap == 0) {
        ms_text_add(&words, "all allocate %s at their peaks", peak.s);
    } else {
        put_name(highest, &words);
        ms_text_add(&words, " allocates most, %s, %s more than ", peak.s,
                    ms_quantity_size((uint64_t)traces->gap).s);
        put_name(&traces->runs[traces->lowest], &words);
        ms_text_add(&words, ", which allocates least");
        if (traces->without == NULL)
            put_cause(traces, &words);
        else
            ms_text_add(&words, "; %s", traces->without);
    }
    if (ms_alloc_traces_peak(reserves, 0, MS_TORCH_RESERVED_BYTES) >
        ms_alloc_traces_peak(highest, 0, MS_TORCH_RESERVED_BYTES)) {
        ms_text_add(&words, "; ");
        put_name(reserves, &words);
        ms_text_add(&words, " reserves most");
    }
    ms_textlines_put("verdict:", MS_TEXTLINES_INDENT, &words, text);
}

void ms_alloc_table_write(const ms_alloc_traces *traces, const ms_style *style,
                          ms_text *text)
{
    uint32_t n_pools = traces->runs[0].n_pools;
    put_head(traces, style, text);
    for (uint32_t p = 0; p < n_pools; p++)
        put_table(traces, p, style, text);
    ms_text_add(text, "\n");
    for (uint32_t i = 0; i < traces->n; i++)
        for (uint32_t p = 0; p < n_pools; p++)
            ms_alloc_text_oom(&traces->runs[i], p, text);
    put_recorded(traces, style, text);
    ms_alloc_text_held(traces->runs, traces->n, text);
    if (traces->leaks != NULL)
        ms_alloc_text_leaks(traces->leaks, style, text);
    put_growth(traces, text);
    put_verdict(traces, text);
    ms_narrow_lines(text);
}
