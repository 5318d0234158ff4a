/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws the figures of a comparison. */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/tiles.h"
#include "tools/cli/compare/compare.h"
#include "tools/cli/run/figures.h"
#include "tools/terminal/quantity.h"

#include <string.h>

typedef struct panel {
    const ms_comparison *c;
    ms_arena *arena;
} panel;

static const ms_variant *base_of(const ms_comparison *c)
{
    return &c->variants[c->base];
}

/* ---- headings ------------------------------------------------------------ */

typedef const char *told(const ms_variant *variant);

static const char *model_of(const ms_variant *variant)
{
    return variant->record.model;
}

static const char *device_of(const ms_variant *variant)
{
    return variant->record.device;
}

static const char *policy_of(const ms_variant *variant)
{
    return variant->policy;
}

/* What `what` says of the variants, where it is the same for all drawn; else
 * NULL. */
static const char *common(const ms_comparison *c, told *what)
{
    const char *first = what(base_of(c));
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused == NULL &&
            strcmp(what(&c->variants[i]), first) != 0)
            return NULL;
    return first;
}

/* The number of GPUs that all variants have; 0: they differ, or one does not
 * say. */
static uint32_t common_gpus(const ms_comparison *c)
{
    uint32_t gpus = base_of(c)->gpus;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused == NULL && c->variants[i].gpus != gpus)
            return 0;
    return gpus;
}

static bool has_several(const ms_comparison *c)
{
    bool several = false;
    for (uint32_t i = 0; i < c->n; i++)
        several |= c->variants[i].refused == NULL && c->variants[i].gpus > 1;
    return several;
}

/* Writes the parts of the setup that all variants share. */
static void put_setup(const ms_comparison *c, ms_text *text)
{
    const char *setups[MS_VARIANTS_MOST + 1];
    uint32_t n = 0;
    setups[n++] = base_of(c)->setup;
    for (uint32_t i = 0; i < c->n && n <= MS_VARIANTS_MOST; i++)
        if (c->variants[i].refused == NULL)
            setups[n++] = c->variants[i].setup;
    ms_headings_common(setups, n, text);
}

/* Writes what all variants share, since the names do not say it. */
static void put_subtitle(const ms_comparison *c, ms_text *text)
{
    const char *policy = common(c, policy_of), *device = common(c, device_of);
    put_setup(c, text);
    if (policy != NULL)
        ms_text_add(text, "%s%s", text->length > 0 ? "; " : "",
                    strcmp(policy, "none") == 0 ? "no policy" : policy);
    if (device == NULL)
        return;
    ms_text_add(text, "%s", text->length > 0 ? "; " : "");
    ms_text_add(text, "%s", device);
}

/* Names the variants that the figure leaves out. */
static void put_refused(const ms_comparison *c, ms_text *text)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        n += c->variants[i].refused != NULL;
    if (n > 0)
        ms_text_add(text, "%s%u of %u variants refused",
                    text->length > 0 ? "; " : "", n, c->n);
}

static void put_title(const ms_comparison *c, const char *what, ms_text *text)
{
    const char *model = common(c, model_of);
    ms_text_add(text, "%s%s", what, has_several(c) ? ", per GPU" : "");
    if (model == NULL)
        return;
    ms_text_add(text, ": ");
    ms_text_put(text, model, strlen(model));
    ms_text_add(text, " (%s parameters)",
                ms_quantity_short(base_of(c)->record.parameters).s);
    if (common_gpus(c) > 1)
        ms_text_add(text, " on %u GPUs", common_gpus(c));
}

/* ---- bars ---------------------------------------------------------------- */

static ms_bar bar_of(const ms_variant *variant)
{
    if (variant->refused == NULL)
        return ms_figures_bar(&variant->record, variant->name);
    return (ms_bar){.name = variant->name,
                    .instead = ms_variants_status(variant)};
}

static ms_err draw_bars(const panel *p, const ms_drawing *drawing,
                        ms_fault *fault)
{
    ms_bar *bars = ms_arena_take(p->arena, p->c->n, sizeof *bars);
    if (bars == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->c->n; i++)
        bars[i] = bar_of(&p->c->variants[i]);
    return ms_figure_bars(bars, p->c->n, drawing, fault);
}

/* ---- pareto -------------------------------------------------------------- */

ms_err ms_compare_figure_trade(const ms_variant *variant, ms_arena *arena,
                               ms_trade *trade, ms_fault *fault)
{
    MS_TRY(
        ms_figures_trade(&variant->record, variant->name, arena, trade, fault));
    trade->work = variant->work;
    trade->has_tokens = variant->record.report.tokens_per_second >= 0.0;
    return MS_OK;
}

