/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/explain/schedulepicture.h"
#include "sim/report.h"
#include "tools/systems/sweeps.h"
#include "tools/terminal/textlines.h"

#include <string.h>

/* Sweeps of one block each, made again just before its backward, are one: does
 * the sweep go on with that? */
static bool is_single(const ms_sweeps *sweeps, uint32_t i)
{
    uint32_t again = 0, alone = 0;
    for (uint32_t c = 0; c < sweeps->n_columns; c++) {
        again += ms_sweeps_again(sweeps, i, c);
        alone += sweeps->signs[i][c] == 'R';
    }
    return again == 1 && alone == 1;
}

static bool is_back(const ms_sweeps *sweeps, uint32_t i)
{
    for (uint32_t c = 0; c < sweeps->n_columns; c++)
        if (ms_sweeps_again(sweeps, i, c))
            return false;
    return true;
}

static void merge(ms_sweeps *sweeps)
{
    uint32_t n = sweeps->n > 1 ? 2 : sweeps->n;
    bool goes_on = n > 1 && (is_single(sweeps, 1) || is_back(sweeps, 1));
    for (uint32_t i = 2; i < sweeps->n; i++) {
        bool single = is_single(sweeps, i);
        if (!goes_on || !single) {
            sweeps->signs[n++] = sweeps->signs[i];
            goes_on = single;
            continue;
        }
        for (uint32_t c = 0; c < sweeps->n_columns; c++)
            if (sweeps->signs[i][c] != '.')
                sweeps->signs[n - 1][c] = sweeps->signs[i][c];
    }
    sweeps->n = n;
}

/* Of several columns in a sign those that differ are a star. */
static void squeeze(uint32_t n_columns, uint32_t each, char *signs)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < n_columns; c += each) {
        char sign = signs[c];
        for (uint32_t k = c; k < n_columns && k < c + each; k++)
            sign = signs[k] == sign ? sign : '*';
        signs[n++] = sign;
    }
    signs[n] = '\0';
}

ms_err ms_schedulepicture_find(const ms_result *result, ms_arena *arena,
                               ms_schedulepicture *picture, ms_fault *fault)
{
    const ms_report *report = result->report;
    ms_sweeps sweeps;
    *picture = (ms_schedulepicture){0};
    if (report->ranks[report->told].time.recompute_ns == 0)
        return MS_OK;
    MS_TRY(ms_sweeps_find(result, arena, &sweeps, fault));
    merge(&sweeps);
    uint32_t each = (sweeps.n_columns - 1) / MS_SCHEDULEPICTURE_SIGNS + 1;
    picture->lines = ms_arena_take(arena, sweeps.n, sizeof(const char *));
    if (picture->lines == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < sweeps.n && i < MS_SCHEDULEPICTURE_LINES; i++) {
        squeeze(sweeps.n_columns, each, sweeps.signs[i]);
        picture->lines[picture->n_lines++] = sweeps.signs[i];
    }
    picture->n_left = sweeps.n - picture->n_lines;
    picture->n_columns = sweeps.n_columns;
    picture->each = each;
    picture->names = sweeps.names;
    return MS_OK;
}

static void put_signs(const char *label, const char *signs, ms_text *text)
{
    ms_text_add(text, "%*s%-10s%s\n", (int)MS_TEXTLINES_INDENT, "", label,
                signs);
}

void ms_schedulepicture_put(const ms_schedulepicture *picture, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    if (picture->n_lines == 0)
        return;
    ms_text_add(&words, "of a micro-batch, from ");
    ms_text_put(&words, picture->names[0], strlen(picture->names[0]));
    const char *last = picture->names[picture->n_columns - 1];
    ms_text_add(&words, " to %s", last[0] != '\0' ? last : "the end");
    if (picture->each > 1)
        ms_text_add(&words, ", a sign for %u (* they differ)", picture->each);
    ms_text_add(&words,
                ": S saves all, p a part, i nothing but its input, > nothing; "
                "r runs forward again, R again and then back, b back");
    ms_textlines_put("schedule:", MS_TEXTLINES_INDENT, &words, text);
    for (uint32_t i = 0; i < picture->n_lines; i++)
        put_signs(i == 0   ? "forward"
                  : i == 1 ? "backward"
                           : "",
                  picture->lines[i], text);
    if (picture->n_left > 0)
        ms_text_add(text, "%*s%u more such lines\n",
                    (int)MS_TEXTLINES_INDENT + 10, "", picture->n_left);
}
