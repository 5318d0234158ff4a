/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints static plans as text, JSON and CSV. */

#include "sim/report.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/terminal/narrow.h"
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
    size_t from = text->length;
    ms_text_add(text, "  %-*s", SPEC_COLUMNS, "most bytes alive, the bound");
    ms_screen_right(text, 14, ms_quantity_size(run->bound_bytes).s);
    ms_text_put(text, "\n", 1);
    for (uint32_t i = 0; i < run->n_plans; i++)
        put_plan(run, &run->plans[i], style, text);
    ms_narrow_table(text, from);
    ms_narrow_lines(text);
}

/* ---- JSON ---------------------------------------------------------------- */

/* What JSON says of one plan, and of all plans. */
typedef struct shown_plan {
    const char *spec, *order, *rule; /* rule NULL: no plan was found */
    uint64_t arena_bytes;            /* MS_NO_LEVEL: no plan was found */
    uint64_t floor_bytes, n_steps;
    bool is_proven;
} shown_plan;

typedef struct sheet {
    const char *memsim;
    const ms_alloc_arena *run;
    shown_plan plans[MS_ALLOC_MOST_POOLS];
} sheet;

#define PLAN(kind, member) MS_KEYS_AT(kind, shown_plan, member)
static const ms_key plan_rows[] = {
    {.name = "allocator", .type = MS_KEY_TEXT, PLAN(TEXT, spec), .help = ""},
    {.name = "order", .type = MS_KEY_TEXT, PLAN(TEXT, order), .help = ""},
    {.name = "rule",
     .type = MS_KEY_TEXT,
     .null = true,
     PLAN(TEXT, rule),
     .help = "as given; its order; the rule whose plan it is"},
    {.name = "arena_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     PLAN(U64, arena_bytes),
     .help = "null where there is no plan within the capacity"},
    {.name = "lower_bound_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     PLAN(U64, floor_bytes),
     .help = "no plan is lower"},
    {.name = "proven", .type = MS_KEY_BOOL, PLAN(BOOL, is_proven), .help = ""},
    {.name = "steps",
     .type = MS_KEY_COUNT,
     PLAN(U64, n_steps),
     .help = "whether no plan is smaller; steps that the exact search took"}};
static const ms_keys plan_keys = MS_KEYS_OBJECT("plan", plan_rows);

static ms_key_list plans_of(const void *of)
{
    const sheet *all = of;
    return (ms_key_list){(void *)all->plans, all->run->n_plans,
                         sizeof *all->plans};
}

#define RUN(kind, member)                                                      \
    MS_KEYS_VIA(sheet, run), MS_KEYS_AT(kind, ms_alloc_arena, member)
static const ms_key plans_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", MS_KEYS_AT(TEXT, sheet, memsim)),
    MS_KEYS_TEXT("trace", RUN(TEXT, name)),
    {.name = "buffers", .type = MS_KEY_COUNT, RUN(U32, list.n), .help = ""},
    {.name = "bound_bytes",
     .type = MS_KEY_COUNT,
     RUN(U64, bound_bytes),
     .help = "how many there are; what is alive at once, which no arena is "
             "smaller than"},
    {.name = "allocators",
     .type = MS_KEY_OBJECTS,
     .list = plans_of,
     .of = &plan_keys,
     .line = 1,
     .element_line = 4,
     .end_line = 1,
     .help = "a plan for each --allocator arena"},
};
const ms_keys ms_alloc_plans_keys = MS_KEYS_OBJECT("plans", plans_rows);

static shown_plan show(const ms_alloc_plan *plan)
{
    const char *by = maker(plan);
    return (shown_plan){.spec = plan->spec,
                        .order = ms_alloc_plans_order(plan->order).name,
                        .rule = by,
                        .arena_bytes = by != NULL ? plan->height : MS_NO_LEVEL,
                        .floor_bytes = plan->floor_bytes,
                        .n_steps = plan->n_steps,
                        .is_proven = is_proven(plan)};
}

void ms_alloc_plans_json(const ms_alloc_arena *run, ms_text *text)
{
    sheet all = {.memsim = MS_VERSION, .run = run};
    for (uint32_t i = 0; i < run->n_plans; i++)
        all.plans[i] = show(&run->plans[i]);
    ms_keys_write(&ms_alloc_plans_keys, &all, text);
    ms_text_add(text, "\n");
}

/* ---- CSV ----------------------------------------------------------------- */

/* A buffer with its place in the plan. */
typedef struct line {
    const char *id; /* as the file spells it */
    const ms_placement_buffer *buffer;
    uint64_t offset;
    bool is_aligned; /* some buffer has an alignment */
} line;

static bool has_no_align(const void *of)
{
    return !((const line *)of)->is_aligned;
}

#define BUFFER(member)                                                         \
    MS_KEYS_VIA(line, buffer), MS_KEYS_AT(U64, ms_placement_buffer, member)
/* The columns that minimalloc writes; alignments only where there are any. */
static const ms_key line_rows[] = {
    MS_KEYS_TEXT("id", MS_KEYS_AT(JSON, line, id), .help = "of the buffer"),
    MS_KEYS_COUNT("lower", BUFFER(lower), .help = ""),
    MS_KEYS_COUNT("upper", BUFFER(upper),
                  .help = "it is alive from lower on, up to before upper"),
    MS_KEYS_COUNT("size", BUFFER(bytes), .help = "bytes"),
    MS_KEYS_COUNT("alignment", BUFFER(align), .left_out = has_no_align,
                  .help = "of the offset, where a buffer asks for one"),
    MS_KEYS_COUNT("offset", MS_KEYS_AT(U64, line, offset),
                  .help = "where the plan puts it, in bytes")};
const ms_keys ms_alloc_plans_line = MS_KEYS_OBJECT("buffer", line_rows);

void ms_alloc_plans_csv(const ms_alloc_arena *run, ms_text *text)
{
    const ms_placement_buffer *buffers = run->list.buffers;
    line row = {.is_aligned = false};
    ms_keys_plan plan;
    for (uint32_t i = 0; i < run->list.n; i++)
        row.is_aligned |= buffers[i].align > 1;
    text->failed |=
        !ms_keys_write_plan(&ms_alloc_plans_line, &row, text->arena, &plan);
    ms_keys_write_header(&plan, text);
    for (uint32_t i = 0; i < run->list.n; i++) {
        row.id = run->list.ids[i];
        row.buffer = &buffers[i];
        row.offset = run->plans[0].offsets[i];
        ms_keys_write_line(&plan, &row, text);
    }
}
