/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/costsplit.h"
#include "sim/graph.h"

ms_err ms_costsplit_take(const ms_graph *graph, const uint32_t *layer_end,
                         uint32_t n_layers, uint32_t n, uint32_t *layers,
                         ms_fault *fault)
{
    uint32_t k = 0, unit = 0;
    double all = 0, so_far = 0;
    for (uint32_t u = 0; u < graph->n_units; u++)
        all += graph->unit_cost[u];
    for (uint32_t i = 0; i < n_layers; i++) {
        for (; unit < layer_end[i]; unit++)
            so_far += graph->unit_cost[unit];
        layers[k]++;
        k += k + 1 < n && so_far > all * ((k + 1.0) / n);
    }
    if (k + 1 == n)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "pipeline",
                   "take fewer ranks or chunks, or write layers=",
                   "%u layers and a head do not make %u stages that cost as "
                   "much each, as these kernels' framework divides a model",
                   n_layers, n);
}
