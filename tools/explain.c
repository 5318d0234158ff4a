/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim explain: who is alive at an instant, why, what would remove it. */

#include "tools/explain.h"

#include <stdlib.h>
#include <string.h>

#define INDENT 10u      /* of the texts that follow a label */
#define WHY_INDENT 13u  /* of the lines under a group */
#define DEFAULT_TOP 12u /* groups in the text */

typedef struct explain {
    const ms_hall *hall;
    const ms_style *style;
    ms_job job;
    ms_result result;
    const char *policy; /* canonical spelling */
    const char *at;     /* as given, or NULL */
    uint32_t top;       /* MS_NONE: all */
    ms_instant instant;
    uint32_t *rows, n_rows;
    ms_fate *fates;
    ms_alive_group *groups;
    uint32_t *group_of; /* per row */
    uint32_t n_groups;
    ms_remedy *remedies;
    uint32_t n_remedies;
} explain;

/* ---- from the job to groups ---------------------------------------------- */

static ms_err read_top(const ms_arguments *arguments, uint32_t *top,
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

static const char *op_name(const ms_plan *plan, uint32_t op)
{
    uint32_t of = plan->op[op].of;
    return of == MS_NONE ? ms_names_pass[plan->op[op].pass]
                         : plan->graph->op_name[of];
}

static const char *op_layer(const ms_plan *plan, uint32_t op)
{
    uint32_t of = plan->op[op].of;
    if (of == MS_NONE || plan->graph->op_layer[of] == MS_NONE)
        return NULL;
    const char *name = plan->graph->layer_name[plan->graph->op_layer[of]];
    return *name != '\0' ? name : NULL; /* an op graph's outermost module */
}

/* What is there for the whole step is one group, whatever the sizes. */
static bool is_lasting(uint8_t why)
{
    return why <= MS_WHY_GRAD_MORE;
}

static ms_alive_group group_of_one(const explain *x, uint32_t i)
{
    const ms_plan *plan = &x->result.plan;
    const ms_row *row = &plan->row[x->rows[i]];
    uint8_t pass = plan->op[row->op].pass;
    uint32_t reader = x->fates[i].reader;
    ms_alive_group group = {.layer = ms_alive_layer(plan->graph, row->storage),
                            .role =
                                row->storage == MS_NONE
                                    ? "copy"
                                    : plan->graph->storage_name[row->storage],
                            .category = row->category,
                            .bytes = row->bytes,
                            .why = x->fates[i].why,
                            .member = i};
    if (!is_lasting(group.why))
        group.each_bytes = row->bytes;
    if (pass != MS_START && pass != MS_COPY)
        group.op = op_name(plan, row->op);
    if (reader != MS_NONE) {
        group.reader = op_name(plan, reader);
        group.reader_layer = op_layer(plan, reader);
    }
    return group;
}

static ms_err make_groups(explain *x, ms_arena *arena, ms_fault *fault)
{
    uint32_t *leader = ms_arena_take(arena, x->n_rows + 1, sizeof *leader);
    uint32_t *index = ms_arena_take(arena, x->n_rows + 1, sizeof *index);
    x->group_of = ms_arena_take(arena, x->n_rows + 1, sizeof *x->group_of);
    x->groups = ms_arena_take(arena, x->n_rows + 1, sizeof *x->groups);
    if (leader == NULL || index == NULL || x->group_of == NULL ||
        x->groups == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < x->n_rows; i++)
        x->groups[i] = group_of_one(x, i);
    x->n_groups = ms_alive_merge(x->groups, x->n_rows, leader);
    for (uint32_t g = 0; g < x->n_groups; g++)
        index[x->groups[g].member] = g;
    for (uint32_t i = 0; i < x->n_rows; i++)
        x->group_of[i] = index[leader[i]];
    return MS_OK;
}

static ms_err look(explain *x, ms_fault *fault)
{
    ms_arena *arena = x->hall->trial;
    const ms_result *result = &x->result;
    MS_TRY(ms_instant_find(result, x->at, arena, &x->instant, fault));
    if (x->instant.event != MS_NONE)
        MS_TRY(ms_timeline_alive(&result->line, x->instant.event,
                                 result->report.worst, arena, &x->rows,
                                 &x->n_rows, fault));
    MS_TRY(ms_why_find(result, &x->instant, x->rows, x->n_rows, arena,
                       &x->fates, fault));
    MS_TRY(make_groups(x, arena, fault));
    ms_remedy_task task = {.job = &x->job,
                           .result = result,
                           .instant = &x->instant,
                           .rows = x->rows,
                           .group_of = x->group_of,
                           .n_rows = x->n_rows,
                           .n_groups = x->n_groups,
                           .groups = x->groups};
    return ms_remedy_find(&task, arena, &x->remedies, &x->n_remedies, fault);
}

/* ---- pieces of both outputs ---------------------------------------------- */

static const char *until(const explain *x)
{
    if (x->result.graph.keep_to_step)
        return "the step";
    return x->result.training.mode == 0 ? "backward" : "forward";
}

static void put_reader_layer(const ms_alive_group *group, ms_text *text)
{
    ms_alive_pattern(group->reader_layer, group->one_reader, text);
}

/* Why, with the reader's layer as a pattern. */
static void put_why(const explain *x, const ms_alive_group *group,
                    ms_text *text)
{
    ms_text layer = {.arena = text->arena};
    if (group->reader_layer != NULL)
        put_reader_layer(group, &layer);
    text->failed |= layer.failed;
    ms_why_words(group->why, group->reader,
                 group->reader_layer != NULL ? layer.bytes : NULL, until(x),
                 text);
}

/* ---- text ---------------------------------------------------------------- */

/* What comes from a file is made safe to show. */
static void put_filled(const char *label, uint32_t indent, const ms_text *words,
                       ms_text *text)
{
    char *safe = words->failed
                     ? NULL
                     : ms_arena_take(text->arena, words->length + 1u, 1);
    if (safe == NULL) {
        text->failed = true;
        return;
    }
    ms_screen_safe(words->length > 0 ? words->bytes : "", safe,
                   words->length + 1u);
    ms_screen_fill(text, indent, label, safe);
}

static void model_lines(const explain *x, ms_text *text)
{
    ms_text model = {.arena = text->arena}, policy = {.arena = text->arena};
    ms_text_add(&model, "%s, %s parameters, ", x->result.model.name,
                ms_quantity_count(x->result.graph.parameters).s);
    ms_summary_setup(&x->result, "x", &model);
    ms_text_add(text, "%s", x->style->strong);
    put_filled("model:", INDENT, &model, text);
    ms_text_add(text, "%s", x->style->plain);
    ms_text_add(&policy, "%s on %s", x->policy, x->job.device->name);
    put_filled("policy:", INDENT, &policy, text);
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

static void at_line(const explain *x, ms_text *text)
{
    const ms_plan *plan = &x->result.plan;
    const ms_instant *at = &x->instant;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "%s", ms_quantity_time(at->t_ns).s);
    if (at->op != MS_NONE) {
        const ms_plan_op *op = &plan->op[at->op];
        const char *layer = op_layer(plan, at->op);
        put_pass(op->pass, &words);
        if (x->result.shape.micro_batches > 1 && op->pass != MS_STEP &&
            op->pass != MS_START)
            ms_text_add(&words, " of micro-batch %u", op->micro_batch);
        if (op->of != MS_NONE)
            ms_text_add(&words, ", %s", op_name(plan, at->op));
        if (layer != NULL)
            ms_text_add(&words, " of %s", layer);
    }
    if (x->at == NULL)
        ms_text_add(&words, " (the peak)");
    put_filled("at:", INDENT, &words, text);
}

static void sum_categories(const explain *x, uint64_t *bytes)
{
    memset(bytes, 0, MS_N_CATEGORIES * sizeof *bytes);
    for (uint32_t i = 0; i < x->n_groups; i++)
        bytes[x->groups[i].category] += x->groups[i].bytes;
}

/* The categories, largest first. */
static void alive_line(const explain *x, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    uint64_t bytes[MS_N_CATEGORIES];
    const char *between = ": ";
    sum_categories(x, bytes);
    ms_text_add(&words, "%s", ms_quantity_size(x->instant.bytes).s);
    for (;;) {
        uint32_t top = 0;
        for (uint32_t c = 1; c < MS_N_CATEGORIES; c++)
            if (bytes[c] > bytes[top])
                top = c;
        if (bytes[top] == 0)
            break;
        ms_text_add(&words, "%s", between);
        ms_summary_category((uint8_t)top, &words);
        ms_text_add(&words, " %s",
                    ms_quantity_size_as(bytes[top], x->instant.bytes).s);
        bytes[top] = 0;
        between = ", ";
    }
    ms_text_add(text, "%s", x->style->strong);
    put_filled("alive:", INDENT, &words, text);
    ms_text_add(text, "%s", x->style->plain);
}

static void put_remedies(const explain *x, uint32_t g, ms_text *words)
{
    const char *before = "; less with ";
    for (uint32_t i = 0; i < x->n_remedies; i++) {
        if (!x->remedies[i].helps[g])
            continue;
        ms_text_add(words, "%s%s", before, x->remedies[i].words);
        before = ", ";
    }
}

/* "216.02 GiB  layers.0-95.mlp.up:sqrt, 96 x 2.25 GiB". */
static void name_line(const ms_alive_group *group, ms_text *text)
{
    ms_text name = {.arena = text->arena};
    ms_alive_name(group, &name);
    if (group->layer != NULL)
        ms_text_add(&name, ":%s", group->role);
    if (group->count > 1 && group->each_bytes > 0)
        ms_text_add(&name, ", %u x %s", group->count,
                    ms_quantity_size(group->each_bytes).s);
    else if (group->count > 1)
        ms_text_add(&name, ", %u tensors", group->count);
    const char *size =
        ms_arena_format(text->arena, "%11s", ms_quantity_size(group->bytes).s);
    if (size == NULL)
        text->failed = true;
    else
        put_filled(size, WHY_INDENT, &name, text);
}

static void put_group(const explain *x, uint32_t g, ms_text *text)
{
    const ms_alive_group *group = &x->groups[g];
    ms_text words = {.arena = text->arena};
    name_line(group, text);
    if (!is_lasting(group->why)) {
        ms_summary_category(group->category, &words);
        ms_text_add(&words, "%s%s; ", group->op != NULL ? " made by " : "",
                    group->op != NULL ? group->op : "");
    }
    put_why(x, group, &words);
    put_remedies(x, g, &words);
    ms_text_add(text, "%s", x->style->faint);
    put_filled("", WHY_INDENT, &words, text);
    ms_text_add(text, "%s", x->style->plain);
}

static void rest_line(const explain *x, ms_text *text)
{
    uint64_t bytes = 0;
    if (x->top >= x->n_groups)
        return;
    for (uint32_t g = x->top; g < x->n_groups; g++)
        bytes += x->groups[g].bytes;
    ms_text_add(text, "%11s  in %u more groups (--top 0 lists all)\n",
                ms_quantity_size(bytes).s, x->n_groups - x->top);
}

static void write_text(const explain *x, ms_text *text)
{
    model_lines(x, text);
    at_line(x, text);
    alive_line(x, text);
    ms_text_add(text, "\n");
    for (uint32_t g = 0; g < x->n_groups && g < x->top; g++)
        put_group(x, g, text);
    rest_line(x, text);
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

static void json_at(const explain *x, ms_text *text)
{
    const ms_plan *plan = &x->result.plan;
    const ms_instant *at = &x->instant;
    bool some = at->op != MS_NONE;
    uint8_t pass = some ? plan->op[at->op].pass : (uint8_t)MS_START;
    ms_text_add(text, "{\"time_ns\": ");
    ms_text_u64(text, at->t_ns);
    if (at->event == MS_NONE)
        ms_text_add(text, ", \"event\": null");
    else
        ms_text_add(text, ", \"event\": %u", at->event);
    ms_text_add(text, ", \"phase\": ");
    json_string(pass == MS_START || pass == MS_COPY
                    ? NULL
                    : ms_names_phase[ms_names_phase_of((ms_pass)pass)],
                text);
    ms_text_add(text, ", \"op\": ");
    json_string(some ? op_name(plan, at->op) : NULL, text);
    ms_text_add(text, ", \"layer\": ");
    json_string(some ? op_layer(plan, at->op) : NULL, text);
    ms_text_add(text, "}");
}

static void json_reader(const ms_alive_group *group, ms_text *text)
{
    ms_text layer = {.arena = text->arena};
    ms_text_add(text, ", \"next_reader\": ");
    if (group->reader == NULL || !ms_why_reads(group->why)) {
        ms_text_add(text, "null");
        return;
    }
    if (group->reader_layer != NULL)
        put_reader_layer(group, &layer);
    ms_text_add(text, "{\"op\": ");
    ms_text_json(text, group->reader);
    ms_text_add(text, ", \"layer\": ");
    json_text(&layer, text);
    ms_text_add(text, "}");
}

/* A parameter of an op graph has no layer, but "0.weight" names one. */
static size_t module_length(const ms_alive_group *group, const char *name)
{
    const char *dot = strrchr(name, '.');
    bool names = group->why == MS_WHY_PARAMETER || group->why == MS_WHY_BUFFER;
    return dot != NULL && names ? (size_t)(dot - name) : 0;
}

static void json_name(const ms_alive_group *group, ms_text *text)
{
    ms_text name = {.arena = text->arena}, module = {.arena = text->arena};
    ms_alive_name(group, &name);
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

static void json_group(const explain *x, uint32_t g, ms_text *text)
{
    const ms_alive_group *group = &x->groups[g];
    ms_text why = {.arena = text->arena};
    const char *between = "";
    ms_text_add(text, "{\"category\": \"%s\"",
                ms_names_category[group->category]);
    json_name(group, text);
    ms_text_add(text, ", \"op\": ");
    json_string(group->op, text);
    ms_text_add(text, ", \"count\": %u, \"bytes\": ", group->count);
    ms_text_u64(text, group->bytes);
    put_why(x, group, &why);
    ms_text_add(text, ", \"why\": ");
    json_text(&why, text);
    json_reader(group, text);
    ms_text_add(text, ", \"remove\": [");
    for (uint32_t i = 0; i < x->n_remedies; i++) {
        if (!x->remedies[i].helps[g])
            continue;
        ms_text_add(text, "%s", between);
        ms_text_json(text, x->remedies[i].words);
        between = ", ";
    }
    ms_text_add(text, "]}");
}

static void write_json(const explain *x, ms_text *text)
{
    ms_text_add(text, "{\"schema_version\": 1, \"memsim\": \"%s\", \"model\": ",
                MS_VERSION);
    ms_text_json(text, x->result.model.name);
    ms_text_add(text, ", \"policy\": ");
    ms_text_json(text, x->policy);
    ms_text_add(text, ", \"at\": ");
    json_at(x, text);
    ms_text_add(text, ", \"total_bytes\": ");
    ms_text_u64(text, x->instant.bytes);
    ms_text_add(text, ", \"groups\": [");
    for (uint32_t g = 0; g < x->n_groups && g < x->top; g++) {
        ms_text_add(text, "%s", g > 0 ? ", " : "");
        json_group(x, g, text);
    }
    ms_text_add(text, "]}\n");
}

/* ---- the command --------------------------------------------------------- */

ms_err ms_explain_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_text text = {.arena = hall->trial};
    explain x = {.hall = hall,
                 .at = ms_options_value(arguments, MS_OPTION_AT),
                 .style = ms_screen_style(
                     1, ms_options_value(arguments, MS_OPTION_COLOR))};
    MS_TRY(read_top(arguments, &x.top, fault));
    MS_TRY(ms_settings_read(arguments, hall->keep, &x.job, fault));
    x.job.uses = true;
    x.policy = x.job.program == NULL
                   ? ms_spec_print(&x.job.spec, hall->keep)
                   : ms_arena_format(hall->keep, "program:%s", x.job.program);
    if (x.policy == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_pipeline_run(&x.job, hall->keep, hall->trial, &x.result, fault));
    MS_TRY(look(&x, fault));
    (ms_options_value(arguments, MS_OPTION_JSON) != NULL
         ? write_json
         : write_text)(&x, &text);
    MS_TRY(ms_screen_print(&text, fault));
    bool check = ms_options_value(arguments, MS_OPTION_CHECK) != NULL;
    *status = check && !x.result.report.fits ? 1 : 0;
    return MS_OK;
}
