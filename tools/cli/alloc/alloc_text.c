/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints memsim alloc for people: a column for each allocator. */

#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/job/settings.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>

#define LABEL_COLUMNS 24u
#define COLUMN 14u
#define START_INDENT 19u

typedef struct cell {
    char s[40];
} cell;

static uint64_t peak(const ms_alloc_pool *v, ms_torch_measure measure)
{
    return v->stats.of[measure][MS_TORCH_ALL].peak;
}

static ms_pool_type kind_of(const ms_alloc_pool *v)
{
    return (ms_pool_type)v->as.heap.kind;
}

/* ---- cells --------------------------------------------------------------- */

static cell size_cell(uint64_t bytes)
{
    cell c;
    snprintf(c.s, sizeof c.s, "%s", ms_quantity_size(bytes).s);
    return c;
}

static cell count_cell(uint64_t n)
{
    cell c;
    snprintf(c.s, sizeof c.s, "%s", ms_quantity_count(n).s);
    return c;
}

static cell allocated_cell(const ms_alloc_pool *v)
{
    return size_cell(peak(v, MS_TORCH_ALLOCATED_BYTES));
}

static cell requested_cell(const ms_alloc_pool *v)
{
    return size_cell(peak(v, MS_TORCH_REQUESTED_BYTES));
}

static cell active_cell(const ms_alloc_pool *v)
{
    return size_cell(peak(v, MS_TORCH_ACTIVE_BYTES));
}

static cell reserved_cell(const ms_alloc_pool *v)
{
    return size_cell(peak(v, MS_TORCH_RESERVED_BYTES));
}

static cell fragmentation_cell(const ms_alloc_pool *v)
{
    uint64_t reserved = peak(v, MS_TORCH_RESERVED_BYTES);
    double part = 0;
    cell c;
    if (reserved > 0)
        part = 1 - (double)peak(v, MS_TORCH_ALLOCATED_BYTES) / (double)reserved;
    snprintf(c.s, sizeof c.s, "%.1f %%", 100 * part);
    return c;
}

/* The cell of a number that the pool does not have. */
static cell no_cell(void)
{
    return (cell){"-"};
}

static cell split_cell(const ms_alloc_pool *v)
{
    if (kind_of(v) != MS_POOL_TORCH)
        return no_cell();
    return size_cell(peak(v, MS_TORCH_INACTIVE_SPLIT_BYTES));
}

static cell reserved_now_cell(const ms_alloc_pool *v)
{
    return size_cell(
        v->stats.of[MS_TORCH_RESERVED_BYTES][MS_TORCH_ALL].current);
}

static cell allocated_now_cell(const ms_alloc_pool *v)
{
    return size_cell(
        v->stats.of[MS_TORCH_ALLOCATED_BYTES][MS_TORCH_ALL].current);
}

static cell touched_cell(const ms_alloc_pool *v)
{
    return kind_of(v) != MS_POOL_TORCH ? size_cell(v->told.touched_bytes)
                                       : no_cell();
}

static cell copies_cell(const ms_alloc_pool *v)
{
    return kind_of(v) == MS_POOL_CONTIGUOUS ? count_cell(v->told.copies)
                                            : no_cell();
}

static cell moved_cell(const ms_alloc_pool *v)
{
    return kind_of(v) == MS_POOL_CONTIGUOUS ? size_cell(v->told.moved_bytes)
                                            : no_cell();
}

static cell device_allocs_cell(const ms_alloc_pool *v)
{
    return count_cell(v->stats.device_allocs);
}

static cell device_frees_cell(const ms_alloc_pool *v)
{
    return count_cell(v->stats.device_frees);
}

static cell retries_cell(const ms_alloc_pool *v)
{
    return count_cell(v->stats.retries);
}

static cell ooms_cell(const ms_alloc_pool *v)
{
    return count_cell(v->stats.ooms);
}

#define TORCH (1u << MS_POOL_TORCH)
#define CONTIGUOUS (1u << MS_POOL_CONTIGUOUS)
#define EVERY 0xffu

static const struct {
    const char *label;
    cell (*make)(const ms_alloc_pool *v);
    bool strong;
    uint8_t of; /* the kinds of pools that have the row, a bit each */
} rows[] = {
    {"peak allocated", allocated_cell, false, EVERY},
    {"peak requested", requested_cell, false, EVERY},
    {"peak active", active_cell, false, EVERY},
    {"peak reserved", reserved_cell, true, EVERY},
    {"used up to", touched_cell, false, EVERY & ~TORCH},
    {"fragmentation", fragmentation_cell, false, EVERY},
    {"peak in split blocks", split_cell, false, TORCH},
    {"allocated at the end", allocated_now_cell, false, EVERY},
    {"reserved at the end", reserved_now_cell, false, EVERY},
    {"cudaMalloc and maps", device_allocs_cell, false, EVERY},
    {"cudaFree and unmaps", device_frees_cell, false, EVERY},
    {"retries", retries_cell, false, EVERY},
    {"copies to defragment", copies_cell, false, CONTIGUOUS},
    {"bytes that they move", moved_cell, false, CONTIGUOUS},
    {"out of memory", ooms_cell, false, EVERY},
};

