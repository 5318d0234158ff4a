/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A choice of checkpoints as a keep, and a keep as a choice. */
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/program.h"

static void drop_unit(const ms_graph *graph, uint32_t unit, ms_keep *keep)
{
    uint32_t end = graph->out_at[graph->forward_at[unit + 1]];
    for (uint32_t i = graph->out_at[graph->forward_at[unit]]; i < end; i++)
        keep->place[graph->out[i]] = MS_GONE;
}

void ms_choice_keep(const ms_graph *graph, const ms_fold_choice *choice,
                    ms_keep *keep)
{
    uint32_t id = 0;
    keep->reentrant = choice->reentrant;
    keep->early_stop = choice->early_stop;
    for (uint32_t i = 0; i < choice->n_stretches; i++) {
        const ms_fold_stretch *stretch = &choice->stretches[i];
        uint32_t n = stretch->units * stretch->segments;
        for (uint32_t k = 0; k < n; k++) {
            keep->segment[stretch->first + k] = id + k / stretch->units;
            drop_unit(graph, stretch->first + k, keep);
        }
        id += stretch->segments;
    }
}

/* The unit that makes a storage, of those that forward saves; else MS_NONE. */
static uint32_t saving_unit(const ms_graph *graph, uint32_t s)
{
    return s < graph->n_persistent || graph->storage_saved_end[s] == MS_NONE
               ? MS_NONE
               : graph->op_unit[graph->storage_maker[s]];
}

ms_err ms_choice_open(ms_choice_saved *saved, const ms_graph *graph,
                      ms_arena *arena, ms_fault *fault)
{
    uint32_t end = graph->out_at[graph->forward_at[graph->n_units]], u;
    uint32_t *at = ms_arena_take(arena, graph->n_units + 2u, sizeof *at);
    uint32_t *storage = ms_arena_take_raw(arena, end, sizeof *storage);
    if (storage == NULL || at == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < end; i++)
        if ((u = saving_unit(graph, graph->out[i])) != MS_NONE)
            at[u + 2]++;
    for (u = 0; u < graph->n_units; u++)
        at[u + 2] += at[u + 1];
    for (uint32_t i = 0; i < end; i++)
        if ((u = saving_unit(graph, graph->out[i])) != MS_NONE)
            storage[at[u + 1]++] = graph->out[i];
    *saved = (ms_choice_saved){.storage = storage, .at = at};
    return MS_OK;
}

/* Does each unit of a segment keep nothing of what it saves, any other all? */
static bool is_all_or_nothing(const ms_choice_saved *saved, uint32_t n_units,
                              const ms_keep *keep)
{
    uint32_t others = 0;
    for (uint32_t u = 0; u < n_units; u++) {
        uint8_t place = keep->segment[u] == MS_NONE ? MS_HERE : MS_GONE;
        for (uint32_t i = saved->at[u]; i < saved->at[u + 1]; i++)
            others |= keep->place[saved->storage[i]] ^ place;
    }
    return others == 0;
}

bool ms_choice_read(const ms_graph *graph, const ms_choice_saved *saved,
                    const ms_keep *keep, ms_fold_stretch *stretches,
                    ms_fold_choice *choice)
{
    uint32_t n = 0;
    if (keep->other != NULL || !is_all_or_nothing(saved, graph->n_units, keep))
        return false;
    for (uint32_t u = 0, end; u < graph->n_units; u = end) {
        uint32_t segment = keep->segment[u];
        ms_fold_stretch *last = n > 0 ? &stretches[n - 1] : NULL;
        for (end = u + 1; end < graph->n_units && keep->segment[end] == segment;
             end++)
            ;
        if (segment == MS_NONE)
            continue;
        if (last != NULL && last->units == end - u &&
            last->first + last->units * last->segments == u)
            last->segments++;
        else
            stretches[n++] = (ms_fold_stretch){u, end - u, 1};
    }
    choice->stretches = stretches;
    choice->n_stretches = n;
    choice->reentrant = keep->reentrant;
    choice->early_stop = keep->early_stop;
    return true;
}
