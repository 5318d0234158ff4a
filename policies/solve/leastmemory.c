/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The recurrence of optimum.c over memory alone, in bytes. */
#include "policies/solve/chainunits.h"

typedef struct finder {
    uint32_t n;
    ms_chainunits *stage; /* [0 .. n] */
    uint64_t *least;      /* per pair (s, t) */
    uint32_t *choice;     /* s: A(s) is kept; k: the input of k */
    ms_arena *arena;
    ms_fault *fault;
} finder;

static size_t pair(const finder *f, uint32_t s, uint32_t t)
{
    return (size_t)s * (f->n + 1) + t;
}

static ms_err take_columns(finder *f, const ms_chain *chain)
{
    size_t width = f->n + 1u;
    f->stage = ms_arena_take(f->arena, width, sizeof *f->stage);
    f->least = ms_arena_take_raw(f->arena, width * width, sizeof *f->least);
    f->choice = ms_arena_take_raw(f->arena, width * width, sizeof *f->choice);
    if (f->stage == NULL || f->least == NULL || f->choice == NULL)
        return ms_fail_nomem(f->fault);
    for (uint32_t l = 1; l <= f->n; l++) {
        const ms_chain_stage *stage = &chain->stages[l];
        f->stage[l] = (ms_chainunits){stage->output_bytes, stage->saved_bytes,
                                      stage->forward_extra_bytes,
                                      stage->backward_extra_bytes,
                                      f->stage[l - 1].left + stage->left_bytes};
    }
    return MS_OK;
}

/* pass: the highest of the forwards of s to t - 1 that save nothing. */
static void choose(finder *f, uint32_t s, uint32_t t, uint64_t pass)
{
    const ms_chainunits *stage = f->stage;
    uint64_t best = ms_chainunits_saved(stage, s, t);
    uint32_t choice = s;
    if (s < t)
        best = ms_chainunits_more(best,
                                  stage[s].saved + f->least[pair(f, s + 1, t)]);
    for (uint32_t k = s + 1; k <= t; k++) {
        uint64_t all = ms_chainunits_more(
            ms_chainunits_more(stage[t].output + pass,
                               stage[k - 1].output + f->least[pair(f, k, t)]),
            f->least[pair(f, s, k - 1)] + ms_chainunits_left(stage, k, t));
        if (all < best) {
            best = all;
            choice = k;
        }
    }
    f->least[pair(f, s, t)] = best;
    f->choice[pair(f, s, t)] = choice;
}

typedef struct part {
    uint32_t s, t; /* t 0: the backward of s alone is left */
} part;

static ms_err write_plan(const finder *f, ms_chain_plan *plan)
{
    uint32_t n = 0;
    part *left = ms_arena_take_raw(f->arena, 2 * (f->n + 1u), sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(f->fault);
    *plan = (ms_chain_plan){0};
    left[n++] = (part){1, f->n};
    while (n > 0) {
        part at = left[--n];
        uint32_t k = at.t > 0 ? f->choice[pair(f, at.s, at.t)] : at.s;
        if (at.t == 0) {
            MS_TRY(ms_chain_add(plan, MS_CHAIN_BACKWARD, at.s, f->arena,
                                f->fault));
        } else if (k == at.s) {
            MS_TRY(ms_chain_add(plan, MS_CHAIN_SAVE, k, f->arena, f->fault));
            left[n++] = (part){at.s, 0};
            if (at.s < at.t)
                left[n++] = (part){at.s + 1, at.t};
        } else {
            MS_TRY(ms_chain_advance(plan, at.s, k, f->arena, f->fault));
            left[n++] = (part){at.s, k - 1};
            left[n++] = (part){k, at.t};
        }
    }
    return MS_OK;
}

ms_err ms_leastmemory_find(const ms_chain *chain, ms_arena *arena,
                           uint64_t *bytes, ms_chain_plan *plan,
                           ms_fault *fault)
{
    finder f = {.n = chain->n, .arena = arena, .fault = fault};
    MS_TRY(take_columns(&f, chain));
    for (uint32_t s = f.n; s > 0; s--) {
        uint64_t pass = 0;
        for (uint32_t t = s; t <= f.n; t++) {
            choose(&f, s, t, pass);
            pass = ms_chainunits_pass(f.stage, s, t, pass);
        }
    }
    *bytes = chain->input_bytes + f.least[pair(&f, 1, f.n)];
    return plan == NULL ? MS_OK : write_plan(&f, plan);
}
