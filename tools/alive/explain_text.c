/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Instants and groups of tensors, as text and as JSON. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/textlines.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOP 12u /* groups that the text shows */

ms_err ms_explain_text_top(const ms_arguments *arguments, uint32_t *top,
                           ms_fault *fault)
{
    const char *value = ms_options_value(arguments, MS_OPTION_TOP);
    bool json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    *top = json ? MS_NONE : DEFAULT_TOP;
    if (value == NULL)
        return MS_OK;
    size_t length = strlen(value);
    if (length == 0 || length > 9 || strspn(value, "0123456789") != length)
        return ms_fail(fault, MS_EUSAGE, "--top", "e.g. --top 5; 0 for all",
                       "\"%s\" is not a number of groups", value);
    *top = (uint32_t)strtoul(value, NULL, 10);
    if (*top == 0)
        *top = MS_NONE;
    return MS_OK;
}

/* ---- text ---------------------------------------------------------------- */

void ms_explain_text_unknown(const ms_graph *graph, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_textlines_unknown(graph, &words);
    if (graph->n_unknown > 0)
        ms_textlines_put("unknown:", MS_TEXTLINES_INDENT, &words, text);
}

static void put_pass(uint8_t pass, ms_text *words)
{
    static const char *const phases[MS_N_PHASES] = {
        "forward pass", "loss", "backward pass", "optimizer step"};
    if (pass == MS_START || pass == MS_COPY)
        ms_text_add(words, ", %s", ms_names_pass[pass]);
    else
        ms_text_add(words, ", %s%s", phases[ms_names_phase_of((ms_pass)pass)],
                    pass == MS_RECOMPUTE ? " (recompute)" : "");
}

void ms_explain_text_instant(const ms_result *result, const ms_instant *instant,
                             ms_text *words)
{
    const ms_plan *plan = &result->plan;
    ms_text_add(words, "%s", ms_quantity_time(instant->t_ns).s);
    if (instant->op == MS_NONE)
        return;
    const ms_plan_op *op = &plan->op[instant->op];
    const char *layer = ms_instant_op_layer(plan, instant->op);
    put_pass(op->pass, words);
    if (result->shape.micro_batches > 1 && op->pass != MS_STEP &&
        op->pass != MS_START)
        ms_text_add(words, " of micro-batch %u", op->micro_batch);
    if (op->of != MS_NONE)
        ms_text_add(words, ", %s", ms_instant_op(plan, instant->op));
    if (layer != NULL)
        ms_text_add(words, " of %s", layer);
}

/* The bytes of each tensor, where both runs agree on that; else 0. */
static uint64_t each_bytes(const ms_group *group)
{
    uint64_t a = group->side[0].each_bytes, b = group->side[1].each_bytes;
    return a == 0 || b == 0 || a == b ? a | b : 0;
}

void ms_explain_text_name(const ms_group *group, const char *size,
                          ms_text *text)
{
    ms_text name = {.arena = text->arena};
    uint64_t bytes = each_bytes(group);
    ms_groups_name(group, &name);
    if (group->layer != NULL)
        ms_text_add(&name, ":%s", group->role);
    if (group->count > 1 && bytes > 0)
        ms_text_add(&name, ", %u x %s", group->count,
                    ms_quantity_size(bytes).s);
    else if (group->count > 1)
        ms_text_add(&name, ", %u tensors", group->count);
    const char *label = ms_arena_format(text->arena, "%11s", size);
    if (label == NULL)
        text->failed = true;
    else
        ms_textlines_put(label, MS_TEXTLINES_GROUP_INDENT, &name, text);
}

void ms_explain_text_maker(const ms_group *group, ms_text *words)
{
    ms_textlines_category(group->category, words);
    if (group->op != NULL)
        ms_text_add(words, " made by %s", group->op);
}

static const char *until(const ms_result *result)
{
    if (result->graph.keep_to_step)
        return "the step";
    return result->training.mode == 0 ? "backward" : "forward";
}

