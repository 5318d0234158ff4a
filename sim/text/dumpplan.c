/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text form of a plan: a line per op in host issue order, below it what
 * it allocates (+) and what the host drops after it (-).
 *
 *     op 41 forward aten::addmm layer layers.3.mlp micro 0 ns 81234 wait 40
 *       + row 71 layers.3.mlp.out activations 8388608 saved
 *       - row 70
 */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"

static void put_op(const ms_plan *plan, uint32_t op, ms_text *text)
{
    const ms_graph *graph = plan->graph;
    uint32_t source = plan->op[op].of;
    ms_text_add(text, "op %u %s", op, ms_names_pass[plan->op[op].pass]);
    if (source != MS_NONE)
        ms_text_add(text, " %s", graph->op_name[source]);
    if (source != MS_NONE && graph->op_layer[source] != MS_NONE)
        ms_text_add(text, " layer %s",
                    graph->layer_name[graph->op_layer[source]]);
    if (plan->op[op].micro_batch != MS_NONE)
        ms_text_add(text, " micro %u", plan->op[op].micro_batch);
    if (plan->op[op].stream != MS_STREAM_COMPUTE)
        ms_text_add(text, " stream %s", ms_names_stream[plan->op[op].stream]);
    ms_text_add(text, " ns %llu", (unsigned long long)plan->op[op].ns);
    if (plan->wait_at == NULL)
        return;
    for (uint32_t i = plan->wait_at[op]; i < plan->wait_at[op + 1]; i++)
        ms_text_add(text, " wait %u", plan->wait[i]);
}

const char *ms_dumpplan_row_name(const ms_plan *plan, uint32_t row,
                                 char buffer[MS_STORAGE_NAME])
{
    const ms_row *it = &plan->row[row];
    if (it->storage != MS_NONE)
        return ms_graph_storage_name(plan->graph, it->storage, buffer);
    return plan->buffers != NULL ? plan->buffers[it->buffer].name : "-";
}

static void put_row(const ms_plan *plan, uint32_t row, ms_text *text)
{
    char buffer[MS_STORAGE_NAME];
    ms_text_add(text, "\n  + row %u %s %s %llu", row,
                ms_dumpplan_row_name(plan, row, buffer),
                ms_names_category[plan->row[row].category],
                (unsigned long long)plan->row[row].bytes);
    if (plan->row[row].pool != MS_DEVICE_POOL)
        ms_text_add(text, " pool %s", ms_names_pool[plan->row[row].pool]);
    if (plan->row[row].saved)
        ms_text_add(text, " saved");
}

void ms_dumpplan_write(const ms_plan *plan, ms_text *text)
{
    ms_text_add(text, "memsim-plan 1\nops %u rows %u recomputed %u\n",
                plan->n_ops, plan->n_rows, plan->recomputed_ops);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        put_op(plan, op, text);
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            put_row(plan, r, text);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            ms_text_add(text, "\n  - row %u", plan->release[i]);
        ms_text_put(text, "\n", 1);
    }
}
