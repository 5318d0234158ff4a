/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matches tensors of two runs of a model: by the layer, the role, the op that
 * makes the tensor, and its place among what that op makes. Tensors that are
 * there from the start can agree in all of these, and each micro-batch makes
 * its own: such tensors are counted together. */

#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "tools/alive/alive.h"
#include "tools/job/result.h"

#include <stdlib.h>
#include <string.h>

static ms_match match_of(const ms_plan *plan, uint32_t row)
{
    const ms_graph *graph = plan->graph;
    const ms_row *it = &plan->row[row];
    uint32_t of = plan->op[it->op].of;
    const char *layer = ms_alive_layer(graph, it->storage);
    ms_match match = {
        .layer = layer != NULL ? layer : "",
        .role = it->storage == MS_NONE ? "" : graph->storage_name[it->storage],
        .op = "",
        .pass = MS_START,
        .first = {MS_NONE, MS_NONE}};
    if (of != MS_NONE) {
        match.op = graph->op_name[of];
        match.pass = graph->op_pass[of];
        match.ordinal = row - plan->op[it->op].alloc_at;
    }
    return match;
}

static int by_name(const void *a, const void *b)
{
    const ms_match *x = a, *y = b;
    int order = strcmp(x->layer, y->layer);
    if (order == 0)
        order = strcmp(x->role, y->role);
    if (order == 0)
        order = strcmp(x->op, y->op);
    if (order == 0 && x->pass != y->pass)
        order = x->pass < y->pass ? -1 : 1;
    if (order == 0 && x->ordinal != y->ordinal)
        order = x->ordinal < y->ordinal ? -1 : 1;
    return order;
}

ms_match *ms_match_find(const ms_matches *all, const ms_plan *plan,
                        uint32_t row)
{
    ms_match wanted = match_of(plan, row);
    return bsearch(&wanted, all->rows, all->n, sizeof wanted, by_name);
}

ms_err ms_match_tensors(const ms_alive *a, const ms_alive *b, ms_arena *arena,
                        ms_matches *all, ms_fault *fault)
{
    const ms_alive *runs[2] = {a, b};
    uint32_t room = a->n + (b != NULL ? b->n : 0), n = 0;
    *all = (ms_matches){
        .rows = ms_arena_take_raw(arena, room + 1, sizeof *all->rows)};
    if (all->rows == NULL)
        return ms_fail_nomem(fault);
    for (int s = 0; s < 2 && runs[s] != NULL; s++)
        for (uint32_t i = 0; i < runs[s]->n; i++)
            all->rows[n++] = match_of(runs[s]->result->plan, runs[s]->rows[i]);
    qsort(all->rows, n, sizeof *all->rows, by_name);
    for (uint32_t i = 0; i < n; i++)
        if (all->n == 0 || by_name(&all->rows[all->n - 1], &all->rows[i]) != 0)
            all->rows[all->n++] = all->rows[i];
    return MS_OK;
}
