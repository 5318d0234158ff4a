/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step that was simulated as a side: the rows of one rank's device. */

#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/differences/side.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

typedef struct step {
    const ms_plan *plan;
    uint16_t rank;
    ms_arena *arena;
    ms_side *side;
    uint32_t *life_of; /* by row; MS_NONE */
    const char **words;
    uint8_t *phases;
} step;

/* "layers.0.mlp.up:out, aten::mm (forward)", as a snapshot's frames say. */
static const char *word_of(const step *of, uint32_t row)
{
    char buffer[MS_STORAGE_NAME];
    const ms_plan_op *op = &of->plan->op[of->plan->row[row].op];
    const char *name = ms_dumpplan_row_name(of->plan, row, buffer);
    const char *pass = ms_names_pass[op->pass];
    ms_text text = {.arena = of->arena};
    ms_text_put(&text, name, strlen(name));
    if (op->of == MS_NONE)
        ms_text_add(&text, ", %s", pass);
    else
        ms_text_add(&text, ", %s (%s)", of->plan->graph->op_name[op->of], pass);
    return text.failed ? NULL : text.bytes;
}

static ms_err begin(step *of, uint32_t row, ms_fault *fault)
{
    ms_side *side = of->side;
    const ms_row *it = &of->plan->row[row];
    uint8_t pass = of->plan->op[it->op].pass;
    uint32_t i = side->n;
    side->n_states++;
    if (it->bytes == 0)
        return MS_OK;
    of->words[i] = word_of(of, row);
    if (of->words[i] == NULL)
        return ms_fail_nomem(fault);
    of->phases[i] = pass == MS_START
                        ? MS_N_PHASES
                        : (uint8_t)ms_names_phase_of((ms_pass)pass);
    side->lives[i] = (ms_pagelife){.bytes = it->bytes,
                                   .from = side->n_states,
                                   .to = MS_NONE,
                                   .site = i,
                                   .category = it->category};
    of->life_of[row] = i;
    side->n++;
    return MS_OK;
}

static ms_err follow(step *of, const ms_timeline *line, ms_fault *fault)
{
    ms_eventwalk events;
    ms_timeline_walk(line, 0, &events);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&events);
        uint32_t row = event->row;
        if (of->plan->op[event->op_act >> 1].rank != of->rank ||
            of->plan->row[row].pool != MS_DEVICE_POOL)
            continue;
        if (event->op_act & 1)
            MS_TRY(begin(of, row, fault));
        else if (++of->side->n_states, of->life_of[row] != MS_NONE)
            of->side->lives[of->life_of[row]].to = of->side->n_states;
    }
    return MS_OK;
}

ms_err ms_simulatedside_of(const struct ms_result *result, ms_arena *arena,
                           ms_side *side, ms_fault *fault)
{
    size_t n = result->plan->n_rows + 1u;
    step of = {.plan = result->plan,
               .rank = result->report->ranks[result->report->told].rank,
               .arena = arena,
               .side = side};
    of.life_of = ms_arena_take_raw(arena, n, sizeof *of.life_of);
    of.words = ms_arena_take(arena, n, sizeof *of.words);
    of.phases = ms_arena_take(arena, n, sizeof *of.phases);
    side->lives = ms_arena_take(arena, n, sizeof *side->lives);
    if (of.life_of == NULL || of.words == NULL || of.phases == NULL ||
        side->lives == NULL)
        return ms_fail_nomem(fault);
    memset(of.life_of, 0xff, n * sizeof *of.life_of);
    side->kind = MS_SIDE_SIMULATED;
    side->tells_layers = true;
    side->phase_without = MS_N_PHASES;
    MS_TRY(follow(&of, result->line, fault));
    side->words = of.words;
    side->phases = of.phases;
    side->n_words = side->n;
    return MS_OK;
}
