/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/terminal/textlines.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "tools/terminal/screen.h"

#include <string.h>

void ms_textlines_put(const char *label, uint32_t indent, const ms_text *words,
                      ms_text *text)
{
    char *safe = words->failed
                     ? NULL
                     : ms_arena_take(text->arena, words->length + 1u, 1);
    if (safe == NULL) {
        text->failed = true;
        return;
    }
    ms_screen_safe(words->length > 0 ? words->bytes : "", safe,
                   words->length + 1u);
    ms_screen_fill(text, indent, label, safe);
}

/* Is the line a part of a paragraph? Not where blanks align it. */
static bool is_prose(const char *line, size_t length)
{
    if (length == 0 || *line == ' ')
        return false;
    for (size_t i = 0; i + 2 < length; i++)
        if (line[i] == ' ' && line[i + 1] == ' ' && line[i + 2] == ' ')
            return false;
    return true;
}

static void end_paragraph(ms_text *paragraph, ms_text *text)
{
    text->failed |= paragraph->failed;
    if (!text->failed && paragraph->length > 0)
        ms_screen_fill(text, 0, "", paragraph->bytes);
    *paragraph = (ms_text){.arena = text->arena};
}

void ms_textlines_prose(const char *prose, ms_text *text)
{
    ms_text paragraph = {.arena = text->arena};
    while (*prose != '\0') {
        size_t length = strcspn(prose, "\n");
        if (is_prose(prose, length)) {
            if (paragraph.length > 0)
                ms_text_put(&paragraph, " ", 1);
            ms_text_put(&paragraph, prose, length);
        } else {
            end_paragraph(&paragraph, text);
            ms_text_put(text, prose, length);
            ms_text_put(text, "\n", 1);
        }
        prose += length + (prose[length] == '\n');
    }
    end_paragraph(&paragraph, text);
}

void ms_textlines_lines(const char *const *lines, ms_text *text)
{
    ms_text prose = {.arena = text->arena};
    for (; *lines != NULL; lines++)
        ms_text_add(&prose, "%s\n", *lines);
    text->failed |= prose.failed;
    if (!text->failed && prose.length > 0)
        ms_textlines_prose(prose.bytes, text);
}

void ms_textlines_category(uint8_t category, ms_text *text)
{
    for (const char *c = ms_names_category[category]; *c != '\0'; c++)
        ms_text_put(text, *c == '_' ? " " : c, 1);
}

void ms_textlines_unknown(const ms_graph *graph, ms_text *text)
{
    char name[96];
    for (uint32_t i = 0; i < graph->n_unknown; i++)
        ms_text_add(text, "%s%s x %u", i > 0 ? ", " : "",
                    ms_screen_safe(graph->unknown_name[i], name, sizeof name),
                    graph->unknown_count[i]);
    if (graph->n_unknown > 0)
        ms_text_add(text, ": no rule, so all inputs and outputs are taken as "
                          "saved, with a gradient per input");
}
