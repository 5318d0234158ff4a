/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The figures of a comparison. */

#include "tools/compare.h"
#include "tools/figures.h"

#include <string.h>

typedef struct panel {
    const ms_comparison *c;
    ms_arena *arena;
    uint64_t capacity_bytes, usable_bytes; /* that all share, or 0 */
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

/* What is told of all that are drawn, or NULL. */
static const char *common(const ms_comparison *c, told *what)
{
    const char *first = what(base_of(c));
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused == NULL &&
            strcmp(what(&c->variants[i]), first) != 0)
            return NULL;
    return first;
}

/* 0: they differ, or it is not said. */
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

/* "batch 8 x 2048 tokens in 2 micro-batches on each of 64 GPUs = 512 sequences,
 * 1,048,576 tokens a step, adamw" has six parts; what lies between them, as it
 * is drawn. */
static const struct {
    const char *words, *drawn;
} between[] = {{", ", ", "},
               {" in ", " in "},
               {" x ", " \u00d7 "},
               {" on each of ", " on each of "}};
#define N_BETWEEN (sizeof between / sizeof between[0])

/* Which of them begins here; N_BETWEEN: none. */
static size_t between_at(const char *words)
{
    size_t i = 0;
    while (i < N_BETWEEN &&
           strncmp(words, between[i].words, strlen(between[i].words)) != 0)
        i++;
    return i;
}

static const char *part_end(const char *part)
{
    while (*part != '\0' && between_at(part) == N_BETWEEN)
        part++;
    return part;
}

static const char *part_after(const char *end)
{
    size_t i = between_at(end);
    return i < N_BETWEEN ? end + strlen(between[i].words) : end;
}

static bool has_part(const char *setup, const char *part, size_t length)
{
    for (const char *end; *setup != '\0'; setup = part_after(end)) {
        end = part_end(setup);
        if ((size_t)(end - setup) == length && memcmp(setup, part, length) == 0)
            return true;
    }
    return false;
}

static bool all_have(const ms_comparison *c, const char *part, size_t length)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].refused == NULL &&
            !has_part(c->variants[i].setup, part, length))
            return false;
    return true;
}

/* The parts of the setup that all have. */
static void put_setup(const ms_comparison *c, ms_text *text)
{
    const char *end, *part = base_of(c)->setup, *before = "";
    for (; *part != '\0'; part = part_after(end)) {
        end = part_end(part);
        size_t length = (size_t)(end - part), next = between_at(end);
        if (all_have(c, part, length)) {
            ms_text_add(text, "%s", text->length > 0 ? before : "");
            ms_text_put(text, part, length);
        }
        before = next < N_BETWEEN ? between[next].drawn : "";
    }
}

/* What the names do not say, because it is the same for all. */
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

/* Where they have no place in the figure. */
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

/* ---- the line of capacity ------------------------------------------------ */

static void find_capacity(panel *p)
{
    const ms_report *first = &base_of(p->c)->record.report;
    for (uint32_t i = 0; i < p->c->n; i++) {
        const ms_variant *variant = &p->c->variants[i];
        const ms_report *report = &variant->record.report;
        if (variant->refused == NULL &&
            (report->capacity_bytes != first->capacity_bytes ||
             report->context_bytes != first->context_bytes))
            return;
    }
    p->capacity_bytes = first->capacity_bytes;
    p->usable_bytes = ms_capacity_usable(first);
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
    return ms_figure_bars(bars, p->c->n, p->capacity_bytes, p->usable_bytes,
                          drawing, fault);
}

/* ---- pareto -------------------------------------------------------------- */

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
        MS_TRY(ms_figures_trade(&variant->record, variant->name, p->arena,
                                &trades[n++], fault));
    }
    return ms_figure_pareto(trades, n, p->capacity_bytes, p->usable_bytes,
                            drawing, fault);
}

/* ---- timeline ------------------------------------------------------------ */

static ms_err draw_timeline(const panel *p, const ms_drawing *drawing,
                            ms_fault *fault)
{
    const ms_record **runs =
        ms_arena_take(p->arena, p->c->n, sizeof(const ms_record *));
    const char **names = ms_arena_take(p->arena, p->c->n, sizeof *names);
    uint32_t n = 0;
    if (runs == NULL || names == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->c->n; i++) {
        if (p->c->variants[i].refused != NULL)
            continue;
        runs[n] = &p->c->variants[i].record;
        names[n++] = p->c->variants[i].name;
    }
    return ms_figure_totals(runs, names, n, drawing, fault);
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
    find_capacity(&p);
    if (whole.title == NULL)
        whole.title = title.bytes;
    whole.subtitle = subtitle.length > 0 ? subtitle.bytes : "";
    return kinds[k].draw(&p, &whole, fault);
}
