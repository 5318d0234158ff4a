/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a comparison for scripts. */

#include "plots/plots.h"
#include "tools/alive/alive.h"
#include "tools/cli/compare/compare.h"
#include "tools/cli/compare/compare_keys.h"
#include "tools/job/result.h"

#include <string.h>

/* ---- CSV ----------------------------------------------------------------- */

void ms_compare_data_csv(const ms_comparison *c, ms_text *text)
{
    ms_keys_plan plan;
    text->failed |=
        !ms_keys_write_plan(&ms_compare_keys_line, NULL, text->arena, &plan);
    ms_keys_write_header(&plan, text);
    for (uint32_t i = 0; i < c->n; i++) {
        const ms_variant *variant = &c->variants[i];
        ms_compare_line line = {.number = i + 1,
                                .variant = variant,
                                .status = ms_variants_status(variant),
                                .pooled = variant->record.report.pooled,
                                .pooled_rank = ms_compare_pools_rank(variant)};
        if (variant->refused == NULL)
            line.rank = ms_compare_values_rank(variant);
        ms_keys_write_line(&plan, &line, text);
    }
}

/* ---- JSON ---------------------------------------------------------------- */

/* The name of the model; NULL where the variants have several. */
static const char *common_model(const ms_comparison *comparison)
{
    const char *name = comparison->variants[comparison->base].record.model;
    for (uint32_t i = 0; i < comparison->n; i++)
        if (comparison->variants[i].refused == NULL &&
            strcmp(comparison->variants[i].record.model, name) != 0)
            return NULL;
    return name;
}

static ms_compare_variant show_variant(const ms_variant *variant)
{
    ms_compare_variant shown = {
        .refused = {.memsim = MS_VERSION,
                    .message = variant->refused,
                    .policy = variant->policy,
                    .is_infeasible = variant->fault.err == MS_EINFEASIBLE}};
    if (variant->refused == NULL)
        shown.run = (ms_key_printed){variant->json, variant->json_length};
    return shown;
}

/* Variant i minus the base. */
static ms_compare_difference difference(const ms_comparison *c, uint32_t i)
{
    const ms_variant *base = &c->variants[c->base];
    ms_compare_difference all = {.variant = i + 1, .against = c->base + 1};
    for (uint32_t row = 0; row < MS_COMPARE_N_ROWS; row++)
        all.of[row] = (int64_t)(ms_compare_values_of(&c->variants[i], row) -
                                ms_compare_values_of(base, row));
    return all;
}

static ms_compare_pools show_pools(const ms_compare_pool_group *group)
{
    ms_compare_pools shown = {
        .against = group->first + 1, .best = group->best + 1, .n = group->n};
    for (uint32_t k = 0; k < group->n; k++)
        shown.variants[k] = group->of[k] + 1;
    return shown;
}

/* Fills the lists that have at most one element per variant. */
static void show_variants(ms_compare_sheet *sheet, ms_text *text)
{
    const ms_comparison *c = sheet->comparison;
    ms_arena *arena = text->arena;
    ms_compare_pool_group group;
    sheet->variants = ms_arena_take(arena, c->n, sizeof *sheet->variants);
    sheet->differences = ms_arena_take(arena, c->n, sizeof *sheet->differences);
    sheet->pools = ms_arena_take(arena, c->n, sizeof *sheet->pools);
    text->failed |= sheet->variants == NULL || sheet->differences == NULL ||
                    sheet->pools == NULL;
    for (uint32_t i = 0; i < c->n && !text->failed; i++) {
        sheet->variants[i] = show_variant(&c->variants[i]);
        if (i > c->base && c->variants[i].refused == NULL)
            sheet->differences[sheet->n_differences++] = difference(c, i);
        if (ms_compare_pools_group(c, i, &group))
            sheet->pools[sheet->n_pools++] = show_pools(&group);
    }
}

static void show_fastest(ms_compare_sheet *sheet, ms_text *text)
{
    ms_compare_fastest of;
    if (!ms_compare_fastest_find(sheet->comparison, &of))
        return;
    sheet->fastest = ms_arena_take(text->arena, 1, sizeof *sheet->fastest);
    text->failed |= sheet->fastest == NULL;
    if (sheet->fastest == NULL)
        return;
    *sheet->fastest = (ms_compare_shown_fastest){.variant = of.of + 1,
                                                 .percent = of.percent,
                                                 .known = of.known,
                                                 .n_close = of.n_close};
    for (uint32_t i = 0; i < of.n_close; i++)
        sheet->fastest->close[i] = of.close[i] + 1;
}

static void show_explained(ms_compare_sheet *sheet, ms_text *text)
{
    const ms_comparison *c = sheet->comparison;
    const ms_result *const results[2] = {&c->variants[0].result,
                                         &c->variants[1].result};
    for (int s = 0; s < 2; s++)
        ms_alive_keys_instant_show(results[s], &c->alive[s].instant,
                                   &sheet->instants[s]);
    sheet->n_groups = c->top < c->n_groups ? c->top : c->n_groups;
    sheet->groups =
        ms_arena_take(text->arena, sheet->n_groups, sizeof *sheet->groups);
    text->failed |= sheet->groups == NULL;
    for (uint32_t g = 0; g < sheet->n_groups && !text->failed; g++)
        ms_alive_keys_group_show(results, &c->groups[g], &sheet->groups[g],
                                 text);
}

void ms_compare_data_json(const ms_comparison *comparison, ms_text *text)
{
    ms_compare_sheet sheet = {.memsim = MS_VERSION,
                              .model = common_model(comparison),
                              .comparison = comparison};
    show_variants(&sheet, text);
    show_fastest(&sheet, text);
    if (comparison->explain)
        show_explained(&sheet, text);
    if (!text->failed)
        ms_keys_write(&ms_compare_keys, &sheet, text);
    ms_text_add(text, "\n");
}
