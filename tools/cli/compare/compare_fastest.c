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

static uint64_t error_of(const ms_comparison *c, uint32_t i)
{
    return ms_compare_values_rank(&c->variants[i])->time.error_percent;
}

static bool find_least(const ms_comparison *c, bool by_work,
                       ms_compare_fastest *found)
{
    bool differ = false;
    *found = (ms_compare_fastest){.of = MS_NONE, .known = true};
    for (uint32_t i = 0; i < c->n; i++) {
        double cost = cost_of(c, i, by_work);
        differ |= found->of != MS_NONE && cost >= 0 && cost != found->cost;
        if (cost < 0 || (found->of != MS_NONE && cost >= found->cost))
            continue;
        found->of = i;
        found->cost = cost;
    }
    return differ;
}

/* Adds the error of two times to those that are told. */
static void tell(ms_compare_fastest *found, uint32_t percent, bool known)
{
    found->percent = percent > found->percent ? percent : found->percent;
    found->known &= known;
}

/* The larger error of the fastest and variant i. */
static uint32_t band_of(const ms_comparison *c, const ms_compare_fastest *found,
                        uint32_t i, bool *known)
{
    uint64_t own = error_of(c, found->of), other = error_of(c, i);
    *known = own > 0 && other > 0;
    own = own > 0 ? own : MS_ACCURACY_UNKNOWN;
    other = other > 0 ? other : MS_ACCURACY_UNKNOWN;
    return (uint32_t)(own > other ? own : other);
}

bool ms_compare_fastest_find(const ms_comparison *c, ms_compare_fastest *found)
{
    bool by_work = works_differ(c), known;
    if (!find_least(c, by_work, found))
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        double cost = cost_of(c, i, by_work);
        if (cost < 0 || i == found->of)
            continue;
        uint32_t percent = band_of(c, found, i, &known);
        if (cost > found->cost * (1 + percent / 100.0))
            continue;
        found->close[found->n_close] = i;
        found->more_percent[found->n_close++] = 100 * (cost / found->cost - 1);
        if (cost > found->cost)
            tell(found, percent, known);
        else
            found->n_same++;
    }
    for (uint32_t i = 0; i < c->n && found->n_close == found->n_same; i++)
        if (cost_of(c, i, by_work) > found->cost) {
            uint32_t percent = band_of(c, found, i, &known);
            tell(found, percent, known);
        }
    return true;
}

/* "1", or "1 and 4" where they take exactly as long. */
static void put_first(const ms_compare_fastest *of, ms_text *words)
{
    ms_text_add(words, "%u", of->of + 1);
    for (uint32_t i = 0; i < of->n_close; i++)
        if (of->more_percent[i] <= 0)
            ms_text_add(words, " and %u", of->close[i] + 1);
    ms_text_add(words, " by the clock");
}

static void put_close(const ms_compare_fastest *of, ms_text *words)
{
    const char *before = ", but";
    for (uint32_t i = 0; i < of->n_close; i++) {
        if (of->more_percent[i] <= 0)
            continue;
        ms_text_add(words, "%s %u (+%.1f %%)", before, of->close[i] + 1,
                    of->more_percent[i]);
        before = ",";
    }
}

void ms_compare_fastest_write(const ms_comparison *c, ms_text *text)
{
    ms_compare_fastest of;
    ms_text words = {.arena = text->arena};
    if (!ms_compare_fastest_find(c, &of))
        return;
    uint32_t n_close = of.n_close - of.n_same;
    put_first(&of, &words);
    put_close(&of, &words);
    if (n_close == 0)
        ms_text_add(&words, ", by more than the %u %% that ", of.percent);
    else
        ms_text_add(&words, " %s within the %u %% that ",
                    n_close > 1 ? "are" : "is", of.percent);
    ms_text_add(&words, of.known
                            ? "such times were off when they were measured"
                            : "are taken for times that were not held against "
                              "any run of their kind");
    if (n_close > 0)
        ms_text_add(&words, ": that does not decide between them");
    text->failed |= words.failed;
    ms_text_add(text, "\n");
    ms_textlines_put("fastest:", MS_TEXTLINES_INDENT, &words, text);
}
