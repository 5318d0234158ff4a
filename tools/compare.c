/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim compare: variants of one step side by side, the first of them the one
 * that the others are held against. */

#include "tools/compare.h"

#include <string.h>

/* ---- what is compared ---------------------------------------------------- */

#define SIZE(label, key, field)                                                \
    {                                                                          \
        label, key, offsetof(ms_rank_report, field), false                     \
    }
#define HELD(label, key, category) SIZE(label, key, peak.by_category[category])
#define SPAN(label, key, field)                                                \
    {                                                                          \
        label, key, offsetof(ms_rank_report, field), true                      \
    }
#define TIME(label, key) SPAN(label, #key, time.key)
#define PHASE(label, key, phase)                                               \
    SIZE(label, key, phase_peaks_with_workspace[phase])

const ms_compare_row ms_compare_rows[] = {
    [MS_COMPARE_PEAK] =
        SIZE("peak", "peak_allocated_bytes", peak.allocated_bytes),
    SIZE("reserved", "peak_reserved_bytes", peak.reserved_bytes),
    PHASE("forward peak", "forward_peak_bytes", MS_PHASE_FORWARD),
    PHASE("backward peak", "backward_peak_bytes", MS_PHASE_BACKWARD),
    PHASE("optimizer peak", "optimizer_peak_bytes", MS_PHASE_OPTIMIZER),
    [MS_COMPARE_HELD] = HELD("parameters", "parameters_bytes", MS_PARAMETERS),
    HELD("optimizer state", "optimizer_state_bytes", MS_OPTIMIZER_STATE),
    HELD("gradients", "gradients_bytes", MS_GRADIENTS),
    HELD("inputs", "inputs_bytes", MS_INPUTS),
    HELD("activations", "activations_bytes", MS_ACTIVATIONS),
    HELD("temporaries", "temporaries_bytes", MS_TEMPORARIES),
    HELD("workspace", "workspace_bytes", MS_WORKSPACE),
    HELD("communication", "communication_bytes", MS_COMMUNICATION),
    [MS_COMPARE_STEP] = TIME("step", step_ns),
    TIME("forward", forward_ns),
    TIME("backward", backward_ns),
    TIME("recompute", recompute_ns),
    TIME("optimizer", optimizer_ns),
    TIME("wait: comm", exposed_comm_ns),
    TIME("wait: copies", stall_ns),
    TIME("wait: ranks", bubble_ns),
    TIME("wait: host", host_bound_ns),
    TIME("wait: pages", page_wait_ns),
    TIME("wait: memory", memory_wait_ns),
    TIME("idle", idle_ns),
    [MS_COMPARE_MOVED] = SIZE("collectives", "comm_bytes", comm_bytes),
    SPAN("comm busy", "comm_busy_ns", comm.busy_ns),
    SIZE("to device", "h2d_bytes", h2d_bytes),
    SIZE("to host", "d2h_bytes", d2h_bytes),
    SIZE("disk reads", "nvme_read_bytes", links[MS_LINK_NVME_READ].bytes),
    SIZE("disk writes", "nvme_write_bytes", links[MS_LINK_NVME_WRITE].bytes),
    SPAN("copies busy", "copies_busy_ns", copies.busy_ns),
};
const uint32_t ms_compare_n_rows =
    sizeof ms_compare_rows / sizeof ms_compare_rows[0];

const ms_rank_report *ms_compare_rank(const ms_variant *variant)
{
    const ms_report *report = &variant->result.report;
    return &report->ranks[report->worst];
}

uint64_t ms_compare_value(const ms_variant *variant, uint32_t row)
{
    uint64_t value;
    const char *rank = (const char *)ms_compare_rank(variant);
    memcpy(&value, rank + ms_compare_rows[row].offset, sizeof value);
    return value;
}

/* ---- variants ------------------------------------------------------------ */

typedef struct outputs {
    const char *csv; /* or NULL */
    bool json, quiet;
} outputs;

static ms_err read_variants(const ms_hall *hall, ms_variant **variants,
                            uint32_t *n, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_job shared;
    *n = 0;
    MS_TRY(ms_settings_shared(arguments, hall->keep, &shared, fault));
    *variants =
        ms_arena_take(hall->keep, arguments->n_given + 1, sizeof **variants);
    if (*variants == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        if (given->option->id != MS_OPTION_POLICY)
            continue;
        ms_variant *variant = &(*variants)[(*n)++];
        variant->job = shared;
        MS_TRY(
            ms_spec_parse(given->value, hall->keep, &variant->job.spec, fault));
        variant->policy = ms_settings_policy(&variant->job, hall->keep);
        if (variant->policy == NULL)
            return ms_fail_nomem(fault);
    }
    if (*n < 2)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "give each variant, e.g. -p none -p checkpoint:sqrt",
                       "\"memsim compare\" needs two variants or more");
    return MS_OK;
}

