/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text summary: about a dozen lines, the most important last. */

#include "tools/tools.h"

#include <string.h>

#define CHART_COLUMNS 50u
#define INDENT 10u       /* of the texts that follow a label */
#define LEAST_MFU 0.0005 /* what would not read 0.0 % */
#define ALIVE_GROUPS 5u

/* ---- pieces of sentences ------------------------------------------------- */

static const ms_rank_report *worst(const ms_result *result)
{
    return &result->report.ranks[result->report.worst];
}

/* part / whole in tenths of a percent, as text. */
static void put_percent(ms_text *text, uint64_t part, uint64_t whole)
{
    double percent = 100.0 * (double)part / (double)whole;
    ms_text_add(text, "%.1f %%", percent);
}

/* "optimizer_state" -> "optimizer state". */
static void put_category(ms_text *text, uint8_t category)
{
    for (const char *c = ms_names_category[category]; *c != '\0'; c++)
        ms_text_put(text, *c == '_' ? " " : c, 1);
}

static void put_phase(ms_text *text, const ms_peak *peak)
{
    static const char *const words[MS_N_PHASES] = {
        "the forward pass", "the loss", "the backward pass",
        "the optimizer step"};
    ms_text_add(text, "%s%s", words[peak->phase],
                peak->pass == MS_RECOMPUTE ? " (recompute)" : "");
}

void ms_summary_setup(const ms_result *result, ms_text *text)
{
    const ms_training *training = &result->training;
    ms_text_add(text, "batch %lld", (long long)training->batch);
    if (result->model.sequence_input)
        ms_text_add(text, " x %lld tokens", (long long)training->sequence);
    if (result->shape.micro_batches > 1)
        ms_text_add(text, " in %u micro-batches", result->shape.micro_batches);
    ms_text_add(text, ", %s, %s", ms_settings_value(training, "precision").s,
                training->optimizer == MS_NO_OPTIMIZER
                    ? "no optimizer"
                    : ms_settings_value(training, "optimizer").s);
}

void ms_summary_verdict(const ms_result *result, ms_text *text)
{
    const ms_report *report = &result->report;
    int64_t headroom = report->headroom_bytes;
    uint64_t gap = headroom < 0 ? 0 - (uint64_t)headroom : (uint64_t)headroom;
    ms_text_add(text, report->fits ? "fits, %s to spare" : "%s too much",
                ms_quantity_size(gap).s);
    if (!report->fits)
        return;
    ms_text_add(text, " (");
    put_percent(text, gap, report->capacity_bytes);
    ms_text_add(text, ")");
}

/* ---- one line each ------------------------------------------------------- */

/* Closes words and adds them as a labelled line. */
static void put_line(ms_text *text, const char *label, const ms_text *words)
{
    if (words->failed)
        text->failed = true;
    else if (words->length > 0)
        ms_screen_fill(text, INDENT, label, words->bytes);
}

static void model_line(const ms_summary *summary, ms_text *text)
{
    const ms_result *result = summary->result;
    ms_text words = {.arena = summary->arena};
    char name[64];
    ms_text_add(&words, "%s, %s parameters, ",
                ms_screen_safe(result->model.name, name, sizeof name),
                ms_quantity_count(result->graph.parameters).s);
    ms_summary_setup(result, &words);
    ms_text_add(text, "%s", summary->style->strong);
    put_line(text, "model:", &words);
    ms_text_add(text, "%s", summary->style->plain);
}

static void policy_line(const ms_summary *summary, ms_text *text)
{
    const ms_job *job = summary->job;
    const ms_report *report = &summary->result->report;
    ms_text words = {.arena = summary->arena};
    char name[256];
    ms_text_add(&words, "%s on %s, %s%s, %s of it for the context",
                ms_screen_safe(summary->policy, name, sizeof name),
                job->device->name, ms_quantity_size(report->capacity_bytes).s,
                job->memory_bytes > 0 ? " (--memory)" : "",
                ms_quantity_size(report->context_bytes).s);
    put_line(text, "policy:", &words);
}

