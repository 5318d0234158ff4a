/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text summary: about a dozen lines, the most important one last. */

#include "graphs/machines/accuracy.h"
#include "plots/plots.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/advice/leftout.h"
#include "tools/advice/needless.h"
#include "tools/alive/alive.h"
#include "tools/cli/run/run.h"
#include "tools/cli/run/whatnext.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"
#include "tools/words/rankwords.h"
#include "tools/words/untrained.h"
#include "tools/words/words.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BESIDE_CHART 30u /* columns */
#define INDENT 10u       /* column of the texts beside a label */
/* A category below 1/5000 of the whole is left out. */
#define LEAST_PART 5000u
/* and a time below 1/400 of the step, which would be 0.00 s of 2 s */
#define LEAST_TIME 400u
#define LEAST_MFU 0.0005 /* a lower MFU would be printed as 0.0 % */
#define ALIVE_GROUPS 4u
/* from here on "5 times as long" reads better than a percentage */
#define MANY_TIMES 5u

/* ---- pieces of sentences ------------------------------------------------- */

static const ms_rank_report *told(const ms_result *result)
{
    return &result->report->ranks[result->report->told];
}

/* part / whole as a percentage with one decimal. */
static void put_percent(ms_text *text, uint64_t part, uint64_t whole)
{
    double percent = 100.0 * (double)part / (double)whole;
    ms_text_add(text, "%.1f %%", percent);
}

static void put_phase(ms_text *text, const ms_peak *peak)
{
    static const char *const words[MS_N_PHASES] = {
        "the forward pass", "the loss", "the backward pass",
        "the optimizer step"};
    ms_text_add(text, "%s%s", words[peak->phase],
                peak->pass == MS_RECOMPUTE ? " (recompute)" : "");
}

/* Is the device's memory too small (and not the host's or the disk)? */
static bool is_over(const ms_result *result)
{
    return ms_capacity_short(result->report, MS_DEVICE_POOL) > 0;
}

/* ---- one line each ------------------------------------------------------- */

/* Adds the words as a line with a label. */
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
                ms_quantity_count(result->graph->parameters).s);
    ms_setupwords_put(result, "x", &words);
    ms_text_add(text, "%s", summary->style->strong);
    put_line(text, "model:", &words);
    ms_text_add(text, "%s", summary->style->plain);
}

static void policy_line(const ms_summary *summary, ms_text *text)
{
    const char *told = summary->result->program->told;
    ms_text words = {.arena = summary->arena};
    char name[256];
    ms_text_add(&words, "%s on ",
                ms_screen_safe(summary->policy, name, sizeof name));
    ms_devicewords_device(summary->job, summary->result->report, &words);
    put_line(text, "policy:", &words);
    if (told != NULL)
        ms_screen_fill(text, INDENT, "plan:", told);
}

static void unknown_line(const ms_summary *summary, ms_text *text)
{
    ms_text words = {.arena = summary->arena};
    ms_textlines_unknown(summary->result->graph, &words);
    put_line(text, "unknown:", &words);
}

static void untrained_line(const ms_summary *summary, ms_text *text)
{
    ms_text words = {.arena = summary->arena};
    ms_untrained_words(summary->result->graph, &words);
    put_line(text, "warning:", &words);
    ms_untrained_positions(summary->result, text);
}

static void defaults_line(const ms_summary *summary, ms_text *text)
{
    ms_text words = {.arena = summary->arena};
    const ms_report *report = summary->result->report;
    unsigned pools = 0;
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++)
        pools |= (unsigned)(report->far[pool].peak_bytes > 0) << pool;
    if (summary->result->model.measured)
        ms_setupwords_measured(summary->result, &words);
    else
        ms_settings_defaults(summary->job, &summary->result->training, &words);
    ms_settings_node_defaults(summary->job, pools, &words);
    ms_text_add(text, "%s", summary->style->faint);
    put_line(text, "defaults:", &words);
    ms_text_add(text, "%s", summary->style->plain);
}

