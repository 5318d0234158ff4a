/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/calibrate/calibrate.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>

#define MOST_OPS 24u
#define MOST_UNTOLD 8u
#define OP_WIDTH 42u
#define PHASE_WIDTH 3u /* with its first letter */

typedef struct percent {
    char s[16];
} percent;

/* Of a number of rows; "-": there are none. */
static percent percent_of(const ms_measured_error *error, double part)
{
    percent p = {"-"};
    if (error->n > 0)
        snprintf(p.s, sizeof p.s, part < 9.995 ? "%.1f %%" : "%.0f %%",
                 100 * part);
    return p;
}

static void put_words(const char *label, const ms_text *words, ms_text *text)
{
    text->failed |= words->failed;
    if (words->length > 0)
        ms_textlines_put(label, MS_TEXTLINES_INDENT, words, text);
}

/* ---- the head ------------------------------------------------------------ */

static void put_head(const ms_calibration *c, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    uint64_t samples = 0;
    for (uint32_t i = 0; i < c->n_kinds; i++)
        samples += c->kinds[i].samples;
    ms_text_add(&words, "%s: %s shapes of %u kinds, measured %s times", c->file,
                ms_quantity_count(c->all.n).s, c->n_kinds,
                ms_quantity_count(samples).s);
    put_words("measured:", &words, text);
    words = (ms_text){.arena = text->arena};
    if (c->is_trace) {
        ms_text_add(&words, "%s events, %s kernels of %s",
                    ms_quantity_count(c->traced.n_events).s,
                    ms_quantity_count(c->traced.n_kernels).s,
                    ms_quantity_time((uint64_t)c->traced.kernels_ns).s);
        if (c->traced.n_steps > 0)
            ms_text_add(&words, ", %u steps", c->traced.n_steps);
        ms_text_add(
            &words, " within %s",
            ms_quantity_time((uint64_t)(c->traced.to_ns - c->traced.from_ns))
                .s);
        if (c->traced.device != NULL)
            ms_text_add(&words, ", on %.60s", c->traced.device);
    }
    put_words("trace:", &words, text);
    words = (ms_text){.arena = text->arena};
    ms_text_add(&words, "%s", c->device);
    put_words("device:", &words, text);
}

static void put_model(const ms_calibration *c, ms_text *text)
{
    const ms_calibrated_model *m = &c->model;
    ms_text words = {.arena = text->arena};
    if (m->name == NULL)
        return;
    ms_text_add(&words,
                "%s, %s: it has the shapes of %.4g %% of the products' time; "
                "%llu products a step",
                m->name, m->setup, 100 * m->matched,
                (unsigned long long)m->products);
    if (m->recorded > 0)
        ms_text_add(&words, ", %.6g recorded", m->recorded);
    put_words("model:", &words, text);
}

/* ---- errors -------------------------------------------------------------- */

static void put_kind(const ms_calibration *c, const ms_calibrated_kind *k,
                     ms_text *text)
{
    ms_text_add(text, "%-18s%6llu %9s%6u %7s", k->name,
                (unsigned long long)k->shapes,
                ms_quantity_time((uint64_t)k->time_ns).s, k->fitted_before.n,
                percent_of(&k->fitted_before, k->fitted_before.median).s);
    if (!c->checks)
        ms_text_add(text, " %7s",
                    percent_of(&k->fitted_after, k->fitted_after.median).s);
    ms_text_add(text, "%6u %7s", k->kept_before.n,
                percent_of(&k->kept_before, k->kept_before.median).s);
    if (!c->checks)
        ms_text_add(text, " %7s",
                    percent_of(&k->kept_after, k->kept_after.median).s);
    ms_text_add(text, "\n");
}

static void put_kinds(const ms_calibration *c, ms_text *text)
{
    if (c->checks)
        ms_text_add(
            text, "\nmedian error      shapes      time  half   error  half   "
                  "error\n");
    else
        ms_text_add(
            text, "\nmedian error      shapes      time   fit  before   after  "
                  "kept  before   after\n");
    for (uint32_t i = 0; i < c->n_kinds; i++)
        put_kind(c, &c->kinds[i], text);
    ms_text_add(text, "\n");
}

/* ---- the fit ------------------------------------------------------------- */

static void put_changes(const ms_calibration *c, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    const char *between = "";
    for (uint32_t i = 0; i < c->fit.n_changes; i++) {
        const ms_ratefit_change *change = &c->fit.changes[i];
        ms_text_add(&words, "%s%s %.4g -> %.4g", between, change->key,
                    change->before, change->after);
        between = ", ";
    }
    for (uint32_t i = 0; i < MS_N_MEMORY_KINDS; i++)
        if (c->fit.new_curves[i]) {
            ms_text_add(&words, "%scurve of %s (%u points)", between,
                        ms_kernelkinds_words[i],
                        c->fit.device.memory_curves[i]->n);
            between = ", ";
        }
    if (c->fit.new_links)
        ms_text_add(&words, "%scurves of all-reduces", between);
    if (words.length == 0)
        ms_text_add(&words, "nothing: it is as the device's file says");
    put_words("changed:", &words, text);
}

