/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/measure/linkbytes.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"

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

void ms_linkbytes_add(const ms_waits *waits, ms_report *report)
{
    const ms_timeline *line = waits->line;
    const ms_plan *plan = line->plan;
    report->ranks[0].links[MS_LINK_H2D].bytes += line->pages.h2d_bytes;
    report->ranks[0].links[MS_LINK_D2H].bytes += line->pages.d2h_bytes;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        const struct ms_transfer *it = &plan->transfers[i];
        ms_rank_report *out = &report->ranks[plan->op[it->op].rank];
        ms_link_use *use = &out->links[ms_waits_link(waits, it->op)];
        uint64_t times = times_moved(line, it->op);
        use->bytes += it->bytes * times;
        use->network_bytes += it->network_bytes * times;
        if (it->kind < MS_TRANSFER_GATHER)
            continue;
        uint32_t group =
            it->group < MS_N_GROUP_ROLES ? it->group : MS_N_GROUP_ROLES;
        out->group_bytes[group] += it->bytes * times;
    }
}
