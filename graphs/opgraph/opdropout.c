/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opdropout.h"
#include "graphs/formats/dtypes.h"

#include <string.h>

#define CPU_OPS 4u

static bool reads(const ms_opnode *node, uint32_t i, const ms_opnode *maker)
{
    return node->n_in > i && maker->n_out == 1 && node->in[i] == maker->out[0];
}

/* Do the four ops of a dropout begin at node n? */
static bool begins(const ms_opgraph *ops, uint32_t n)
{
    static const char *const names[CPU_OPS] = {"empty_like", "bernoulli_",
                                               "div_", "mul"};
    bool loss_within = n < ops->loss_start && ops->loss_start < n + CPU_OPS;
    if (n + CPU_OPS > ops->n_nodes || loss_within)
        return false;
    const ms_opnode *node = &ops->nodes[n];
    for (uint32_t i = 0; i < CPU_OPS; i++)
        if (strcmp(node[i].op, names[i]) != 0)
            return false;
    return node[0].n_in == 1 && reads(&node[1], 0, &node[0]) &&
           reads(&node[2], 0, &node[1]) && reads(&node[3], 1, &node[2]) &&
           node[3].in[0] == node[0].in[0];
}

static bool any(const ms_opgraph *ops)
{
    for (uint32_t n = 0; n < ops->n_nodes; n++)
        if (begins(ops, n))
            return true;
    return false;
}

static ms_err copy(const ms_opgraph *ops, ms_arena *arena, ms_opgraph *made,
                   ms_fault *fault)
{
    *made = *ops;
    made->storages =
        ms_arena_take(arena, ops->n_storages, sizeof *ops->storages);
    made->tensors = ms_arena_take(arena, ops->n_tensors, sizeof *ops->tensors);
    made->nodes = ms_arena_take(arena, ops->n_nodes, sizeof *ops->nodes);
    if (!made->storages || !made->tensors || !made->nodes)
        return ms_fail_nomem(fault);
    memcpy(made->storages, ops->storages,
           ops->n_storages * sizeof *ops->storages);
    memcpy(made->tensors, ops->tensors, ops->n_tensors * sizeof *ops->tensors);
    memcpy(made->nodes, ops->nodes, ops->n_nodes * sizeof *ops->nodes);
    return MS_OK;
}

/* The noise becomes a mask; mul becomes the kernel that reads x and fills it.
 * Its inputs are x and the mask as empty_like left it. */
static ms_err fuse(ms_opgraph *made, const ms_opnode *four, uint32_t at,
                   ms_arena *arena, ms_fault *fault)
{
    uint32_t *in = ms_arena_take(arena, 2, sizeof *in);
    ms_optensor *mask = &made->tensors[four[0].out[0]];
    uint64_t elements = 1;
    if (!in)
        return ms_fail_nomem(fault);
    for (uint32_t d = 0; d < mask->n_dims; d++)
        elements *= (uint64_t)mask->size[d];
    mask->dtype = MS_BYTE;
    made->storages[mask->storage].bytes = elements;
    made->nodes[at] = four[0];
    made->nodes[at].flops = 0;
    in[0] = four[0].in[0];
    in[1] = four[0].out[0];
    made->nodes[at + 1] = four[CPU_OPS - 1];
    made->nodes[at + 1].op = "native_dropout";
    made->nodes[at + 1].overload = "masked";
    made->nodes[at + 1].in = in;
    return MS_OK;
}

ms_err ms_opdropout_fuse(const ms_opgraph *ops, ms_arena *arena,
                         const ms_opgraph **fused, ms_fault *fault)
{
    ms_opgraph *made;
    uint32_t at = 0;
    *fused = ops;
    if (!any(ops))
        return MS_OK;
    made = ms_arena_take(arena, 1, sizeof *made);
    if (!made)
        return ms_fail_nomem(fault);
    MS_TRY(copy(ops, arena, made, fault));
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        if (n == ops->loss_start)
            made->loss_start = at;
        if (!begins(ops, n)) {
            made->nodes[at++] = ops->nodes[n];
            continue;
        }
        MS_TRY(fuse(made, &ops->nodes[n], at, arena, fault));
        at += 2;
        n += CPU_OPS - 1;
    }
    if (ops->loss_start == ops->n_nodes)
        made->loss_start = at;
    made->n_nodes = at;
    *fused = made;
    return MS_OK;
}
