/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/front/front_keys.h"

static bool has_numbers(const void *of)
{
    return ((const ms_front_row *)of)->message == NULL;
}

static bool is_above(const void *of)
{
    return ((const ms_front_row *)of)->is_above;
}

static bool is_curve(const void *of)
{
    return ((const ms_front_row *)of)->is_curve;
}

#define ROW(kind, member) MS_KEYS_AT(kind, ms_front_row, member)
static const ms_key row_rows[] = {
    MS_KEYS_TEXT("name", ROW(TEXT, name), .help = "the way to checkpoint"),
    MS_KEYS_TEXT("policy", ROW(TEXT, policy), .help = ""),
    {.name = "curve",
     .type = MS_KEY_BOOL,
     ROW(BOOL, is_curve),
     .help = "is it a point of the optimal curve, not a way of the list?"},
    MS_KEYS_TEXT("status", ROW(TEXT, status), .help = "as in run, or refused"),
    {.name = "message",
     .type = MS_KEY_TEXT,
     ROW(TEXT, message),
     .null = true,
     .help = "why it is infeasible or refused: what follows is then null"},
    MS_KEYS_COUNT("budget_bytes", ROW(U64, budget_bytes), .null = true,
                  .there = is_curve, .help = "of a point of the curve"),
    MS_KEYS_COUNT("peak_allocated_bytes", ROW(U64, peak_bytes), .null = true,
                  .there = has_numbers,
                  .help = "on the rank with the highest peak"),
    MS_KEYS_COUNT("step_ns", ROW(U64, step_ns), .null = true,
                  .there = has_numbers, .help = ""),
    MS_KEYS_COUNT("recompute_ns", ROW(U64, recompute_ns), .null = true,
                  .there = has_numbers, .help = ""),
    {.name = "foreseen_peak_bytes",
     .type = MS_KEY_COUNT,
     ROW(SOME, foreseen_peak_bytes),
     .null = true,
     .help = "what the solver's model says: of that the plan is the optimum; "
             "null: there is no solver"},
    {.name = "foreseen_step_ns",
     .type = MS_KEY_COUNT,
     ROW(SOME, foreseen_ns),
     .null = true,
     .help = "the same of time"},
    {.name = "class",
     .type = MS_KEY_TEXT,
     ROW(TEXT, best),
     .null = true,
     .help = "of which plans it is the best, as optimum.class in run"},
    {.name = "above_row",
     .type = MS_KEY_COUNT,
     ROW(SOME, against),
     .null = true,
     .help = "the row (from 1) of the curve that takes least within its peak"},
    {.name = "above_ns",
     .type = MS_KEY_INTEGER,
     ROW(I64, more_ns),
     .null = true,
     .there = is_above,
     .help = "by how much its step is longer than that row's; less than 0: the "
             "solver's plan is not the best one of the final program here"},
};
const ms_keys ms_front_keys_row = MS_KEYS_OBJECT("front_row", row_rows);

static ms_key_list rows_of(const void *of)
{
    const ms_front *front = of;
    return (ms_key_list){(void *)front->rows, front->n, sizeof *front->rows};
}

#define FRONT(kind, member) MS_KEYS_AT(kind, ms_front, member)
static const ms_key front_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", FRONT(TEXT, memsim)),
    MS_KEYS_TEXT("model", FRONT(TEXT, model)),
    MS_KEYS_TEXT("device", FRONT(TEXT, device)),
    MS_KEYS_TEXT("policy", FRONT(TEXT, policy),
                 .help = "what all rows have besides"),
    MS_KEYS_COUNT("parameters", FRONT(U64, parameters), .help = ""),
    MS_KEYS_COUNT("blocks", FRONT(U32, n_blocks),
                  .help = "that can be checkpointed"),
    MS_KEYS_COUNT("capacity_bytes", FRONT(U64, capacity_bytes), .help = ""),
    {.name = "rows",
     .type = MS_KEY_OBJECTS,
     .list = rows_of,
     .of = &ms_front_keys_row,
     .help = "the ways, then the optimal curve by peak: the best plan of the "
             "solver's model for a budget, as the final program runs it"},
};
const ms_keys ms_front_keys = MS_KEYS_OBJECT("front", front_rows);

void ms_front_keys_json(const ms_front *front, ms_text *text)
{
    ms_keys_write(&ms_front_keys, front, text);
    ms_text_add(text, "\n");
}

void ms_front_keys_csv(const ms_front *front, ms_text *text)
{
    ms_keys_plan plan;
    text->failed |=
        !ms_keys_write_plan(&ms_front_keys_row, NULL, text->arena, &plan);
    ms_keys_write_header(&plan, text);
    for (uint32_t i = 0; i < front->n; i++)
        ms_keys_write_line(&plan, &front->rows[i], text);
}