static ms_err chart_lines(const ms_summary *summary, ms_text *text,
                          ms_fault *fault)
{
    const ms_result *result = summary->result;
    const ms_timeline *line = result->line;
    uint16_t rank = result->report->told;
    uint32_t columns = ms_screen_columns(STDOUT_FILENO) - BESIDE_CHART;
    ms_text_add(text, "memory:   ");
    MS_TRY(ms_chart_line(line, rank, columns, summary->arena, text, fault));
    ms_text_add(text, " %s\n",
                ms_quantity_size(told(result)->peak.allocated_bytes).s);
    if (line->step_ns == 0)
        return MS_OK;
    ms_text_add(text, "%*s", (int)INDENT, "");
    MS_TRY(ms_chart_phases(line, rank, columns, summary->arena, text, fault));
    ms_text_add(text, " %s\n", ms_quantity_time(line->step_ns).s);
    return MS_OK;
}

static void put_time_parts(const ms_rank_report *rank, ms_text *words)
{
    const ms_times *time = &rank->time;
    const uint64_t *stall = rank->stalls_ns;
    const struct {
        const char *name;
        uint64_t t_ns;
    } parts[] = {
        {"forward", time->forward_ns},
        {"backward", time->backward_ns},
        {"recompute", time->recompute_ns},
        {"optimizer", time->optimizer_ns},
        {"waiting for the host", time->host_bound_ns},
        {"waiting for parameters", stall[MS_CAUSE_GATHER]},
        {"waiting for gradients", stall[MS_CAUSE_REDUCE]},
        {"waiting for ranks that split layers", stall[MS_CAUSE_MEETING]},
        {"waiting for copies to the device", stall[MS_CAUSE_TO_DEVICE]},
        {"waiting for copies to the host", stall[MS_CAUSE_TO_HOST]},
        {"waiting for the disk", stall[MS_CAUSE_DISK]},
        {"waiting for the host's cores", stall[MS_CAUSE_HOST_WORK]},
        {"copying into buffers", stall[MS_CAUSE_PACK]},
        {"waiting for other ranks", time->bubble_ns},
        {"waiting for pages", time->page_wait_ns},
        {"waiting for memory", time->memory_wait_ns},
        {"idle", time->idle_ns}};
    const char *between = ": ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].t_ns <= time->step_ns / LEAST_TIME)
            continue;
        ms_text_add(words, "%s%s %s", between, parts[i].name,
                    ms_quantity_time_as(parts[i].t_ns, time->step_ns).s);
        between = ", ";
    }
}

/* How far such numbers were off: stands behind each that is told. */
static void put_accuracy(const ms_accuracy *of, uint64_t percent,
                         ms_text *words)
{
    if (of == NULL)
        ms_text_add(words, " (not held against any run of this kind)");
    else
        ms_text_add(words,
                    " (within %u %% on %u measured runs of this kind, %.1f %% "
                    "at the median)",
                    (unsigned)percent, of->runs, of->median_percent);
}

static void step_line(const ms_summary *summary, ms_text *text)
{
    const ms_report *report = summary->result->report;
    const ms_times *time = &told(summary->result)->time;
    ms_text words = {.arena = summary->arena};
    ms_text_add(&words, "%s%s", ms_quantity_time(time->step_ns).s,
                summary->result->plan->overlaps ? " from step to step" : "");
    put_accuracy(summary->result->accuracy, time->error_percent, &words);
    if (report->mfu >= LEAST_MFU)
        ms_text_add(&words, ", MFU %.1f %%", 100 * report->mfu);
    put_time_parts(told(summary->result), &words);
    if (report->tokens_per_second >= 0)
        ms_text_add(&words, "; %s tokens/s",
                    ms_quantity_count((uint64_t)report->tokens_per_second).s);
    if (report->page_faults > 0)
        ms_text_add(&words, "; %s page faults",
                    ms_quantity_count(report->page_faults).s);
    if (report->revoked_prefetches > 0)
        ms_text_add(&words, "; %u prefetch%s revoked",
                    report->revoked_prefetches,
                    report->revoked_prefetches > 1 ? "es" : "");
    put_line(text, "step:", &words);
}

static uint64_t model_states(const ms_result *result)
{
    const ms_rank_report *rank = told(result);
    return rank->parameters_bytes + rank->gradients_bytes +
           rank->optimizer_state_bytes;
}

/* "parameters 0.23 GiB + gradients 0.23 GiB + ...", without terms that are 0.
 */
static void put_states(const ms_rank_report *rank, uint64_t total,
                       ms_text *words)
{
    const struct {
        uint8_t category;
        uint64_t bytes;
    } parts[] = {{MS_PARAMETERS, rank->parameters_bytes},
                 {MS_GRADIENTS, rank->gradients_bytes},
                 {MS_OPTIMIZER_STATE, rank->optimizer_state_bytes}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].bytes == 0)
            continue;
        ms_text_add(words, words->length > 0 ? " + " : "");
        ms_textlines_category(parts[i].category, words);
        ms_text_add(words, " %s", ms_quantity_size_as(parts[i].bytes, total).s);
    }
}

