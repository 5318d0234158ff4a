/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim help advice: the table of changes. */

#include "tools/advice/changes.h"
#include "tools/cli/help/help.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <string.h>

#define INDENT 38u

static const char *const headings[MS_N_COSTS] = {
    "Costs nothing (the same numbers, at least as fast)",
    "Costs time (the same numbers)", "Other numbers", "Other training"};

/* "microbatch:N", "lora.rank=16 lora.base=nf4". */
static void put_name(const ms_change *row, ms_text *label)
{
    ms_text_add(label, "  ");
    for (const char *c = row->policy; c != NULL && *c != '\0'; c++) {
        bool is_count = strncmp(c, "%lld", 4) == 0;
        ms_text_put(label, is_count ? "N" : c, 1);
        c += is_count ? 3 : 0;
    }
    for (uint32_t k = 0; k < MS_CHANGE_SETTINGS; k++)
        if (row->set[k].key != NULL)
            ms_text_add(label, "%s%s=%s", k > 0 ? " " : "",
                        ms_changewords_key(row->set[k].key), row->set[k].value);
}

static void put_row(const ms_change *row, ms_text *text)
{
    ms_text label = {.arena = text->arena}, words = label;
    put_name(row, &label);
    if (row->price != NULL)
        ms_text_add(&words, "%s", row->price);
    if (row->when != NULL) {
        bool none = row->words[0] == '!';
        ms_text_add(&words, "%swhere %s is %s", words.length > 0 ? "; " : "",
                    ms_changewords_key(row->when), none ? "not " : "");
        ms_options_words(row->words + none, &words);
    }
    if (strcmp(row->slot, "share") == 0)
        ms_text_add(&words, "where GPUs share less");
    text->failed |= label.failed || words.failed;
    if (text->failed)
        return;
    if (words.length == 0)
        ms_text_add(text, "%s\n", label.bytes);
    else
        ms_screen_fill(text, INDENT, label.bytes, words.bytes);
}

void ms_help_changes_write(ms_text *text)
{
    ms_textlines_prose(
        "What a step that does not fit is advised, and explain's \"less "
        "with\": each is\ntried by a replay of your step.  run tells, of each "
        "price, the one change or\nthe few together that fit and take the "
        "least time, unless something that costs\nless is as fast.\n",
        text);
    for (uint32_t c = 0; c < MS_N_COSTS; c++) {
        ms_text_add(text, "\n%s:\n", headings[c]);
        for (uint32_t r = 0; r < ms_changes_table_n; r++)
            if (ms_changes_table[r].costs == c)
                put_row(&ms_changes_table[r], text);
    }
}
