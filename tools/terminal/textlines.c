/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/terminal/textlines.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "tools/terminal/screen.h"

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
