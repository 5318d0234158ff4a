/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/nodedag.h"

#include <inttypes.h>
#include <stdio.h>

static ms_err fail_act(ms_fault *fault, uint32_t i, const char *why)
{
    char where[32];
    snprintf(where, sizeof where, "act %" PRIu32, i);
    return ms_fail(fault, MS_EINPUT, where, NULL, "%s", why);
}

static bool can_make(const ms_nodedag *dag, const uint8_t *here, uint32_t v)
{
    for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++)
        if (!here[dag->dep[i]])
            return false;
    return !here[v];
}

ms_err ms_dagcost_find(const ms_nodedag *dag, const ms_nodeplan *plan,
                       ms_arena *scratch, uint64_t *time_ns,
                       uint64_t *peak_bytes, ms_fault *fault)
{
    uint8_t *here = ms_arena_take(scratch, dag->n + 1u, 1);
    uint8_t *made = ms_arena_take(scratch, dag->n + 1u, 1);
    uint64_t bytes = 0;
    *time_ns = *peak_bytes = 0;
    if (here == NULL || made == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < plan->n; i++) {
        uint32_t v = MS_NODEPLAN_ID(plan->items[i]);
        bool makes = MS_NODEPLAN_ACT(plan->items[i]) == MS_NODEACT_MAKE;
        if (makes && !can_make(dag, here, v))
            return fail_act(fault, i, "what it reads is not there");
        if (!makes && !here[v])
            return fail_act(fault, i, "what it drops is not there");
        here[v] = makes;
        made[v] |= makes;
        bytes = makes ? bytes + dag->bytes[v] : bytes - dag->bytes[v];
        *time_ns += makes ? dag->cost_ns[v] : 0;
        if (bytes > *peak_bytes)
            *peak_bytes = bytes;
    }
    for (uint32_t v = 0; v < dag->n; v++)
        if (!made[v])
            return fail_act(fault, plan->n, "a node was not made");
    return MS_OK;
}

uint64_t ms_dagcost_all(const ms_nodedag *dag, ms_arena *scratch)
{
    uint32_t *last = ms_arena_take(scratch, dag->n + 1u, sizeof *last);
    uint64_t bytes = 0, peak = 0;
    if (last == NULL)
        return UINT64_MAX;
    for (uint32_t v = 0; v < dag->n; v++) {
        last[v] = v;
        for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++)
            last[dag->dep[i]] = v;
    }
    for (uint32_t v = 0; v < dag->n; v++) {
        bytes += dag->bytes[v];
        peak = bytes > peak ? bytes : peak;
        for (uint32_t i = dag->dep_at[v]; i < dag->dep_at[v + 1]; i++)
            bytes -= last[dag->dep[i]] == v ? dag->bytes[dag->dep[i]] : 0;
        bytes -= last[v] == v ? dag->bytes[v] : 0;
    }
    return peak;
}

/* Behind which of the makes each of what they read, or make, is dropped: the
 * last reader before it is made again. */
static void find_last(const ms_nodedag *dag, const uint32_t *made, uint32_t n,
                      uint32_t *at, uint32_t *last)
{
    for (uint32_t v = 0; v < dag->n; v++)
        at[v] = MS_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = made[i];
        for (uint32_t k = dag->dep_at[v]; k < dag->dep_at[v + 1]; k++)
            last[at[dag->dep[k]]] = i;
        at[v] = last[i] = i;
    }
}

ms_err ms_dagcost_plan(const ms_nodedag *dag, const uint32_t *made, uint32_t n,
                       ms_arena *arena, ms_nodeplan *plan, ms_fault *fault)
{
    uint32_t *at = ms_arena_take(arena, dag->n + 1u, sizeof *at);
    uint32_t *last = ms_arena_take(arena, n + 1u, sizeof *last);
    if (at == NULL || last == NULL)
        return ms_fail_nomem(fault);
    find_last(dag, made, n, at, last);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = made[i];
        MS_TRY(ms_nodedag_add(plan, MS_NODEACT_MAKE, v, arena, fault));
        at[v] = i;
        for (uint32_t k = dag->dep_at[v]; k < dag->dep_at[v + 1]; k++)
            if (last[at[dag->dep[k]]] == i) {
                last[at[dag->dep[k]]] = MS_NONE;
                MS_TRY(ms_nodedag_add(plan, MS_NODEACT_DROP, dag->dep[k], arena,
                                      fault));
            }
        if (last[i] == i)
            MS_TRY(ms_nodedag_add(plan, MS_NODEACT_DROP, v, arena, fault));
    }
    return MS_OK;
}
