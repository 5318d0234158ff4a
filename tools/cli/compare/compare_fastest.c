/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Says which variant is the fastest, and which are too close to it to tell. */

#include "graphs/machines/accuracy.h"
#include "sim/report.h"
#include "tools/cli/compare/compare.h"
#include "tools/terminal/textlines.h"

/* Of a token or a sample, where the variants train different numbers; less than
 * 0: there is none. */
static double cost_of(const ms_comparison *c, uint32_t i, bool by_work)
{
    const ms_variant *variant = &c->variants[i];
    if (variant->refused != NULL)
        return -1;
    double ns = (double)ms_compare_values_rank(variant)->time.step_ns;
    if (ns <= 0 || (by_work && variant->work <= 0))
        return -1;
    return by_work ? ns / variant->work : ns;
}

static bool works_differ(const ms_comparison *c)
{
    double work = -1;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->variants[i].refused != NULL)
            continue;
        if (work >= 0 && c->variants[i].work != work)
            return true;
        work = c->variants[i].work;
    }
    return false;
}

static uint32_t percent_of(const ms_comparison *c, uint32_t i, bool *known)
{
    const ms_times *time = &ms_compare_values_rank(&c->variants[i])->time;
    *known &= time->error_percent > 0;
    return time->error_percent > 0 ? (uint32_t)time->error_percent
                                   : MS_ACCURACY_UNKNOWN;
}

bool ms_compare_fastest_find(const ms_comparison *c, ms_compare_fastest *found)
{
    bool by_work = works_differ(c), differ = false;
    *found = (ms_compare_fastest){.of = MS_NONE, .known = true};
    for (uint32_t i = 0; i < c->n; i++) {
        double cost = cost_of(c, i, by_work);
        differ |= found->of != MS_NONE && cost >= 0 && cost != found->cost;
        if (cost < 0 || (found->of != MS_NONE && cost >= found->cost))
            continue;
        found->of = i;
        found->cost = cost;
    }
    if (!differ)
        return false;
    uint32_t own = percent_of(c, found->of, &found->known);
    for (uint32_t i = 0; i < c->n; i++) {
        double cost = cost_of(c, i, by_work);
        if (cost < 0 || i == found->of)
            continue;
        uint32_t percent = percent_of(c, i, &found->known);
        percent = percent > own ? percent : own;
        found->percent = percent > found->percent ? percent : found->percent;
        if (cost <= found->cost * (1 + percent / 100.0)) {
            found->close[found->n_close] = i;
            found->more_percent[found->n_close++] =
                100 * (cost / found->cost - 1);
        }
    }
    return true;
}

void ms_compare_fastest_write(const ms_comparison *c, ms_text *text)
{
    ms_compare_fastest of;
    ms_text words = {.arena = text->arena};
    if (!ms_compare_fastest_find(c, &of))
        return;
    ms_text_add(&words, "%u by the clock", of.of + 1);
    for (uint32_t i = 0; i < of.n_close; i++)
        ms_text_add(&words, "%s %u (+%.1f %%)", i == 0 ? ", but" : ",",
                    of.close[i] + 1, of.more_percent[i]);
    if (of.n_close == 0)
        ms_text_add(&words, ", by more than the %u %% that ", of.percent);
    else
        ms_text_add(&words, " %s within the %u %% that ",
                    of.n_close > 1 ? "are" : "is", of.percent);
    ms_text_add(&words, of.known
                            ? "such times were off when they were measured"
                            : "are taken for times that were not held against "
                              "any run of their kind");
    if (of.n_close > 0)
        ms_text_add(&words, ": that does not decide between them");
    text->failed |= words.failed;
    ms_text_add(text, "\n");
    ms_textlines_put("fastest:", MS_TEXTLINES_INDENT, &words, text);
}
