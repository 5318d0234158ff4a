/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/names.h"
#include "tools/cli/diff/diff.h"

#include <string.h>

typedef struct page {
    const ms_diff *diff;
    const char *title;
    ms_text opening;
    ms_pagelives lives[2];
    ms_pageknot knots[2][MS_SIDE_KNOTS]; /* whose time begins with the step */
} page;

/* ---- sides --------------------------------------------------------------- */

/* Names are those by which the sides are compared, where they are. */
static uint32_t name_of(const ms_diff *diff, int s, uint32_t site)
{
    if (!diff->has_pairs)
        return site;
    uint32_t last = diff->sides[s].n_words;
    uint32_t name = diff->pairs.name_of[s][site == MS_NONE ? last : site];
    return diff->pairs.names[name][0] != '\0' ? name : MS_NONE;
}

static ms_pagelife within(const ms_side *side, const ms_pagelife *of)
{
    ms_pagelife life = *of;
    life.held |= of->from <= side->from;
    life.from = of->from > side->from ? of->from - side->from : 0;
    life.to = of->to < side->to ? of->to - side->from : MS_NONE;
    return life;
}

/* The allocations of the step alone, in states that begin with it. */
static ms_err cut(page *p, int s, ms_arena *arena, ms_fault *fault)
{
    const ms_diff *diff = p->diff;
    const ms_side *side = &diff->sides[s];
    ms_pagelife *lives = ms_arena_take(arena, side->n + 1u, sizeof *lives);
    uint32_t *phases = ms_arena_take(arena, side->n + 1u, sizeof *phases);
    ms_pagelives *of = &p->lives[s];
    if (lives == NULL || phases == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < side->n; i++) {
        const ms_pagelife *life = &side->lives[i];
        if (!ms_side_is_of_step(side, life))
            continue;
        lives[of->n] = within(side, life);
        lives[of->n].site = name_of(diff, s, life->site);
        phases[of->n++] = ms_side_phase_of(side, life);
    }
    of->lives = lives;
    of->group_of = phases;
    of->n_states = side->to - side->from - 1;
    of->words = diff->has_pairs ? diff->pairs.names : side->words;
    of->n_words = diff->has_pairs ? diff->pairs.n_names : side->n_words;
    return MS_OK;
}

static ms_err put_side(const page *p, int s, const ms_pageshare *share,
                       ms_text *text, ms_fault *fault)
{
    const ms_side *side = &p->diff->sides[s];
    ms_pagelives lives = p->lives[s];
    const ms_pageoverlay of = {.lives = side->lives != NULL ? &lives : NULL,
                               .levels = side->levels,
                               .knots = p->knots[s],
                               .n_knots = side->n_knots};
    lives.most = *share;
    ms_text_add(text, "%s{\"name\":", s > 0 ? "," : "");
    ms_text_json(text, ms_diff_figure_name(side));
    ms_text_add(text, ",\"peak_bytes\":");
    ms_text_u64(text, side->peak_bytes);
    ms_text_add(text, ",");
    MS_TRY(ms_pageoverlay_put(&of, text, fault));
    ms_text_add(text, "}");
    return MS_OK;
}

static void put_phases(const ms_diff *diff, ms_text *text)
{
    uint64_t from = 0;
    const char *between = "";
    for (int p = 0; p < MS_N_PHASES; p++) {
        if (diff->edges[p] <= from)
            continue;
        ms_text_add(text, "%s[", between);
        ms_text_u64(text, from);
        ms_text_add(text, ",");
        ms_text_u64(text, diff->edges[p]);
        ms_text_add(text, ",\"%s\"]", ms_names_phase[p]);
        from = diff->edges[p];
        between = ",";
    }
}

/* ---- tables -------------------------------------------------------------- */

static void put_rows(const ms_diff *diff, ms_text *text)
{
    const ms_diff_rows rows = ms_diff_text_rows(diff);
    for (uint32_t i = 0; i < rows.n; i++) {
        const ms_diff_row *row = &rows.rows[i];
        ms_text_add(text, "%s[\"%s\"", i > 0 ? "," : "", row->label.s);
        for (int c = 0; c < 3; c++)
            ms_text_add(text, ",\"%s\"", row->cells[c].s);
        ms_text_add(text, "]");
    }
}

static void put_words(const ms_text *words, ms_text *text)
{
    text->failed |= words->failed;
    ms_text_json(text, words->length > 0 ? words->bytes : "");
}

/* "5 of 12 alike in B's step, not at its peak" */
static void put_made(const ms_pairings_group *group, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (int s = 0; s < 2; s++) {
        uint32_t count = group->count[s], made = group->made[s];
        const char *other = s == 0 ? "B" : "A";
        if (count == 0)
            continue;
        ms_text_add(&words, "%s", words.length > 0 ? "; " : "");
        if (made > 0 && made < count)
            ms_text_add(&words, "%u of %u ", made, count);
        ms_text_add(&words, "%s in %s's step%s",
                    made > 0 ? "alike" : "none alike", other,
                    made > 0 ? ", not at its peak" : "");
    }
    put_words(&words, text);
}