static void states_line(const ms_summary *summary, ms_text *text)
{
    uint64_t parameters = summary->result->graph->parameters;
    uint64_t total = model_states(summary->result);
    ms_text words = {.arena = summary->arena};
    put_states(told(summary->result), total, &words);
    if (total > 0)
        ms_text_add(&words, " = %s", ms_quantity_size(total).s);
    if (total > 0 && parameters > 0)
        ms_text_add(&words, ", %.4g bytes per parameter",
                    (double)total / (double)parameters);
    put_line(text, "states:", &words);
}

static ms_err alive_line(const ms_summary *summary, ms_text *text,
                         ms_fault *fault)
{
    ms_text words = {.arena = summary->arena};
    if (!is_over(summary->result))
        return MS_OK;
    MS_TRY(ms_alive_words(summary->result, ALIVE_GROUPS, summary->arena, &words,
                          fault));
    put_line(text, "largest:", &words);
    return MS_OK;
}

/* The categories at the peak, largest first. */
static void categories_line(const ms_summary *summary, ms_text *text)
{
    const ms_peak *peak = &told(summary->result)->peak;
    const uint64_t *bytes = peak->by_category;
    uint32_t seen = 0;
    ms_text words = {.arena = summary->arena};
    for (uint32_t n = 0; n < MS_N_CATEGORIES; n++) {
        uint32_t top = MS_N_CATEGORIES;
        for (uint32_t c = 0; c < MS_N_CATEGORIES; c++)
            if ((seen >> c & 1) == 0 && bytes[c] > 0 &&
                (top == MS_N_CATEGORIES || bytes[c] > bytes[top]))
                top = c;
        if (top == MS_N_CATEGORIES ||
            bytes[top] < peak->allocated_bytes / LEAST_PART)
            break;
        seen |= 1u << top;
        ms_text_add(&words, "%s", n > 0 ? ", " : "");
        ms_textlines_category((uint8_t)top, &words);
        ms_text_add(&words, " %s",
                    ms_quantity_size_as(bytes[top], peak->allocated_bytes).s);
    }
    put_line(text, "at peak:", &words);
}