static ms_err draw_pareto(const panel *p, const ms_drawing *drawing,
                          ms_fault *fault)
{
    ms_trade *trades = ms_arena_take(p->arena, p->c->n, sizeof *trades);
    uint32_t n = 0;
    if (trades == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->c->n; i++) {
        const ms_variant *variant = &p->c->variants[i];
        if (variant->refused != NULL)
            continue;
        MS_TRY(ms_compare_figure_trade(variant, p->arena, &trades[n++], fault));
    }
    return ms_figure_pareto(trades, n, drawing, fault);
}

/* ---- timeline ------------------------------------------------------------ */

/* A panel has the colour of its policy, where policies are what varies. */
static ms_err draw_timeline(const panel *p, const ms_drawing *drawing,
                            ms_fault *fault)
{
    ms_total *totals = ms_arena_take(p->arena, p->c->n, sizeof *totals);
    bool by_policy = common(p->c, policy_of) == NULL;
    uint32_t n = 0;
    if (totals == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->c->n; i++) {
        const ms_variant *variant = &p->c->variants[i];
        if (variant->refused != NULL)
            continue;
        totals[n] = (ms_total){&variant->record, variant->name, variant->name};
        if (by_policy)
            totals[n].family = ms_figures_family(variant->policy, p->arena);
        if (totals[n++].family == NULL)
            return ms_fail_nomem(fault);
    }
    return ms_figure_totals(totals, n, drawing, fault);
}

/* ---- pipeline ------------------------------------------------------------ */

static ms_err draw_pipeline(const panel *p, const ms_drawing *drawing,
                            ms_fault *fault)
{
    ms_piped *runs = ms_arena_take(p->arena, p->c->n, sizeof *runs);
    uint32_t n = 0;
    if (runs == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->c->n; i++)
        if (p->c->variants[i].refused == NULL)
            runs[n++] =
                (ms_piped){&p->c->variants[i].record, p->c->variants[i].name};
    return ms_figure_pipeline(runs, n, drawing, fault);
}

/* ---- address ------------------------------------------------------------- */

static ms_err draw_address(const panel *p, const ms_drawing *drawing,
                           ms_fault *fault)
{
    const ms_tiles **maps =
        ms_arena_take(p->arena, p->c->n, sizeof(const ms_tiles *));
    const char **names = ms_arena_take(p->arena, p->c->n, sizeof *names);
    uint32_t n = 0;
    if (maps == NULL || names == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->c->n; i++) {
        if (p->c->variants[i].refused != NULL)
            continue;
        MS_TRY(ms_addresses_check(&p->c->variants[i].record, fault));
        maps[n] = p->c->variants[i].record.addresses;
        names[n++] = p->c->variants[i].name;
    }
    return ms_figure_address(maps, names, n, drawing, fault);
}

/* ---- which --------------------------------------------------------------- */

static const struct {
    const char *kind, *title;
    bool shows_refused;
    ms_err (*draw)(const panel *p, const ms_drawing *drawing, ms_fault *fault);
} kinds[] = {
    {"bars", "What the peak is made of", true, draw_bars},
    {"pareto", "Memory\u2013time trade-off", false, draw_pareto},
    {"timeline", "Memory over the step", false, draw_timeline},
    {"pipeline", "Turns and memory of the stages", false, draw_pipeline},
    {"address", "Where blocks lie over the step", false, draw_address},
};

ms_err ms_compare_figure_draw(const ms_comparison *comparison, const char *kind,
                              const ms_drawing *drawing, ms_fault *fault)
{
    panel p = {.c = comparison, .arena = drawing->arena};
    ms_text title = {.arena = drawing->arena}, subtitle = title;
    ms_drawing whole = *drawing;
    uint32_t k = 0;
    while (kind != NULL && strcmp(kinds[k].kind, kind) != 0)
        k++;
    put_title(comparison, kinds[k].title, &title);
    put_subtitle(comparison, &subtitle);
    if (!kinds[k].shows_refused)
        put_refused(comparison, &subtitle);
    if (title.failed || subtitle.failed)
        return ms_fail_nomem(fault);
    whole.per_gpu = has_several(comparison);
    if (whole.title == NULL)
        whole.title = title.bytes;
    whole.subtitle = subtitle.length > 0 ? subtitle.bytes : "";
    return kinds[k].draw(&p, &whole, fault);
}
