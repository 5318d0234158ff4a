/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/differences/side.h"
#include "sim/names.h"

#include <string.h>

#define NOT_TOLD MS_N_PHASES

/* ---- lives --------------------------------------------------------------- */

/* What its own stack or op says. */
static uint8_t told_phase(const ms_side *side, const ms_pagelife *life)
{
    if (life->held)
        return NOT_TOLD;
    uint8_t phase =
        life->site == MS_NONE ? side->phase_without : side->phases[life->site];
    return phase == MS_PHASE_LOSS ? MS_PHASE_FORWARD : phase;
}

uint8_t ms_side_phase_of(const ms_side *side, const ms_pagelife *life)
{
    return life->held ? NOT_TOLD : side->phase_of[life->from];
}

bool ms_side_is_alive(const ms_pagelife *life, uint32_t state)
{
    return life->from <= state && (life->to == MS_NONE || life->to > state);
}

bool ms_side_is_of_step(const ms_side *side, const ms_pagelife *life)
{
    return life->from < side->to &&
           (life->to == MS_NONE || life->to > side->from);
}

/* ---- states -------------------------------------------------------------- */

static ms_err take_states(ms_side *side, ms_arena *arena, ms_fault *fault)
{
    uint32_t n = side->n_states;
    side->bytes = ms_arena_take(arena, n + 2u, sizeof *side->bytes);
    side->phase_of = ms_arena_take_raw(arena, n + 2u, sizeof *side->phase_of);
    if (side->bytes == NULL || side->phase_of == NULL)
        return ms_fail_nomem(fault);
    memset(side->phase_of, NOT_TOLD, n + 2u);
    for (uint32_t i = 0; i < side->n; i++) {
        const ms_pagelife *life = &side->lives[i];
        side->bytes[life->from] += life->bytes;
        if (life->to != MS_NONE)
            side->bytes[life->to] -= life->bytes; /* modulo 2^64 */
        side->phase_of[life->from] = told_phase(side, life);
    }
    for (uint32_t s = 1; s <= n; s++)
        side->bytes[s] += side->bytes[s - 1];
    return MS_OK;
}

static void find_peak(ms_side *side)
{
    for (uint32_t s = 0; s <= side->n_states; s++)
        if (side->bytes[s] > side->peak_bytes) {
            side->peak_bytes = side->bytes[s];
            side->peak_state = s;
        }
}

static bool has_optimizer(const ms_side *side)
{
    for (uint32_t s = 0; s <= side->n_states; s++)
        if (side->phase_of[s] == MS_PHASE_OPTIMIZER)
            return true;
    return false;
}

/* Each state gets its phase; the step of the peak is kept. */
static void find_steps(ms_side *side)
{
    uint8_t last = has_optimizer(side) ? MS_PHASE_OPTIMIZER : MS_PHASE_BACKWARD;
    uint8_t now = NOT_TOLD;
    bool is_over = false;
    side->from = 0;
    side->to = side->n_states + 1;
    for (uint32_t s = 1; s <= side->n_states; s++) {
        uint8_t phase = side->phase_of[s];
        bool begins =
            phase != NOT_TOLD &&
            (now == NOT_TOLD || (phase == MS_PHASE_FORWARD && now >= last));
        if (begins && s > side->peak_state && side->n_steps > 0 && !is_over) {
            side->to = s;
            is_over = true;
        }
        if (begins && (s <= side->peak_state || side->n_steps == 0))
            side->from = s;
        side->n_steps += begins;
        if (begins || (phase != NOT_TOLD && phase > now))
            now = phase;
        side->phase_of[s] = now;
    }
    if (side->from > side->peak_state)
        side->from = side->peak_state;
}

static void find_phases(ms_side *side)
{
    side->begin = side->from;
    side->end = side->to;
    side->peak_phase = side->phase_of[side->peak_state];
    for (uint32_t s = side->from; s < side->to; s++) {
        if (side->phase_of[s] == NOT_TOLD)
            continue;
        ms_side_phase *phase = &side->phase[side->phase_of[s]];
        if (!phase->is_there)
            phase->from = s;
        phase->is_there = true;
        phase->to = s + 1.0;
        if (side->bytes[s] > phase->peak_bytes) {
            phase->peak_bytes = side->bytes[s];
            phase->peak_state = s;
        }
    }
}

ms_err ms_side_measure(ms_side *side, ms_arena *arena, ms_fault *fault)
{
    MS_TRY(take_states(side, arena, fault));
    find_peak(side);
    find_steps(side);
    find_phases(side);
    return MS_OK;
}

/* ---- categories ---------------------------------------------------------- */

static bool lasts_into(const ms_side *side, const ms_pagelife *life,
                       uint8_t phase)
{
    return life->to == MS_NONE || side->phase_of[life->to] >= phase;
}

