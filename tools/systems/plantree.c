/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/systems/plantree.h"

#include <string.h>

typedef struct grower {
    const ms_sweeps *sweeps;
    ms_arena *arena;
    ms_fault *fault;
} grower;

static bool is_again(const grower *g, uint32_t column)
{
    for (uint32_t i = 1; i < g->sweeps->n; i++)
        if (ms_sweeps_again(g->sweeps, i, column))
            return true;
    return false;
}

/* The next sweep that makes the column again, before it goes back; 0: it is
 * there until then.  What saved nothing and need not run again, as the last of
 * a segment, goes with the column before it. */
static uint32_t next_again(const grower *g, uint32_t sweep, uint32_t column)
{
    while (sweep == 0 && column > 0 && g->sweeps->signs[0][column] == '>' &&
           !is_again(g, column))
        column--;
    if (g->sweeps->signs[sweep][column] == 'R')
        return 0;
    for (uint32_t i = sweep + 1; i < g->sweeps->n; i++) {
        if (ms_sweeps_again(g->sweeps, i, column))
            return i;
        if (g->sweeps->signs[i][column] == 'b')
            return 0;
    }
    return 0;
}

/* The first column of the piece that ends with last, within from: neighbours
 * that the same sweep makes again, or that none does. */
static uint32_t first_of(const grower *g, uint32_t sweep, uint32_t from,
                         uint32_t last)
{
    uint32_t next = next_again(g, sweep, last), first = last;
    while (first > from && next_again(g, sweep, first - 1) == next &&
           (next == 0 || ms_sweeps_again(g->sweeps, next, first - 1)))
        first--;
    return first;
}

/* Cuts [tree->first, tree->last], as the sweep runs it, into pieces. */
static ms_err grow(const grower *g, uint32_t sweep, uint32_t depth,
                   ms_plantree *tree)
{
    uint32_t n = 0;
    if (depth > MS_PLANTREE_DEEP)
        return ms_fail(g->fault, MS_EUSAGE, "--dump checkpoints",
                       "checkpoint:recursive has few",
                       "more than %u checkpoints lie in each other",
                       MS_PLANTREE_DEEP);
    for (uint32_t end = tree->last + 1; end > tree->first; n++)
        end = first_of(g, sweep, tree->first, end - 1);
    tree->n = n;
    tree->pieces = ms_arena_take(g->arena, n, sizeof *tree->pieces);
    if (tree->pieces == NULL)
        return ms_fail_nomem(g->fault);
    for (uint32_t end = tree->last + 1; end > tree->first;) {
        ms_plantree *piece = &tree->pieces[--n];
        piece->last = end - 1;
        piece->first = end = first_of(g, sweep, tree->first, end - 1);
        uint32_t next = next_again(g, sweep, piece->last);
        piece->again = next > 0;
        if (next > 0)
            MS_TRY(grow(g, next, depth + 1, piece));
    }
    return MS_OK;
}

ms_err ms_plantree_find(const ms_sweeps *sweeps, ms_arena *arena,
                        ms_plantree *tree, ms_fault *fault)
{
    const grower g = {sweeps, arena, fault};
    *tree = (ms_plantree){.last = sweeps->n_columns - 1};
    return grow(&g, 0, 0, tree);
}
