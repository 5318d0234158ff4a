/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Megatron-LM's arguments (megatron/training/arguments.py, --recompute-*;
 * megatron/core/transformer/transformer_block.py, _checkpointed_forward):
 * uniform, equal segments of all blocks; block, the first N by themselves;
 * selective, modules of each. */
#include "tools/systems/systems.h"

#include <stdio.h>

static ms_err refuse(const ms_checkpointas *choice, const char *what,
                     const char *nearest, ms_fault *fault)
{
    char hint[96];
    snprintf(hint, sizeof hint, "the nearest that it can: %s", nearest);
    return ms_fail(fault, MS_EUSAGE, "--as megatron", hint,
                   "%.60s: Megatron checkpoints equal segments of all blocks, "
                   "the first blocks one by one, or modules: %s",
                   choice->policy, what);
}

static bool holds_blocks(const ms_checkpointas *choice,
                         const ms_plantree *piece)
{
    for (uint32_t c = piece->first; c <= piece->last; c++)
        if (choice->sweeps.is_block[c])
            return true;
    return false;
}

static uint32_t length(const ms_plantree *piece)
{
    return piece->last - piece->first + 1;
}

/* Of how many blocks each segment is, the last perhaps of fewer; 0: some block
 * is in none, or they differ, or lie in each other. */
static uint32_t uniform(const ms_checkpointas *choice)
{
    uint32_t size = 0;
    bool shorter = false;
    for (uint32_t i = 0; i < choice->tree.n; i++) {
        const ms_plantree *piece = &choice->tree.pieces[i];
        if (!piece->again && holds_blocks(choice, piece))
            return 0;
        if (!piece->again)
            continue;
        if (piece->n != 1 || piece->pieces[0].again || shorter ||
            !choice->sweeps.is_block[piece->first] ||
            !choice->sweeps.is_block[piece->last])
            return 0;
        size = size == 0 ? length(piece) : size;
        if (length(piece) > size)
            return 0;
        shorter = length(piece) < size;
    }
    return size;
}

/* The first so many by themselves, and no other; MS_NONE: it is not so. */
static uint32_t first(const ms_checkpointas *choice)
{
    uint32_t n = 0;
    while (n < choice->n_blocks && choice->is_single[n])
        n++;
    for (uint32_t b = n; b < choice->n_blocks; b++)
        if (choice->is_single[b])
            return MS_NONE;
    return choice->all_single ? n : MS_NONE;
}

/* As many blocks at the beginning as are checkpointed anywhere. */
static const char *nearest(const ms_checkpointas *choice, char *text,
                           size_t size)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < choice->tree.n; i++)
        if (choice->tree.pieces[i].again)
            n += length(&choice->tree.pieces[i]);
    snprintf(text, size, "checkpoint:first=%u",
             n < choice->n_blocks ? n : choice->n_blocks);
    return text;
}

static void put_full(const char *method, uint32_t n, ms_text *text)
{
    ms_text_add(text,
                "--recompute-granularity full\n--recompute-method %s\n"
                "--recompute-num-layers %u\n",
                method, n);
}

ms_err ms_asmegatron_write(const ms_checkpointas *choice, ms_text *text,
                           ms_fault *fault)
{
    char near[64];
    uint32_t each = uniform(choice), n = first(choice);
    bool parts = choice->modules != NULL || choice->selective;
    if (choice->save != NULL || choice->redo != NULL || choice->sac)
        return refuse(choice, "not ops", "checkpoint:modules=core_attn", fault);
    if (!parts && each == 0 && n == MS_NONE)
        return refuse(choice, "not this plan",
                      nearest(choice, near, sizeof near), fault);
    if (parts)
        ms_text_add(text,
                    "--recompute-granularity selective\n--recompute-modules "
                    "%s\n",
                    choice->selective ? "core_attn" : choice->modules);
    else if (each > 0)
        put_full("uniform", each, text);
    else if (n > 0)
        put_full("block", n, text);
    return MS_OK; /* nothing is checkpointed: no argument */
}
