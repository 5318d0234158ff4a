/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/views/roles.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/stage.h"

#include <string.h>

static size_t cell_of(const ms_program *program, const ms_call *call)
{
    return (size_t)call->rank * program->n_micro_batches + call->micro_batch;
}

/* The lowest unit that each rank runs on each micro-batch. */
static void find_lowest(const ms_program *program, uint32_t *lowest)
{
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN)
            continue;
        uint32_t *it = &lowest[cell_of(program, call)];
        *it = call->unit < *it ? call->unit : *it;
    }
}

/* A rank that runs nothing on a micro-batch is what it is for any. */
static void number(ms_roles *roles, const uint32_t *lowest, uint32_t n_units,
                   uint32_t *role_of)
{
    const ms_program *program = roles->program;
    uint32_t n = program->n_micro_batches;
    for (uint32_t r = 0; r < program->n_ranks; r++) {
        uint32_t first = roles->n;
        memset(role_of, 0xff, n_units * sizeof *role_of);
        for (uint32_t m = 0; m < n; m++) {
            size_t cell = (size_t)r * n + m;
            uint32_t unit = lowest[cell];
            if (unit == MS_NONE)
                continue;
            if (role_of[unit] == MS_NONE) {
                roles->rank[roles->n] = r;
                role_of[unit] = roles->n++;
            }
            roles->of[cell] = role_of[unit];
        }
        for (uint32_t m = 0; m < n; m++)
            if (lowest[(size_t)r * n + m] == MS_NONE)
                roles->of[(size_t)r * n + m] = first;
        if (roles->n == first)
            roles->rank[roles->n++] = r;
    }
}

static void list_units(const ms_roles *roles, uint32_t n_units)
{
    const ms_program *program = roles->program;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN)
            continue;
        uint32_t *own =
            roles->own + (size_t)roles->of[cell_of(program, call)] * n_units;
        for (uint32_t k = 0; k < program->n_stages && own[call->unit] == 0;
             k++) {
            const ms_stage *stage = &program->stages[k];
            if (stage->rank == call->rank && stage->first <= call->unit &&
                call->unit <= stage->last)
                own[call->unit] = k + 1;
        }
    }
}

ms_err ms_roles_open(const ms_graph *graph, const ms_program *program,
                     ms_arena *arena, ms_roles *roles, ms_fault *fault)
{
    *roles = (ms_roles){.program = program, .n = program->n_ranks};
    if (!ms_stage_copies(graph, program))
        return MS_OK;
    size_t cells = (size_t)program->n_ranks * program->n_micro_batches;
    size_t most = cells + program->n_ranks;
    roles->n = 0;
    uint32_t *lowest = ms_arena_take_raw(arena, cells, sizeof *lowest);
    uint32_t *role_of =
        ms_arena_take_raw(arena, graph->n_units, sizeof *role_of);
    roles->of = ms_arena_take(arena, cells, sizeof *roles->of);
    roles->rank = ms_arena_take(arena, most, sizeof *roles->rank);
    if (!lowest || !role_of || !roles->of || !roles->rank)
        return ms_fail_nomem(fault);
    memset(lowest, 0xff, cells * sizeof *lowest);
    find_lowest(program, lowest);
    number(roles, lowest, graph->n_units, role_of);
    roles->own = ms_arena_take(arena, (size_t)roles->n * graph->n_units,
                               sizeof *roles->own);
    if (roles->own == NULL)
        return ms_fail_nomem(fault);
    list_units(roles, graph->n_units);
    return MS_OK;
}

uint32_t ms_roles_of(const ms_roles *roles, uint16_t rank, uint32_t micro_batch)
{
    if (roles->of == NULL)
        return rank;
    return roles
        ->of[(size_t)rank * roles->program->n_micro_batches + micro_batch];
}

uint16_t ms_roles_rank(const ms_roles *roles, uint32_t role)
{
    return (uint16_t)(roles->of == NULL ? role : roles->rank[role]);
}

void ms_roles_units(const ms_roles *roles, uint32_t role, uint32_t n_units,
                    uint32_t *own)
{
    if (roles->of == NULL)
        ms_stage_units(roles->program, (uint16_t)role, n_units, own);
    else
        memcpy(own, roles->own + (size_t)role * n_units, n_units * sizeof *own);
}
