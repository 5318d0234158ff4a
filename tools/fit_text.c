/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fit found, for people. */

#include "tools/explain.h"
#include "tools/fit.h"

#include <stdio.h>
#include <string.h>

#define MOST_ROWS 12u
#define POLICY_COLUMN 52u
#define LABEL_INDENT MS_TELL_INDENT

static const ms_fit_point *point_of(const ms_fit_reply *reply, uint32_t point)
{
    return &reply->fit->all[point];
}

/* ---- numbers in words ---------------------------------------------------- */

static ms_label percent(uint64_t value, uint64_t of)
{
    ms_label label = {"-"};
    double part =
        of > 0 ? 100.0 * ((double)value - (double)of) / (double)of : 0;
    if (value != of)
        snprintf(label.s, sizeof label.s, "%+.1f %%", part);
    return label;
}

static void put_time(const ms_fit_point *point, ms_text *words)
{
    ms_text_add(words, "%s a step", ms_quantity_time(point->step_ns).s);
    if (point->tokens_per_second > 0)
        ms_text_add(words, ", %s tokens/s",
                    ms_quantity_count((uint64_t)point->tokens_per_second).s);
}

static void put_far_short(const ms_fit_point *point, ms_text *words)
{
    const uint64_t short_bytes[MS_N_POOLS] = {
        [MS_HOST_POOL] = point->host_short_bytes,
        [MS_NVME_POOL] = point->nvme_short_bytes};
    const char *between = "needs";
    for (int pool = 0; pool < MS_N_POOLS; pool++) {
        if (short_bytes[pool] == 0)
            continue;
        ms_text_add(words, "%s %s more %s", between,
                    ms_quantity_size(short_bytes[pool]).s, ms_room_names[pool]);
        between = " and";
    }
    ms_text_add(words, " than a node has");
}

/* "fits with 30.10 GiB to spare", "is 5.57 GiB short". */
static void put_room(const ms_fit_point *point, ms_text *words)
{
    int64_t room = point->headroom_bytes;
    if (room < 0)
        ms_text_add(words, "is %s short",
                    ms_quantity_size(0 - (uint64_t)room).s);
    else if (point->far_full)
        put_far_short(point, words);
    else
        ms_text_add(words, "fits with %s to spare",
                    ms_quantity_size((uint64_t)room).s);
}

static void put_policy(const ms_fit_reply *reply, uint32_t point, ms_text *text)
{
    const char *policy = ms_fitreply_policy(reply->fit, point, text->arena);
    text->failed |= policy == NULL;
    ms_text_add(text, "%s", policy != NULL ? policy : "");
}

/* ---- heading ------------------------------------------------------------- */

static void device_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_report report = {.capacity_bytes = fit->capacity_bytes,
                              .context_bytes = fit->context_bytes,
                              .outside = fit->outside};
    ms_text words = {.arena = text->arena};
    if (fit->job->gpus > 1)
        ms_text_add(&words, "%u x ", fit->job->gpus);
    ms_usedwords_device(fit->job, &report, &words);
    ms_tell_words("device:", LABEL_INDENT, &words, text);
}

static void fixed_line(const ms_fit_reply *reply, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (reply->given == NULL)
        return;
    ms_text_add(&words, "%s", reply->given);
    if (reply->max != NULL)
        ms_text_add(&words, " is given: no other set-up is tried");
    else if (reply->fixed != NULL)
        ms_text_add(&words, " is given, so that %s %s not searched",
                    reply->fixed, strchr(reply->fixed, ',') ? "are" : "is");
    else
        ms_text_add(&words, " is in all of them");
    ms_tell_words("fixed:", LABEL_INDENT, &words, text);
}

static void heading(const ms_fit_reply *reply, const ms_style *style,
                    ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text model = {.arena = text->arena}, defaults = {.arena = text->arena};
    ms_text_add(&model, "%s, %s parameters, ", fit->model.model.name,
                ms_quantity_count(fit->model.graph.parameters).s);
    ms_summary_setup(&fit->model, "x", &model);
    if (fit->job->gpus > 1)
        ms_text_add(&model, ", on each of %u GPUs", fit->job->gpus);
    ms_text_add(text, "%s", style->strong);
    ms_tell_words("model:", LABEL_INDENT, &model, text);
    ms_text_add(text, "%s", style->plain);
    device_line(reply, text);
    ms_settings_defaults(fit->job, &fit->model.training, &defaults);
    ms_settings_node_defaults(fit->job, 1u << MS_HOST_POOL | 1u << MS_NVME_POOL,
                              &defaults);
    ms_text_add(text, "%s", style->faint);
    ms_tell_words("defaults:", LABEL_INDENT, &defaults, text);
    ms_text_add(text, "%s", style->plain);
    ms_tell_unknown(&fit->model.graph, text);
    fixed_line(reply, text);
}

