/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim inspect: lists the layers of a model and their parameters. */

#include "tools/cli/inspect/inspect.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/words/untrained.h"
#include "tools/words/words.h"

#include <stdio.h>
#include <string.h>

#define SCREEN_COLUMNS 80
/* the columns of a row beside name and type, without --wide */
#define OTHER_COLUMNS 44
#define MOST_NAME_COLUMNS 28
#define LEAST_NAME_COLUMNS 12
#define ASSUMED_INDENT 16u
#define COUNTS_INDENT 12u

/* How the table is drawn. */
typedef struct inspection {
    ms_inspection it;
    bool all, wide;
    int name_columns, type_columns;
} inspection;

/* ---- blocks that repeat -------------------------------------------------- */

static uint32_t block_of(const inspection *view, uint32_t i)
{
    return view->it.facts[i].block;
}

static uint32_t block_end(const inspection *view, uint32_t i)
{
    uint32_t block = block_of(view, i), end = i + 1;
    while (block != MS_NONE && end < view->it.n && block_of(view, end) == block)
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

/* The number of blocks equal to [first, end) that follow each other, this
 * one included. */
static uint32_t count_alike(const inspection *view, uint32_t first,
                            uint32_t end)
{
    uint32_t length = end - first, count = 1;
    if (view->all || block_of(view, first) == MS_NONE)
        return 1;
    for (uint32_t at = end; at < view->it.n; at += length, count++) {
        if (block_of(view, at) == MS_NONE || block_end(view, at) - at != length)
            return count;
        for (uint32_t i = 0; i < length; i++)
            if (!same_facts(&view->it.facts[first + i],
                            &view->it.facts[at + i]))
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
    for (uint32_t i = 0; i < view->it.n; i++) {
        int name = width_of(view->it.facts[i].name);
        int type = width_of(view->it.facts[i].type);
        if (name > view->name_columns)
            view->name_columns = name;
        if (type > view->type_columns)
            view->type_columns = type;
    }
    int room = view->wide ? MOST_NAME_COLUMNS
                          : SCREEN_COLUMNS - OTHER_COLUMNS - view->type_columns;
    if (room > MOST_NAME_COLUMNS)
        room = MOST_NAME_COLUMNS;
    if (room < LEAST_NAME_COLUMNS)
        room = LEAST_NAME_COLUMNS;
    if (view->name_columns > room)
        view->name_columns = room;
}

/* Writes a name. Of one that is too long the end is shown, since the ends of
 * names differ where their beginnings are equal. */
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

/* Writes "6.44 G"; the heading of the column says of what. */
static ms_label flops_of(double flops)
{
    ms_label label = ms_quantity_flops(flops);
    label.s[strcspn(label.s, "F")] = '\0';
    return label;
}

/* The columns of numbers; without --wide the table has only some of them. */
#define AT(member) offsetof(ms_layer_facts, member)
static const struct column {
    const char *heading;
    enum { COUNT, FLOPS, BYTES } kind;
    int width;
    bool wide;
    /* the offset in ms_layer_facts of a uint64_t, or of a double for FLOPs */
    size_t at;
} columns[] = {
    {"parameters", COUNT, 14, false, AT(parameters)},
    {"active", COUNT, 14, true, AT(active)},
    {"fwd FLOP", FLOPS, 8, false, AT(forward_flops)},
    {"bwd FLOP", FLOPS, 8, true, AT(backward_flops)},
    {"fwd MAC", FLOPS, 8, true, AT(forward_macs)},
    {"bwd MAC", FLOPS, 8, true, AT(backward_macs)},
    {"saved", BYTES, 11, false, AT(saved_bytes)},
    {"weights", BYTES, 11, true, AT(held_bytes)},
    {"output", BYTES, 11, true, AT(output_bytes)},
};
#define N_COLUMNS (sizeof columns / sizeof columns[0])

static ms_label cell_of(const struct column *column,
                        const ms_layer_facts *facts)
{
    const char *at = (const char *)facts + column->at;
    uint64_t whole;
    double flops;
    memcpy(&whole, at, sizeof whole);
    memcpy(&flops, at, sizeof flops);
    return column->kind == FLOPS   ? flops_of(flops)
           : column->kind == COUNT ? ms_quantity_count(whole)
                                   : ms_quantity_size(whole);
}

static bool is_shown(const inspection *view, const struct column *column)
{
    return view->wide || !column->wide;
}

static void put_row(const inspection *view, const ms_layer_facts *facts,
                    uint32_t count, ms_text *text)
{
    ms_label times = {""};
    if (count > 1)
        times = ms_quantity_count(count);
    put_name(view, facts->name, text);
    ms_text_add(text, " %-*s %s %-4s", view->type_columns, facts->type,
                count > 1 ? "x" : " ", times.s);
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (is_shown(view, &columns[i]))
            ms_text_add(text, " %*s", columns[i].width,
                        cell_of(&columns[i], facts).s);
    if (facts->split != NULL && *facts->split != '\0')
        ms_text_add(text, "  %s", facts->split);
    ms_text_add(text, "\n");
}

/* Writes the work of a pass. "1.81 GMAC" is the label for FLOPs, cut before
 * its unit. */
static void put_pass(const char *pass, double flops, double macs, ms_text *text)
{
    ms_label work = ms_quantity_flops(flops), half = ms_quantity_flops(macs);
    half.s[strcspn(half.s, "F")] = '\0';
    ms_text_add(text, "%s %s, of these %sMAC in products", pass, work.s,
                half.s);
}

static void put_work(const inspection *view, ms_text *text)
{
    const ms_layer_facts *total = &view->it.total;
    put_pass("\nforward ", total->forward_flops, total->forward_macs, text);
    put_pass("\nbackward", total->backward_flops, total->backward_macs, text);
    ms_text_add(text, "\n");
}

static void put_table(const inspection *view, const ms_style *style,
                      ms_text *text)
{
    size_t from = text->length;
    ms_text_add(text, "%s%-*s %-*s %6s", style->strong, view->name_columns,
                "layer", view->type_columns, "type", "");
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (is_shown(view, &columns[i]))
            ms_text_add(text, " %*s", columns[i].width, columns[i].heading);
    if (view->it.n > 0 && view->it.facts[0].split != NULL)
        ms_text_add(text, "  split by");
    ms_text_add(text, "%s\n", style->plain);
    for (uint32_t i = 0; i < view->it.n;) {
        uint32_t end = block_end(view, i), count = count_alike(view, i, end);
        for (uint32_t row = i; row < end; row++)
            put_row(view, &view->it.facts[row], count, text);
        i += (end - i) * count;
    }
    ms_text_add(text, "%s", style->strong);
    put_row(view, &view->it.total, 1, text);
    ms_text_add(text, "%s", style->plain);
    ms_narrow_table(text, from);
    put_work(view, text);
}

/* Writes the counts with and without head and embeddings, and how many
 * parameters a token uses. */
static void put_counts(const inspection *view, ms_text *text)
{
    const ms_inspection *it = &view->it;
    ms_text words = {.arena = text->arena};
    char name[128];
    uint64_t all = it->result->graph->parameters;
    ms_text_add(&words, "%s", ms_quantity_count(all).s);
    if (it->base != all || it->tied != NULL)
        ms_text_add(&words, "; %s without the head",
                    ms_quantity_count(it->base).s);
    if (it->tied != NULL)
        ms_text_add(&words, " (its matrix is counted once, at %s)",
                    ms_screen_safe(it->tied, name, sizeof name));
    if (it->embedding > 0)
        ms_text_add(&words, "; %s without embeddings",
                    ms_quantity_count(all - it->embedding).s);
    if (it->total.active != all)
        ms_text_add(&words, "; %s active per token",
                    ms_quantity_count(it->total.active).s);
    text->failed |= words.failed;
    if (!words.failed && strchr(words.bytes, ';') != NULL)
        ms_screen_fill(text, COUNTS_INDENT, "parameters:", words.bytes);
}

static void put_head(const inspection *view, const ms_style *style,
                     ms_text *text)
{
    const ms_result *result = view->it.result;
    char name[64];
    ms_text_add(text, "%s%s, %s parameters, ", style->strong,
                ms_screen_safe(result->model.name, name, sizeof name),
                ms_quantity_count(result->graph->parameters).s);
    ms_setupwords_put(result, "x", text);
    ms_text_add(text, "%s\n", style->plain);
    if (result->model.family != NULL)
        ms_text_add(text, "family %s, ", result->model.family);
    ms_text_add(text, "%u %s in %u blocks, %u ops per micro-batch\n",
                result->graph->n_layers,
                result->model.ops != NULL     ? "modules"
                : result->model.nodes != NULL ? "nodes"
                                              : "layers",
                result->graph->n_blocks, result->graph->step_first);
    if (result->model.assumed != NULL)
        ms_screen_fill(text, ASSUMED_INDENT,
                       "class defaults:", result->model.assumed + 2);
    put_counts(view, text);
    ms_untrained_positions(result, text);
    ms_text_add(text, "\n");
}

/* ---- the command --------------------------------------------------------- */

static bool is_head(const char *name)
{
    return strcmp(name, "head") == 0 || strncmp(name, "head.", 5) == 0;
}

/* Finds the layers that are the head: those with that name, else the last
 * layer with parameters if it is linear (a classifier's "fc") or a
 * linear_cross_entropy. */
static bool *find_head(const ms_inspection *it, ms_arena *arena)
{
    bool *head = ms_arena_take(arena, it->n + 1, sizeof *head);
    uint32_t last = MS_NONE;
    bool named = false;
    for (uint32_t i = 0; head != NULL && i < it->n; i++) {
        named |= head[i] = is_head(it->facts[i].name);
        if (it->facts[i].parameters > 0)
            last = i;
    }
    if (head != NULL && !named && last != MS_NONE &&
        strncmp(it->facts[last].type, "linear", strlen("linear")) == 0)
        head[last] = true;
    return head;
}

/* The name of the layer whose matrix the head shares; NULL: it has its own. */
static const char *tied_to(const ms_model *model)
{
    for (uint32_t i = 0; model->ops == NULL && i < model->n_layers; i++) {
        const ms_layer *layer = &model->layers[i];
        const ms_value *tied = ms_layertypes_field(layer, "tied");
        if (is_head(layer->name) && tied != NULL && tied->s != NULL &&
            *tied->s != '\0')
            return tied->s;
    }
    return NULL;
}

static ms_err add_up(ms_inspection *it, ms_arena *arena, ms_fault *fault)
{
    const bool *head = find_head(it, arena);
    if (head == NULL)
        return ms_fail_nomem(fault);
    it->total = (ms_layer_facts){.name = "total", .type = ""};
    for (uint32_t i = 0; i < it->n; i++) {
        const ms_layer_facts *facts = &it->facts[i];
        it->total.parameters += facts->parameters;
        it->total.active += facts->active;
        it->total.forward_flops += facts->forward_flops;
        it->total.backward_flops += facts->backward_flops;
        it->total.forward_macs += facts->forward_macs;
        it->total.backward_macs += facts->backward_macs;
        it->total.saved_bytes += facts->saved_bytes;
        it->total.output_bytes += facts->output_bytes;
        it->total.held_bytes += facts->held_bytes;
        it->base += head[i] ? 0 : facts->parameters;
        it->embedding +=
            strcmp(facts->type, "embedding") == 0 ? facts->parameters : 0;
    }
    it->tied = tied_to(&it->result->model);
    return MS_OK;
}

static ms_err inspect(const ms_job *job, const ms_hall *hall, ms_result *result,
                      ms_text *text, ms_text *csv, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const ms_style *style =
        ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR));
    ms_layer_facts *facts;
    MS_TRY(ms_jobway_lower(job, hall->keep, result, fault));
    MS_TRY(ms_lower_facts(&result->model, result->graph, hall->keep, &facts,
                          fault));
    inspection view = {
        .it = {.memsim = MS_VERSION,
               .model = result->model.name,
               .from_json = arguments->from_json,
               .result = result,
               .facts = facts,
               .n = result->graph->n_layers},
        .all = ms_options_value(arguments, MS_OPTION_ALL) != NULL,
        .wide = ms_options_value(arguments, MS_OPTION_WIDE) != NULL};
    MS_TRY(add_up(&view.it, hall->keep, fault));
    measure_columns(&view);
    if (ms_options_value(arguments, MS_OPTION_CSV) != NULL)
        ms_inspect_keys_csv(&view.it, csv);
    if (text->length > 0)
        return MS_OK; /* the output that was asked for has been written */
    if (ms_options_value(arguments, MS_OPTION_JSON) != NULL) {
        ms_inspect_keys_json(&view.it, text);
    } else {
        put_head(&view, style, text);
        put_table(&view, style, text);
        ms_narrow_lines(text);
    }
    return MS_OK;
}

