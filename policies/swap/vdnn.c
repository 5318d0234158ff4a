/* SPDX-License-Identifier: GPL-3.0-or-later */
/* vDNN (Rhu et al. 2016): the input of a unit leaves while the unit runs
 * forward; each backward brings one back (policies/sources.md 7). */
#include "policies/common/profile.h"
#include "policies/swap/swap.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

#include <stdio.h>

static bool convolves(const ms_graph *graph, uint32_t unit)
{
    for (uint32_t op = graph->forward_at[unit];
         op < graph->forward_at[unit + 1]; op++)
        if (graph->op_kind[op] == MS_KIND_CONVOLUTION)
            return true;
    return false;
}

static uint32_t input_set(const ms_swap *w, uint32_t unit)
{
    bool leaves = !w->convolutions || convolves(w->saved.graph, unit);
    return leaves ? w->saved.input_set[unit] : MS_NOTHING;
}

static ms_err find_below(ms_swap *w)
{
    uint32_t n = w->saved.graph->n_units;
    uint32_t leaves = MS_NONE, unit_convolves = MS_NONE;
    w->sent_for = n;
    w->leaves_below =
        ms_arena_take_raw(w->arena, n + 1u, sizeof *w->leaves_below);
    w->convolves_below =
        ms_arena_take_raw(w->arena, n + 1u, sizeof *w->convolves_below);
    if (w->leaves_below == NULL || w->convolves_below == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t unit = 0; unit <= n; unit++) {
        w->leaves_below[unit] = leaves;
        w->convolves_below[unit] = unit_convolves;
        if (unit < n && input_set(w, unit) != MS_NOTHING)
            leaves = unit;
        if (unit < n && convolves(w->saved.graph, unit))
            unit_convolves = unit;
    }
    return MS_OK;
}

/* The next unit, in backward order, to send for: the search ends at the first
 * unit that convolves, so that nothing comes back long before it is used
 * (vDNN, figure 10: findPrefetchLayer). */
static uint32_t next_to_bring(const ms_swap *w, uint32_t unit)
{
    uint32_t from = unit < w->sent_for ? unit : w->sent_for;
    uint32_t next = w->leaves_below[from], end = w->convolves_below[unit];
    return end == MS_NONE || (next != MS_NONE && next >= end) ? next : MS_NONE;
}

static ms_err run_vdnn(ms_swap *w, const ms_call *call, bool before)
{
    uint32_t set = input_set(w, call->unit);
    if (ms_swap_is_forward(call)) {
        w->sent_for = w->saved.graph->n_units;
        return before ? ms_swapcalls_move(
                            w, call, set,
                            (ms_move_call){.to = MS_HOST, .later = true})
                      : ms_swapcalls_wait(w, call, set);
    }
    if (!ms_swap_is_backward(call))
        return MS_OK;
    uint32_t other = next_to_bring(w, call->unit);
    if (other == MS_NONE)
        return MS_OK;
    if (before)
        return ms_swapcalls_move(w, call, input_set(w, other),
                                 (ms_move_call){.to = MS_HERE});
    w->sent_for = other;
    return ms_swapcalls_wait(w, call, input_set(w, other));
}

static ms_err walk(ms_swap *w)
{
    MS_TRY(find_below(w));
    return ms_swapcalls_walk(w, run_vdnn);
}

/* ---- vDNN_dyn ------------------------------------------------------------ */

typedef struct trial {
    ms_program program;
    uint64_t peak_bytes, step_ns;
} trial;

static ms_err measure(const ms_swap *w, trial *t)
{
    return ms_profile_measure(w->context, &t->program, &t->peak_bytes,
                              &t->step_ns, w->fault);
}

/* Section 4.1 of the paper tries no offload, the inputs of convolutions and all
 * inputs.  Its other choice, which of cuDNN's algorithms run, there is not
 * here. */
static ms_err try_conv(ms_swap *w, bool convolutions, trial *t)
{
    ms_program made;
    ms_swap other = *w;
    MS_TRY(ms_program_fork(w->program, w->arena, &made, w->fault));
    other.program = &made;
    other.convolutions = convolutions;
    MS_TRY(walk(&other));
    t->program = made;
    return measure(w, t);
}

static ms_err fail_budget(const ms_swap *w, uint64_t budget_bytes,
                          uint64_t least_bytes)
{
    char hint[64], budget[MS_SIZE_COUNT], least[MS_SIZE_COUNT];
    ms_size_count(budget_bytes, budget);
    ms_size_count(least_bytes, least);
    snprintf(hint, sizeof hint, "give it budget=%llu or more",
             (unsigned long long)least_bytes);
    return ms_fail(w->fault, MS_EINFEASIBLE, "swap:vdnn=dyn", hint,
                   "neither all, conv nor no offload fits in %s bytes: the "
                   "least peak is %s",
                   budget, least);
}

static ms_err write_fastest(ms_swap *w)
{
    trial trials[3] = {{.program = *w->from}};
    const trial *best = NULL, *least = &trials[0];
    uint64_t budget_bytes;
    MS_TRY(measure(w, &trials[0]));
    MS_TRY(try_conv(w, true, &trials[1]));
    MS_TRY(try_conv(w, false, &trials[2]));
    budget_bytes = ms_profile_budget(w->context, &w->values[MS_SWAP_BUDGET]);
    for (size_t i = 0; i < 3; i++) {
        const trial *t = &trials[i];
        if (t->peak_bytes < least->peak_bytes)
            least = t;
        if (t->peak_bytes <= budget_bytes &&
            (best == NULL || t->step_ns < best->step_ns))
            best = t;
    }
    if (best == NULL)
        return fail_budget(w, budget_bytes, least->peak_bytes);
    *w->program = best->program;
    return MS_OK;
}

/* ---- the way ------------------------------------------------------------- */

ms_err ms_vdnn_write(ms_swap *w)
{
    int64_t which = w->values[MS_SWAP_VDNN].number;
    w->convolutions = which == MS_SWAP_VDNN_CONV;
    if (which == MS_SWAP_VDNN_DYN)
        return write_fastest(w);
    if (w->values[MS_SWAP_BUDGET].given)
        return ms_fail(w->fault, MS_EUSAGE, "swap:vdnn",
                       "write vdnn=dyn, or leave budget out",
                       "a budget changes nothing here");
    return walk(w);
}