/* ---- the largest batch or sequence --------------------------------------- */

static void max_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit_max *max = reply->max;
    ms_text words = {.arena = text->arena};
    if (max->value == 0)
        ms_text_add(&words, "not even a %s of 1 fits", max->key);
    else if (max->over == 0)
        ms_text_add(
            &words, "%s %s fits; %s", max->key, ms_quantity_count(max->value).s,
            max->model_cap ? "the model takes no more" : "no more is tried");
    else
        ms_text_add(&words, "%s %s fits, %s does not", max->key,
                    ms_quantity_count(max->value).s,
                    ms_quantity_count(max->over).s);
    ms_text_add(&words,
                " (%u value%s tried, %s replays; that a larger %s needs "
                "no less memory is assumed)",
                max->searches, max->searches == 1 ? "" : "s",
                ms_quantity_count(max->replays).s, max->key);
    ms_tell_words("largest:", LABEL_INDENT, &words, text);
}

/* ---- the answer ---------------------------------------------------------- */

static void plain_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit_point *point = point_of(reply, 0);
    ms_text words = {.arena = text->arena};
    if (reply->chosen == 0)
        return;
    put_policy(reply, 0, &words);
    if (point->state != MS_FIT_REPLAYED) {
        ms_text_add(&words, " is refused: %s", reply->fit->refusal.what);
    } else {
        ms_text_add(&words, ": %s, which ",
                    ms_quantity_size(point->reserved_bytes).s);
        put_room(point, &words);
        ms_text_add(&words, "; %s a step", ms_quantity_time(point->step_ns).s);
    }
    ms_tell_words("plain:", LABEL_INDENT, &words, text);
}

/* What the set-up takes more or less than the plain one. */
static void put_cost(const ms_fit_reply *reply, uint32_t point, ms_text *words)
{
    const ms_fit_point *plain = point_of(reply, 0);
    if (point == 0 || plain->state != MS_FIT_REPLAYED)
        return;
    ms_label cost = percent(point_of(reply, point)->step_ns, plain->step_ns);
    if (strcmp(cost.s, "-") == 0)
        ms_text_add(words, " (as plain)");
    else
        ms_text_add(words, " (%s time against plain)", cost.s);
}

static void put_set_up(const ms_fit_reply *reply, uint32_t i, ms_text *words)
{
    const ms_fit_point *point = point_of(reply, i);
    size_t before = words->length;
    ms_fitspace_words(reply->fit, point, words);
    if (words->length == before)
        ms_text_add(words, "%s",
                    reply->given == NULL ? "nothing is needed" : "as given");
    ms_text_add(words, ": %s, which ",
                ms_quantity_size(point->reserved_bytes).s);
    put_room(point, words);
    ms_text_add(words, "; ");
    put_time(point, words);
    put_cost(reply, i, words);
}

/* "without ZeRO stage 3 it is 12.20 GiB short". */
static void put_without(const ms_fit_reply *reply, uint32_t k, ms_text *words)
{
    const struct ms_fit_without *without = &reply->without[k];
    const ms_fit_point *point = point_of(reply, without->point);
    const ms_fit_point *chosen = point_of(reply, reply->chosen);
    ms_text_add(words, "without ");
    ms_fitspace_part(reply->fit, chosen, without->axis, words);
    ms_text_add(words, " it ");
    put_room(point, words);
    if (point->fits)
        ms_text_add(words, " and takes %s",
                    percent(point->step_ns, chosen->step_ns).s);
}

static void without_line(const ms_fit_reply *reply, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t k = 0; k < reply->without_n; k++) {
        ms_text_add(&words, "%s", k > 0 ? "; " : "");
        put_without(reply, k, &words);
    }
    if (words.length > 0)
        ms_tell_words("", LABEL_INDENT, &words, text);
}

