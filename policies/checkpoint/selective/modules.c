/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/selective/modules.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

#include <stdio.h>
#include <string.h>

/* In the order of the words of modules=. */
enum {
    CORE_ATTN,
    MLP,
    MOE,
    LAYERNORM,
    MLA_UP_PROJ,
    MOE_ACT,
    SHARED_EXPERTS,
    N_MODULES
};
#define BIT(module) (1u << (module))
#define DISCARDED (BIT(LAYERNORM) | BIT(MLA_UP_PROJ) | BIT(MOE_ACT))

typedef struct finder {
    const ms_graph *graph;
    uint8_t *modules; /* per forward op: bits */
    uint8_t *experts; /* per block: it has some */
    uint32_t end;     /* of the forward ops */
    uint8_t *is_down; /* per op of forward: a product that compresses */
} finder;

static uint32_t block_of(const ms_graph *graph, uint32_t op)
{
    uint32_t unit = graph->op_unit[op];
    return unit == MS_NONE ? MS_NONE : graph->unit_block[unit];
}

static uint8_t role_of(const ms_graph *graph, uint32_t op)
{
    uint32_t layer = graph->op_layer[op];
    return layer == MS_NONE ? MS_ROLE_OTHER : graph->layer_role[layer];
}

static bool is_core(const ms_graph *graph, uint32_t op)
{
    return graph->op_flags[op] & MS_OP_CORE ||
           ms_kinds_is_attention(graph->op_kind[op]);
}

/* The core ends before the product with the weights of the output. */
static bool is_projection(const ms_graph *graph, uint32_t op)
{
    uint8_t kind = graph->op_kind[op];
    return ms_kinds_is_product(kind) && kind != MS_KIND_BMM;
}

/* An MLP begins with a product from the block's input and ends with the one
 * into the residual sum; *inside: it has begun. */
static bool is_mlp(uint8_t role, bool *inside)
{
    bool was = *inside;
    if (role == MS_ROLE_PROJECTION_IN || role == MS_ROLE_GATE)
        *inside = true;
    if (role == MS_ROLE_PROJECTION_OUT)
        *inside = false;
    return *inside || (was && role == MS_ROLE_PROJECTION_OUT);
}

/* Not those over the batch. */
static bool is_norm(const ms_graph *graph, uint32_t op)
{
    return role_of(graph, op) == MS_ROLE_NORM &&
           strncmp(graph->layer_type[graph->op_layer[op]], "batch", 5) != 0;
}

/* The products of a latent attention that compress: a norm of the same layer
 * reads what they make. */
static void find_downs(finder *f)
{
    const ms_graph *graph = f->graph;
    for (uint32_t op = 0; op < f->end; op++) {
        if (graph->op_kind[op] != MS_KIND_NORM ||
            role_of(graph, op) != MS_ROLE_ATTENTION)
            continue;
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t maker = graph->storage_maker[graph->in[i]];
            if (maker < op && graph->op_layer[maker] == graph->op_layer[op] &&
                ms_kinds_is_product(graph->op_kind[maker]))
                f->is_down[maker] = 1;
        }
    }
}

/* Bits of an op of an attention that compresses; *before: its core is still to
 * come. */
static uint8_t latent_bits(const finder *f, uint32_t op, bool before)
{
    const char *type = f->graph->layer_type[f->graph->op_layer[op]];
    return before && !f->is_down[op] && strcmp(type, "latent_attention") == 0
               ? BIT(MLA_UP_PROJ)
               : 0;
}

static uint8_t expert_bits(const finder *f, uint32_t op, uint32_t *products)
{
    *products += f->graph->op_kind[op] == MS_KIND_GROUPED;
    bool is_act = *products == 1 && f->graph->op_kind[op] != MS_KIND_GROUPED;
    return BIT(MOE) | (is_act ? BIT(MOE_ACT) : 0);
}

