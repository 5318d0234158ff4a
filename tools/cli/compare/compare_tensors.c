/* SPDX-License-Identifier: GPL-3.0-or-later */
/* compare --explain: which tensors two variants hold differently. */

#include "tools/alive/alive.h"
#include "tools/cli/compare/compare.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>

static void side_line(const ms_comparison *c, const ms_alike *group, int s,
                      ms_text *text)
{
    const ms_group_side *side = &group->side[s];
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "%d: ", s + 1);
    if (side->bytes > 0)
        ms_text_add(&words, "%s, ", ms_quantity_size(side->bytes).s);
    ms_explain_text_why(&c->variants[s].result, side, &words);
    ms_textlines_put("", MS_TEXTLINES_GROUP_INDENT, &words, text);
}

static void put_group(const ms_comparison *c, uint32_t g, const ms_style *style,
                      ms_text *text)
{
    const ms_alike *group = &c->groups[g];
    bool less = group->side[1].bytes < group->side[0].bytes;
    ms_text maker = {.arena = text->arena};
    ms_explain_text_name(group,
                         ms_compare_cells_signed(
                             less, "+", ms_quantity_size(ms_groups_gap(group)))
                             .s,
                         text);
    ms_text_add(text, "%s", style->faint);
    ms_explain_text_maker(group, &maker);
    ms_textlines_put("", MS_TEXTLINES_GROUP_INDENT, &maker, text);
    side_line(c, group, 0, text);
    side_line(c, group, 1, text);
    ms_text_add(text, "%s", style->plain);
}

static void instant_line(const ms_comparison *c, int s, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    char label[16];
    ms_explain_text_instant(&c->variants[s].result, &c->alive[s].instant,
                            &words);
    ms_text_add(&words, "%s: %s alive", c->at == NULL ? " (the peak)" : "",
                ms_quantity_size(c->alive[s].instant.bytes).s);
    snprintf(label, sizeof label, "%d at:", s + 1);
    ms_textlines_put(label, MS_TEXTLINES_INDENT, &words, text);
}

static void rest_line(const ms_comparison *c, ms_text *text)
{
    uint64_t a = 0, b = 0;
    if (c->top >= c->n_groups)
        return;
    for (uint32_t g = c->top; g < c->n_groups; g++) {
        a += c->groups[g].side[0].bytes;
        b += c->groups[g].side[1].bytes;
    }
    ms_text_add(text, "%11s  in %u more groups (--top 0 lists all)\n",
                ms_compare_cells_signed(b < a, "+",
                                        ms_quantity_size(b < a ? a - b : b - a))
                    .s,
                c->n_groups - c->top);
}

void ms_compare_tensors_write(const ms_comparison *c, const ms_style *style,
                              ms_text *text)
{
    ms_text_add(text, "\n");
    instant_line(c, 0, text);
    instant_line(c, 1, text);
    ms_text_add(text, "%s\n", c->n_groups == 0 ? "\nthe same tensors" : "");
    for (uint32_t g = 0; g < c->n_groups && g < c->top; g++)
        put_group(c, g, style, text);
    rest_line(c, text);
}
