/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/words/untrained.h"
#include "graphs/model.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#define MOST 4u /* weights that are named; the others are counted */

void ms_untrained_words(const ms_graph *graph, ms_text *words)
{
    char name[MS_STORAGE_NAME], safe[96];
    uint32_t n = graph->n_untrained;
    if (n == 0)
        return;
    ms_text_add(words, "no gradient comes to ");
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        const char *full =
            ms_graph_storage_name(graph, graph->untrained[i], name);
        ms_text_add(words, "%s%s", i > 0 ? ", " : "",
                    ms_screen_safe(full, safe, sizeof safe));
    }
    if (n > MOST)
        ms_text_add(words, " and %u more", n - MOST);
    ms_text_add(words, ": the loss does not depend on %s",
                n > 1 ? "them" : "it");
}

#define INDENT 10u

void ms_untrained_positions(const ms_result *result, ms_text *text)
{
    const ms_model *model = &result->model;
    uint64_t sequence = (uint64_t)result->training.sequence;
    char name[64];
    if (model->max_sequence == 0 || sequence <= model->max_sequence)
        return;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "a sequence of %s is longer than the ",
                ms_quantity_count(sequence).s);
    ms_text_add(&words,
                "%s positions of %s: its rotary angles go on, but it "
                "was not made for them",
                ms_quantity_count(model->max_sequence).s,
                ms_screen_safe(model->name, name, sizeof name));
    text->failed |= words.failed;
    if (!text->failed)
        ms_screen_fill(text, INDENT, "note:", words.bytes);
}