static void put_stays(const ms_calibration *c, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t kind = 0; kind < MS_N_RATE_KINDS; kind++) {
        bool there = false;
        for (uint32_t i = 0; i < c->n_kinds; i++)
            there |= strcmp(c->kinds[i].word, ms_measured_words[kind]) == 0;
        if (!there)
            ms_text_add(&words, "%s%s", words.length > 0 ? ", " : "",
                        ms_measured_names[kind]);
    }
    if (words.length > 0)
        ms_text_add(&words, ": nothing was measured of them");
    put_words("stays:", &words, text);
}

static void put_untold(const ms_calibration *c, ms_text *text)
{
    uint32_t n = c->all.n_untold;
    for (uint32_t i = 0; i < n && i < MOST_UNTOLD; i++) {
        const ms_untold *row = &c->all.untold[i];
        ms_text words = {.arena = text->arena};
        ms_text_add(&words, "%.60s x %llu", row->name,
                    (unsigned long long)row->count);
        if (row->ns > 0)
            ms_text_add(&words, ", %s", ms_quantity_time((uint64_t)row->ns).s);
        ms_text_add(&words, ": %s", row->why);
        put_words(i == 0 ? "untold:" : "", &words, text);
    }
    if (n > MOST_UNTOLD)
        ms_text_add(text, "          and %u others (--json lists them)\n",
                    n - MOST_UNTOLD);
}

static void put_notes(const ms_calibration *c, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (!c->is_trace)
        return;
    if (c->traced.n_unlinked > 0)
        ms_text_add(&words, "%llu kernels name no op that launched them; ",
                    (unsigned long long)c->traced.n_unlinked);
    if (c->traced.assumed_causal)
        ms_text_add(&words, "attention is taken as causal, of which nothing "
                            "is recorded; ");
    if (c->traced.has_waits)
        ms_text_add(&words, "collectives last until the slowest rank comes; ");
    ms_text_add(&words, "what the host takes between launches is longer under "
                        "the profiler, so host_share stays");
    put_words("note:", &words, text);
}

/* ---- ops ----------------------------------------------------------------- */

static void put_pair(double recorded_ns, double predicted_ns, ms_text *text)
{
    ms_text_add(text, " %10s", ms_quantity_time((uint64_t)recorded_ns).s);
    if (predicted_ns < 0 || recorded_ns <= 0)
        ms_text_add(text, " %10s %6s\n", "-", "-");
    else
        ms_text_add(text, " %10s %5.2fx\n",
                    ms_quantity_time((uint64_t)predicted_ns).s,
                    predicted_ns / recorded_ns);
}

static void put_ops(const ms_calibration *c, ms_text *text)
{
    ms_text_add(text, "%-*s %5s %10s %10s %6s\n", (int)(OP_WIDTH + PHASE_WIDTH),
                "op", "calls", "recorded", "predicted", "ratio");
    for (uint32_t i = 0; i < c->n_ops && i < MOST_OPS; i++) {
        const ms_calibrated_op *op = &c->ops[i];
        char *name = ms_arena_format(text->arena, "%s%s%s", op->op,
                                     op->shape != NULL ? " " : "",
                                     op->shape != NULL ? op->shape : "");
        char cell[OP_WIDTH + 1];
        text->failed |= name == NULL;
        ms_text_add(text, "%-*s%*.1s %5llu", (int)OP_WIDTH,
                    ms_screen_safe(name != NULL ? name : "", cell, sizeof cell),
                    (int)PHASE_WIDTH, op->phase != NULL ? op->phase : "",
                    (unsigned long long)op->calls);
        put_pair(op->recorded_ns, op->predicted_ns, text);
    }
    if (c->n_ops > MOST_OPS)
        ms_text_add(text, "and %u others (--json lists them)\n",
                    c->n_ops - MOST_OPS);
    ms_text_add(text, "\n");
}

static void put_phases(const ms_calibration *c, ms_text *text)
{
    if (c->n_phases == 0)
        return;
    ms_text_add(text, "%-*s %5s %10s %10s %6s\n", (int)(OP_WIDTH + PHASE_WIDTH),
                "phase", "calls", "recorded", "predicted", "ratio");
    for (uint32_t i = 0; i < c->n_phases; i++) {
        const ms_calibrated_phase *p = &c->phases[i];
        ms_text_add(text, "%-*s %5llu", (int)(OP_WIDTH + PHASE_WIDTH), p->name,
                    (unsigned long long)p->calls);
        put_pair(p->recorded_ns, p->predicted_ns, text);
        if (p->unknown_ns > 0)
            ms_text_add(text, "  and %s of kernels that are not predicted\n",
                        ms_quantity_time((uint64_t)p->unknown_ns).s);
    }
    ms_text_add(text, "\n");
}

void ms_calibrate_text(const ms_calibration *c, const ms_style *style,
                       ms_text *text)
{
    (void)style;
    put_head(c, text);
    put_model(c, text);
    size_t from = text->length;
    put_kinds(c, text);
    ms_narrow_table(text, from);
    if (c->checks) {
        from = text->length;
        put_ops(c, text);
        ms_narrow_table(text, from);
        from = text->length;
        put_phases(c, text);
        ms_narrow_table(text, from);
    } else {
        put_changes(c, text);
        put_stays(c, text);
    }
    put_untold(c, text);
    put_notes(c, text);
    ms_narrow_lines(text);
}