static uint8_t guess(const ms_side *side, const ms_pagelife *life)
{
    switch (ms_side_phase_of(side, life)) {
    case MS_PHASE_FORWARD:
        return lasts_into(side, life, MS_PHASE_BACKWARD) ? MS_ACTIVATIONS
                                                         : MS_TEMPORARIES;
    case MS_PHASE_BACKWARD:
        return lasts_into(side, life, MS_PHASE_OPTIMIZER) ? MS_GRADIENTS
                                                          : MS_TEMPORARIES;
    case MS_PHASE_OPTIMIZER:
        return life->to == MS_NONE ? MS_OPTIMIZER_STATE : MS_TEMPORARIES;
    default:
        return MS_N_CATEGORIES;
    }
}

void ms_side_guess(ms_side *side)
{
    for (uint32_t i = 0; i < side->n; i++)
        if (side->lives[i].category == MS_N_CATEGORIES)
            side->lives[i].category = guess(side, &side->lives[i]);
}

void ms_side_categorize(ms_side *side)
{
    for (uint32_t i = 0; i < side->n; i++) {
        const ms_pagelife *life = &side->lives[i];
        if (ms_side_is_alive(life, side->peak_state))
            side->by_category[life->category] += life->bytes;
        for (int p = 0; p < MS_N_PHASES; p++)
            if (side->phase[p].is_there &&
                ms_side_is_alive(life, side->phase[p].peak_state))
                side->phase[p].by_category[life->category] += life->bytes;
    }
}

/* ---- one axis ------------------------------------------------------------ */

/* The share of the step that a phase is, with what lies before the first or
 * behind the last counted to it; NaN-free where a step is empty. */
static double share(const ms_side *side, int phase)
{
    const ms_side_phase *of = &side->phase[phase];
    double all = 0;
    for (int p = 0; p < MS_N_PHASES; p++)
        all += side->phase[p].to - side->phase[p].from;
    return all > 0 ? (of->to - of->from) / all : 0;
}

static bool knows_phases(const ms_side *side)
{
    return side->n_steps > 0;
}

static void put_knot(ms_side *side, double t, uint64_t at)
{
    uint32_t n = side->n_knots;
    if (n == 0 || side->knots[n - 1].t < t || side->knots[n - 1].at != at)
        side->knots[side->n_knots++] = (ms_pageknot){t, at};
}

/* What lies between two phases is where the second begins. */
static void tie(ms_side *side, const uint64_t edges[MS_N_PHASES])
{
    uint64_t from = 0;
    if (edges[MS_N_PHASES - 1] == 0) {
        put_knot(side, side->begin, 0);
        put_knot(side, side->end, MS_SIDE_AXIS);
        return;
    }
    for (int p = 0; p < MS_N_PHASES; p++) {
        const ms_side_phase *of = &side->phase[p];
        if (of->is_there && side->n_knots > 0)
            put_knot(side, side->knots[side->n_knots - 1].t, from);
        if (of->is_there) {
            put_knot(side, of->from, from);
            put_knot(side, of->to, edges[p]);
        }
        from = edges[p];
    }
    put_knot(side, side->knots[side->n_knots - 1].t, MS_SIDE_AXIS);
}

/* The place of an instant on the axis of both. */
static uint64_t place(const ms_side *side, double t)
{
    const ms_pageknot *knot = side->knots;
    const ms_pageknot *last = &side->knots[side->n_knots - 1];
    while (knot < last && knot[1].t <= t)
        knot++;
    if (knot == last || t < knot->t)
        return knot->at;
    return (uint64_t)((double)knot->at + (double)(knot[1].at - knot->at) *
                                             (t - knot->t) /
                                             (knot[1].t - knot->t));
}

static ms_err draw_states(ms_side *side, ms_arena *arena, ms_fault *fault)
{
    uint64_t n = side->to - side->from;
    uint32_t parts = n < MS_SIDE_LEVELS ? (uint32_t)n : MS_SIDE_LEVELS;
    side->line = ms_arena_take(arena, parts + 1u, sizeof *side->line);
    if (side->line == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t first = side->from + (uint32_t)(n * i / parts);
        uint32_t end = side->from + (uint32_t)(n * (i + 1) / parts);
        uint32_t highest = first;
        for (uint32_t s = first; s < end; s++)
            if (side->bytes[s] > side->bytes[highest])
                highest = s;
        side->line[side->n_line++] =
            (ms_side_level){place(side, highest), side->bytes[highest]};
    }
    return MS_OK;
}

ms_err ms_side_align(ms_side sides[2], uint64_t edges[MS_N_PHASES],
                     ms_arena *arena, ms_fault *fault)
{
    bool has_phases = knows_phases(&sides[0]) && knows_phases(&sides[1]);
    double at = 0;
    for (int p = 0; p < MS_N_PHASES; p++) {
        at += (share(&sides[0], p) + share(&sides[1], p)) / 2;
        edges[p] = has_phases ? (uint64_t)(MS_SIDE_AXIS * at + 0.5) : 0;
    }
    for (int s = 0; s < 2; s++) {
        tie(&sides[s], edges);
        if (sides[s].lives != NULL)
            MS_TRY(draw_states(&sides[s], arena, fault));
        for (uint32_t i = 0; sides[s].lives == NULL && i < sides[s].n_line; i++)
            sides[s].line[i].at = place(&sides[s], (double)sides[s].line[i].at);
    }
    return MS_OK;
}