/* One line, however long: it can be pasted and searched for. */
static void defaults_line(const ms_summary *summary, ms_text *text)
{
    ms_text_add(text, "%sdefaults: ", summary->style->faint);
    ms_settings_defaults(summary->job, &summary->result->training, text);
    ms_text_add(text, "%s\n", summary->style->plain);
}

static ms_err chart_line(const ms_summary *summary, ms_text *text,
                         ms_fault *fault)
{
    const ms_result *result = summary->result;
    ms_text_add(text, "memory:   ");
    MS_TRY(ms_chart_line(&result->line, result->report.worst, CHART_COLUMNS,
                         summary->arena, text, fault));
    ms_text_add(text, " 0 .. %s\n", ms_quantity_time(result->line.step_ns).s);
    return MS_OK;
}

static void put_time_parts(const ms_times *time, ms_text *words)
{
    const struct {
        const char *name;
        uint64_t t_ns;
    } parts[] = {{"forward", time->forward_ns},
                 {"backward", time->backward_ns},
                 {"optimizer", time->optimizer_ns},
                 {"recompute", time->recompute_ns},
                 {"waiting for the host", time->host_bound_ns},
                 {"for copies", time->stall_ns},
                 {"for collectives", time->exposed_comm_ns},
                 {"for other ranks", time->bubble_ns},
                 {"idle", time->idle_ns}};
    const char *between = ": ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].t_ns == 0)
            continue;
        ms_text_add(words, "%s%s %s", between, parts[i].name,
                    ms_quantity_time(parts[i].t_ns).s);
        between = ", ";
    }
}

static void step_line(const ms_summary *summary, ms_text *text)
{
    const ms_report *report = &summary->result->report;
    const ms_times *time = &worst(summary->result)->time;
    ms_text words = {.arena = summary->arena};
    ms_text_add(&words, "%s", ms_quantity_time(time->step_ns).s);
    put_time_parts(time, &words);
    if (time->recompute_ns > 0 && time->step_ns > time->recompute_ns) {
        ms_text_add(&words, " (+");
        put_percent(&words, time->recompute_ns,
                    time->step_ns - time->recompute_ns);
        ms_text_add(&words, ")");
    }
    if (report->tokens_per_second >= 0)
        ms_text_add(&words, "; %s tokens/s",
                    ms_quantity_count((uint64_t)report->tokens_per_second).s);
    if (report->mfu >= LEAST_MFU)
        ms_text_add(&words, "; MFU %.1f %%", 100 * report->mfu);
    put_line(text, "step:", &words);
}

static void states_line(const ms_summary *summary, ms_text *text)
{
    const ms_rank_report *rank = worst(summary->result);
    uint64_t parameters = summary->result->graph.parameters;
    uint64_t total = rank->parameters_bytes + rank->gradients_bytes +
                     rank->optimizer_state_bytes;
    ms_text words = {.arena = summary->arena};
    ms_text_add(&words,
                "parameters %s + gradients %s + optimizer state %s = %s",
                ms_quantity_size(rank->parameters_bytes).s,
                ms_quantity_size(rank->gradients_bytes).s,
                ms_quantity_size(rank->optimizer_state_bytes).s,
                ms_quantity_size(total).s);
    if (parameters > 0)
        ms_text_add(&words, ", %.4g bytes per parameter",
                    (double)total / (double)parameters);
    put_line(text, "states:", &words);
}

static ms_err alive_line(const ms_summary *summary, ms_text *text,
                         ms_fault *fault)
{
    ms_text words = {.arena = summary->arena};
    if (summary->result->report.fits)
        return MS_OK;
    MS_TRY(ms_alive_words(summary->result, ALIVE_GROUPS, summary->arena, &words,
                          fault));
    put_line(text, "largest:", &words);
    return MS_OK;
}

