/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Megatron's fine-grained activation offload (megatron/core/pipeline_parallel/
 * fine_grained_activation_offload.py; docs/user-guide/features/
 * fine_grained_activation_offloading.md): what the ops of the modules named
 * read and backward needs, attention's probabilities among it, leaves when the
 * module has run (on_save_for_backward, bulk_offload_group), on a stream of its
 * own; the last group stays as a margin.  Modules are found by what their ops
 * do:
 *
 *     norm           attn_norm   the last norm before the qkv products
 *     mm mm mm       qkv_linear  products with weights between it and the core
 *     sdpa           core_attn   up to the next product with weights,
 *     mm             attn_proj   which is this
 *     norm           mlp_norm    the first norm behind it
 *     grouped_gemm   expert_fc1  the first of the block
 *     swiglu         moe_act     up to the second
 */
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/kinds.h"
#include "sim/program.h"

/* 1 Mi elements of 16 bits. */
#define MIN_BYTES (UINT64_C(2) << 20)

/* In the order of the words of modules=. */
enum {
    ATTN_NORM,
    QKV_LINEAR,
    CORE_ATTN,
    ATTN_PROJ,
    MLP_NORM,
    EXPERT_FC1,
    MOE_ACT,
    N_MODULES
};

static const char *const module_names[N_MODULES] = {
    "attn_norm", "qkv_linear", "core_attn", "attn_proj",
    "mlp_norm",  "expert_fc1", "moe_act"};

/* Forward ops [first, end) of a module in a block; empty where it has none. */
typedef struct span {
    uint32_t first, end;
} span;

typedef struct finder {
    ms_swap *swap;
    const ms_graph *graph;
    bool wanted[N_MODULES], found[N_MODULES];
    uint8_t *taken; /* per storage: in a group, or not to be moved */
    uint32_t *list; /* room for a group */
    uint64_t min_bytes;
} finder;

/* ---- which ops are a module ---------------------------------------------- */

/* A parameter, or a copy of one in another precision. */
static bool is_weight(const ms_graph *graph, uint32_t storage)
{
    uint32_t maker = graph->storage_maker[storage];
    if (storage < graph->n_persistent)
        return ms_graph_is_weight(graph, storage);
    if (maker == MS_NONE || graph->in_at[maker + 1] - graph->in_at[maker] != 1)
        return false;
    uint32_t from = graph->in[graph->in_at[maker]];
    return from < graph->n_persistent && ms_graph_is_weight(graph, from);
}

static bool is_product(const ms_graph *graph, uint32_t op)
{
    if (!ms_kinds_is_product(graph->op_kind[op]))
        return false;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        if (is_weight(graph, graph->in[i]))
            return true;
    return false;
}

static bool is_core(const ms_graph *graph, uint32_t op)
{
    return graph->op_flags[op] & MS_OP_CORE ||
           ms_kinds_is_attention(graph->op_kind[op]);
}

static bool is_norm(const ms_graph *graph, uint32_t op)
{
    return graph->op_kind[op] == MS_KIND_NORM;
}

static bool is_grouped(const ms_graph *graph, uint32_t op)
{
    return graph->op_kind[op] == MS_KIND_GROUPED;
}

/* The first op of [op, end) that is so, or end. */
static uint32_t first_of(const ms_graph *graph,
                         bool (*is)(const ms_graph *graph, uint32_t op),
                         uint32_t op, uint32_t end)
{
    while (op < end && !is(graph, op))
        op++;
    return op;
}

static void find_attention(const ms_graph *graph, span block, span *modules)
{
    uint32_t core = first_of(graph, is_core, block.first, block.end);
    if (core == block.end)
        return;
    uint32_t norm = core;
    while (norm > block.first && !is_norm(graph, norm - 1))
        norm--;
    if (norm > block.first)
        modules[ATTN_NORM] = (span){norm - 1, norm};
    uint32_t product = first_of(graph, is_product, norm, core), last = core;
    while (last > product && !is_product(graph, last - 1))
        last--;
    modules[QKV_LINEAR] = (span){product, last};
    uint32_t proj = first_of(graph, is_product, core, block.end);
    modules[CORE_ATTN] = (span){core, proj};
    if (proj == block.end)
        return;
    modules[ATTN_PROJ] = (span){proj, proj + 1};
    norm = first_of(graph, is_norm, proj, block.end);
    if (norm < block.end)
        modules[MLP_NORM] = (span){norm, norm + 1};
}

static void find_experts(const ms_graph *graph, span block, span *modules)
{
    uint32_t first = first_of(graph, is_grouped, block.first, block.end);
    if (first == block.end)
        return;
    modules[EXPERT_FC1] = (span){first, first + 1};
    modules[MOE_ACT] =
        (span){first + 1, first_of(graph, is_grouped, first + 1, block.end)};
}

/* ---- groups -------------------------------------------------------------- */

static bool leaves(const finder *f, uint32_t storage)
{
    return !f->taken[storage] &&
           f->graph->storage_bytes[storage] >= f->min_bytes;
}

/* What a module's ops read and is kept for backward. */
static ms_err add_group(finder *f, span module)
{
    ms_swap *w = f->swap;
    const ms_graph *graph = f->graph;
    uint32_t n = 0, last = 0, end = graph->in_at[module.end];
    for (uint32_t i = graph->in_at[module.first]; i < end; i++) {
        uint32_t s = graph->in[i];
        if (!leaves(f, s))
            continue;
        f->taken[s] = 1;
        f->list[n++] = s;
        if (w->saved.last_reader[s] > last)
            last = w->saved.last_reader[s];
    }
    if (n == 0)
        return MS_OK;
    uint32_t g = w->n_groups++;
    w->groups[g].last = last;
    return ms_program_add_set(w->program, f->list, n, w->arena,
                              &w->groups[g].set, w->fault);
}

