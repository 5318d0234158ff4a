/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/measure/bylayer.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"

#include <check.h>

/* Bytes of activations before event `until`: those that autograd holds, and
 * those that only closures hold. */
static void sum_alive(const ms_timeline *line, uint16_t rank, uint32_t until,
                      uint64_t *saved_bytes, uint64_t *held_bytes)
{
    const ms_plan *plan = line->plan;
    *saved_bytes = *held_bytes = 0;
    for (uint32_t e = 0; e < until; e++) {
        const ms_row *row = &plan->row[line->events[e].row];
        uint64_t *sum = row->saved ? saved_bytes : held_bytes;
        if (row->category != MS_ACTIVATIONS || row->pool != MS_DEVICE_POOL ||
            plan->op[row->op].rank != rank || row->storage == MS_NONE ||
            plan->graph->storage_maker[row->storage] == MS_NONE)
            continue;
        *sum += line->events[e].op_act & 1u ? row->bytes : 0 - row->bytes;
    }
}

void laws_check_layers(const ms_timeline *line, const ms_report *report,
                       ms_arena *arena)
{
    for (uint16_t r = 0; r < report->n_ranks; r++) {
        const ms_rank_report *rank = &report->ranks[r];
        ms_layer_use *layers, all = {0};
        ms_fault fault = {0};
        uint32_t n, until = ms_timeline_until(line, r, MS_MARK_AFTER_FORWARD);
        uint64_t saved_bytes, held_bytes;
        LAW(ms_bylayer_measure(line, r, arena, &layers, &n, &fault) == MS_OK);
        for (uint32_t i = 0; i < n; i++) {
            all.saved_bytes += layers[i].saved_bytes;
            all.forward_ns += layers[i].forward_ns;
            all.recompute_ns += layers[i].recompute_ns;
        }
        LAW(all.forward_ns == rank->time.forward_ns);
        LAW(all.recompute_ns == rank->time.recompute_ns);
        if (until == MS_NONE)
            continue;
        sum_alive(line, r, until, &saved_bytes, &held_bytes);
        LAW(saved_bytes == rank->saved_for_backward_bytes);
        LAW(all.saved_bytes == saved_bytes + held_bytes);
    }
}