/* Another set-up that may be preferred. */
static void other_line(const ms_fit_reply *reply, const char *label,
                       const char *why, uint32_t i, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (i == MS_NONE || i == reply->chosen)
        return;
    ms_text_add(&words, "%s: ", why);
    put_policy(reply, i, &words);
    ms_text_add(&words, ", %s, ",
                ms_quantity_size(point_of(reply, i)->reserved_bytes).s);
    put_time(point_of(reply, i), &words);
    ms_label cost = percent(point_of(reply, i)->step_ns,
                            point_of(reply, reply->chosen)->step_ns);
    ms_text_add(&words, " (%s)", strcmp(cost.s, "-") == 0 ? "as fast" : cost.s);
    ms_tell_words(label, LABEL_INDENT, &words, text);
}

/* The foreach step makes copies of its gradients and states: often the peak. */
static void fused_line(const ms_fit_reply *reply, ms_text *text)
{
    uint64_t now_bytes = point_of(reply, reply->chosen)->reserved_bytes;
    ms_text words = {.arena = text->arena};
    if (reply->fused_bytes == 0 ||
        reply->fused_bytes > now_bytes - now_bytes / MS_FIT_TIE)
        return;
    ms_text_add(
        &words, "with --set training.optimizer_impl=fused that takes %s%s",
        ms_quantity_size(reply->fused_bytes).s,
        reply->fused_fits && reply->fit->best == MS_NONE ? ", which fits" : "");
    ms_tell_words("hint:", LABEL_INDENT, &words, text);
}

static void pool_line(const ms_fit_reply *reply, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (reply->pool == NULL)
        return;
    ms_text_add(&words, "%s", reply->pool);
    ms_tell_words("pool:", LABEL_INDENT, &words, text);
}

static void best_lines(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text words = {.arena = text->arena};
    put_set_up(reply, reply->chosen, &words);
    ms_text_add(text, "%s", style->strong);
    ms_tell_words("best:", LABEL_INDENT, &words, text);
    ms_text_add(text, "%s", style->plain);
    without_line(reply, text);
    other_line(reply, "or:", "leaving the host's memory alone", fit->on_device,
               text);
    other_line(reply, "or:", "with 5 % of the memory to spare", reply->roomier,
               text);
    fused_line(reply, text);
    pool_line(reply, text);
}

/* "least:    SPEC: 12.24 GiB, which is 4.30 GiB short; 7.38 s a step". */
static void least_line(const ms_fit_reply *reply, const char *label, uint32_t i,
                       ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (i == MS_NONE)
        return;
    const ms_fit_point *point = point_of(reply, i);
    put_policy(reply, i, &words);
    ms_text_add(&words, ": %s, which ",
                ms_quantity_size(point->reserved_bytes).s);
    put_room(point, &words);
    if (point->far_full)
        ms_text_add(&words, " (%s of host memory a GPU)",
                    ms_quantity_size(point->host_reserved_peak_bytes).s);
    ms_text_add(&words, "; ");
    put_time(point, &words);
    ms_tell_words(label, LABEL_INDENT, &words, text);
}

static void helps_line(const ms_fit_reply *reply, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_fit_point *point = point_of(reply, reply->chosen);
    ms_text words = {.arena = text->arena};
    if (!point->far_full)
        ms_text_add(&words, "%s or more of memory per GPU; ",
                    ms_quantity_size(fit->capacity_bytes -
                                     (uint64_t)point->headroom_bytes)
                        .s);
    ms_text_add(&words, "%s",
                fit->job->gpus > 1
                    ? "more GPUs; tensor or pipeline parallelism, which are "
                      "not simulated"
                    : "several GPUs (--gpus N), which share model states");
    ms_tell_words("helps:", LABEL_INDENT, &words, text);
}

static void smallest_lines(const ms_fit_reply *reply, const ms_style *style,
                           ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "nothing of what was searched");
    ms_text_add(text, "%s", style->bad);
    ms_tell_words("fits:", LABEL_INDENT, &words, text);
    ms_text_add(text, "%s", style->plain);
    least_line(reply, "least:", fit->smallest, text);
    if (fit->smallest == MS_NONE ||
        (fit->smallest_far != MS_NONE &&
         point_of(reply, fit->smallest_far)->reserved_bytes <
             point_of(reply, fit->smallest)->reserved_bytes))
        least_line(reply, "or:", fit->smallest_far, text);
    helps_line(reply, text);
    fused_line(reply, text);
}

/* ---- the front ----------------------------------------------------------- */

/* Which of the front are rows: evenly spread, the ends among them. */
static uint32_t row_at(uint32_t n, uint32_t rows, uint32_t k)
{
    return rows > 1 ? (uint32_t)((uint64_t)k * (n - 1) / (rows - 1)) : 0;
}

