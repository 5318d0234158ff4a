/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim run: model file -> model -> graph -> program -> plan -> events ->
 * report -> what was asked for. */

#include "tools/cli/run/run.h"
#include "graphs/model.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tools/advice/leftout.h"
#include "tools/cli/commands.h"
#include "tools/cli/run/figures.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/library/runrecord.h"
#include "tools/options/options.h"
#include "tools/results/sheet.h"
#include "tools/systems/systems.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/words/words.h"

#include <string.h>

typedef ms_err write_export(const ms_export *of, const char *path,
                            ms_arena *arena, ms_fault *fault);

/* Exports of the allocations: each is written to a file. */
static const struct {
    ms_option_id option;
    write_export *write;
} exports[] = {
    {MS_OPTION_SNAPSHOT, ms_memoryviz_write},
    {MS_OPTION_LIFETIMES, ms_lifetimes_write},
    {MS_OPTION_ALLOCATIONS, ms_allocations_write},
};
enum { N_EXPORTS = sizeof exports / sizeof exports[0] };
enum { CSV, TRACE, FIGURE, SCRIPT, EXPORTS, N_FILES = EXPORTS + N_EXPORTS };

typedef struct outputs {
    const char *csv, *trace, *dump; /* NULL: not asked for */
    const char *system;             /* of --dump checkpoints */
    const char *exports[N_EXPORTS];
    ms_picture figure;
    const ms_style *style;
    bool json, quiet;
} outputs;

typedef struct run {
    const ms_hall *hall;
    ms_job job;
    ms_result result;
    outputs outputs;
    const char *policy; /* in its canonical spelling */
} run;

/* ---- where the results go ------------------------------------------------ */

static void list_files(const outputs *out, const char *files[N_FILES])
{
    files[CSV] = out->csv;
    files[TRACE] = out->trace;
    files[FIGURE] = out->figure.path;
    files[SCRIPT] = out->figure.script;
    for (int i = 0; i < N_EXPORTS; i++)
        files[EXPORTS + i] = out->exports[i];
}

/* Does one of the outputs go to standard output, in place of the summary? */
static bool streams(const outputs *out)
{
    const char *files[N_FILES];
    bool any = false;
    list_files(out, files);
    for (int i = 0; i < N_FILES; i++)
        any = any || (i != CSV && ms_outputs_is_stdout(files[i]));
    return any;
}

static ms_err check_system(const outputs *out, ms_fault *fault)
{
    bool asked = out->dump != NULL && strcmp(out->dump, "checkpoints") == 0;
    if (asked == (out->system != NULL))
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL,
                   asked ? "add --as torch, torchtitan or megatron"
                         : "add --dump checkpoints",
                   asked ? "\"--dump checkpoints\" writes for a system"
                         : "option \"--as\" says for which system checkpoints "
                           "are written");
}

static ms_err read_outputs(const ms_hall *hall, outputs *out, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    *out = (outputs){
        .csv = ms_options_value(arguments, MS_OPTION_CSV),
        .trace = ms_options_value(arguments, MS_OPTION_TRACE),
        .dump = ms_options_value(arguments, MS_OPTION_DUMP),
        .system = ms_options_value(arguments, MS_OPTION_AS),
        .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
        .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL,
        .style =
            ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR)),
    };
    MS_TRY(check_system(out, fault));
    MS_TRY(ms_outputs_picture(arguments, hall->keep, &out->figure, fault));
    for (int i = 0; i < N_EXPORTS; i++)
        out->exports[i] = ms_options_value(arguments, exports[i].option);
    const char *files[N_FILES];
    list_files(out, files);
    int results = out->json + (out->dump != NULL);
    for (int i = 0; i < N_FILES; i++)
        results += ms_outputs_is_stdout(files[i]);
    if (results > 1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json, --dump and a file named -",
                       "standard output can carry one result only");
    return MS_OK;
}

/* ---- standard output ----------------------------------------------------- */

static ms_err write_json(const run *r, ms_text *text, ms_fault *fault)
{
    MS_TRY(ms_runrecord_json(&r->job, &r->result, r->policy, text, fault));
    ms_text_add(text, "\n");
    return MS_OK;
}

static ms_err write_dump(const run *r, ms_text *text, ms_fault *fault)
{
    const ms_result *result = &r->result;
    const char *what = r->outputs.dump;
    if (strcmp(what, "policy") == 0)
        ms_text_add(text, "%s\n", r->policy);
    else if (strcmp(what, "graph") == 0)
        ms_dump_graph(result->graph, result->program->groups,
                      result->program->n_groups, text);
    else if (strcmp(what, "schedule") == 0)
        ms_dumpschedule_write(result->program, text);
    else if (strcmp(what, "program") == 0)
        ms_dump_program(result->graph, result->program, text);
    else if (strcmp(what, "checkpoints") == 0)
        return ms_checkpointas_write(&r->job, result, r->outputs.system,
                                     r->hall->trial, text, fault);
    else if (strcmp(what, "plan") == 0)
        ms_dumpplan_write(result->plan, text);
    else
        return ms_table_csv(result->line, text, fault);
    return MS_OK;
}

static ms_err print_result(const run *r, ms_fault *fault)
{
    const outputs *out = &r->outputs;
    ms_text text = {.arena = r->hall->trial};
    ms_summary summary = {&r->job,   r->hall->arguments, &r->result,
                          r->policy, out->style,         r->hall->trial};
    if (out->json)
        MS_TRY(write_json(r, &text, fault));
    else if (out->dump != NULL)
        MS_TRY(write_dump(r, &text, fault));
    else if (ms_outputs_is_stdout(out->csv))
        MS_TRY(ms_table_csv(r->result.line, &text, fault));
    else if (!out->quiet && !streams(out))
        MS_TRY(ms_summary_write(&summary, &text, fault));
    return ms_screen_print(&text, fault);
}

