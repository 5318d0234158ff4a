/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/optimizer/hostblocks.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/expand/hostplace.h"
#include "sim/graph.h"

#define STATE_BYTES 4u /* fp32 */
/* DeepSpeed's defaults of offload_param: buffer_count and buffer_size
 * (runtime/zero/offload_config.py). */
#define SWAP_BUFFERS 5u
#define SWAP_BUFFER_ELEMENTS 100000000u

/* How the storages of a role share blocks that are allocated once. */
typedef enum spread {
    NONE, /* no block: each is allocated when it is needed */
    EACH,
    TILE, /* one for those that are updated together: a sub-group */
    ALL
} spread;

typedef struct rule {
    ms_host_memory memory;
    spread spread;
} rule;

typedef enum code {
    PAPERS,
    UNPINNED,
    FSDP2,
    STAGES_1_2,
    APART,
    STAGE_3,
    HYBRID
} code;

#define BLOCK(how)                                                             \
    {                                                                          \
        MS_HOSTED_FLAT, how                                                    \
    }
#define PAGEABLE                                                               \
    {                                                                          \
        MS_HOSTED_PAGEABLE, NONE                                               \
    }

static const rule rules[][MS_N_HOST_ROLES] = {
    [PAPERS] = {{MS_HOSTED_OWN, NONE}},
    [UNPINNED] = {PAGEABLE, PAGEABLE, PAGEABLE, PAGEABLE, PAGEABLE},
    [FSDP2] =
        {BLOCK(EACH), {MS_HOSTED_PINNED, NONE}, PAGEABLE, PAGEABLE, PAGEABLE},
    [STAGES_1_2] = {PAGEABLE, BLOCK(ALL), BLOCK(ALL), PAGEABLE, BLOCK(EACH)},
    [APART] = {PAGEABLE, PAGEABLE, PAGEABLE, PAGEABLE, BLOCK(EACH)},
    [STAGE_3] = {BLOCK(ALL), BLOCK(TILE), PAGEABLE, PAGEABLE, PAGEABLE},
    [HYBRID] = {PAGEABLE, PAGEABLE, BLOCK(EACH), PAGEABLE, BLOCK(EACH)},
};

static code code_of(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;
    if (shape->offload.pageable)
        return UNPINNED;
    if (ms_offload_is_apart(&shape->offload))
        return APART;
    if (shape->offload.engine == MS_ENGINE_MEGATRON ||
        shape->offload.engine == MS_ENGINE_TORCHAO)
        return HYBRID;
    if (shape->offload.engine == MS_ENGINE_DEEPSPEED)
        return shape->shared == MS_SHARED_PARAMETERS ? STAGE_3 : STAGES_1_2;
    return shape->part == MS_PART_ROWS ? FSDP2 : PAPERS;
}

static void add_block(ms_trace *trace, uint64_t bytes)
{
    ms_hostplace *hosted = &trace->graph->hosted;
    uint64_t *grown = ms_arena_grow(trace->arena, hosted->block_bytes,
                                    &trace->optimizer->host_blocks_capacity,
                                    hosted->n_blocks + 1, sizeof *grown);
    if (!grown) {
        if (!trace->err)
            trace->err = ms_fail_nomem(trace->fault);
        return;
    }
    hosted->block_bytes = grown;
    if (bytes > 0)
        grown[hosted->n_blocks++] = bytes;
}

/* ---- flat buffers -------------------------------------------------------- */

static void end_flat(ms_trace *trace, uint32_t role)
{
    add_block(trace, trace->optimizer->flat_bytes[role]);
    trace->optimizer->flat_bytes[role] = trace->optimizer->flat_elements[role] =
        0;
}

static void join_flat(ms_trace *trace, uint32_t role, uint64_t elements,
                      uint64_t bytes, bool tiled)
{
    trace->optimizer->flat_bytes[role] += bytes;
    trace->optimizer->flat_elements[role] += elements;
    if (tiled && trace->optimizer->flat_elements[role] >=
                     trace->settings->shape->offload.tile_elements)
        end_flat(trace, role);
}

void ms_hostblocks_close(ms_trace *trace)
{
    for (uint32_t role = 0; role <= MS_N_HOST_ROLES; role++)
        if (trace->optimizer->flat_bytes[role] > 0)
            end_flat(trace, role);
    if (trace->optimizer->swap_elements > 0)
        add_block(trace, SWAP_BUFFERS * trace->optimizer->swap_elements *
                             ms_dtypes_bytes[trace->trained_dtype]);
}

/* ---- homes --------------------------------------------------------------- */

/* A 16-bit copy beside fp32 gradients lies in one buffer for all parameters,
 * which is the last role. */
static void take_block(ms_trace *trace, const rule *how, uint32_t role,
                       uint64_t elements, uint64_t bytes)
{
    uint64_t fp32 = STATE_BYTES * elements;
    bool beside = role == MS_HOST_GRADIENT && bytes > fp32;
    if (how->spread == EACH)
        add_block(trace, bytes);
    else
        join_flat(trace, role, elements, beside ? fp32 : bytes,
                  how->spread == TILE);
    if (beside)
        join_flat(trace, MS_N_HOST_ROLES, elements, bytes - fp32, false);
}

/* DeepSpeed's parameters pass through buffers of its swapper, which lie in one
 * pinned tensor (offload_param: buffer_count, buffer_size, at least what the
 * largest needs). */
static void swap_weight(ms_trace *trace, uint64_t elements)
{
    if (code_of(trace->settings) != STAGE_3)
        return;
    trace->optimizer->homes[trace->optimizer->n_homes - 1].memory =
        MS_HOSTED_FLAT;
    if (trace->optimizer->swap_elements == 0)
        trace->optimizer->swap_elements = SWAP_BUFFER_ELEMENTS;
    if (elements > trace->optimizer->swap_elements)
        trace->optimizer->swap_elements = elements;
}

void ms_hostblocks_home(ms_trace *trace, ms_host_role role, const ms_home *home,
                        uint64_t elements, uint64_t bytes)
{
    const rule *how = &rules[code_of(trace->settings)][role];
    ms_parts_home(trace, home->storage, home->pool, home->far_bytes);
    if (trace->err || home->storage == MS_NONE)
        return;
    if (home->pool == MS_NVME_POOL && role == MS_HOST_WEIGHT)
        swap_weight(trace, elements);
    if (home->pool != MS_HOST_POOL)
        return;
    trace->optimizer->homes[trace->optimizer->n_homes - 1].memory =
        (uint8_t)how->memory;
    if (how->memory == MS_HOSTED_FLAT)
        take_block(trace, how, role, elements, bytes);
}

void ms_hostblocks_slot(ms_trace *trace, uint32_t storage, uint64_t bytes,
                        uint32_t states)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    ms_parts_home(trace, storage, MS_HOST_POOL, 0);
    if (trace->err || storage == MS_NONE)
        return;
    if (offload->pageable)
        trace->optimizer->homes[trace->optimizer->n_homes - 1].memory =
            MS_HOSTED_PAGEABLE;
    if (offload->pageable || offload->engine != MS_ENGINE_DEEPSPEED)
        return;
    trace->optimizer->homes[trace->optimizer->n_homes - 1].memory =
        MS_HOSTED_FLAT;
    for (uint32_t i = 0; i < states; i++)
        add_block(trace, bytes / states);
}
