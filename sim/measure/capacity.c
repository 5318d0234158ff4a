/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/machine.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"

/* ---- the memories outside the device ------------------------------------- */

/* Rows of unified memory that are not on the device lie in host memory. */
static void add_pages(const ms_pages *pages, struct ms_far_memory *host)
{
    host->peak_bytes += pages->host_peak_bytes;
    host->reserved_bytes += pages->host_peak_bytes;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        host->by_category[c] += pages->host_by_category[c];
}

/* What all ranks of a node hold where those of the plan hold so much, and so
 * many others do the same beside each of them; of stages that differ a node has
 * the average. */
static uint64_t on_node(uint64_t bytes, uint64_t beside, const ms_report *plan,
                        uint64_t per_node)
{
    uint64_t stages = plan->n_ranks > 1 ? plan->n_ranks : 1, all;
    uint64_t ranks = beside * stages;
    if (per_node > 0 && per_node < ranks)
        ranks = per_node;
    if (__builtin_mul_overflow(bytes, ranks, &all))
        return UINT64_MAX;
    return all / stages + (all % stages > 0);
}

/* A node holds the ranks of the plan and those that do the same beside them;
 * its host memory and disk serve all of them. */
static void close_far(const ms_machine *machine, ms_report *report)
{
    uint64_t beside = machine->data_ranks > 1 ? machine->data_ranks : 1;
    if (machine->split_ranks > 1)
        beside *= machine->split_ranks;
    report->far[MS_HOST_POOL].capacity_bytes = machine->host_memory_bytes;
    report->far[MS_NVME_POOL].capacity_bytes = machine->nvme_bytes;
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
        struct ms_far_memory *far = &report->far[pool];
        if (far->reserved_bytes < far->peak_bytes)
            far->reserved_bytes = far->peak_bytes;
        far->node_bytes =
            on_node(far->peak_bytes, beside, report, machine->node_ranks);
        far->node_reserved_bytes =
            on_node(far->reserved_bytes, beside, report, machine->node_ranks);
    }
    report->host_peak_bytes = report->far[MS_HOST_POOL].peak_bytes;
    report->nvme_peak_bytes = report->far[MS_NVME_POOL].peak_bytes;
}

/* ---- the verdict --------------------------------------------------------- */

uint64_t ms_capacity_short(const ms_report *report, ms_pool_kind pool)
{
    const struct ms_far_memory *far = &report->far[pool];
    if (pool == MS_DEVICE_POOL && report->headroom_bytes < 0)
        return 0 - (uint64_t)report->headroom_bytes;
    if (pool == MS_DEVICE_POOL)
        return report->lack.missing_bytes;
    return far->capacity_bytes > 0 &&
                   far->node_reserved_bytes > far->capacity_bytes
               ? far->node_reserved_bytes - far->capacity_bytes
               : 0;
}

/* Finds the rank with the highest peak; returns the most bytes that any rank
 * reserves, which need not be the same one. */
static uint64_t find_worst(ms_report *report)
{
    uint64_t reserved_bytes = 0;
    for (uint16_t rank = 0; rank < report->n_ranks; rank++) {
        const ms_peak *peak = &report->ranks[rank].peak;
        if (peak->reserved_bytes > reserved_bytes)
            reserved_bytes = peak->reserved_bytes;
        if (peak->allocated_bytes >
            report->ranks[report->worst].peak.allocated_bytes)
            report->worst = rank;
    }
    return reserved_bytes;
}

void ms_capacity_judge(const ms_pages *pages, const ms_machine *machine,
                       ms_report *report)
{
    add_pages(pages, &report->far[MS_HOST_POOL]);
    close_far(machine, report);
    report->capacity_bytes = machine->capacity_bytes;
    report->context_bytes = machine->context_bytes;
    report->outside = machine->outside;
    report->headroom_bytes =
        (int64_t)(machine->capacity_bytes - machine->context_bytes -
                  find_worst(report));
    report->told = report->worst;
    report->fits = true;
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        report->fits &= ms_capacity_short(report, (ms_pool_kind)pool) == 0;
    report->status = report->wall && report->lack.missing_bytes > 0
                         ? MS_OUT_OF_MEMORY
                     : report->fits ? MS_FITS
                                    : MS_OVER;
}

bool ms_capacity_fits_exact(const ms_report *report)
{
    const ms_pooled *pooled = report->pooled;
    if (pooled == NULL)
        return report->fits;
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++)
        if (ms_capacity_short(report, (ms_pool_kind)pool) > 0)
            return false;
    for (uint16_t rank = 0; rank < report->n_ranks; rank++)
        if (pooled->ranks[rank].exact_bytes > ms_capacity_usable(report))
            return false;
    return report->capacity_bytes >= report->context_bytes;
}

uint64_t ms_capacity_usable(const ms_report *report)
{
    return report->capacity_bytes > report->context_bytes
               ? report->capacity_bytes - report->context_bytes
               : 0;
}

uint64_t ms_capacity_used(const ms_report *report)
{
    return report->capacity_bytes - (uint64_t)report->headroom_bytes;
}