static void find_modules(finder *f)
{
    const ms_graph *graph = f->graph;
    uint32_t layer = MS_NONE, products = 0;
    bool before = true; /* the core of the attention under way */
    bool inside = false, in_core = false;
    for (uint32_t op = 0; op < f->end; op++)
        if (block_of(graph, op) != MS_NONE)
            f->experts[block_of(graph, op)] |=
                role_of(graph, op) == MS_ROLE_EXPERTS;
    find_downs(f);
    for (uint32_t op = 0; op < f->end; op++) {
        uint32_t block = block_of(graph, op);
        uint8_t role = role_of(graph, op);
        if (graph->op_layer[op] != layer) {
            before = true;
            in_core = false;
            products = 0;
        }
        layer = graph->op_layer[op];
        if (block == MS_NONE)
            continue;
        before &= !is_core(graph, op);
        in_core = is_core(graph, op) || (in_core && !is_projection(graph, op));
        if (in_core)
            f->modules[op] = BIT(CORE_ATTN);
        else if (role == MS_ROLE_ATTENTION)
            f->modules[op] = latent_bits(f, op, before);
        else if (role == MS_ROLE_EXPERTS)
            f->modules[op] = expert_bits(f, op, &products);
        else if (is_norm(graph, op))
            f->modules[op] = BIT(LAYERNORM);
        else if (is_mlp(role, &inside))
            f->modules[op] =
                f->experts[block] ? BIT(MOE) | BIT(SHARED_EXPERTS) : BIT(MLP);
    }
}

/* Those that the model has none of are named, and those that it has. */
static ms_err check_all(const finder *f, const char *words, uint64_t wanted,
                        ms_fault *fault)
{
    char hint[192] = "it has";
    unsigned found = 0, missing = 0;
    const char *at = words;
    for (uint32_t op = 0; op < f->end; op++)
        found |= f->modules[op];
    for (uint32_t m = 0; m < N_MODULES; m++) {
        size_t length = strcspn(at, "|"), used = strlen(hint);
        if (found & BIT(m))
            snprintf(hint + used, sizeof hint - used, " %.*s", (int)length, at);
        at += length + (at[length] != '\0');
    }
    while (missing < N_MODULES &&
           !(wanted & BIT(missing) && !(found & BIT(missing))))
        missing++;
    if (missing == N_MODULES)
        return MS_OK;
    for (uint32_t m = 0; m < missing; m++)
        words += strcspn(words, "|") + 1;
    return ms_fail(fault, MS_EUSAGE, "checkpoint:modules",
                   found != 0 ? hint : "checkpoint:full is for any model",
                   "the model's blocks have no %.*s", (int)strcspn(words, "|"),
                   words);
}

/* Marks storages that ops of none of these modules read. */
static void find_read(const finder *f, unsigned modules, uint8_t *is_read)
{
    const ms_graph *graph = f->graph;
    for (uint32_t op = 0; op < f->end; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            if (!(f->modules[op] & modules))
                is_read[graph->in[i]] = 1;
}

ms_err ms_modules_drop(const ms_policy_context *context, const char *words,
                       uint64_t wanted, ms_keep *keep, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    ms_arena *arena = context->arena;
    finder f = {.graph = graph, .end = graph->forward_at[graph->n_units]};
    unsigned kept = (unsigned)wanted & ~DISCARDED;
    f.modules = ms_arena_take(arena, f.end + 1u, 1);
    f.is_down = ms_arena_take(arena, f.end + 1u, 1);
    f.experts = ms_arena_take(arena, graph->n_blocks + 1u, 1);
    uint8_t *is_read = ms_arena_take(arena, graph->n_storages, 1);
    if (f.modules == NULL || f.is_down == NULL || f.experts == NULL ||
        is_read == NULL)
        return ms_fail_nomem(fault);
    find_modules(&f);
    MS_TRY(check_all(&f, words, wanted, fault));
    find_read(&f, kept, is_read);
    for (uint32_t op = 0; op < f.end; op++) {
        bool goes = f.modules[op] & kept;
        bool all = f.modules[op] & wanted & DISCARDED;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            if (all || (goes && !is_read[graph->out[i]]))
                keep->place[graph->out[i]] = MS_GONE;
    }
    return MS_OK;
}
