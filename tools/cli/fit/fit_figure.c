/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws what fit found: the peak against throughput, or against the step
 * time where all steps do the same work. */

#include <math.h>

#include "plots/plots.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "tools/cli/run/figures.h"
#include "tools/job/outputs.h"
#include "tools/search/fit.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

/* The kind of a setup: where the bytes are that do not fit the device. */
static const char *family_of(const ms_fit_point *point)
{
    bool swap = point->option[MS_FIT_SWAP] > 0;
    bool offload = point->option[MS_FIT_OFFLOAD] > 0;
    if (swap)
        return offload ? "swap and offload" : "swap";
    if (offload)
        return "offload";
    return point->option[MS_FIT_CHECKPOINT] > 0 ? "checkpointing"
                                                : "all kept on the device";
}

/* Leaves out what needs far more than the memory, since it would squeeze the
 * rest of the figure. */
static bool is_shown(const ms_fit_reply *reply, uint32_t i)
{
    const ms_fit *fit = reply->fit;
    const ms_fit_point *point = &fit->all[i];
    if (i == reply->chosen)
        return true;
    return point->state == MS_FIT_REPLAYED && !point->far_full &&
           !ms_fitjudge_is_far(fit, point) &&
           (fit->best == MS_NONE ||
            point->reserved_bytes / 2 < fit->capacity_bytes);
}

static ms_limit limit_of(const ms_fit *fit)
{
    return (ms_limit){.device = fit->job->device->name,
                      .capacity_bytes = fit->capacity_bytes,
                      .usable_bytes = fit->capacity_bytes - fit->context_bytes};
}

/* Finds the settings that all points have in common. */
static void find_common(const ms_fit_reply *reply, bool common[MS_FIT_N_AXES])
{
    const ms_fit *fit = reply->fit;
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++) {
        common[a] = true;
        for (uint32_t i = 0; i < fit->n_all; i++)
            common[a] &=
                !is_shown(reply, i) ||
                fit->all[i].option[a] == fit->all[reply->chosen].option[a];
    }
}

/* The tokens of a step of all GPUs, or its samples where the model has no
 * tokens. */
static double work_of(const ms_fit *fit, const ms_fit_point *point)
{
    double seconds = (double)point->step_ns / 1e9;
    if (point->tokens_per_second >= 0.0)
        return round(point->tokens_per_second * seconds);
    return (double)ms_fitsetup_batch(fit, point) *
           (fit->job->gpus > 1 ? fit->job->gpus : 1);
}

static ms_err list_trades(const ms_fit_reply *reply, ms_arena *arena,
                          ms_trade **trades, uint32_t *n, ms_fault *fault)
{
    const ms_fit *fit = reply->fit;
    bool common[MS_FIT_N_AXES];
    find_common(reply, common);
    *n = 0;
    *trades = ms_arena_take(arena, fit->n_all, sizeof **trades);
    if (*trades == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < fit->n_all; i++) {
        const ms_fit_point *point = &fit->all[i];
        if (!is_shown(reply, i))
            continue;
        ms_text name = {.arena = arena};
        ms_fit_table_set_up(fit, i, common, &name);
        if (name.failed)
            return ms_fail_nomem(fault);
        (*trades)[(*n)++] =
            (ms_trade){.name = name.bytes,
                       .family = family_of(point),
                       .work = work_of(fit, point),
                       .has_tokens = point->tokens_per_second >= 0.0,
                       .peak_bytes = point->reserved_bytes,
                       .step_ns = point->step_ns,
                       .fits = point->fits,
                       .is_chosen = i == reply->chosen,
                       .limit = limit_of(fit)};
    }
    return MS_OK;
}

static void put_titles(const ms_fit_reply *reply, ms_text *title,
                       ms_text *subtitle)
{
    const ms_fit *fit = reply->fit;
    const ms_fit_point *chosen = &fit->all[reply->chosen];
    uint32_t gpus = fit->job->gpus;
    ms_text_add(title, "%s (%s parameters)", fit->model.model.name,
                ms_quantity_short(fit->model.graph->parameters).s);
    ms_setupwords_gpus(gpus, title);
    ms_text_add(title, "%s set-ups on %s", gpus > 1 ? ":" : ",",
                fit->job->device->name);
    ms_fit_text_batch(fit, "\u00d7", subtitle);
    ms_text_add(subtitle, "; %s ",
                fit->best != MS_NONE ? "best" : "nothing fits; least");
    ms_fit_table_set_up(fit, reply->chosen, NULL, subtitle);
    ms_text_add(subtitle, ": %s, %s",
                ms_quantity_size(chosen->reserved_bytes).s,
                ms_quantity_time(chosen->step_ns).s);
    if (chosen->tokens_per_second > 0)
        ms_text_add(subtitle, ", %s tokens/s",
                    ms_quantity_count((uint64_t)chosen->tokens_per_second).s);
}

ms_err ms_fit_figure_draw(const ms_fit_reply *reply, const ms_picture *picture,
                          ms_arena *arena, ms_fault *fault)
{
    const ms_fit *fit = reply->fit;
    ms_text title = {.arena = arena}, subtitle = {.arena = arena};
    ms_trade *trades;
    uint32_t n;
    MS_TRY(list_trades(reply, arena, &trades, &n, fault));
    put_titles(reply, &title, &subtitle);
    if (title.failed || subtitle.failed)
        return ms_fail_nomem(fault);
    const ms_drawing drawing = {.title = picture->title != NULL ? picture->title
                                                                : title.bytes,
                                .subtitle = subtitle.bytes,
                                .path = picture->path,
                                .script_path = picture->script,
                                .arena = arena,
                                .per_gpu = fit->job->gpus > 1};
    return ms_figure_pareto(trades, n, &drawing, fault);
}
