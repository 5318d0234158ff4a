/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plots/plots.h"
#include "tools/cli/front/front.h"
#include "tools/cli/run/figures.h"
#include "tools/terminal/quantity.h"

#include <string.h>

static ms_trade trade_of(const ms_front *front, const ms_front_row *row)
{
    const char *name = row->name;
    if (strncmp(name, "checkpoint:", 11) == 0)
        name += 11;
    return (ms_trade){
        .name = row->is_curve ? "" : name,
        .family = row->family,
        .peak_bytes = row->peak_bytes,
        .step_ns = row->step_ns,
        .work = front->work,
        .has_tokens = front->has_tokens,
        .fits =
            front->usable_bytes == 0 || row->peak_bytes <= front->usable_bytes,
        .is_bound = row->is_curve,
        .limit = {front->device, front->capacity_bytes, front->usable_bytes}};
}

/* Slower ways would press the others together. */
#define MOST_TIMES 2u
static bool is_slow(const ms_front *front, const ms_front_row *row)
{
    return row->step_ns > MOST_TIMES * front->rows[0].step_ns &&
           front->rows[0].step_ns > 0;
}

static void put_words(const ms_front *front, uint32_t slow, ms_text *title,
                      ms_text *subtitle)
{
    bool plain = strcmp(front->policy, "none") == 0;
    ms_text_add(title,
                "Ways to checkpoint%s: ", front->gpus > 1 ? ", per GPU" : "");
    ms_text_put(title, front->model, strlen(front->model));
    ms_text_add(title, " (%s parameters)",
                ms_quantity_short(front->parameters).s);
    if (front->gpus > 1)
        ms_text_add(title, " on %u GPUs", front->gpus);
    ms_headings_common(&front->setup, 1, subtitle);
    ms_text_add(subtitle, "; %s%s; ", plain ? "" : "beside ",
                plain ? "no other policy" : front->policy);
    ms_text_add(subtitle, "%s", front->device_words);
    if (slow > 0)
        ms_text_add(subtitle,
                    "; %u way%s that take%s more than twice as long as none "
                    "%s left out",
                    slow, slow == 1 ? "" : "s", slow == 1 ? "s" : "",
                    slow == 1 ? "is" : "are");
}

ms_err ms_front_figure_draw(const ms_front *front, const ms_drawing *drawing,
                            ms_fault *fault)
{
    ms_trade trades[MS_FRONT_MOST];
    ms_text title = {.arena = drawing->arena}, subtitle = title;
    ms_drawing whole = *drawing;
    uint32_t n = 0, slow = 0;
    for (uint32_t i = 0; i < front->n; i++) {
        const ms_front_row *row = &front->rows[i];
        if (row->message != NULL)
            continue;
        if (is_slow(front, row))
            slow += !row->is_curve;
        else
            trades[n++] = trade_of(front, row);
    }
    put_words(front, slow, &title, &subtitle);
    if (title.failed || subtitle.failed)
        return ms_fail_nomem(fault);
    if (whole.title == NULL)
        whole.title = title.bytes;
    whole.subtitle = subtitle.bytes;
    whole.per_gpu = front->gpus > 1;
    return ms_figure_pareto(trades, n, &whole, fault);
}
