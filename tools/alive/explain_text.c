/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Instants and groups of tensors, as text. */

#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "tools/alive/alive.h"
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
    const ms_plan *plan = result->plan;
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
static uint64_t each_bytes(const ms_alike *group)
{
    uint64_t a = group->side[0].each_bytes, b = group->side[1].each_bytes;
    return a == 0 || b == 0 || a == b ? a | b : 0;
}

void ms_explain_text_name(const ms_alike *group, const char *size,
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

void ms_explain_text_maker(const ms_alike *group, ms_text *words)
{
    ms_textlines_category(group->category, words);
    if (group->op != NULL)
        ms_text_add(words, " made by %s", group->op);
}

static const char *until(const ms_result *result)
{
    if (result->graph->keep_to_step)
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
