/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim inspect: what a model is made of. */

#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

#define MOST_NAME_COLUMNS 28
#define ASSUMED_INDENT 16u

typedef struct inspection {
    const ms_result *result;
    const ms_layer_facts *facts; /* in topological order */
    uint32_t n;
    bool all;
    int name_columns, type_columns;
    ms_layer_facts total;
    uint64_t base; /* parameters without the head */
} inspection;

/* ---- blocks that repeat -------------------------------------------------- */

static uint32_t block_of(const inspection *view, uint32_t i)
{
    return view->facts[i].block;
}

static uint32_t block_end(const inspection *view, uint32_t i)
{
    uint32_t block = block_of(view, i), end = i + 1;
    while (block != MS_NONE && end < view->n && block_of(view, end) == block)
        end++;
    return end;
}

static bool same_facts(const ms_layer_facts *a, const ms_layer_facts *b)
{
    return strcmp(a->type, b->type) == 0 && a->parameters == b->parameters &&
           a->forward_flops == b->forward_flops &&
           a->backward_flops == b->backward_flops &&
           a->saved_bytes == b->saved_bytes &&
           a->output_bytes == b->output_bytes;
}

/* How many blocks like [first, end) follow each other, it included. */
static uint32_t count_alike(const inspection *view, uint32_t first,
                            uint32_t end)
{
    uint32_t length = end - first, count = 1;
    if (view->all || block_of(view, first) == MS_NONE)
        return 1;
    for (uint32_t at = end; at < view->n; at += length, count++) {
        if (block_of(view, at) == MS_NONE || block_end(view, at) - at != length)
            return count;
        for (uint32_t i = 0; i < length; i++)
            if (!same_facts(&view->facts[first + i], &view->facts[at + i]))
                return count;
    }
    return count;
}

/* ---- text ---------------------------------------------------------------- */

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static int width_of(const char *name)
{
    int width = 0;
    for (; *name != '\0'; name++)
        width += !continues(*name);
    return width;
}

static void measure_columns(inspection *view)
{
    view->name_columns = width_of("layer");
    view->type_columns = width_of("type");
    for (uint32_t i = 0; i < view->n; i++) {
        int name = width_of(view->facts[i].name);
        int type = width_of(view->facts[i].type);
        if (name > view->name_columns)
            view->name_columns = name;
        if (type > view->type_columns)
            view->type_columns = type;
    }
    if (view->name_columns > MOST_NAME_COLUMNS)
        view->name_columns = MOST_NAME_COLUMNS;
}

/* Of a name that is too long the end is shown: it tells it from its like. */
static void put_name(const inspection *view, const char *name, ms_text *text)
{
    char safe[256];
    const char *at = ms_screen_safe(name, safe, sizeof safe);
    int width = width_of(at), room = view->name_columns;
    if (width <= room) {
        ms_text_add(text, "%s%*s", at, room - width, "");
        return;
    }
    for (int skip = width - room + 1; skip > 0; skip--)
        do
            at++;
        while (continues(*at));
    ms_text_add(text, "…%s", at);
}

static void put_row(const inspection *view, const ms_layer_facts *facts,
                    uint32_t count, ms_text *text)
{
    ms_label times = {""}, flops = ms_quantity_flops(facts->forward_flops);
    if (count > 1)
        times = ms_quantity_count(count);
    flops.s[strcspn(flops.s, "F")] = '\0'; /* the heading says it */
    put_name(view, facts->name, text);
    ms_text_add(text, " %-*s %s %-4s %14s %8s %10s\n", view->type_columns,
                facts->type, count > 1 ? "x" : " ", times.s,
                ms_quantity_count(facts->parameters).s, flops.s,
                ms_quantity_size(facts->saved_bytes).s);
}

/* "1.81 GMAC": of the label for FLOPs what is before its unit. */
static void put_pass(const char *pass, double flops, double macs, ms_text *text)
{
    ms_label work = ms_quantity_flops(flops), half = ms_quantity_flops(macs);
    half.s[strcspn(half.s, "F")] = '\0';
    ms_text_add(text, "%s %s, of these %sMAC in products", pass, work.s,
                half.s);
}

static void put_work(const inspection *view, ms_text *text)
{
    const ms_layer_facts *total = &view->total;
    put_pass("\nforward ", total->forward_flops, total->forward_macs, text);
    put_pass("\nbackward", total->backward_flops, total->backward_macs, text);
    ms_text_add(text, "\n");
}

static void put_table(const inspection *view, const ms_style *style,
                      ms_text *text)
{
    ms_text_add(text, "%s%-*s %-*s %6s %14s %8s %10s%s\n", style->strong,
                view->name_columns, "layer", view->type_columns, "type", "",
                "parameters", "fwd FLOP", "saved", style->plain);
    for (uint32_t i = 0; i < view->n;) {
        uint32_t end = block_end(view, i), count = count_alike(view, i, end);
        for (uint32_t row = i; row < end; row++)
            put_row(view, &view->facts[row], count, text);
        i += (end - i) * count;
    }
    ms_text_add(text, "%s", style->strong);
    put_row(view, &view->total, 1, text);
    ms_text_add(text, "%s", style->plain);
    put_work(view, text);
}

