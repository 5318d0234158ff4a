/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the summary says about links and about host memory and the disk. */

#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/run/run.h"
#include "tools/job/result.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>

#define INDENT 10u
#define NAME_COLUMNS 14u
#define CELL_COLUMNS 11u
/* less than 1/5000 of the peak or the step is left out */
#define LEAST_PART 5000u

static const char *const link_names[MS_N_LINKS] = {
    [MS_LINK_COMM] = "collectives",     [MS_LINK_OUTER] = "between groups",
    [MS_LINK_H2D] = "to device",        [MS_LINK_D2H] = "to host",
    [MS_LINK_NVME_READ] = "disk reads", [MS_LINK_NVME_WRITE] = "disk writes",
    [MS_LINK_HOST] = "host's cores",
};

static const ms_rank_report *told(const ms_result *result)
{
    return &result->report->ranks[result->report->told];
}

/* ---- links --------------------------------------------------------------- */

/* A rate in GB/s: bandwidths of links are decimal wherever they are printed. */
static ms_label rate_label(const ms_link_use *use)
{
    ms_label label = {""};
    if (use->bytes == 0 || use->time.busy_ns == 0)
        return label;
    double rate = (double)use->bytes / (double)use->time.busy_ns;
    snprintf(label.s, sizeof label.s, "%.*f GB/s", rate < 10 ? 2 : 1, rate);
    return label;
}

static void put_name(ms_text *text, const char *label, const char *name)
{
    ms_text_add(text, "%-*s%-*s", (int)INDENT, label, (int)NAME_COLUMNS, name);
}

static void put_times(const ms_overlap *time, uint64_t step_ns, ms_text *text)
{
    const uint64_t parts_ns[] = {
        time->busy_ns, time->busy_ns - time->exposed_ns, time->exposed_ns};
    for (size_t i = 0; i < sizeof parts_ns / sizeof parts_ns[0]; i++)
        ms_screen_right(text, CELL_COLUMNS,
                        ms_quantity_time_as(parts_ns[i], step_ns).s);
}

/* Unified memory moves pages without an op, so such a link has bytes and no
 * ops' time. */
static void put_link(const ms_link_use *use, const char *label,
                     const char *name, uint64_t step_ns, ms_text *text)
{
    put_name(text, label, name);
    ms_screen_right(text, CELL_COLUMNS,
                    use->bytes > 0 ? ms_quantity_size(use->bytes).s : "");
    if (use->time.busy_ns > 0) {
        ms_screen_right(text, CELL_COLUMNS, rate_label(use).s);
        put_times(&use->time, step_ns, text);
    }
    ms_text_add(text, "\n");
    if (use->network_bytes == 0)
        return;
    put_name(text, "", "between nodes");
    ms_screen_right(text, CELL_COLUMNS, ms_quantity_size(use->network_bytes).s);
    ms_text_add(text, "\n");
}

static void put_heading(const ms_style *style, ms_text *text)
{
    static const char *const columns[] = {"moved", "rate", "busy", "hidden",
                                          "exposed"};
    ms_text_add(text, "%s", style->faint);
    put_name(text, "traffic:", "");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        ms_screen_right(text, CELL_COLUMNS, columns[i]);
    ms_text_add(text, "%s\n", style->plain);
}

void ms_traffic_links(const ms_result *result, const ms_style *style,
                      ms_text *text)
{
    const ms_rank_report *rank = told(result);
    bool any = false;
    size_t from = text->length;
    for (int link = 0; link < MS_N_LINKS; link++) {
        const ms_link_use *use = &rank->links[link];
        if (use->bytes == 0 && use->time.busy_ns == 0)
            continue;
        if (!any)
            put_heading(style, text);
        any = true;
        put_link(use, "", link_names[link], rank->time.step_ns, text);
    }
    ms_narrow_table(text, from);
}

/* ---- host and disk ------------------------------------------------------- */

static void put_categories(const struct ms_far_memory *far, ms_text *words)
{
    const char *between = ": ";
    for (int c = 0; c < MS_N_CATEGORIES; c++) {
        if (far->by_category[c] <= far->peak_bytes / LEAST_PART)
            continue;
        ms_text_add(words, "%s", between);
        ms_textlines_category((uint8_t)c, words);
        ms_text_add(
            words, " %s",
            ms_quantity_size_as(far->by_category[c], far->peak_bytes).s);
        between = ", ";
    }
}

/* What the ranks of a node need together, and what the node has; option names
 * the option that sets it. */
static void put_node(const struct ms_far_memory *far, const char *option,
                     ms_text *words)
{
    if (far->reserved_bytes > far->peak_bytes)
        ms_text_add(
            words, "; %s reserved, of it %s of PyTorch's pinned blocks",
            ms_quantity_size(far->reserved_bytes).s,
            ms_quantity_size_as(far->pinned_bytes, far->reserved_bytes).s);
    if (far->node_reserved_bytes != far->reserved_bytes)
        ms_text_add(words, "; %s on a node",
                    ms_quantity_size(far->node_reserved_bytes).s);
    if (far->capacity_bytes > 0)
        ms_text_add(words, ", a node has %s",
                    ms_quantity_size(far->capacity_bytes).s);
    else
        ms_text_add(words, ", what a node has is not known (%s SIZE)", option);
}

/* The rank of a pipeline that holds most there. */
static void put_stages(const ms_report *report, ms_pool_kind pool,
                       ms_text *words)
{
    uint16_t most = 0;
    for (uint16_t r = 1; r < report->n_ranks; r++)
        if (report->ranks[r].far[pool].peak_bytes >
            report->ranks[most].far[pool].peak_bytes)
            most = r;
    ms_text_add(words, " of %u stages together (rank %u: %s)",
                (unsigned)report->n_ranks, (unsigned)most,
                ms_quantity_size(report->ranks[most].far[pool].peak_bytes).s);
}

static void put_far(const ms_report *report, ms_pool_kind pool,
                    const char *label, const char *option, ms_text *text)
{
    const struct ms_far_memory *far = &report->far[pool];
    ms_text words = {.arena = text->arena};
    if (far->peak_bytes == 0)
        return;
    ms_text_add(&words, "%s", ms_quantity_size(far->peak_bytes).s);
    if (report->n_ranks > 1)
        put_stages(report, pool, &words);
    else if (far->node_bytes > far->peak_bytes)
        ms_text_add(&words, " per rank");
    put_categories(far, &words);
    put_node(far, option, &words);
    if (words.failed)
        text->failed = true;
    else
        ms_screen_fill(text, INDENT, label, words.bytes);
}

void ms_traffic_memories(const ms_result *result, ms_text *text)
{
    put_far(result->report, MS_HOST_POOL, "host:", "--host-memory", text);
    put_far(result->report, MS_NVME_POOL, "nvme:", "--nvme", text);
}
