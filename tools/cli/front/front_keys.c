/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/front/front_keys.h"
#include "graphs/json/json.h"
#include "tools/results/results.h"

#include <math.h>

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

#define MUST MS_KEYS_MUST
#define SKIP MS_KEYS_SKIP
#define ROW(kind, member) MS_KEYS_AT(kind, ms_front_row, member)
static const ms_key row_rows[] = {
    MS_KEYS_TEXT("name", ROW(TEXT, name), MUST,
                 .help = "the way to checkpoint"),
    MS_KEYS_TEXT("policy", ROW(TEXT, policy), SKIP, .help = ""),
    {.name = "curve",
     .type = MS_KEY_BOOL,
     ROW(BOOL, is_curve),
     MUST,
     .help = "is it a point of the optimal curve, not a way of the list?"},
    MS_KEYS_TEXT("status", ROW(TEXT, status), SKIP,
                 .help = "as in run, or refused"),
    {.name = "message",
     .type = MS_KEY_TEXT,
     ROW(TEXT, message),
     MUST,
     .null = true,
     .help = "why it is infeasible or refused: what follows is then null"},
    MS_KEYS_COUNT("budget_bytes", ROW(U64, budget_bytes), SKIP, .null = true,
                  .there = is_curve, .help = "of a point of the curve"),
    MS_KEYS_COUNT("peak_allocated_bytes", ROW(U64, peak_bytes), MUST,
                  .null = true, .there = has_numbers,
                  .help = "on the rank with the highest peak"),
    MS_KEYS_COUNT("step_ns", ROW(U64, step_ns), MUST, .null = true,
                  .there = has_numbers, .help = ""),
    MS_KEYS_COUNT("recompute_ns", ROW(U64, recompute_ns), SKIP, .null = true,
                  .there = has_numbers, .help = ""),
    {.name = "foreseen_peak_bytes",
     .type = MS_KEY_COUNT,
     ROW(SOME, foreseen_peak_bytes),
     SKIP,
     .null = true,
     .help = "what the solver's model says: of that the plan is the optimum; "
             "null: there is no solver"},
    {.name = "foreseen_step_ns",
     .type = MS_KEY_COUNT,
     ROW(SOME, foreseen_ns),
     SKIP,
     .null = true,
     .help = "the same of time"},
    {.name = "above_row",
     .type = MS_KEY_COUNT,
     ROW(SOME, against),
     SKIP,
     .null = true,
     .help = "the row (from 1) of the curve that takes least within its peak"},
    {.name = "above_ns",
     .type = MS_KEY_INTEGER,
     ROW(I64, more_ns),
     SKIP,
     .null = true,
     .there = is_above,
     .help = "by how much its step is longer than that row's; less than 0: the "
             "solver's plan is not the best one of the final program here"},
    {.name = "class",
     .type = MS_KEY_TEXT,
     ROW(TEXT, best),
     SKIP,
     .null = true,
     .help = "of which plans it is the best, as optimum.class in run"},
    MS_KEYS_TEXT("family", ROW(TEXT, family), MUST,
                 .help = "what its sign in the figure is of"),
};
const ms_keys ms_front_keys_row =
    MS_KEYS_STRUCT("front_row", row_rows, ms_front_row);

static ms_key_list rows_of(const void *of)
{
    const ms_front *front = of;
    return (ms_key_list){(void *)front->rows, front->n, sizeof *front->rows};
}

static ms_err rows_room(const ms_values *values, uint32_t value, void *of)
{
    ms_front *front = of;
    front->n = values->json->nodes[value].value.n;
    if (front->n > 0 && front->n <= MS_FRONT_MOST)
        return MS_OK;
    return ms_json_fail(values->json, value, values->fault, NULL,
                        "there are 1 to %u rows, not %u", MS_FRONT_MOST,
                        front->n);
}