static void put_head(const inspection *view, const ms_style *style,
                     ms_text *text)
{
    const ms_result *result = view->result;
    char name[64];
    ms_text_add(text, "%s%s, %s parameters, ", style->strong,
                ms_screen_safe(result->model.name, name, sizeof name),
                ms_quantity_count(result->graph.parameters).s);
    ms_summary_setup(result, "x", text);
    ms_text_add(text, "%s\n", style->plain);
    if (result->model.family != NULL)
        ms_text_add(text, "family %s, ", result->model.family);
    ms_text_add(text, "%u %s in %u blocks, %u ops per micro-batch\n",
                result->graph.n_layers,
                result->model.ops != NULL ? "modules" : "layers",
                result->graph.n_blocks, result->graph.step_first);
    if (result->model.assumed != NULL)
        ms_screen_fill(text, ASSUMED_INDENT,
                       "class defaults:", result->model.assumed + 2);
    ms_text_add(text, "\n");
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_number(ms_text *text, const char *key, uint64_t value)
{
    ms_text_add(text, ", \"%s\": ", key);
    ms_text_u64(text, value);
}

static void put_flops(ms_text *text, const char *key, double flops)
{
    ms_text_add(text, ", \"%s\": %.0f", key, flops);
}

static void put_json_layer(const ms_layer_facts *facts, ms_text *text)
{
    ms_text_add(text, "    {\"name\": ");
    ms_text_json(text, facts->name);
    ms_text_add(text, ", \"type\": ");
    ms_text_json(text, facts->type);
    put_number(text, "parameters", facts->parameters);
    put_flops(text, "forward_flops", facts->forward_flops);
    put_flops(text, "backward_flops", facts->backward_flops);
    put_flops(text, "forward_macs", facts->forward_macs);
    put_flops(text, "backward_macs", facts->backward_macs);
    put_number(text, "saved_bytes", facts->saved_bytes);
    put_number(text, "output_bytes", facts->output_bytes);
    ms_text_add(text, "}");
}

static void put_json(const inspection *view, ms_text *text)
{
    uint64_t parameters = view->result->graph.parameters;
    ms_text_add(text, "{\n  \"schema_version\": 1,\n  \"memsim\": \"%s\",\n",
                MS_VERSION);
    ms_text_add(text, "  \"model\": ");
    ms_text_json(text, view->result->model.name);
    put_number(text, "parameters", parameters);
    put_number(text, "parameters_base", view->base);
    put_number(text, "parameters_active", view->total.active);
    put_flops(text, "forward_flops", view->total.forward_flops);
    put_flops(text, "backward_flops", view->total.backward_flops);
    put_flops(text, "forward_macs", view->total.forward_macs);
    put_flops(text, "backward_macs", view->total.backward_macs);
    ms_text_add(text, ",\n  \"layers\": [\n");
    for (uint32_t i = 0; i < view->n; i++) {
        put_json_layer(&view->facts[i], text);
        ms_text_add(text, i + 1 < view->n ? ",\n" : "\n");
    }
    ms_text_add(text, "  ]\n}\n");
}

/* ---- the command --------------------------------------------------------- */

static bool is_head(const char *name)
{
    return strcmp(name, "head") == 0 || strncmp(name, "head.", 5) == 0;
}

static void add_up(inspection *view)
{
    view->total = (ms_layer_facts){.name = "total", .type = ""};
    for (uint32_t i = 0; i < view->n; i++) {
        const ms_layer_facts *facts = &view->facts[i];
        view->total.parameters += facts->parameters;
        view->total.active += facts->active;
        view->total.forward_flops += facts->forward_flops;
        view->total.backward_flops += facts->backward_flops;
        view->total.forward_macs += facts->forward_macs;
        view->total.backward_macs += facts->backward_macs;
        view->total.saved_bytes += facts->saved_bytes;
        view->base += is_head(facts->name) ? 0 : facts->parameters;
    }
}

static ms_err inspect(const ms_job *job, const ms_hall *hall, ms_result *result,
                      ms_text *text, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const ms_style *style =
        ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR));
    ms_layer_facts *facts;
    MS_TRY(ms_pipeline_lower(job, hall->keep, result, fault));
    MS_TRY(ms_lower_facts(&result->model, &result->graph, hall->keep, &facts,
                          fault));
    inspection view = {.result = result,
                       .facts = facts,
                       .n = result->graph.n_layers,
                       .all =
                           ms_options_value(arguments, MS_OPTION_ALL) != NULL};
    add_up(&view);
    measure_columns(&view);
    if (ms_options_value(arguments, MS_OPTION_JSON) != NULL) {
        put_json(&view, text);
    } else {
        put_head(&view, style, text);
        put_table(&view, style, text);
    }
    return MS_OK;
}

ms_err ms_inspect_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    bool json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    bool dot = ms_options_value(arguments, MS_OPTION_DOT) != NULL;
    bool dump = ms_options_value(arguments, MS_OPTION_DUMP) != NULL;
    ms_job job;
    ms_result result = {0};
    ms_text text = {.arena = hall->trial};
    *status = 0;
    if (json + dot + dump > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json, --dot and --dump model",
                       "standard output can carry one result only");
    MS_TRY(ms_settings_read(arguments, hall->keep, &job, fault));
    MS_TRY(ms_pipeline_read(&job, hall->keep, &result, fault));
    if (dump)
        ms_text_put(&text, result.model.source, result.model.source_length);
    else if (dot)
        ms_dag_dot(&result.model, &text);
    else
        MS_TRY(inspect(&job, hall, &result, &text, fault));
    return ms_screen_print(&text, fault);
}
