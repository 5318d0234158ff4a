/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static plans as text, JSON and CSV. */

#include "tools/cli/alloc/alloc_arena.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <string.h>

#define SPEC_COLUMNS 40

ms_alloc_order ms_alloc_plans_order(uint32_t order)
{
    static const ms_alloc_order ours[] = {
        {"objects", "buffers share whole objects, each the free one nearest "
                    "in size (TensorFlow Lite on GPUs)"},
        {"objects-flow", "the same, by the cheapest assignment (min-cost "
                         "flow)"},
        {"best", "the lowest plan of the rules above but objects"},
        {"exact", "search for the lowest plan, from that one down"},
    };
    return order >= MS_PLACEMENT_N_RULES
               ? ours[order - MS_PLACEMENT_N_RULES]
               : (ms_alloc_order){ms_placement_rows[order].name,
                                  ms_placement_rows[order].help};
}

static bool is_proven(const ms_alloc_plan *plan)
{
    return plan->floor_bytes >=
           (plan->offsets != NULL ? plan->height : plan->capacity_bytes + 1);
}

static const char *maker(const ms_alloc_plan *plan)
{
    return plan->offsets == NULL ? NULL : ms_alloc_plans_order(plan->by).name;
}

static void put_verdict(const ms_alloc_arena *run, const ms_alloc_plan *plan,
                        ms_text *text)
{
    if (is_proven(plan))
        ms_text_add(text, "  %s",
                    plan->offsets != NULL ? "none is lower"
                                          : "there is no such plan");
    else if (plan->offsets == NULL)
        ms_text_add(text, "  none found");
    else if (plan->floor_bytes > run->bound_bytes)
        ms_text_add(text, "  none is below %s",
                    ms_quantity_size(plan->floor_bytes).s);
    if (plan->n_steps > 0)
        ms_text_add(text, " (%s step%s)", ms_quantity_count(plan->n_steps).s,
                    plan->n_steps == 1 ? "" : "s");
}

static void put_plan(const ms_alloc_arena *run, const ms_alloc_plan *plan,
                     const ms_style *style, ms_text *text)
{
    char safe[256], over[40] = "";
    const char *by = maker(plan);
    ms_text_add(text, "  %-*s", SPEC_COLUMNS,
                ms_screen_safe(plan->spec, safe, sizeof safe));
    if (plan->offsets != NULL && run->bound_bytes > 0)
        snprintf(over, sizeof over, "+%.2f %%",
                 100 * ((double)plan->height / (double)run->bound_bytes - 1));
    ms_text_put(text, style->strong, strlen(style->strong));
    ms_screen_right(text, 14,
                    by != NULL ? ms_quantity_size(plan->height).s : "-");
    ms_text_put(text, style->plain, strlen(style->plain));
    ms_screen_right(text, 12, over);
    if (plan->order >= MS_ALLOC_BEST && by != NULL)
        ms_text_add(text, "  by %s", by);
    put_verdict(run, plan, text);
    ms_text_put(text, "\n", 1);
}

void ms_alloc_plans_text(const ms_alloc_arena *run, const ms_style *style,
                         ms_text *text)
{
    char safe[256];
    ms_text_add(text, "%s%s: %s buffers%s\n\n", style->strong,
                ms_screen_safe(run->name, safe, sizeof safe),
                ms_quantity_count(run->list.n).s, style->plain);
    ms_text_add(text, "  %-*s", SPEC_COLUMNS, "most live bytes, the bound");
    ms_screen_right(text, 14, ms_quantity_size(run->bound_bytes).s);
    ms_text_put(text, "\n", 1);
    for (uint32_t i = 0; i < run->n_plans; i++)
        put_plan(run, &run->plans[i], style, text);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_json(const ms_alloc_plan *plan, ms_text *text)
{
    const char *by = maker(plan);
    ms_text_add(text, "    {\"allocator\": ");
    ms_text_json(text, plan->spec);
    ms_text_add(text, ", \"order\": ");
    ms_text_json(text, ms_alloc_plans_order(plan->order).name);
    ms_text_add(text, ", \"rule\": ");
    if (by != NULL)
        ms_text_json(text, by);
    else
        ms_text_add(text, "null");
    ms_text_add(text, ", \"arena_bytes\": ");
    if (by != NULL)
        ms_text_u64(text, plan->height);
    else
        ms_text_add(text, "null");
    ms_text_add(text, ", \"lower_bound_bytes\": ");
    ms_text_u64(text, plan->floor_bytes);
    ms_text_add(text, ", \"proven\": %s, \"steps\": ",
                is_proven(plan) ? "true" : "false");
    ms_text_u64(text, plan->n_steps);
    ms_text_add(text, "}");
}

void ms_alloc_plans_json(const ms_alloc_arena *run, ms_text *text)
{
    ms_text_add(text, "{\"schema_version\": 1, \"memsim\": \"%s\"", MS_VERSION);
    ms_text_add(text, ", \"trace\": ");
    ms_text_json(text, run->name);
    ms_text_add(text, ", \"buffers\": ");
    ms_text_u64(text, run->list.n);
    ms_text_add(text, ", \"bound_bytes\": ");
    ms_text_u64(text, run->bound_bytes);
    ms_text_add(text, ",\n \"allocators\": [\n");
    for (uint32_t i = 0; i < run->n_plans; i++) {
        put_json(&run->plans[i], text);
        ms_text_add(text, "%s\n", i + 1 < run->n_plans ? "," : "");
    }
    ms_text_add(text, " ]}\n");
}

/* ---- CSV ----------------------------------------------------------------- */

/* As minimalloc writes them; where there are alignments, with them. */
void ms_alloc_plans_csv(const ms_alloc_arena *run, ms_text *text)
{
    bool with_align = false;
    for (uint32_t i = 0; i < run->list.n; i++)
        with_align |= run->list.buffers[i].align > 1;
    ms_text_add(text, "id,lower,upper,size,%soffset\n",
                with_align ? "alignment," : "");
    for (uint32_t i = 0; i < run->list.n; i++) {
        const ms_placement_buffer *b = &run->list.buffers[i];
        const uint64_t row[] = {b->lower, b->upper, b->bytes, b->align,
                                run->plans[0].offsets[i]};
        ms_text_add(text, "%s", run->list.ids[i]);
        for (uint32_t k = 0; k < 5; k++) {
            if (k == 3 && !with_align)
                continue;
            ms_text_put(text, ",", 1);
            ms_text_u64(text, row[k]);
        }
        ms_text_put(text, "\n", 1);
    }
}