/* Checks that at most one result goes to standard output. CSV in a file may
 * be written beside it. */
static ms_err check_outputs(const ms_arguments *arguments, const ms_job *job,
                            ms_fault *fault)
{
    static const ms_option_id results[] = {MS_OPTION_JSON, MS_OPTION_DOT,
                                           MS_OPTION_DUMP};
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    uint32_t n = csv != NULL && ms_outputs_is_stdout(csv);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        n += ms_options_value(arguments, results[i]) != NULL;
    if (n > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json, --csv -, --dot and --dump model",
                       "standard output can carry one result only");
    return csv == NULL ? MS_OK : ms_outputs_check(job, &csv, 1, fault);
}

static ms_err write_outputs(const char *csv, const ms_text *rows,
                            const ms_text *text, ms_fault *fault)
{
    if (csv != NULL && ms_outputs_is_stdout(csv))
        return ms_screen_print(rows, fault);
    MS_TRY(ms_screen_print(text, fault));
    return csv == NULL ? MS_OK : ms_outputs_write(csv, rows, false, fault);
}

ms_err ms_inspect_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    ms_job job;
    ms_result result = {0};
    ms_text text = {.arena = hall->trial}, rows = {.arena = hall->trial};
    *status = 0;
    MS_TRY(ms_settings_read(arguments, hall->keep, &job, fault));
    MS_TRY(check_outputs(arguments, &job, fault));
    MS_TRY(ms_jobway_read(&job, hall->keep, &result, fault));
    if (ms_options_value(arguments, MS_OPTION_DUMP) != NULL)
        ms_text_put(&text, result.model.source, result.model.source_length);
    else if (ms_options_value(arguments, MS_OPTION_DOT) != NULL)
        ms_dag_dot(&result.model, &text);
    if (text.length == 0 || csv != NULL)
        MS_TRY(inspect(&job, hall, &result, &text, &rows, fault));
    return write_outputs(csv, &rows, &text, fault);
}