/* The categories at the peak, largest first. */
static void categories_line(const ms_summary *summary, ms_text *text)
{
    const uint64_t *bytes = worst(summary->result)->peak.by_category;
    uint32_t seen = 0;
    ms_text words = {.arena = summary->arena};
    for (uint32_t n = 0; n < MS_N_CATEGORIES; n++) {
        uint32_t top = MS_N_CATEGORIES;
        for (uint32_t c = 0; c < MS_N_CATEGORIES; c++)
            if ((seen >> c & 1) == 0 && bytes[c] > 0 &&
                (top == MS_N_CATEGORIES || bytes[c] > bytes[top]))
                top = c;
        if (top == MS_N_CATEGORIES)
            break;
        seen |= 1u << top;
        ms_text_add(&words, "%s", n > 0 ? ", " : "");
        put_category(&words, (uint8_t)top);
        ms_text_add(&words, " %s", ms_quantity_size(bytes[top]).s);
    }
    put_line(text, "at peak:", &words);
}

static void peak_line(const ms_summary *summary, ms_text *text)
{
    const ms_result *result = summary->result;
    const ms_peak *peak = &worst(result)->peak;
    ms_text words = {.arena = summary->arena};
    char name[64];
    ms_text_add(&words, "%s at %s in ",
                ms_quantity_size(peak->allocated_bytes).s,
                ms_quantity_time(peak->t_ns).s);
    put_phase(&words, peak);
    if (result->shape.micro_batches > 1 && peak->micro_batch != MS_NONE)
        ms_text_add(&words, " of micro-batch %u", peak->micro_batch);
    if (peak->op != NULL)
        ms_text_add(&words, ", %s",
                    ms_screen_safe(peak->op, name, sizeof name));
    if (peak->layer != NULL)
        ms_text_add(&words, " of %s",
                    ms_screen_safe(peak->layer, name, sizeof name));
    ms_text_add(text, "%s", summary->style->strong);
    put_line(text, "peak:", &words);
    ms_text_add(text, "%s", summary->style->plain);
}

static void verdict_line(const ms_summary *summary, ms_text *text)
{
    const ms_style *style = summary->style;
    const ms_report *report = &summary->result->report;
    ms_text words = {.arena = summary->arena};
    if (!report->fits)
        ms_text_add(&words, "does not fit: ");
    ms_summary_verdict(summary->result, &words);
    if (!report->fits)
        ms_text_add(&words, " for %s",
                    ms_quantity_size(report->capacity_bytes).s);
    ms_text_add(text, "%s", report->fits ? style->good : style->bad);
    put_line(text, "verdict:", &words);
    ms_text_add(text, "%s", style->plain);
}

static void last_line(const ms_summary *summary, ms_text *text)
{
    const ms_result *result = summary->result;
    uint64_t bytes =
        worst(result)->peak.reserved_bytes + result->report.context_bytes;
    unsigned long long mib = (bytes + (1u << 20) - 1) >> 20;
    if (result->training.device == 1)
        ms_text_add(text, "the process would grow by about %llu MiB\n", mib);
    else
        ms_text_add(text, "nvidia-smi would show about %llu MiB%s\n", mib,
                    result->report.fits ? "" : " if the device had them");
}

/* ---- what the policy did, what else would help --------------------------- */

/* Some policy that chooses what to keep, and its spelling; false: none. */
static bool split_spec(const ms_spec *spec, ms_spec *keeps, ms_spec *rest)
{
    *keeps = *rest = (ms_spec){0};
    for (uint32_t i = 0; i < spec->n; i++) {
        ms_spec *to = spec->items[i].policy->keep != NULL ? keeps : rest;
        to->items[to->n++] = spec->items[i];
    }
    return keeps->n > 0;
}

static void put_peak_stays(const ms_result *with, ms_text *words)
{
    const ms_rank_report *rank = worst(with);
    const uint64_t *bytes = rank->peak.by_category;
    uint64_t states =
        bytes[MS_PARAMETERS] + bytes[MS_GRADIENTS] + bytes[MS_OPTIMIZER_STATE];
    ms_text_add(words, "but not the peak, which lies in ");
    put_phase(words, &rank->peak);
    ms_text_add(words, ": model states are %s of it",
                ms_quantity_size(states).s);
    if (rank->peak.phase == MS_PHASE_OPTIMIZER &&
        rank->optimizer_scratch_bytes > 0 && with->graph.parameters > 0)
        ms_text_add(words,
                    ", the optimizer's temporary lists %s, %.3g bytes per "
                    "parameter",
                    ms_quantity_size(rank->optimizer_scratch_bytes).s,
                    (double)rank->optimizer_scratch_bytes /
                        (double)with->graph.parameters);
}

