/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>
#include <string.h>

#include "plots/plots.h"
#include "sim/graph.h"
#include "sim/measure/recomputed.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* By RFC 4180 a field with a comma, a quote or a line break is put in quotes,
 * and quotes in it are doubled.  Lines end in \n, as every reader accepts and
 * line tools expect. */
void ms_table_field(ms_text *text, const char *field)
{
    if (field == NULL)
        return;
    if (strpbrk(field, ",\"\r\n") == NULL) {
        ms_text_put(text, field, strlen(field));
        return;
    }
    ms_text_put(text, "\"", 1);
    for (const char *quote; (quote = strchr(field, '"')) != NULL;) {
        ms_text_put(text, field, (size_t)(quote - field) + 1);
        ms_text_put(text, "\"", 1);
        field = quote + 1;
    }
    ms_text_put(text, field, strlen(field));
    ms_text_put(text, "\"", 1);
}

static void put_name(ms_text *text, const char *field)
{
    ms_text_put(text, ",", 1);
    ms_table_field(text, field);
}

static void put_number(ms_text *text, uint64_t value)
{
    ms_text_put(text, ",", 1);
    ms_text_u64(text, value);
}

static void put_op(ms_text *text, const ms_plan *plan, uint32_t op)
{
    const ms_graph *graph = plan->graph;
    uint32_t model_op = plan->op[op].of;
    const char *pass = ms_names_pass[plan->op[op].pass];
    const char *name = pass, *layer = NULL;
    if (model_op != MS_NONE) {
        name = graph->op_name[model_op];
        if (graph->op_layer[model_op] != MS_NONE)
            layer = graph->layer_name[graph->op_layer[model_op]];
    }
    put_name(text, name);
    put_name(text, pass);
    put_name(text, layer);
    if (plan->op[op].micro_batch != MS_NONE)
        put_number(text, plan->op[op].micro_batch);
    else
        ms_text_put(text, ",", 1);
}

static void put_row(ms_text *text, const ms_plan *plan, uint32_t row)
{
    char name[MS_STORAGE_NAME];
    put_name(text, ms_dumpplan_row_name(plan, row, name));
    put_name(text, ms_names_category[plan->row[row].category]);
    put_number(text, plan->row[row].bytes);
}

ms_err ms_table_csv(const ms_timeline *line, ms_text *text, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    ms_recomputed so_far = {.line = line};
    uint64_t level = 0, again_ns, again_flops;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    ms_text_add(text, "event,t_ns,op,pass,layer,micro_batch,action,storage,"
                      "category,bytes,allocated_bytes,recompute_ns,"
                      "recompute_flops\n");
    for (uint32_t i = 0; i < line->n_events && !text->failed; i++) {
        const ms_event *event = ms_timeline_next(&walk);
        uint32_t row = event->row;
        bool allocates = (event->op_act & 1u) != 0;
        if (plan->row[row].pool == MS_DEVICE_POOL &&
            plan->op[plan->row[row].op].rank == 0) {
            /* The level of the device of rank 0; unsigned arithmetic wraps, so
             * 0 - bytes subtracts. */
            assert(allocates || level >= plan->row[row].bytes);
            level +=
                allocates ? plan->row[row].bytes : 0 - plan->row[row].bytes;
        }
        ms_text_u64(text, i);
        put_number(text, event->t_ns);
        put_op(text, plan, event->op_act >> 1);
        put_name(text, allocates ? "alloc" : "free");
        put_row(text, plan, row);
        put_number(text, level);
        ms_recomputed_until(&so_far, event->t_ns, &again_ns, &again_flops);
        put_number(text, again_ns);
        put_number(text, again_flops);
        ms_text_put(text, "\n", 1);
    }
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