static ms_err close_front(const ms_values *values, uint32_t object, void *of)
{
    const ms_front *front = of;
    bool good = front->work > 0 && front->work < HUGE_VAL;
    uint32_t known = 0;
    for (uint32_t i = 0; i < front->n; i++) {
        const ms_front_row *row = &front->rows[i];
        good &= row->message != NULL ||
                (row->step_ns > 0 && row->step_ns != MS_NO_LEVEL &&
                 row->peak_bytes > 0 && row->peak_bytes != MS_NO_LEVEL);
        known += row->message == NULL;
    }
    if (good && known > 0)
        return MS_OK;
    return ms_json_fail(values->json, object, values->fault,
                        "was the file edited?",
                        known == 0 ? "no row has a result"
                                   : "a row without a message has a peak and a "
                                     "time, and a step has work to do");
}

#define FRONT(kind, member) MS_KEYS_AT(kind, ms_front, member)
static const ms_key front_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", FRONT(TEXT, memsim), SKIP),
    MS_KEYS_TEXT("model", FRONT(TEXT, model), MUST),
    MS_KEYS_TEXT("device", FRONT(TEXT, device), MUST),
    MS_KEYS_TEXT("policy", FRONT(TEXT, policy), MUST,
                 .help = "what all rows have besides"),
    MS_KEYS_COUNT("parameters", FRONT(U64, parameters), MUST, .help = ""),
    MS_KEYS_COUNT("blocks", FRONT(U32, n_blocks), MUST,
                  .help = "that can be checkpointed; 0: measured nodes"),
    MS_KEYS_COUNT("capacity_bytes", FRONT(U64, capacity_bytes), MUST,
                  .help = ""),
    MS_KEYS_COUNT("usable_bytes", FRONT(U64, usable_bytes), MUST,
                  .help = "of it: less the context"),
    MS_KEYS_COUNT("gpus", FRONT(U32, gpus), MUST, .optional = true,
                  .help = "of the job"),
    {.name = "work",
     .type = MS_KEY_NUMBER,
     FRONT(FLOPS, work),
     MUST,
     .help = "of a step: tokens, or samples"},
    {.name = "tokens",
     .type = MS_KEY_BOOL,
     FRONT(BOOL, has_tokens),
     MUST,
     .help = "is work in tokens?"},
    MS_KEYS_TEXT("setup", FRONT(TEXT, setup), MUST,
                 .help = "the step in the words of a figure"),
    MS_KEYS_TEXT("device_words", FRONT(TEXT, device_words), MUST,
                 .optional = true, .help = "the device likewise"),
    {.name = "rows",
     .type = MS_KEY_OBJECTS,
     .list = rows_of,
     .of = &ms_front_keys_row,
     MUST,
     .room = rows_room,
     .help = "the ways, then the optimal curve by peak: the best plan of the "
             "solver's model for a budget, as the final program runs it"},
};
const ms_keys ms_front_keys = {
    .name = "front",
    .rows = front_rows,
    .n = sizeof front_rows / sizeof *front_rows,
    .close = close_front,
};

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

ms_err ms_front_keys_are(const ms_quote *text, ms_arena *scratch, bool *are,
                         ms_fault *fault)
{
    ms_quote source = *text;
    ms_fault own = {0};
    ms_json json;
    uint32_t line = 1;
    ms_err err = ms_json_next(&source, &line, scratch, &json, &own);
    *are = err == MS_OK &&
           ms_json_find(&json, 0, "schema_version") != MS_NONE &&
           ms_json_find(&json, 0, "blocks") != MS_NONE &&
           ms_json_find(&json, 0, "rows") != MS_NONE;
    return ms_fail_but_refusal(err, &own, fault);
}

ms_err ms_front_keys_read(const ms_quote *text, ms_arena *arena,
                          ms_front *front, ms_fault *fault)
{
    ms_quote source = *text;
    ms_json json;
    ms_values values = {&json, arena, fault};
    uint32_t line = 1;
    *front = (ms_front){0};
    MS_TRY(ms_json_next(&source, &line, arena, &json, fault));
    MS_TRY(ms_results_version(&values, 0));
    return ms_keys_read(&values, 0, &ms_front_keys, front);
}