static void front_row(const ms_fit_reply *reply, uint32_t i, ms_text *text)
{
    const ms_fit *fit = reply->fit;
    const ms_fit_point *point = point_of(reply, i);
    const ms_fit_point *first = point_of(reply, fit->fastest);
    uint64_t room = (uint64_t)point->headroom_bytes;
    ms_text_add(text, "%s", i == reply->chosen ? "*" : " ");
    ms_screen_right(text, 11, ms_quantity_size(point->reserved_bytes).s);
    ms_screen_right(text, 12, ms_quantity_size(room).s);
    ms_screen_right(text, 10, ms_quantity_time(point->step_ns).s);
    ms_screen_right(text, 8, percent(point->step_ns, first->step_ns).s);
    ms_screen_right(text, 10,
                    point->recompute_ns == 0
                        ? "-"
                        : ms_quantity_time(point->recompute_ns).s);
    ms_text_add(text, "  ");
    put_policy(reply, i, text);
    ms_text_add(text, "\n");
}

static void put_front(const ms_fit_reply *reply, const ms_style *style,
                      ms_text *text)
{
    const ms_fit *fit = reply->fit;
    uint32_t rows = fit->n_front < MOST_ROWS ? fit->n_front : MOST_ROWS;
    bool chosen_told = false;
    ms_text_add(text,
                "\n%s        peak    headroom      step   extra"
                " recompute  policy%s\n",
                style->strong, style->plain);
    for (uint32_t k = 0; k < rows; k++)
        chosen_told |=
            fit->front[row_at(fit->n_front, rows, k)] == reply->chosen;
    if (!chosen_told)
        front_row(reply, reply->chosen, text);
    for (uint32_t k = 0; k < rows; k++)
        front_row(reply, fit->front[row_at(fit->n_front, rows, k)], text);
    ms_text_add(text,
                "%s* best; the others: nothing that fits is both smaller "
                "and faster",
                style->faint);
    if (rows < fit->n_front)
        ms_text_add(text, " (%u of %u)", rows, fit->n_front);
    ms_text_add(text, "%s\n\n", style->plain);
}

/* ---- what was searched --------------------------------------------------- */

static void put_count(const ms_fit *fit, ms_fit_state state, const char *what,
                      ms_text *words)
{
    if (fit->count[state] > 0)
        ms_text_add(words, "; %s %s", ms_quantity_count(fit->count[state]).s,
                    what);
}

static void searched_lines(const ms_fit_reply *reply, const ms_style *style,
                           ms_text *text)
{
    const ms_fit *fit = reply->fit;
    ms_text words = {.arena = text->arena}, rest = {.arena = text->arena};
    for (uint32_t a = MS_FIT_N_AXES; a-- > 0;)
        if (!fit->axes[a].fixed)
            ms_text_add(&words, "%s%u of %s", words.length > 0 ? " x " : "",
                        fit->axes[a].n, ms_fitspace_dimensions[a].name);
    ms_text_add(&words, "%s%s set-up%s; %s replayed",
                words.length > 0 ? ": " : "", ms_quantity_count(fit->n_all).s,
                fit->n_all == 1 ? "" : "s",
                ms_quantity_count(fit->count[MS_FIT_REPLAYED]).s);
    put_count(fit, MS_FIT_REFUSED, "refused by a policy", &words);
    put_count(fit, MS_FIT_TOO_BIG, "provably do not fit", &words);
    put_count(fit, MS_FIT_BEATEN, "provably beaten", &words);
    put_count(fit, MS_FIT_TOO_SLOW, "provably over 1.5 times the fastest",
              &words);
    ms_text_add(text, "%s", style->faint);
    ms_tell_words("searched:", LABEL_INDENT, &words, text);
    const char *what;
    for (uint32_t i = 0;
         (what = ms_fitreply_not_searched(reply->fit, i)) != NULL; i++)
        ms_text_add(&rest, "%s%s", i > 0 ? "; " : "", what);
    ms_tell_words("not:", LABEL_INDENT, &rest, text);
    ms_text_add(text, "%s", style->plain);
}

void ms_fit_text_write(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text)
{
    const ms_fit *fit = reply->fit;
    heading(reply, style, text);
    if (reply->max != NULL)
        max_line(reply, text);
    plain_line(reply, text);
    if (fit->best != MS_NONE) {
        best_lines(reply, style, text);
        put_front(reply, style, text);
    } else {
        smallest_lines(reply, style, text);
    }
    searched_lines(reply, style, text);
    ms_text_add(text, "run:      %s\n", reply->command);
}
