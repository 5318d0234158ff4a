/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/traffic.h"

static void add_transfer(const struct ms_transfer *it, uint64_t times,
                         ms_rank_report *out)
{
    uint64_t bytes = it->bytes * times;
    switch ((ms_transfer_kind)it->kind) {
    case MS_TRANSFER_H2D:
        out->h2d_bytes += bytes;
        break;
    case MS_TRANSFER_D2H:
        out->d2h_bytes += bytes;
        break;
    case MS_TRANSFER_NVME_READ:
    case MS_TRANSFER_NVME_WRITE:
        out->nvme_bytes += bytes;
        break;
    default:
        out->comm_bytes += bytes;
    }
}

/* How often op moves its bytes: a prefetch that was revoked comes again, one
 * that was put off comes once if at all. */
static uint64_t times_moved(const ms_timeline *line, uint32_t op)
{
    uint64_t times = 1;
    for (uint32_t i = 0; i < line->n_revoked; i++)
        if (line->revoked[i].op == op)
            times += line->revoked[i].came - (uint64_t)line->revoked[i].put_off;
    return times;
}

void ms_traffic_add(const ms_timeline *line, ms_report *report)
{
    const ms_plan *plan = line->plan;
    report->ranks[0].h2d_bytes += line->pages.h2d_bytes;
    report->ranks[0].d2h_bytes += line->pages.d2h_bytes;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        const struct ms_transfer *it = &plan->transfers[i];
        add_transfer(it, times_moved(line, it->op),
                     &report->ranks[plan->op[it->op].rank]);
    }
}