static void peak_line(const ms_summary *summary, ms_text *text)
{
    const ms_result *result = summary->result;
    const ms_peak *peak = &told(result)->peak;
    ms_text words = {.arena = summary->arena};
    char name[64];
    ms_text_add(&words, "%s%s", ms_quantity_size(peak->allocated_bytes).s,
                result->report->pooled != NULL ? " allocated" : "");
    put_accuracy(result->peak_accuracy, peak->error_percent, &words);
    ms_text_add(&words, " at %s in ", ms_quantity_time(peak->t_ns).s);
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

static uint64_t waits_of(const ms_times *time)
{
    return time->bubble_ns + time->exposed_comm_ns + time->stall_ns +
           time->host_bound_ns + time->page_wait_ns + time->memory_wait_ns +
           time->idle_ns;
}

/* Of several ranks what each needs of what the context leaves, and how long its
 * compute stream stands still. */
static void rank_line(const ms_summary *summary, const ms_rank_report *rank,
                      ms_text *text)
{
    const ms_report *report = summary->result->report;
    ms_text words = {.arena = summary->arena};
    char label[16];
    snprintf(label, sizeof label, "rank %u:", (unsigned)rank->rank);
    ms_text_add(&words, "%s", ms_quantity_size(rank->peak.allocated_bytes).s);
    if (report->pooled != NULL)
        ms_text_add(&words, " allocated, %s reserved",
                    ms_quantity_size(rank->peak.reserved_bytes).s);
    if (ms_capacity_usable(report) > 0)
        ms_text_add(&words, " of %s",
                    ms_quantity_size(ms_capacity_usable(report)).s);
    ms_text_add(
        &words, "; waits %s of %s",
        ms_quantity_time_as(waits_of(&rank->time), rank->time.step_ns).s,
        ms_quantity_time(rank->time.step_ns).s);
    put_line(text, label, &words);
}

static bool result_has_stages(const ms_result *result)
{
    return result->report->n_ranks > 1 && result->report->ranks[0].n_stages > 0;
}

/* Of many ranks the first and the last ones. */
#define MOST_RANK_LINES 16u

static void rank_lines(const ms_summary *summary, ms_text *text)
{
    const ms_report *report = summary->result->report;
    uint32_t n = report->n_ranks, half = MOST_RANK_LINES / 2;
    for (uint32_t i = 0; i < n && n > 1; i++) {
        if (n <= MOST_RANK_LINES || i < half || i >= n - half) {
            rank_line(summary, &report->ranks[i], text);
            continue;
        }
        ms_text words = {.arena = summary->arena};
        ms_text_add(&words, "%u ranks more (--json has all)",
                    n - MOST_RANK_LINES);
        put_line(text, "...", &words);
        i = n - half - 1;
    }
}

static void pool_line(const ms_summary *summary, ms_text *text)
{
    ms_text words = {.arena = summary->arena};
    if (summary->result->report->pooled == NULL)
        return;
    (summary->job->usual ? ms_poolwords_brief
                         : ms_poolwords_put)(summary->result->report, &words);
    put_line(text, "pool:", &words);
    ms_poolsteps_put(summary, text);
}

static void verdict_line(const ms_summary *summary, ms_text *text)
{
    const ms_style *style = summary->style;
    const ms_report *report = summary->result->report;
    ms_text words = {.arena = summary->arena};
    ms_room_verdict(report, &words);
    if (is_over(summary->result))
        ms_room_first_over(summary->result, &words);
    ms_text_add(text, "%s%s", style->strong,
                report->fits ? style->good : style->bad);
    put_line(text, "verdict:", &words);
    ms_text_add(text, "%s", style->plain);
}

static void device_line(const ms_summary *summary, ms_text *text)
{
    bool is_cpu = summary->result->training.device == 1;
    ms_text words = {.arena = summary->arena};
    ms_devicewords_put(summary->job, summary->result, &words);
    put_line(text, is_cpu ? "process:" : "device:", &words);
}

/* ---- what the policy did, what else would help --------------------------- */

static const ms_rank_report *worst(const ms_result *result)
{
    return &result->report->ranks[result->report->worst];
}

/* Says what else makes the peak when a policy lowered activations but not the
 * peak. */
static void put_peak_stays(const ms_result *with, ms_text *words)
{
    const ms_rank_report *rank = worst(with);
    const uint64_t *bytes = rank->peak.by_category;
    uint64_t states =
        bytes[MS_PARAMETERS] + bytes[MS_GRADIENTS] + bytes[MS_OPTIMIZER_STATE];
    ms_text_add(words, "; the peak stays, in ");
    put_phase(words, &rank->peak);
    ms_text_add(words, ": model states are %s of it",
                ms_quantity_size(states).s);
    if (rank->peak.phase == MS_PHASE_OPTIMIZER &&
        rank->optimizer_scratch_bytes > 0 && with->graph->parameters > 0)
        ms_text_add(words,
                    ", the optimizer's temporary lists %s, %.3g bytes per "
                    "parameter",
                    ms_quantity_size(rank->optimizer_scratch_bytes).s,
                    (double)rank->optimizer_scratch_bytes /
                        (double)with->graph->parameters);
}

static void put_gain(const ms_summary *summary, const ms_result *without,
                     ms_text *words)
{
    const ms_result *with = summary->result;
    const ms_report *report = without->report;
    ms_text_add(words, "without %s the peak would be %s%s", summary->policy,
                ms_quantity_size(worst(without)->peak.allocated_bytes).s,
                with->report->fits && !report->fits ? " (does not fit)" : "");
}

/* What the policy costs: time of recomputation beyond what the model does
 * without it, and of smaller or more kernels. */
static void put_cost(const ms_result *with, const ms_result *without,
                     ms_text *words)
{
    uint64_t with_ns = worst(with)->time.step_ns;
    uint64_t without_ns = worst(without)->time.step_ns;
    uint64_t again_ns = worst(with)->time.recompute_ns;
    uint64_t before_ns = worst(without)->time.recompute_ns;
    again_ns = again_ns > before_ns ? again_ns - before_ns : 0;
    if (again_ns > 0)
        ms_text_add(words, "; recomputing takes %s and %s",
                    ms_quantity_time(again_ns).s,
                    ms_quantity_flops(with->report->recompute_flops -
                                      without->report->recompute_flops)
                        .s);
    if (with_ns <= without_ns || without_ns == 0)
        return;
    ms_text_add(words, again_ns > 0 ? ", the step " : "; the step takes ");
    if (with_ns / without_ns >= MANY_TIMES) {
        ms_text_add(words, "%.0f times as long",
                    (double)with_ns / (double)without_ns);
        return;
    }
    put_percent(words, with_ns - without_ns, without_ns);
    ms_text_add(words, " longer");
}

static bool lowers_activations(const ms_result *with, const ms_result *without)
{
    return worst(with)->category_peaks[MS_ACTIVATIONS] <
           worst(without)->category_peaks[MS_ACTIVATIONS];
}

static void put_no_gain(const ms_summary *summary, const ms_result *without,
                        ms_text *words)
{
    uint64_t kept = worst(summary->result)->category_peaks[MS_ACTIVATIONS];
    uint64_t all = worst(without)->category_peaks[MS_ACTIVATIONS];
    if (!lowers_activations(summary->result, without)) {
        ms_text_add(words, "%s does not lower activations here",
                    summary->policy);
        return;
    }
    ms_text_add(words, "%s lowers activations from %s to %s", summary->policy,
                ms_quantity_size(all).s, ms_quantity_size(kept).s);
}

/* Compares with the step without policies, if that is possible. */
static ms_err note_line(const ms_summary *summary, bool *stays, ms_text *text,
                        ms_fault *fault)
{
    static const ms_spec none = {0};
    ms_arena scratch = {0};
    ms_result without;
    ms_text words = {.arena = summary->arena};
    const ms_job *job = summary->job;
    bool possible;
    *stays = false;
    if (job->program != NULL || strcmp(summary->policy, "none") == 0)
        return MS_OK;
    ms_err err = ms_leftout_step(job, &none, false, summary->result, &scratch,
                                 &without, &possible, fault);
    if (err == MS_OK && possible) {
        uint64_t before = worst(&without)->peak.allocated_bytes;
        uint64_t after = worst(summary->result)->peak.allocated_bytes;
        *stays = after > before - before / 100;
        (*stays ? put_no_gain : put_gain)(summary, &without, &words);
        put_cost(summary->result, &without, &words);
        if (*stays && lowers_activations(summary->result, &without))
            put_peak_stays(summary->result, &words);
        put_line(text, "note:", &words);
    }
    ms_arena_free(&scratch);
    return err;
}

/* Notes policies that change nothing. If all of them do (*all), there is
 * nothing to compare. */
static ms_err needless_line(const ms_summary *summary, bool *all, ms_text *text,
                            ms_fault *fault)
{
    const ms_job *job = summary->job;
    ms_text words = {.arena = summary->arena};
    uint32_t needless;
    MS_TRY(ms_needless_find(job, summary->result, &needless, fault));
    MS_TRY(ms_needless_words(job, needless, summary->arena, &words, fault));
    put_line(text, "note:", &words);
    *all = job->spec.n > 0 && needless == (UINT32_C(1) << job->spec.n) - 1;
    return MS_OK;
}

ms_err ms_summary_write(const ms_summary *summary, ms_text *text,
                        ms_fault *fault)
{
    ms_whatnext next;
    bool stays, needless;
    model_line(summary, text);
    policy_line(summary, text);
    defaults_line(summary, text);
    unknown_line(summary, text);
    untrained_line(summary, text);
    MS_TRY(chart_lines(summary, text, fault));
    step_line(summary, text);
    ms_planline_put(summary->result, summary->arena, text);
    ms_traffic_links(summary->result, summary->style, text);
    states_line(summary, text);
    device_line(summary, text);
    pool_line(summary, text);
    peak_line(summary, text);
    if (result_has_stages(summary->result))
        MS_TRY(ms_stagetable_put(summary, text, fault));
    else
        rank_lines(summary, text);
    ms_rankwords_put(summary->result, text);
    categories_line(summary, text);
    ms_traffic_memories(summary->result, text);
    MS_TRY(alive_line(summary, text, fault));
    MS_TRY(needless_line(summary, &needless, text, fault));
    stays = needless;
    if (!needless)
        MS_TRY(note_line(summary, &stays, text, fault));
    MS_TRY(ms_whatnext_advice(summary, stays, &next, text, fault));
    verdict_line(summary, text);
    MS_TRY(ms_whatnext_commands(summary, &next, text, fault));
    ms_narrow_lines(text);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
