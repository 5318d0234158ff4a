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

/* What all ranks of a node hold where one holds so much, and so many do the
 * same. */
static uint64_t times(uint64_t bytes, uint64_t ranks)
{
    uint64_t all;
    return __builtin_mul_overflow(bytes, ranks, &all) ? UINT64_MAX : all;
}

static void raise(uint64_t *most, uint64_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

/* The job's ranks in a row: `stride` of one stage, as many of the next, again
 * from the first stage on when all have come.  A node has per_node of them. */
static void fill_nodes(uint64_t all, uint64_t stride, uint64_t per_node,
                       const ms_report *report, ms_pool_kind pool,
                       struct ms_far_memory *far)
{
    uint64_t held = 0, reserved = 0, n = 0;
    for (uint64_t rank = 0; rank < all; rank += n) {
        const struct ms_rank_far *own =
            &report->ranks[rank / stride % report->n_ranks].far[pool];
        uint64_t left = stride - rank % stride;
        n = per_node - rank % per_node;
        if (rank % per_node == 0)
            held = reserved = 0;
        n = n < left ? n : left;
        held += times(own->peak_bytes, n);
        reserved += times(own->reserved_bytes, n);
        raise(&far->node_bytes, held);
        raise(&far->node_reserved_bytes, reserved);
    }
}

static void find_node(const ms_machine *machine, uint64_t beside,
                      ms_report *report, ms_pool_kind pool)
{
    struct ms_far_memory *far = &report->far[pool];
    uint64_t all = beside * (report->n_ranks > 1 ? report->n_ranks : 1);
    uint64_t per_node = machine->node_ranks;
    if (per_node == 0 || per_node > all)
        per_node = all;
    for (uint16_t r = 0; r < report->n_ranks; r++)
        raise(&report->ranks[r].far[pool].reserved_bytes,
              report->ranks[r].far[pool].peak_bytes);
    if (report->n_ranks > 1) {
        fill_nodes(all, machine->stage_stride > 0 ? machine->stage_stride : 1,
                   per_node, report, pool, far);
        return;
    }
    far->node_bytes = times(far->peak_bytes, per_node);
    far->node_reserved_bytes = times(far->reserved_bytes, per_node);
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
        if (far->reserved_bytes > 0)
            find_node(machine, beside, report, (ms_pool_kind)pool);
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
