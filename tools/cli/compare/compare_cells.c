/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cells of the table that say what fits, and how much memory is to
 * spare. */

#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/compare/compare.h"
#include "tools/terminal/quantity.h"

#include <stdio.h>
#include <stdlib.h>

ms_label ms_compare_cells_signed(bool negative, const char *sign, ms_label size)
{
    ms_label label;
    snprintf(label.s, sizeof label.s, "%s%.30s", negative ? "-" : sign, size.s);
    return label;
}

ms_label ms_compare_cells_fits(const ms_comparison *c, uint32_t variant,
                               uint32_t row)
{
    const ms_report *report = &c->variants[variant].record.report;
    bool device = ms_capacity_short(report, MS_DEVICE_POOL) > 0;
    (void)row;
    if (report->fits)
        return (ms_label){"yes"};
    if (!device && ms_capacity_short(report, MS_HOST_POOL) > 0)
        return (ms_label){"no: host"};
    if (!device && ms_capacity_short(report, MS_NVME_POOL) > 0)
        return (ms_label){"no: disk"};
    return (ms_label){"no"};
}

ms_label ms_compare_cells_headroom(const ms_comparison *c, uint32_t variant,
                                   uint32_t row)
{
    int64_t bytes = c->variants[variant].record.report.headroom_bytes;
    (void)row;
    return ms_compare_cells_signed(
        bytes < 0, "",
        ms_quantity_size(bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes));
}

/* The memory of a node, less what its ranks need. */
static ms_label room_label(const ms_comparison *c, uint32_t variant,
                           ms_pool_kind pool)
{
    const ms_report *report = &c->variants[variant].record.report;
    const struct ms_far_memory *far = &report->far[pool];
    uint64_t short_bytes = ms_capacity_short(report, pool);
    if (far->capacity_bytes == 0)
        return (ms_label){"-"};
    return ms_compare_cells_signed(
        short_bytes > 0, "",
        ms_quantity_size(short_bytes > 0
                             ? short_bytes
                             : far->capacity_bytes - far->node_reserved_bytes));
}

ms_label ms_compare_cells_host_room(const ms_comparison *c, uint32_t variant,
                                    uint32_t row)
{
    (void)row;
    return room_label(c, variant, MS_HOST_POOL);
}

ms_label ms_compare_cells_disk_room(const ms_comparison *c, uint32_t variant,
                                    uint32_t row)
{
    (void)row;
    return room_label(c, variant, MS_NVME_POOL);
}

/* Says whether a node of any variant has too little of that memory. */
bool ms_compare_cells_short(const ms_comparison *c, ms_pool_kind pool)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused == NULL &&
            ms_capacity_short(&c->variants[i].record.report, pool) > 0)
            return true;
    return false;
}

ms_label ms_compare_cells_capacity(const ms_comparison *c, uint32_t variant,
                                   uint32_t row)
{
    (void)row;
    return ms_quantity_size(c->variants[variant].record.report.capacity_bytes);
}

bool ms_compare_cells_differ(const ms_comparison *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused == NULL &&
            c->variants[i].record.report.capacity_bytes !=
                c->variants[c->base].record.report.capacity_bytes)
            return true;
    return false;
}

ms_label ms_compare_cells_phase(const ms_comparison *c, uint32_t variant,
                                uint32_t row)
{
    const ms_peak *peak = &ms_compare_values_rank(&c->variants[variant])->peak;
    ms_label cell = {""};
    (void)row;
    if (peak->event != MS_NONE)
        snprintf(cell.s, sizeof cell.s, "%s",
                 peak->pass == MS_RECOMPUTE ? ms_names_pass[MS_RECOMPUTE]
                                            : ms_names_phase[peak->phase]);
    return cell;
}

ms_label ms_compare_cells_error(const ms_comparison *c, uint32_t variant,
                                uint32_t row)
{
    const ms_rank_report *rank = ms_compare_values_rank(&c->variants[variant]);
    ms_label cell = {"-"};
    (void)row;
    if (rank->time.error_percent > 0)
        snprintf(cell.s, sizeof cell.s, "%u %%",
                 (unsigned)rank->time.error_percent);
    return cell;
}

/* Rounds to the digits that a saved result has. */
ms_label ms_compare_cells_tokens(const ms_comparison *c, uint32_t variant,
                                 uint32_t row)
{
    double rate = c->variants[variant].record.report.tokens_per_second;
    char saved[32];
    (void)row;
    if (rate < 0)
        return (ms_label){"-"};
    snprintf(saved, sizeof saved, "%.6g", rate);
    return ms_quantity_count((uint64_t)strtod(saved, NULL));
}