static void put_group(const ms_pairings_group *group, ms_text *text)
{
    ms_text_add(text, "{\"gap\":");
    ms_text_i64(text, group->gap);
    ms_text_add(text, ",\"category\":\"%s\",\"phase\":\"%s\",\"name\":",
                ms_diff_keys_categories[group->category],
                ms_diff_keys_phases[group->phase]);
    ms_text_json(text, ms_diff_text_name(group));
    ms_text_add(text, ",\"sides\":[");
    for (int s = 0; s < 2; s++) {
        ms_text words = {.arena = text->arena};
        if (group->count[s] > 0)
            ms_diff_text_count(group, s, &words);
        ms_text_add(text, "%s", s > 0 ? "," : "");
        put_words(&words, text);
    }
    ms_text_add(text, "],\"made\":");
    put_made(group, text);
    ms_text_add(text, "}");
}

static void put_facts(const ms_diff *diff, ms_text *text)
{
    ms_text words[3] = {
        {.arena = text->arena}, {.arena = text->arena}, {.arena = text->arena}};
    const char *const labels[] = {"A", "B",
                                  diff->has_pairs ? "The same" : "Note"};
    ms_diff_text_side(&diff->sides[0], &words[0]);
    ms_diff_text_side(&diff->sides[1], &words[1]);
    if (diff->has_pairs)
        ms_diff_text_same(diff, &words[2]);
    else
        ms_diff_text_why_not(diff, &words[2]);
    for (int i = 0; i < 3; i++) {
        ms_text_add(text, "%s[\"%s\",", i > 0 ? "," : "", labels[i]);
        put_words(&words[i], text);
        ms_text_add(text, "]");
    }
}

/* ---- all ----------------------------------------------------------------- */

static ms_err put_data(const void *of, const ms_pageshare *share, ms_text *text,
                       ms_fault *fault)
{
    const page *p = of;
    const ms_diff *diff = p->diff;
    uint32_t n = diff->pairs.n < diff->top ? diff->pairs.n : diff->top;
    n = n < share->groups ? n : share->groups;
    ms_text_put(text, p->opening.bytes, p->opening.length);
    ms_text_add(text, "\"variants\":[],\"overlay\":{\"title\":");
    ms_text_json(text, p->title);
    ms_text_add(text, ",\"cause\":");
    ms_text_json(text, diff->cause);
    ms_text_add(text, ",\"end\":%u,\"by_name\":%s,\"phases\":[", MS_SIDE_AXIS,
                diff->pairs.by_name ? "true" : "false");
    put_phases(diff, text);
    ms_text_add(text, "],\"sides\":[");
    for (int s = 0; s < 2; s++)
        MS_TRY(put_side(p, s, share, text, fault));
    ms_text_add(text, "],\"rows\":[");
    put_rows(diff, text);
    ms_text_add(text, "],\"differences\":%u,\"groups\":[", diff->pairs.n);
    for (uint32_t g = 0; g < n; g++) {
        ms_text_add(text, "%s", g > 0 ? "," : "");
        put_group(&diff->pairs.groups[g], text);
    }
    ms_text_add(text, "],\"facts\":[");
    put_facts(diff, text);
    ms_text_add(text, "]}}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err make_title(page *p, const char *title, ms_arena *arena,
                         ms_fault *fault)
{
    const ms_side *sides = p->diff->sides;
    p->title = title != NULL ? title
                             : ms_arena_format(arena, "%s against %s",
                                               ms_diff_figure_name(&sides[0]),
                                               ms_diff_figure_name(&sides[1]));
    return p->title == NULL ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_diff_page_make(const ms_diff *diff, const ms_arguments *arguments,
                         const char *title, ms_text *file, ms_fault *fault)
{
    page p = {.diff = diff, .opening = {.arena = file->arena}};
    MS_TRY(make_title(&p, title, file->arena, fault));
    for (int s = 0; s < 2; s++) {
        const ms_side *side = &diff->sides[s];
        if (side->lives != NULL)
            MS_TRY(cut(&p, s, file->arena, fault));
        for (uint32_t k = 0; k < side->n_knots; k++)
            p.knots[s][k] = (ms_pageknot){side->knots[k].t - side->begin,
                                          side->knots[k].at};
    }
    MS_TRY(ms_outputs_opening("diff", arguments, &p.opening, fault));
    const ms_pagedata data = {p.title, 2, put_data, &p};
    return ms_pageshare_fit(&data, file, fault);
}