/* ---- lines --------------------------------------------------------------- */

/* The number of each column, where there are several. */
static void put_numbers(uint32_t n, ms_text *text)
{
    char label[8];
    if (n == 1)
        return;
    ms_text_add(text, "%-*s", (int)LABEL_COLUMNS, "");
    for (uint32_t i = 0; i < n; i++) {
        snprintf(label, sizeof label, "[%u]", (unsigned)(i + 1) % 100);
        ms_screen_right(text, COLUMN, label);
    }
    ms_text_add(text, "\n");
}

static void put_table(const ms_alloc_pool *pools, uint32_t n,
                      const ms_style *style, ms_text *text)
{
    uint32_t kinds = 0;
    size_t from = text->length;
    put_numbers(n, text);
    for (uint32_t i = 0; i < n; i++)
        kinds |= 1u << kind_of(&pools[i]);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if ((rows[r].of & kinds) == 0)
            continue;
        ms_text_add(text, "%s%-*s", rows[r].strong ? style->strong : "",
                    (int)LABEL_COLUMNS, rows[r].label);
        for (uint32_t i = 0; i < n; i++)
            ms_screen_right(text, COLUMN, rows[r].make(&pools[i]).s);
        ms_text_add(text, "%s\n", rows[r].strong ? style->plain : "");
    }
    ms_narrow_table(text, from);
}

/* Says what each column is, where there are several. */
static void put_columns(const ms_alloc_pool *pools, uint32_t n, ms_text *text)
{
    char safe[256];
    for (uint32_t i = 0; n > 1 && i < n; i++)
        ms_text_add(text, "  [%u] %s\n", i + 1,
                    ms_screen_safe(pools[i].as.spec, safe, sizeof safe));
    ms_text_add(text, "\n");
}

void ms_alloc_text_device(const ms_alloc_run *run, bool is_only, ms_text *text)
{
    const ms_alloc_pool *first = &run->pools[0], *torch = NULL;
    char safe[256];
    for (uint32_t i = run->n_pools; i-- > 0;)
        if (run->pools[i].as.heap.kind == MS_POOL_TORCH)
            torch = &run->pools[i];
    if (torch != NULL)
        ms_text_add(text, "PyTorch %s, ",
                    ms_torchconf_versions[torch->setup.torch.version]);
    ms_text_add(text, "device %s%s",
                ms_quantity_size(first->setup.torch.total_bytes).s,
                run->device_known ? "" : " (" MS_DEFAULT_DEVICE ")");
    if (is_only && run->source.is_pickle)
        ms_text_add(text, ", snapshot of device %u",
                    run->source.recording.device);
    if (torch != NULL && run->head.conf[0] != '\0')
        ms_text_add(text, ", %s",
                    ms_screen_safe(run->head.conf, safe, sizeof safe));
}

static void put_head(const ms_alloc_run *run, const ms_style *style,
                     ms_text *text)
{
    const ms_allocplay *play = &run->pools[0].follow.play;
    char safe[256];
    ms_text_add(text, "%s%s: %s operations, %s allocations%s\n", style->strong,
                ms_screen_safe(run->source.name, safe, sizeof safe),
                ms_quantity_count(play->n_ops).s,
                ms_quantity_count(play->n_allocs).s, style->plain);
    ms_alloc_text_device(run, true, text);
    ms_text_add(text, "\n");
}

void ms_alloc_text_oom(const ms_alloc_run *run, uint32_t pool, ms_text *text)
{
    const ms_allocplay *play = &run->pools[pool].follow.play;
    char safe[256], label[16] = "";
    if (play->n_oom == 0)
        return;
    if (run->n_pools > 1)
        snprintf(label, sizeof label, "[%u] ", (unsigned)(pool + 1) % 100);
    ms_text_add(text, "%sfirst out of memory: %s:%u, a request of %s\n", label,
                ms_screen_safe(run->source.name, safe, sizeof safe),
                play->first_oom, ms_quantity_size(play->first_oom_bytes).s);
}

void ms_alloc_text_different(const char *name, const ms_alloc_pool *pool,
                             const ms_style *style, ms_text *text)
{
    const ms_allocfollow_result *result = &pool->follow.result;
    ms_text_add(text, "%snot as recorded:%s %s%s differences, first ",
                style->bad, style->plain, name,
                ms_quantity_count(result->n_different).s);
    if (result->first == MS_NONE)
        ms_text_add(text, "at the end");
    else
        ms_text_add(text, "in event %u", result->first);
    ms_text_add(text, ": %s\n", result->what);
}

static void put_recorded(const ms_alloc_run *run, const ms_alloc_pool *v,
                         const ms_style *style, ms_text *text)
{
    const ms_allocfollow_result *result = &v->follow.result;
    if (!run->source.is_recorded || !v->follow.given)
        return;
    if (result->n_different == 0)
        ms_text_add(text,
                    "%sas recorded:%s %s events, %s segment events, %s blocks "
                    "at the end\n",
                    style->good, style->plain,
                    ms_quantity_count(result->n_addresses).s,
                    ms_quantity_count(result->n_answers).s,
                    ms_quantity_count(result->n_blocks).s);
    else
        ms_alloc_text_different("", v, style, text);
}

