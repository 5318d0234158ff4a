/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/untrained.h"
#include "tools/tools.h"

#define MOST 4u /* by name */

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