/* ---- files --------------------------------------------------------------- */

static ms_err write_csv(const run *r, ms_fault *fault)
{
    const char *path = r->outputs.csv;
    ms_text text = {.arena = r->hall->trial};
    if (path == NULL || ms_outputs_is_stdout(path))
        return MS_OK;
    MS_TRY(ms_table_csv(r->result.line, &text, fault));
    return ms_outputs_write(path, &text, r->outputs.quiet, fault);
}

static ms_err write_trace(const run *r, ms_fault *fault)
{
    const ms_result *result = &r->result;
    const char *path = r->outputs.trace;
    if (path == NULL)
        return MS_OK;
    ms_report_names names = ms_runrecord_names(&r->job, result, r->policy);
    MS_TRY(ms_chrome_trace(result->line, result->report, &names, path,
                           r->hall->trial, fault));
    if (!r->outputs.quiet && !ms_outputs_is_stdout(path))
        ms_complain_note("wrote", path);
    return MS_OK;
}

/* By layer its line in the model's file; NULL: out of memory, or a model
 * without a file, or whose layers are gone. */
static const uint32_t *layer_lines(const ms_result *result, ms_arena *arena)
{
    const ms_model *model = &result->model;
    uint32_t n = result->graph->n_layers;
    uint32_t *lines = ms_arena_take(arena, n, sizeof *lines);
    if (model->layers == NULL || n != model->n_layers || lines == NULL)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        lines[i] = model->layers[i].spot.line;
    return lines;
}

static ms_err write_exports(const run *r, ms_fault *fault)
{
    const ms_result *result = &r->result;
    ms_report_names names = ms_runrecord_names(&r->job, result, r->policy);
    ms_export of = {.line = result->line,
                    .machine = result->machine,
                    .names = &names,
                    .model_path = result->model.path,
                    .lines = layer_lines(result, r->hall->trial),
                    .rank = result->report->told,
                    .capacity_bytes = result->report->capacity_bytes,
                    .context_bytes = result->report->context_bytes};
    if (r->job.allocator != NULL)
        of.conf = r->job.allocator->conf;
    for (int i = 0; i < N_EXPORTS; i++) {
        const char *path = r->outputs.exports[i];
        if (path == NULL)
            continue;
        MS_TRY(exports[i].write(&of, path, r->hall->trial, fault));
        if (!r->outputs.quiet && !ms_outputs_is_stdout(path))
            ms_complain_note("wrote", path);
    }
    return MS_OK;
}

static ms_err write_figure(const run *r, ms_fault *fault)
{
    const outputs *out = &r->outputs;
    const ms_result *result = &r->result;
    ms_arena *arena = r->hall->trial;
    ms_record record;
    if (out->figure.path == NULL)
        return MS_OK;
    MS_TRY(ms_runrecord_of(&r->job, result, r->policy, arena, &record, fault));
    if (ms_figures_is_timeline(out->figure.kind))
        MS_TRY(ms_leftout_record(&r->job, result, arena, &record, fault));
    ms_drawing drawing = {.title = record.title,
                          .subtitle = record.subtitle,
                          .path = out->figure.path,
                          .script_path = out->figure.script,
                          .arena = arena};
    if (out->figure.title != NULL)
        drawing.title = out->figure.title;
    MS_TRY(ms_figures_draw(out->figure.kind, &record, &drawing, fault));
    if (!out->quiet && !ms_outputs_is_stdout(out->figure.path))
        ms_complain_note("wrote", out->figure.path);
    return MS_OK;
}

/* The figure comes last, so that data outputs are written even where gnuplot is
 * missing. */
ms_err ms_run_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    run r = {.hall = hall};
    MS_TRY(ms_settings_usual(hall->arguments, hall->keep, &r.job, fault));
    MS_TRY(read_outputs(hall, &r.outputs, fault));
    const outputs *out = &r.outputs;
    MS_TRY(ms_figures_check(out->figure.kind, &r.job, fault));
    r.job.addresses =
        (out->json && !r.job.usual) || ms_figures_is_address(out->figure.kind);
    r.job.brief = r.job.usual && !out->json;
    const char *files[N_FILES];
    list_files(out, files);
    r.job.spends = out->json && out->figure.path == NULL;
    for (int i = 0; i < N_FILES; i++)
        r.job.spends = r.job.spends && files[i] == NULL;
    MS_TRY(ms_outputs_check(&r.job, files, N_FILES, fault));
    r.policy = ms_settings_policy(&r.job, hall->keep);
    if (r.policy == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_jobway_run(&r.job, hall->keep, hall->trial, &r.result, fault));
    ms_defaultpool_settle(&r.result, &r.job);
    MS_TRY(ms_outputs_rank(hall->arguments, r.result.report, fault));
    if (streams(out))
        ms_screen_end_with_reader();
    MS_TRY(print_result(&r, fault));
    MS_TRY(write_csv(&r, fault));
    MS_TRY(write_trace(&r, fault));
    MS_TRY(write_exports(&r, fault));
    MS_TRY(write_figure(&r, fault));
    bool check = ms_options_value(hall->arguments, MS_OPTION_CHECK) != NULL;
    *status = check && !r.result.report->fits ? 1 : 0;
    return MS_OK;
}
