/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/words/rankwords.h"
#include "sim/report.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#define INDENT 10u
#define MOST_RANKS 4u

static void put_line(ms_text *text, const char *label, const ms_text *words)
{
    text->failed |= words->failed;
    if (!text->failed)
        ms_screen_fill(text, INDENT, label, words->bytes);
}

static void put_experts(const ms_result *result, ms_text *text)
{
    const struct ms_average_rank *average = &result->report->average;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words,
                "the numbers are of the rank whose experts have most rows; an "
                "average one has a peak of %s and works %s of the step",
                ms_quantity_size(average->peak_bytes).s,
                ms_quantity_time(average->step_ns).s);
    put_line(text, "experts:", &words);
}

/* A few of the ranks, the first and the last among them. */
static void put_each(const ms_report *report, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    uint32_t n = report->n_ring < MOST_RANKS ? report->n_ring : MOST_RANKS;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const struct ms_ring_rank *it =
            &report->ring[i * (report->n_ring - 1) / (n - 1)];
        ms_text_add(
            &words, "%srank %u has a peak of %s, works %s and waits %s",
            i == 0 ? "" : "; ", it->rank, ms_quantity_size(it->peak_bytes).s,
            ms_quantity_time(it->work_ns).s, ms_quantity_time(it->wait_ns).s);
    }
    put_line(text, "", &words);
}

static void put_ring(const ms_result *result, ms_text *text)
{
    const ms_shape *shape = &result->shape;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words,
                "the numbers are of rank %u of 0 to %u; where causal work is "
                "dealt plain, the last has most, and the others wait for it",
                shape->context_rank, shape->context_ranks - 1);
    put_line(text, "ring:", &words);
    put_each(result->report, text);
}

void ms_rankwords_put(const ms_result *result, ms_text *text)
{
    if (result->report->average.peak_bytes > 0)
        put_experts(result, text);
    if (result->shape.context_plain && result->shape.context_ranks > 1)
        put_ring(result, text);
}
