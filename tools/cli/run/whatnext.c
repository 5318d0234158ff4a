/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of the summary: what would help, and what to type next. */

#include "tools/cli/run/whatnext.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/advice/hostadvice.h"
#include "tools/advice/setup.h"
#include "tools/cli/run/run.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/words/words.h"

#define INDENT 10u /* column of the texts beside a label */

static ms_err put_line(ms_text *text, const char *label, const ms_text *words,
                       ms_fault *fault)
{
    if (words->failed)
        return ms_fail_nomem(fault);
    if (words->length > 0)
        ms_screen_fill(text, INDENT, label, words->bytes);
    return MS_OK;
}

/* Is the device's memory too small (and not the host's or the disk)? */
static bool is_over(const ms_result *result)
{
    return ms_capacity_short(result->report, MS_DEVICE_POOL) > 0;
}

/* ---- advice -------------------------------------------------------------- */

/* Whatever the policies do with activations, the step cannot fit: parameters,
 * gradients and optimizer state are all there when the optimizer step begins.
 */
static void put_states_too_large(const ms_result *result, ms_text *words)
{
    const ms_rank_report *rank = &result->report->ranks[result->report->worst];
    uint64_t states = rank->parameters_bytes + rank->gradients_bytes +
                      rank->optimizer_state_bytes;
    if (states + result->report->context_bytes > result->report->capacity_bytes)
        ms_text_add(words, "model states alone are too much: no policy for "
                           "activations makes them fit");
}

/* Advice where the device has enough memory and the node does not. */
static ms_err node_advice(const ms_summary *summary, ms_whatnext *next,
                          ms_text *text, ms_fault *fault)
{
    ms_text words = {.arena = summary->arena};
    MS_TRY(ms_hostadvice_find(summary->job, summary->result, summary->arena,
                              &next->node, fault));
    ms_hostadvice_put(&next->node, &words);
    return put_line(text, "advice:", &words, fault);
}

/* Is there no way that fits and trains the same model? */
static bool is_lost(const ms_advice *advice)
{
    return advice->n_fitting == 0 || advice->ways[0].costs == MS_COSTS_TRAINING;
}

static ms_err device_advice(const ms_summary *summary, ms_whatnext *next,
                            ms_text *text, ms_fault *fault)
{
    const ms_result *result = summary->result;
    ms_text states = {.arena = summary->arena}, none = states;
    ms_advice *advice = &next->device;
    MS_TRY(ms_advice_find(summary->job, result, advice, fault));
    if (is_lost(advice))
        put_states_too_large(result, &states);
    MS_TRY(put_line(text, "note:", &states, fault));
    if (advice->n == 0)
        ms_text_add(&none, "no setting that was tried lowers the peak");
    MS_TRY(put_line(text, "advice:", &none, fault));
    return ms_advicewords_put(advice, summary->job, result, INDENT, text,
                              fault);
}

ms_err ms_whatnext_advice(const ms_summary *summary, bool stays,
                          ms_whatnext *next, ms_text *text, ms_fault *fault)
{
    const ms_result *result = summary->result;
    *next = (ms_whatnext){0};
    if (is_over(result))
        return device_advice(summary, next, text, fault);
    if (!result->report->fits)
        return node_advice(summary, next, text, fault);
    if (!stays)
        return MS_OK;
    MS_TRY(ms_advice_lower(summary->job, result, &next->device, fault));
    return ms_advicewords_put(&next->device, summary->job, result, INDENT, text,
                              fault);
}

/* ---- set-ups that hold the step ------------------------------------------ */

static void put_need(const ms_setup *setup, ms_pool_kind pool, ms_text *words)
{
    if (setup->far[pool].node_reserved_bytes > 0)
        ms_text_add(words, "%s%s of %s",
                    pool == MS_HOST_POOL ? "; on the node " : ", ",
                    ms_quantity_size(setup->far[pool].node_reserved_bytes).s,
                    ms_room_names[pool]);
}

static void put_setup(const ms_summary *summary, const char *label,
                      const ms_setup *setup, ms_text *text)
{
    ms_text words = {.arena = summary->arena};
    ms_text_add(text, "%-10s", label);
    ms_settings_setup(summary->arguments, setup->policy, setup->gpus, text);
    ms_text_add(text, "\n");
    if (setup->gpus > 1)
        ms_text_add(&words, "%u GPUs, each ", setup->gpus);
    else
        ms_text_add(&words, "one GPU, ");
    ms_text_add(&words, "%s of %s",
                ms_quantity_size_as(setup->used_bytes, setup->capacity_bytes).s,
                ms_quantity_size(setup->capacity_bytes).s);
    put_need(setup, MS_HOST_POOL, &words);
    put_need(setup, MS_NVME_POOL, &words);
    ms_text_add(&words, "; %s a step", ms_quantity_time(setup->step_ns).s);
    if (setup->tokens_per_second >= 1)
        ms_text_add(&words, ", %s tokens/s",
                    ms_quantity_count((uint64_t)setup->tokens_per_second).s);
    text->failed |= words.failed;
    if (!words.failed)
        ms_screen_fill(text, INDENT, "", words.bytes);
}

