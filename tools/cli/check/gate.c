/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim check: cases with limits and a baseline, as a gate. */

#include "tools/cli/check/gate.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/cli/commands.h"
#include "tools/job/outputs.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/points/points.h"

#include <string.h>

/* ---- one case ------------------------------------------------------------ */

static double percent(uint64_t now, uint64_t before)
{
    return 100.0 * ((double)now - (double)before) / (double)before;
}

static ms_gate_verdict judge(const ms_gate_case *of, bool fits)
{
    if (of->refused != NULL)
        return MS_GATE_REFUSED;
    if (!fits)
        return MS_GATE_NO_FIT;
    if (of->limit_bytes > 0 && of->now.used_bytes > of->limit_bytes)
        return MS_GATE_OVER;
    if (of->before.used_bytes == 0)
        return MS_GATE_NEW;
    double grown = percent(of->now.used_bytes, of->before.used_bytes);
    if (grown > of->tolerance)
        return MS_GATE_GREW;
    if (of->time_tolerance >= 0 && of->before.step_ns > 0 &&
        percent(of->now.step_ns, of->before.step_ns) > of->time_tolerance)
        return MS_GATE_SLOWER;
    return grown < -of->tolerance ? MS_GATE_SHRANK : MS_GATE_PASSES;
}

/* A job that is refused is a case that fails; a failure of this machine ends
 * the command. */
static ms_err run_case(ms_gate_case *of, ms_points *points, ms_arena *arena,
                       ms_fault *fault)
{
    ms_points_seat seat = {0};
    ms_result result;
    ms_fault own = {.caret = -1};
    bool fits = false;
    ms_defaultpool_pool(&of->job);
    ms_err err = ms_points_step(points, &seat, &of->job, &result, &own);
    if (err == MS_OK) {
        const ms_report *report = result.report;
        of->now.used_bytes = ms_capacity_used(report);
        of->now.step_ns = result.report->ranks[0].time.step_ns;
        of->capacity_bytes = report->capacity_bytes;
        fits = report->fits;
    } else if (err == MS_EUSAGE || err == MS_EINPUT || err == MS_EINFEASIBLE) {
        of->refused = ms_arena_text(arena, own.what, strlen(own.what));
    }
    ms_points_leave(points, &seat);
    if (err != MS_OK && of->refused == NULL) {
        *fault = own;
        return err;
    }
    of->verdict = (uint8_t)judge(of, fits);
    return MS_OK;
}

static ms_err run_cases(ms_gate *check, ms_points *points, ms_arena *arena,
                        ms_fault *fault)
{
    for (uint32_t i = 0; i < check->n; i++) {
        MS_TRY(run_case(&check->cases[i], points, arena, fault));
        check->n_failed += check->cases[i].verdict >= MS_GATE_REFUSED;
    }
    check->passes = check->n_failed == 0;
    return MS_OK;
}

/* ---- what was asked for -------------------------------------------------- */

typedef struct outputs {
    const char *markdown;
    bool json, quiet, updates;
} outputs;

static ms_err read_outputs(const ms_hall *hall, ms_gate *check, outputs *out,
                           ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    *out = (outputs){
        .markdown = ms_options_value(arguments, MS_OPTION_MARKDOWN),
        .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
        .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL,
        .updates = ms_options_value(arguments, MS_OPTION_UPDATE) != NULL};
    check->path = arguments->operands[0];
    check->baseline = ms_options_value(arguments, MS_OPTION_BASELINE);
    if (check->baseline == NULL)
        check->baseline =
            ms_arena_format(hall->keep, "%s.baseline", check->path);
    if (check->baseline == NULL)
        return ms_fail_nomem(fault);
    if (out->json && ms_outputs_is_stdout(out->markdown))
        return ms_fail(fault, MS_EUSAGE, NULL, "ask for one of them",
                       "standard output can carry one result only");
    const char *const files[] = {out->markdown, check->baseline};
    return ms_outputs_keep(&check->path, 1, files, 2, fault);
}

static ms_err print_result(const ms_hall *hall, const ms_gate *check,
                           const outputs *out, ms_fault *fault)
{
    ms_text text = {.arena = hall->trial}, markdown = text;
    const char *colour = ms_options_value(hall->arguments, MS_OPTION_COLOR);
    ms_gate_text_markdown(check, &markdown);
    if (ms_outputs_is_stdout(out->markdown))
        return ms_screen_print(&markdown, fault);
    if (out->json)
        ms_gate_keys_write(check, &text);
    else if (!out->quiet)
        ms_gate_text_write(check, ms_screen_style(1, colour), &text);
    MS_TRY(ms_screen_print(&text, fault));
    return out->markdown == NULL
               ? MS_OK
               : ms_outputs_write(out->markdown, &markdown, out->quiet, fault);
}

ms_err ms_gate_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    ms_gate check = {0};
    ms_points points;
    outputs out;
    MS_TRY(read_outputs(hall, &check, &out, fault));
    MS_TRY(ms_gate_file_read(&check, hall->keep, fault));
    MS_TRY(ms_points_open(&points, fault));
    ms_err err = run_cases(&check, &points, hall->keep, fault);
    ms_points_close(&points);
    MS_TRY(err);
    MS_TRY(print_result(hall, &check, &out, fault));
    if (out.updates) {
        MS_TRY(ms_gate_file_update(&check, hall->trial, fault));
        if (!out.quiet)
            ms_complain_note("wrote", check.baseline);
    }
    *status = check.passes ? 0 : 1;
    return MS_OK;
}
