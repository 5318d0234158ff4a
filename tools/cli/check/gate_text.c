/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/cli/check/gate.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"

#include <stdio.h>
#include <string.h>

#define NAME_COLUMNS 26u
#define NAME_BYTES 64u

enum { MEMORY, WAS, CHANGE, LIMIT, STEP, N_CELLS };
static const char *const headings[N_CELLS] = {"memory", "was", "change",
                                              "limit", "step"};
static const uint32_t widths[N_CELLS] = {11, 11, 9, 11, 10};

static ms_label cell(const ms_gate_case *of, int column)
{
    ms_label label = {"-"};
    uint64_t now = of->now.used_bytes, before = of->before.used_bytes;
    if (column == MEMORY && of->refused == NULL)
        return ms_quantity_size(now);
    if (column == WAS && before > 0)
        return ms_quantity_size(before);
    if (column == CHANGE && before > 0 && of->refused == NULL)
        snprintf(label.s, sizeof label.s, "%+.1f %%",
                 100.0 * ((double)now - (double)before) / (double)before);
    if (column == LIMIT && of->limit_bytes > 0)
        return ms_quantity_size(of->limit_bytes);
    if (column == STEP && of->refused == NULL)
        return ms_quantity_time(of->now.step_ns);
    return label;
}

/* What the verdict is of. */
static void put_verdict(const ms_gate_case *of, ms_text *text)
{
    ms_text_add(text, "%s", ms_gate_keys_verdicts[of->verdict]);
    switch (of->verdict) {
    case MS_GATE_REFUSED:
        ms_text_add(text, ": ");
        ms_text_put(text, of->refused, strlen(of->refused));
        break;
    case MS_GATE_NO_FIT:
        ms_text_add(text, " into %s", ms_quantity_size(of->capacity_bytes).s);
        break;
    case MS_GATE_GREW:
        ms_text_add(text, " by more than %.3g %%", of->tolerance);
        break;
    case MS_GATE_SLOWER:
        ms_text_add(
            text, " by %.1f %%, more than %.3g %%",
            100.0 * ((double)of->now.step_ns / (double)of->before.step_ns - 1),
            of->time_tolerance);
        break;
    case MS_GATE_SHRANK:
        ms_text_add(text, ": --update lowers the baseline");
        break;
    case MS_GATE_NEW:
        ms_text_add(text, ": --update takes it into the baseline");
        break;
    default:
        break;
    }
}

static bool fails(const ms_gate_case *of)
{
    return of->verdict >= MS_GATE_REFUSED;
}

static void put_sum(const ms_gate *check, ms_text *text)
{
    ms_text_add(text, "%u of %u cases %s", check->n - check->n_failed, check->n,
                check->n - check->n_failed == 1 ? "passes" : "pass");
}

/* ---- for people ---------------------------------------------------------- */

static void put_row(const ms_gate_case *of, const ms_style *style,
                    ms_text *text)
{
    char name[NAME_BYTES];
    ms_text verdict = {.arena = text->arena};
    ms_screen_safe(of->name, name, sizeof name);
    ms_text_add(text, "%-*.*s", (int)NAME_COLUMNS, (int)NAME_COLUMNS, name);
    for (int c = 0; c < N_CELLS; c++)
        ms_screen_right(text, widths[c], cell(of, c).s);
    put_verdict(of, &verdict);
    text->failed |= verdict.failed;
    ms_text_add(text, "\n%s", fails(of) ? style->bad : style->good);
    if (!verdict.failed)
        ms_screen_fill(text, 2, "", verdict.bytes);
    ms_text_add(text, "%s", style->plain);
}

void ms_gate_text_write(const ms_gate *check, const ms_style *style,
                        ms_text *text)
{
    ms_text_add(text, "%s%-*s", style->strong, (int)NAME_COLUMNS, "case");
    for (int c = 0; c < N_CELLS; c++)
        ms_screen_right(text, widths[c], headings[c]);
    ms_text_add(text, "%s\n", style->plain);
    for (uint32_t i = 0; i < check->n; i++)
        put_row(&check->cases[i], style, text);
    put_sum(check, text);
    ms_text_add(text, "\n");
    ms_narrow_lines(text);
}

/* ---- Markdown ------------------------------------------------------------ */

/* What a cell of a table, and HTML in it, would take for its own. */
static void put_escaped(const char *words, ms_text *text)
{
    for (const char *at = words; *at != '\0'; at++) {
        if (strchr("|\\`*_[]", *at) != NULL)
            ms_text_add(text, "\\%c", *at);
        else if (*at == '<')
            ms_text_add(text, "&lt;");
        else
            ms_text_put(text, (unsigned char)*at < ' ' ? " " : at, 1);
    }
}

static void put_markdown_row(const ms_gate_case *of, ms_text *text)
{
    ms_text verdict = {.arena = text->arena};
    put_verdict(of, &verdict);
    text->failed |= verdict.failed;
    ms_text_add(text, "| ");
    put_escaped(of->name, text);
    for (int c = 0; c < N_CELLS; c++)
        ms_text_add(text, " | %s", cell(of, c).s);
    ms_text_add(text, " | %s ", fails(of) ? "❌" : "✅");
    put_escaped(verdict.failed ? "" : verdict.bytes, text);
    ms_text_add(text, " |\n");
}

void ms_gate_text_markdown(const ms_gate *check, ms_text *text)
{
    ms_text_add(text, "**Memory of training steps** (memsim " MS_VERSION "): ");
    put_sum(check, text);
    ms_text_add(text, "\n\n| case");
    for (int c = 0; c < N_CELLS; c++)
        ms_text_add(text, " | %s", headings[c]);
    ms_text_add(text, " | |\n|---|---:|---:|---:|---:|---:|---|\n");
    for (uint32_t i = 0; i < check->n; i++)
        put_markdown_row(&check->cases[i], text);
}
