/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/record/phases.h"
#include "plots/record/record.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* More bands than this are narrower than their border. */
#define MOST_BANDS 48

const char *const ms_phases_words[MS_N_PHASES + 1][MS_PHASE_WORDS] = {
    [MS_PHASE_FORWARD] = {"forward", "fwd", "F"},
    [MS_PHASE_BACKWARD] = {"backward", "bwd", "B"},
    [MS_PHASE_OPTIMIZER] = {"optimizer", "opt.", "O"},
    [MS_PHASE_MIXED] = {"forward and backward in turn", "fwd, bwd", "FB"},
};

/* Is op of an update in backward, or of what is due as a gradient comes? */
static bool is_early(const ms_plan *plan, uint32_t op)
{
    uint32_t of = plan->op[op].of;
    return plan->op[op].pass == MS_STEP && of != MS_NONE &&
           of < plan->graph->step_all;
}

/* The phase that op is drawn as, or MS_N_PHASES for what is not drawn.  What
 * the host does of the optimizer's step counts once the device is done. */
static uint8_t phase_of(const ms_timeline *line, uint16_t rank, uint32_t op,
                        uint64_t done_ns)
{
    const ms_plan *plan = line->plan;
    uint8_t pass = plan->op[op].pass, stream = plan->op[op].stream;
    bool late = pass == MS_STEP && done_ns > 0 && line->start_ns[op] >= done_ns;
    if (plan->op[op].rank != rank || pass == MS_START || pass == MS_COPY ||
        (stream != MS_STREAM_COMPUTE && !late) ||
        line->start_ns[op] >= line->end_ns[op])
        return MS_N_PHASES;
    if (is_early(plan, op))
        return MS_PHASE_BACKWARD;
    ms_phase phase = ms_names_phase_of((ms_pass)pass);
    return phase == MS_PHASE_LOSS ? MS_PHASE_FORWARD : (uint8_t)phase;
}

/* Counts the bands; with bands not NULL also writes their phases and starts. */
static uint32_t find(const ms_timeline *line, uint16_t rank, ms_band *bands)
{
    uint32_t n = 0;
    uint8_t last = MS_N_PHASES;
    uint64_t done_ns = 0; /* what has been drawn ends there */
    for (uint32_t op = 0; op < line->plan->n_ops; op++) {
        uint8_t phase = phase_of(line, rank, op, done_ns);
        if (phase != MS_N_PHASES)
            done_ns = line->end_ns[op];
        if (phase == MS_N_PHASES || phase == last)
            continue;
        if (bands != NULL)
            bands[n] = (ms_band){.from_ns = line->start_ns[op], .phase = phase};
        last = phase;
        n++;
    }
    return n;
}

/* Makes one mixed band of neighbours, sparing those of phase `spared`. */
static uint32_t mix(ms_band *bands, uint32_t n, uint8_t spared)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t phase = bands[i].phase == spared ? spared : MS_PHASE_MIXED;
        if (kept > 0 && bands[kept - 1].phase == phase)
            continue;
        bands[kept] = bands[i];
        bands[kept++].phase = phase;
    }
    return kept;
}

/* A pause belongs to the band before it. */
static void close_gaps(ms_band *bands, uint32_t n, uint64_t end_ns)
{
    bands[0].from_ns = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        bands[i].to_ns = bands[i + 1].from_ns;
    bands[n - 1].to_ns = end_ns;
}

ms_err ms_phases_bands(const ms_timeline *line, uint16_t rank, uint64_t end_ns,
                       ms_arena *arena, ms_band **bands, uint32_t *n,
                       ms_fault *fault)
{
    *n = find(line, rank, NULL);
    *bands = ms_arena_take(arena, (size_t)*n + 1, sizeof **bands);
    if (*bands == NULL)
        return ms_fail_nomem(fault);
    find(line, rank, *bands);
    if (*n > MOST_BANDS)
        *n = mix(*bands, *n, MS_PHASE_OPTIMIZER);
    if (*n > MOST_BANDS)
        *n = mix(*bands, *n, MS_PHASE_MIXED);
    if (*n > 0)
        close_gaps(*bands, *n, end_ns);
    return MS_OK;
}