/* Compares with the same step without the policies that drop saved tensors.
 * *stays: they were no help for the peak. */
static ms_err compare(const ms_summary *summary, const ms_spec *keeps,
                      const ms_spec *rest, ms_text *words, bool *stays,
                      ms_fault *fault)
{
    const ms_result *with = summary->result;
    ms_result without = *with;
    ms_job job = *summary->job;
    job.spec = *rest;
    MS_TRY(ms_pipeline_step(&job, summary->arena, &without, fault));
    const char *name = ms_spec_print(keeps, summary->arena);
    if (name == NULL)
        return ms_fail_nomem(fault);
    uint64_t before = worst(&without)->peak.allocated_bytes;
    uint64_t after = worst(with)->peak.allocated_bytes;
    uint64_t kept = worst(with)->category_peaks[MS_ACTIVATIONS];
    uint64_t all = worst(&without)->category_peaks[MS_ACTIVATIONS];
    *stays = after > before - before / 100;
    if (!*stays) {
        ms_text_add(words, "without %s the peak would be %s", name,
                    ms_quantity_size(before).s);
        return MS_OK;
    }
    if (kept >= all) {
        ms_text_add(words, "%s does not lower activations here", name);
        return MS_OK;
    }
    ms_text_add(words, "%s lowers activations from %s to %s, ", name,
                ms_quantity_size(all).s, ms_quantity_size(kept).s);
    put_peak_stays(with, words);
    return MS_OK;
}

static void put_advice(const ms_advice *advice, ms_text *words)
{
    const char *between = words->length > 0 ? "; " : "";
    if (advice->words == NULL)
        ms_text_add(words, "%sno single setting of this version lowers it",
                    between);
    else
        ms_text_add(words, "%s%s lowers the peak to %s%s", between,
                    advice->words, ms_quantity_size(advice->peak_bytes).s,
                    advice->fits ? ", which fits" : "");
}

static void next_line(const ms_summary *summary, const ms_advice *advice,
                      ms_text *text)
{
    const char *extra = advice->words != NULL ? advice->words : "--plot";
    ms_text_add(text, "next:     ");
    if (advice->words == NULL &&
        ms_options_value(summary->arguments, MS_OPTION_PLOT) != NULL)
        extra = "--csv timeline.csv";
    ms_settings_command(summary->arguments, extra, text);
    ms_text_add(text, "\n");
}

static ms_err advise(const ms_summary *summary, ms_advice *advice,
                     ms_text *text, ms_fault *fault)
{
    const ms_job *job = summary->job;
    ms_spec keeps, rest;
    ms_text words = {.arena = summary->arena};
    bool stays = false;
    *advice = (ms_advice){0};
    if (job->program == NULL && split_spec(&job->spec, &keeps, &rest))
        MS_TRY(compare(summary, &keeps, &rest, &words, &stays, fault));
    if (stays || !summary->result->report.fits) {
        MS_TRY(ms_advice_find(job, summary->result, summary->arena, advice,
                              fault));
        put_advice(advice, &words);
    }
    put_line(text, "note:", &words);
    return MS_OK;
}

ms_err ms_summary_write(const ms_summary *summary, ms_text *text,
                        ms_fault *fault)
{
    ms_advice advice;
    model_line(summary, text);
    policy_line(summary, text);
    defaults_line(summary, text);
    MS_TRY(chart_line(summary, text, fault));
    step_line(summary, text);
    states_line(summary, text);
    MS_TRY(alive_line(summary, text, fault));
    categories_line(summary, text);
    peak_line(summary, text);
    MS_TRY(advise(summary, &advice, text, fault));
    verdict_line(summary, text);
    next_line(summary, &advice, text);
    last_line(summary, text);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
