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

ms_err ms_choice_open(ms_choice_saved *saved, const ms_graph *graph,
                      ms_arena *arena, ms_fault *fault)
{
    uint32_t end = graph->out_at[graph->forward_at[graph->n_units]];
    *saved = (ms_choice_saved){
        .storage = ms_arena_take_raw(arena, end, sizeof *saved->storage),
        .unit = ms_arena_take_raw(arena, end, sizeof *saved->unit)};
    if (saved->storage == NULL || saved->unit == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < end; i++) {
        uint32_t s = graph->out[i], maker = graph->storage_maker[s];
        if (s < graph->n_persistent || graph->storage_saved_end[s] == MS_NONE)
            continue;
        saved->storage[saved->n] = s;
        saved->unit[saved->n++] = graph->op_unit[maker];
    }
    return MS_OK;
}

/* Does each unit of a segment keep nothing of what it saves, any other all? */
static bool is_all_or_nothing(const ms_choice_saved *saved, const ms_keep *keep)
{
    const uint32_t *segment = keep->segment;
    const uint8_t *place = keep->place;
    bool same = true;
    for (uint32_t i = 0; i < saved->n; i++)
        same &= place[saved->storage[i]] ==
                (segment[saved->unit[i]] == MS_NONE ? MS_HERE : MS_GONE);
    return same;
}

bool ms_choice_read(const ms_graph *graph, const ms_choice_saved *saved,
                    const ms_keep *keep, ms_fold_stretch *stretches,
                    ms_fold_choice *choice)
{
    uint32_t n = 0;
    if (keep->other != NULL || !is_all_or_nothing(saved, keep))
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