static ms_err check_explain(const ms_arguments *arguments, ms_comparison *c,
                            ms_fault *fault)
{
    c->explain = ms_options_value(arguments, MS_OPTION_EXPLAIN) != NULL;
    c->at = ms_options_value(arguments, MS_OPTION_AT);
    MS_TRY(ms_tell_top(arguments, &c->top, fault));
    if (c->explain && c->n != 2)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave all but two out",
                       "option \"--explain\" is for two variants; there are %u",
                       c->n);
    if (!c->explain && c->at != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "add --explain",
                       "option \"--at\" says what --explain looks at");
    if (!c->explain && ms_options_value(arguments, MS_OPTION_TOP) != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "add --explain",
                       "option \"--top\" says how much --explain tells");
    return MS_OK;
}

static ms_err read_outputs(const ms_arguments *arguments,
                           const ms_comparison *c, outputs *out,
                           ms_fault *fault)
{
    *out = (outputs){
        .csv = ms_options_value(arguments, MS_OPTION_CSV),
        .json = ms_options_value(arguments, MS_OPTION_JSON) != NULL,
        .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL};
    if (out->json && ms_outputs_is_stdout(out->csv))
        return ms_fail(fault, MS_EUSAGE, NULL, "ask for one of them",
                       "--json and --csv - both go to standard output");
    return ms_outputs_check(&c->variants[0].job, &out->csv, 1, fault);
}

/* The model is read once: standard input cannot be read twice. */
static ms_err simulate(const ms_hall *hall, ms_variant *variants, uint32_t n,
                       bool explain, ms_fault *fault)
{
    ms_result read = {0};
    MS_TRY(ms_pipeline_read(&variants[0].job, hall->keep, &read, fault));
    for (uint32_t i = 0; i < n; i++) {
        ms_variant *variant = &variants[i];
        variant->job.uses = explain;
        variant->result = read;
        MS_TRY(ms_pipeline_lower(&variant->job, hall->keep, &variant->result,
                                 fault));
        MS_TRY(ms_pipeline_step(&variant->job, hall->trial, &variant->result,
                                fault));
    }
    return MS_OK;
}

static ms_err look(ms_comparison *c, ms_arena *arena, ms_fault *fault)
{
    if (!c->explain)
        return MS_OK;
    for (int s = 0; s < 2; s++)
        MS_TRY(ms_alive_find(&c->variants[s].result, c->at, arena, &c->alive[s],
                             fault));
    return ms_differ_find(c->alive, arena, &c->groups, &c->n_groups, fault);
}

/* ---- the command --------------------------------------------------------- */

static ms_err print_result(const ms_hall *hall, const ms_comparison *c,
                           const outputs *out, const ms_text *csv,
                           ms_fault *fault)
{
    ms_text text = {.arena = hall->trial};
    const char *colour = ms_options_value(hall->arguments, MS_OPTION_COLOR);
    if (ms_outputs_is_stdout(out->csv))
        return ms_screen_print(csv, fault);
    if (out->json)
        MS_TRY(ms_compare_data_json(c, &text, fault));
    else if (!out->quiet)
        ms_compare_text_write(c, ms_screen_style(1, colour), &text);
    MS_TRY(ms_screen_print(&text, fault));
    return out->csv == NULL
               ? MS_OK
               : ms_outputs_write(out->csv, csv, out->quiet, fault);
}

ms_err ms_compare_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_variant *variants;
    ms_comparison c = {0};
    outputs out;
    ms_text csv = {.arena = hall->trial};
    MS_TRY(read_variants(hall, &variants, &c.n, fault));
    c.variants = variants;
    MS_TRY(check_explain(arguments, &c, fault));
    MS_TRY(read_outputs(arguments, &c, &out, fault));
    MS_TRY(simulate(hall, variants, c.n, c.explain, fault));
    MS_TRY(look(&c, hall->trial, fault));
    ms_compare_data_csv(&c, &csv);
    MS_TRY(print_result(hall, &c, &out, &csv, fault));
    *status = 0;
    for (uint32_t i = 0; i < c.n; i++)
        if (ms_options_value(arguments, MS_OPTION_CHECK) != NULL &&
            !variants[i].result.report.fits)
            *status = 1;
    return MS_OK;
}