/* Both that are found, and a command that searches further. */
static ms_err put_set_ups(const ms_summary *summary, bool *found, ms_text *text,
                          ms_fault *fault)
{
    const ms_result *result = summary->result;
    ms_setup more, one;
    MS_TRY(ms_setup_shared(summary->job, result, summary->arena, &more, fault));
    MS_TRY(ms_setup_alone(summary->job, result, summary->arena, &one, fault));
    *found = more.policy != NULL || one.policy != NULL;
    if (more.policy != NULL)
        put_setup(summary, "fits:", &more, text);
    if (one.policy != NULL)
        put_setup(summary, more.policy != NULL ? "or:" : "fits:", &one, text);
    if (!*found)
        return MS_OK;
    ms_text_add(text, "or:       ");
    ms_settings_fit(
        summary->arguments,
        more.policy != NULL ? more.gpus : ms_shape_ranks(&result->shape), text);
    ms_text_add(text, "\n");
    return MS_OK;
}

/* The first of the two, beside advice that fits on one GPU. */
static ms_err put_more_gpus(const ms_summary *summary, ms_text *text,
                            ms_fault *fault)
{
    ms_setup more;
    MS_TRY(ms_setup_shared(summary->job, summary->result, summary->arena, &more,
                           fault));
    if (more.policy != NULL)
        put_setup(summary, "or:", &more, text);
    return MS_OK;
}

/* ---- commands ------------------------------------------------------------ */

/* The option for the output to look at next, after those that were asked for.
 */
static const char *next_output(const ms_summary *summary)
{
    const ms_arguments *given = summary->arguments;
    if (ms_options_value(given, MS_OPTION_PLOT) == NULL)
        return summary->result->report->ranks[0].n_stages > 0
                   ? "--figure pipeline --plot"
                   : "--plot";
    if (summary->result->plan->wait_at != NULL &&
        ms_options_value(given, MS_OPTION_FIGURE) == NULL)
        return "--figure gantt --plot=gantt.svg";
    return "--csv timeline.csv";
}

/* The label of the next command; where the step does not fit, it says that the
 * command finds what does. */
static const char *label_of(const ms_summary *summary, const ms_whatnext *next)
{
    bool fits = next->node.policy != NULL || !is_lost(&next->device);
    return fits && !summary->result->report->fits ? "fits:" : "next:";
}

/* More GPUs are worth a line where the advice for these changes the training,
 * or makes the step longer by more than a tenth. */
static bool asks_for_more(const ms_summary *summary, const ms_advice *advice)
{
    uint64_t as_it_is_ns = summary->result->report->ranks[0].time.step_ns;
    const ms_advice_way *way = &advice->ways[0];
    return is_over(summary->result) && advice->n > 0 &&
           (way->costs > MS_COSTS_TIME ||
            (way->costs == MS_COSTS_TIME &&
             way->step_ns > as_it_is_ns + as_it_is_ns / 10));
}

static ms_err next_lines(const ms_summary *summary, const ms_whatnext *next,
                         ms_text *text, ms_fault *fault)
{
    const ms_advice *advice = &next->device;
    ms_text_add(text, "%-10s", label_of(summary, next));
    if (next->node.policy != NULL)
        ms_settings_instead(summary->arguments, next->node.policy, text);
    else if (advice->n > 0 && advice->ways[0].costs != MS_COSTS_TRAINING)
        MS_TRY(ms_changewords_command(&advice->ways[0].set, summary->arguments,
                                      summary->job, summary->result, text,
                                      fault));
    else
        ms_settings_command(summary->arguments, next_output(summary), text);
    ms_text_add(text, "\n");
    if (summary->result->report->fits || summary->job->program != NULL)
        return MS_OK;
    if (asks_for_more(summary, advice))
        MS_TRY(put_more_gpus(summary, text, fault));
    ms_text_add(text, "or:       ");
    ms_settings_fit(summary->arguments, ms_shape_ranks(&summary->result->shape),
                    text);
    ms_text_add(text, "\n");
    return MS_OK;
}

ms_err ms_whatnext_commands(const ms_summary *summary, const ms_whatnext *next,
                            ms_text *text, ms_fault *fault)
{
    bool set_up = false;
    if (is_over(summary->result) && is_lost(&next->device))
        MS_TRY(put_set_ups(summary, &set_up, text, fault));
    return set_up ? MS_OK : next_lines(summary, next, text, fault);
}