static ms_err add_block(finder *f, span block)
{
    span modules[N_MODULES] = {0};
    find_attention(f->graph, block, modules);
    find_experts(f->graph, block, modules);
    for (uint32_t m = 0; m < N_MODULES; m++) {
        bool here = modules[m].first < modules[m].end;
        f->found[m] |= here;
        if (f->wanted[m] && here)
            MS_TRY(add_group(f, modules[m]));
    }
    return MS_OK;
}

static ms_err add_groups(finder *f)
{
    const ms_saved *saved = &f->swap->saved;
    const uint32_t *at = f->graph->forward_at;
    for (uint32_t b = 0; b < saved->n_blocks; b++)
        MS_TRY(add_block(f, (span){at[saved->block_first[b]],
                                   at[saved->block_last[b] + 1]}));
    return MS_OK;
}

/* By the unit that they leave with; groups of one unit keep their order. */
static void sort_groups(ms_swap *w)
{
    for (uint32_t i = 1; i < w->n_groups; i++) {
        ms_swap_group group = w->groups[i];
        uint32_t to = i;
        for (; to > 0 && w->groups[to - 1].last > group.last; to--)
            w->groups[to] = w->groups[to - 1];
        w->groups[to] = group;
    }
}

/* Of each stage, what is beyond the fraction stays. */
static void keep_rest(ms_swap *w)
{
    uint64_t fraction = (uint64_t)w->values[MS_SWAP_FRACTION].number;
    for (uint32_t t = 0; t < w->n_turns; t++) {
        uint32_t first = w->group_at[w->turns[t].first];
        uint32_t end = w->group_at[w->turns[t].last + 1];
        uint32_t n = (uint32_t)((end - first) * fraction / 100);
        for (uint32_t g = first + n; g < end; g++)
            w->groups[g].set = MS_NOTHING;
    }
}

/* ---- the names ----------------------------------------------------------- */

/* Bits in the order of the names. */
static ms_err read_names(finder *f)
{
    const ms_policy_value *value = &f->swap->values[MS_SWAP_MODULES];
    if (!value->given)
        return ms_fail(f->swap->fault, MS_EUSAGE, "swap:megatron",
                       "write e.g. swap:megatron,modules=core_attn/attn_proj",
                       "no module is named");
    for (uint32_t m = 0; m < N_MODULES; m++)
        f->wanted[m] = value->number >> m & 1;
    if (f->wanted[ATTN_PROJ] && !f->wanted[CORE_ATTN])
        return ms_fail(f->swap->fault, MS_EUSAGE, "swap:megatron",
                       "write modules=core_attn/attn_proj",
                       "attn_proj goes with core_attn only");
    return MS_OK;
}

static ms_err check_found(const finder *f)
{
    for (uint32_t m = 0; m < N_MODULES; m++)
        if (f->wanted[m] && !f->found[m])
            return ms_fail(f->swap->fault, MS_EUSAGE, "swap:megatron",
                           "leave it out", "no block of the model has a %s",
                           module_names[m]);
    return MS_OK;
}

/* ---- the way ------------------------------------------------------------- */

static ms_err take_columns(finder *f)
{
    ms_swap *w = f->swap;
    uint32_t storages = f->graph->n_storages;
    f->taken = ms_arena_take(w->arena, storages, 1);
    f->list = ms_arena_take_raw(w->arena, storages, sizeof *f->list);
    if (f->taken == NULL || f->list == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t s = 0; s < storages; s++)
        f->taken[s] = !w->saved.kept[s];
    return MS_OK;
}

ms_err ms_megatron_open(ms_swap *w)
{
    const ms_policy_value *min = &w->values[MS_SWAP_MIN];
    const ms_policy_value *prefetch = &w->values[MS_SWAP_PREFETCH];
    finder f = {.swap = w,
                .graph = w->saved.graph,
                .min_bytes = min->given ? (uint64_t)min->number : MIN_BYTES};
    MS_TRY(read_names(&f));
    MS_TRY(take_columns(&f));
    MS_TRY(
        ms_swapgroups_open(w, w->saved.n_blocks * N_MODULES,
                           prefetch->given ? (uint32_t)prefetch->number : 1));
    MS_TRY(add_groups(&f));
    MS_TRY(check_found(&f));
    sort_groups(w);
    w->last_stays = true;
    w->in_flight = (uint32_t)w->values[MS_SWAP_INFLIGHT].number;
    MS_TRY(ms_swapgroups_close(w));
    keep_rest(w);
    return MS_OK;
}

/* The groups that end with this unit leave. */
static ms_err leave(ms_swap *w, const ms_call *call)
{
    const ms_swap_turn *turn = ms_swapturns_of(w, call);
    uint32_t first = w->group_at[turn->first];
    for (uint32_t g = w->group_at[call->unit]; g < w->group_at[call->unit + 1];
         g++) {
        uint32_t set = ms_swapgroups_leaves(w, turn, g);
        if (set == MS_NOTHING)
            continue;
        if (w->in_flight > 0 && g - first >= w->in_flight)
            MS_TRY(ms_swapcalls_wait(w, call, w->groups[g - w->in_flight].set));
        MS_TRY(ms_swapcalls_move(w, call, set, (ms_move_call){.to = MS_HOST}));
    }
    return MS_OK;
}

ms_err ms_megatron_around(ms_swap *w, const ms_call *call, bool before)
{
    if (before)
        return ms_swapgroups_send(w, call);
    return ms_swap_is_forward(call) ? leave(w, call) : MS_OK;
}