void ms_explain_text_why(const ms_result *result, const ms_group_side *side,
                         ms_text *words)
{
    ms_text layer = {.arena = words->arena};
    if (side->reader_layer != NULL)
        ms_groups_pattern(side->reader_layer, side->one_reader, &layer);
    words->failed |= layer.failed;
    ms_why_words(side->why, side->reader,
                 side->reader_layer != NULL ? layer.bytes : NULL, until(result),
                 words);
}

/* ---- JSON ---------------------------------------------------------------- */

static void json_string(const char *string, ms_text *text)
{
    if (string == NULL)
        ms_text_add(text, "null");
    else
        ms_text_json(text, string);
}

static void json_text(const ms_text *string, ms_text *text)
{
    text->failed |= string->failed;
    if (!string->failed)
        json_string(string->length > 0 ? string->bytes : NULL, text);
}

void ms_explain_text_json_instant(const ms_result *result,
                                  const ms_instant *instant, ms_text *text)
{
    const ms_plan *plan = &result->plan;
    bool some = instant->op != MS_NONE;
    uint8_t pass = some ? plan->op[instant->op].pass : (uint8_t)MS_START;
    ms_text_add(text, "{\"time_ns\": ");
    ms_text_u64(text, instant->t_ns);
    if (instant->event == MS_NONE)
        ms_text_add(text, ", \"event\": null");
    else
        ms_text_add(text, ", \"event\": %u", instant->event);
    ms_text_add(text, ", \"phase\": ");
    json_string(pass == MS_START || pass == MS_COPY
                    ? NULL
                    : ms_names_phase[ms_names_phase_of((ms_pass)pass)],
                text);
    ms_text_add(text, ", \"op\": ");
    json_string(some ? ms_instant_op(plan, instant->op) : NULL, text);
    ms_text_add(text, ", \"layer\": ");
    json_string(some ? ms_instant_op_layer(plan, instant->op) : NULL, text);
    ms_text_add(text, "}");
}

/* The length of the module's part of a parameter's name: in an op graph a
 * parameter has no layer, but "0.weight" is of module 0. */
static size_t module_length(const ms_group *group, const char *name)
{
    const char *dot = strrchr(name, '.');
    bool names = group->category == MS_PARAMETERS;
    return dot != NULL && names ? (size_t)(dot - name) : 0;
}

static void json_name(const ms_group *group, ms_text *text)
{
    ms_text name = {.arena = text->arena}, module = {.arena = text->arena};
    ms_groups_name(group, &name);
    text->failed |= name.failed;
    ms_text_add(text, ", \"layer\": ");
    if (group->layer != NULL) {
        json_text(&name, text);
        ms_text_add(text, ", \"role\": ");
        ms_text_json(text, group->role);
        return;
    }
    const char *shown = name.length > 0 ? name.bytes : "";
    size_t length = module_length(group, shown);
    ms_text_put(&module, shown, length);
    json_text(&module, text);
    ms_text_add(text, ", \"role\": ");
    ms_text_json(text, shown + length + (length > 0));
}

void ms_explain_text_json_group(const ms_group *group, ms_text *text)
{
    ms_text_add(text, "\"category\": \"%s\"",
                ms_names_category[group->category]);
    json_name(group, text);
    ms_text_add(text, ", \"op\": ");
    json_string(group->op, text);
    ms_text_add(text, ", \"count\": %u", group->count);
}

void ms_explain_text_json_why(const ms_result *result,
                              const ms_group_side *side, ms_text *text)
{
    ms_text why = {.arena = text->arena};
    ms_explain_text_why(result, side, &why);
    json_text(&why, text);
}

void ms_explain_text_json_reader(const ms_group_side *side, ms_text *text)
{
    ms_text layer = {.arena = text->arena};
    if (side->reader == NULL || !ms_why_reads(side->why)) {
        ms_text_add(text, "null");
        return;
    }
    if (side->reader_layer != NULL)
        ms_groups_pattern(side->reader_layer, side->one_reader, &layer);
    ms_text_add(text, "{\"op\": ");
    ms_text_json(text, side->reader);
    ms_text_add(text, ", \"layer\": ");
    json_text(&layer, text);
    ms_text_add(text, "}");
}
