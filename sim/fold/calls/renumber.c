/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/calls/renumber.h"

#include "sim/fold/cells/rowkind.h"
#include "sim/graph.h"

bool ms_renumber_fits(const ms_learner *learner, const ms_graph *graph)
{
    return !learner->recipes.fixed && !learner->spans.fixed &&
           ms_rowkind_fit(&learner->cells, graph);
}

/* States are those that they were. */
bool ms_renumber_turn(ms_learner *learner)
{
    ms_fault ignored = {0};
    const ms_graph *graph = learner->graph;
    learner->numbers++;
    if (learner->streamed) {
        bool booked = ms_learn_start(learner, &ignored) == MS_OK;
        ms_cells_empty(&learner->cells);
        return booked;
    }
    learner->start_bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (graph->storage_at_start[s])
            learner->start_bytes += graph->storage_bytes[s];
    return true;
}

static bool is_told(const ms_answer *answer)
{
    return !answer->asks && answer->why == MS_FOLD_WHOLE;
}

const ms_answer *ms_renumber_answer(ms_learner *learner, uint32_t id)
{
    ms_answer *answer = &learner->answer[id];
    if (answer->numbers == learner->numbers)
        return answer;
    answer->numbers = learner->numbers;
    if (learner->streamed && is_told(answer)) {
        ms_span_renumber(&learner->spans, &learner->cells, answer->span);
        answer->effect =
            ms_span_effect(&learner->spans, answer->span, learner->machine);
    } else if (answer->recipe != MS_NONE) {
        answer->effect = ms_recipe_effect(&learner->recipes, answer->recipe,
                                          learner->graph, learner->machine);
    }
    return answer;
}