/* ---- leaks --------------------------------------------------------------- */

static void put_steps(const ms_alloc_leaks *leaks, ms_text *text)
{
    if (leaks->by == MS_ALLOC_PERIOD)
        ms_text_add(text, " at %u recurrences of %s allocations\n",
                    leaks->n_points, ms_quantity_count(leaks->period).s);
    else if (leaks->by == MS_ALLOC_TRACES)
        ms_text_add(text, " at the ends of %u successive traces\n",
                    leaks->n_points);
    else
        ms_text_add(text, " at %u successive steps (%s)\n", leaks->n_points,
                    leaks->by == MS_ALLOC_STEPS ? "marked \"# step\""
                                                : "told by resets of peaks");
}

/* Segments that exist at the start were made by the allocator that was
 * recorded, so that the options of other allocators do not change what lies
 * in them. A note says so. */
void ms_alloc_text_held(const ms_alloc_run *runs, uint32_t n, ms_text *text)
{
    ms_alloc_held held = {.blocks = 0};
    for (uint32_t i = 0; i < n; i++) {
        bool other = false;
        for (uint32_t p = 0; p < runs[i].n_pools; p++)
            other |= !runs[i].pools[p].follow.given &&
                     runs[i].pools[p].setup.heap.kind == MS_POOL_TORCH;
        if (!other)
            continue;
        held.blocks += runs[i].held.blocks;
        held.bytes += runs[i].held.bytes;
        held.reserved_bytes += runs[i].held.reserved_bytes;
    }
    if (held.blocks == 0)
        return;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "%s in %s block%s ", ms_quantity_size(held.bytes).s,
                ms_quantity_count(held.blocks).s, held.blocks == 1 ? "" : "s");
    if (runs[0].anew)
        ms_text_add(&words, "allocated anew, in the order of addresses, where "
                            "options differ from the recorded ones");
    else
        ms_text_add(&words,
                    "stay in the segments that were recorded (%s), which other "
                    "options do not reach; --anew allocates them again",
                    ms_quantity_size(held.reserved_bytes).s);
    ms_textlines_put("held at the start:", START_INDENT, &words, text);
}

static void put_leak(const ms_alloc_leaks *leaks, uint32_t g, ms_text *text)
{
    const ms_alloc_group *group = &leaks->groups[g];
    const ms_alloc_level *levels = ms_alloc_leaks_levels(leaks, g);
    uint32_t steps = leaks->n_points - 1;
    char safe[512];
    ms_screen_right(
        text, COLUMN,
        ms_quantity_size(ms_alloc_leaks_growth(leaks, g) / steps).s);
    ms_screen_right(text, COLUMN, ms_quantity_count(levels[0].count).s);
    ms_screen_right(text, COLUMN, ms_quantity_count(levels[steps].count).s);
    if (group->site != MS_NONE)
        ms_text_add(
            text, "  %s\n",
            ms_screen_safe(leaks->sites[group->site], safe, sizeof safe));
    else
        ms_text_add(text, "  %s each on stream %llu\n",
                    ms_quantity_size(group->bytes).s,
                    (unsigned long long)group->stream);
}

void ms_alloc_text_leaks(const ms_alloc_leaks *leaks, const ms_style *style,
                         ms_text *text)
{
    bool none = leaks->n_found == 0;
    ms_text_add(text, "%sleaks:%s ", none ? style->good : style->bad,
                style->plain);
    if (none)
        ms_text_add(text, "nothing grows");
    else
        ms_text_add(text, "%u of %u groups grow", leaks->n_found,
                    leaks->n_groups);
    put_steps(leaks, text);
    if (none)
        return;
    size_t from = text->length;
    ms_screen_right(text, COLUMN, "growth each");
    ms_screen_right(text, COLUMN, "alive first");
    ms_screen_right(text, COLUMN, "alive last");
    ms_text_add(text, "  allocated by\n");
    for (uint32_t i = 0; i < leaks->n_found; i++)
        put_leak(leaks, leaks->found[i], text);
    ms_narrow_table(text, from);
    if (leaks->by == MS_ALLOC_PERIOD)
        ms_text_add(text, "steps are told by recurrence: what recurs could be "
                          "layers of one step, too\n");
}

void ms_alloc_text_write(const ms_alloc_run *run, const ms_style *style,
                         ms_text *text)
{
    put_head(run, style, text);
    put_columns(run->pools, run->n_pools, text);
    put_table(run->pools, run->n_pools, style, text);
    ms_text_add(text, "\n");
    for (uint32_t i = 0; i < run->n_pools; i++)
        ms_alloc_text_oom(run, i, text);
    for (uint32_t i = 0; i < run->n_pools; i++)
        put_recorded(run, &run->pools[i], style, text);
    ms_alloc_text_held(run, 1, text);
    if (run->leaks != NULL)
        ms_alloc_text_leaks(run->leaks, style, text);
    ms_narrow_lines(text);
}
