/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opmerge.h"

#include <string.h>

static bool is_in_place(const ms_opgraph *ops, const ms_opnode *node)
{
    size_t n = strlen(node->op);
    if (!node->renamed || n == 0 || node->op[n - 1] != '_' || node->n_in == 0 ||
        node->n_out == 0)
        return false;
    const ms_opstorage *made = &ops->storages[ops->tensors[*node->out].storage];
    const ms_opstorage *real = &ops->storages[ops->tensors[*node->in].storage];
    return made->kind == MS_OPSTORAGE_ACT && made->bytes == real->bytes;
}

ms_err ms_opmerge_in_place(ms_opgraph *ops, ms_arena *arena, ms_fault *fault)
{
    uint32_t *same =
        ms_arena_take_raw(arena, ops->n_storages, sizeof(uint32_t));
    if (!same)
        return ms_fail_nomem(fault);
    for (uint32_t s = 0; s < ops->n_storages; s++)
        same[s] = s;
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        const ms_opnode *node = &ops->nodes[n];
        if (is_in_place(ops, node))
            same[ops->tensors[*node->out].storage] =
                same[ops->tensors[*node->in].storage];
    }
    for (uint32_t t = 0; t < ops->n_tensors; t++)
        ops->tensors[t].storage = same[ops->tensors[t].storage];
    ms_arena_drop(arena, same);
    return MS_OK;
}
