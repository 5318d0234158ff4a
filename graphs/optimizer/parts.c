/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which part of the model's states a rank holds, and in which memory. */
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

bool ms_parts_hold_gradients(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;
    bool ends = settings->training->optimizer_in_backward == 1 &&
                shape->shared > MS_SHARED_NOTHING;
    return shape->holds_gradients && !ends;
}

bool ms_parts_are_masters(const ms_trace *trace)
{
    return trace->settings->shape->part_is_master &&
           (ms_precisions_is_mixed(trace->settings->training) ||
            trace->weight_dtype == MS_FLOAT32);
}

static uint64_t over(uint64_t n, uint64_t ranks)
{
    return n / ranks + (n % ranks != 0);
}

bool ms_parts_is_frozen(const ms_trace *trace, const ms_parameter *parameter)
{
    return !ms_trace_at(trace, parameter->tensor)->requires_grad;
}

/* The weights and biases of experts, not their router; they are named so. */
static bool is_expert(const ms_trace *trace, const ms_parameter *parameter)
{
    const char *name = trace->graph->storage_name[parameter->storage];
    return name != NULL && strncmp(name, "experts.", 8) == 0;
}

/* The groups of ranks that divide the parameters. */
static void find_groups(ms_trace *trace)
{
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        ms_parameter *it = &trace->parameters[p];
        bool apart =
            trace->settings->shape->expert_ranks > 0 && is_expert(trace, it);
        it->group = apart ? MS_GROUP_EXPERT_DATA : MS_GROUP_DATA;
    }
}

static uint32_t ranks_of(const ms_trace *trace, const ms_parameter *parameter)
{
    const ms_shape *shape = trace->settings->shape;
    return parameter->group == MS_GROUP_EXPERT_DATA ? shape->expert_ranks
                                                    : ms_shape_parts(shape);
}

/* A part is rows of dimension 0.  All ranks hold the same number of rows,
 * because Shard(0) of torch pads the last ranks (_fsdp_param.py). */
static uint64_t part_of_rows(const ms_trace *trace,
                             const ms_parameter *parameter, uint32_t ranks)
{
    const ms_tensor *tensor = ms_trace_at(trace, parameter->tensor);
    uint64_t rows = tensor->n_dims > 0 ? (uint64_t)tensor->size[0] : 1;
    return rows > 0 ? over(rows, ranks) * (parameter->elements / rows) : 0;
}

static uint32_t block_of(const ms_trace *trace, const ms_parameter *parameter)
{
    const ms_model *model = trace->settings->model;
    return parameter->layer < model->n_layers
               ? model->layers[parameter->layer].block
               : MS_NONE;
}

/* Parameters that share a flat buffer. */
typedef struct flat_list {
    const uint32_t *parameter; /* their numbers, rising */
    uint32_t n;
} flat_list;

/* The optimizer of FSDP1 (use_orig_params) sees the part of each parameter that
 * lies in the stretch of its rank.  The rank that is simulated is the first,
 * whose stretch begins with whole parameters. */
static void cut_stretch(ms_trace *trace, flat_list list, uint64_t stretch)
{
    for (uint32_t i = 0; i < list.n; i++) {
        ms_parameter *it = &trace->parameters[list.parameter[i]];
        it->part = it->elements < stretch ? it->elements : stretch;
        stretch -= it->part;
    }
}

/* The part of a rank is a stretch of a flat buffer.  Each parameter gets its
 * average share of the stretch; by rounding running sums instead of shares, the
 * parts add up to the stretch exactly.  The padding counts as the last
 * parameter's.  Returns the stretch; UINT64_MAX: all are frozen. */
static uint64_t split_flat(ms_trace *trace, uint32_t ranks, flat_list list)
{
    uint64_t multiple =
        (uint64_t)ranks * (trace->settings->shape->flat_multiple > 0
                               ? trace->settings->shape->flat_multiple
                               : 1);
    uint64_t before = 0, taken = 0;
    ms_parameter *last = NULL;
    for (uint32_t i = 0; i < list.n; i++) {
        ms_parameter *it = &trace->parameters[list.parameter[i]];
        it->part = it->owned = it->elements;
        if (ms_parts_is_frozen(trace, it))
            continue;
        before += it->elements;
        it->part = over(before, ranks) - taken;
        taken += it->part;
        last = it;
    }
    if (last == NULL)
        return UINT64_MAX;
    uint64_t stretch = over(before, multiple) * (multiple / ranks);
    last->part += stretch - taken;
    return stretch;
}

static void own_at_most(ms_trace *trace, flat_list list, uint64_t most)
{
    for (uint32_t i = 0; i < list.n; i++) {
        ms_parameter *it = &trace->parameters[list.parameter[i]];
        it->owned = it->owned < most ? it->owned : most;
    }
}

/* Which list a parameter is in: 0 those of no block, 1 the first block's. */
static uint32_t list_of(const ms_trace *trace, uint32_t p, bool blocks)
{
    uint32_t block = block_of(trace, &trace->parameters[p]);
    return blocks && block != MS_NONE ? block + 1 : 0;
}

/* n lists, of blocks, or of all as one; NULL: no memory. */
static flat_list *list_flat(ms_trace *trace, uint32_t n, bool blocks)
{
    uint32_t n_parameters = trace->n_parameters, size = sizeof(uint32_t);
    uint32_t *all = ms_arena_take(trace->scratch, n_parameters + 1, size);
    uint32_t *at = ms_arena_take(trace->scratch, n + 1, size);
    flat_list *lists = ms_arena_take(trace->scratch, n, sizeof *lists);
    if (all == NULL || at == NULL || lists == NULL)
        return NULL;
    for (uint32_t p = 0; p < n_parameters; p++)
        at[list_of(trace, p, blocks) + 1]++;
    for (uint32_t k = 0; k < n; k++) {
        at[k + 1] += at[k];
        lists[k].parameter = all + at[k];
    }
    for (uint32_t p = 0; p < n_parameters; p++) {
        uint32_t k = list_of(trace, p, blocks);
        all[at[k] + lists[k].n++] = p;
    }
    return lists;
}

static void split_all(ms_trace *trace, uint32_t ranks)
{
    flat_list *list = list_flat(trace, 1, false);
    if (list != NULL)
        own_at_most(trace, *list, split_flat(trace, ranks, *list));
    else if (!trace->err)
        trace->err = ms_fail_nomem(trace->fault);
}

/* The least stretch of its own block and of those behind bounds what a rank
 * owns of a parameter. */
static void split_blocks(ms_trace *trace, uint32_t ranks)
{
    uint32_t n = trace->settings->model->n_blocks + 1;
    flat_list *lists = list_flat(trace, n, true);
    uint64_t most = UINT64_MAX;
    if (lists == NULL) {
        if (!trace->err)
            trace->err = ms_fail_nomem(trace->fault);
        return;
    }
    for (uint32_t k = n; k-- > 0;) {
        uint64_t stretch = split_flat(trace, ranks, lists[k]);
        most = stretch < most ? stretch : most;
        own_at_most(trace, lists[k], most);
        if (stretch != UINT64_MAX)
            cut_stretch(trace, lists[k], stretch);
    }
}

bool ms_parts_are_stretches(const ms_shape *shape)
{
    return shape->shared >= MS_SHARED_OPTIMIZER &&
           (shape->part == MS_PART_FLAT || shape->part == MS_PART_BLOCKS);
}

void ms_parts_join(ms_trace *trace)
{
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        ms_parameter *it = &trace->parameters[p];
        it->part = it->owned = it->elements;
    }
}

void ms_parts_split(ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    uint32_t ranks = ms_shape_parts(shape);
    find_groups(trace);
    if (ms_parts_are_stretches(shape)) {
        (shape->part == MS_PART_FLAT ? split_all : split_blocks)(trace, ranks);
        return;
    }
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        ms_parameter *it = &trace->parameters[p];
        it->part = it->owned = it->elements;
        if (shape->shared < MS_SHARED_OPTIMIZER)
            continue;
        ranks = ranks_of(trace, it);
        it->part = shape->part == MS_PART_ROWS ? part_of_rows(trace, it, ranks)
                                               : over(it->elements, ranks);
        it->owned = it->part;
    }
    if (ms_layerwise_is(trace->settings))
        ms_layerwise_split(trace);
}

/* ---- columns of the graph ------------------------------------------------ */

void ms_parts_home(ms_trace *trace, uint32_t storage, uint8_t pool,
                   uint64_t far_bytes)
{
    ms_home *homes =
        ms_arena_grow(trace->scratch, trace->optimizer->homes,
                      &trace->optimizer->homes_capacity,
                      trace->optimizer->n_homes + 1, sizeof *homes);
    if (!homes) {
        if (!trace->err)
            trace->err = ms_fail_nomem(trace->fault);
        return;
    }
    trace->optimizer->homes = homes;
    if (storage != MS_NONE)
        homes[trace->optimizer->n_homes++] =
            (ms_home){storage, pool, far_bytes, 0};
}

static ms_err home_columns(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    if (trace->optimizer->n_homes == 0)
        return MS_OK;
    g->storage_pool = ms_arena_take(trace->arena, g->n_storages, 1);
    g->storage_far_bytes =
        ms_arena_take(trace->arena, g->n_persistent, sizeof(uint64_t));
    g->hosted.of = ms_arena_take(trace->arena, g->n_persistent, 1);
    if (!g->storage_pool || !g->storage_far_bytes || !g->hosted.of)
        return ms_fail_nomem(trace->fault);
    for (uint32_t i = 0; i < trace->optimizer->n_homes; i++) {
        uint32_t s = trace->optimizer->homes[i].storage;
        g->storage_pool[s] = trace->optimizer->homes[i].pool;
        if (s >= g->n_persistent)
            continue;
        g->storage_far_bytes[s] = trace->optimizer->homes[i].far_bytes;
        g->hosted.of[s] = trace->optimizer->homes[i].memory;
    }
    return MS_OK;
}

/* Where weights have several formats (adapters beside a frozen base, linear
 * layers beside others), elements do not follow from bytes: they are a column
 * of the graph. */
static ms_err element_column(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    if (trace->n_adapters == 0 && trace->n_formatted == 0)
        return MS_OK;
    g->weight_elements =
        ms_arena_take(trace->arena, g->n_persistent, sizeof(uint64_t));
    if (!g->weight_elements)
        return ms_fail_nomem(trace->fault);
    for (uint32_t p = 0; p < trace->n_parameters; p++)
        g->weight_elements[trace->parameters[p].storage] =
            trace->parameters[p].elements;
    return MS_OK;
}

/* The dtype of the part of a weight or gradient: fp32 where the part is its own
 * master copy, else that of the whole. */
static uint8_t part_dtype(const ms_trace *trace, uint8_t whole)
{
    return ms_parts_are_masters(trace) ? MS_FLOAT32 : whole;
}

/* Is the weight quantized?  Then its bytes are not those of its elements. */
static bool is_packed(const ms_trace *trace, const ms_parameter *parameter,
                      uint64_t whole)
{
    uint8_t dtype = ms_trace_at(trace, parameter->tensor)->dtype;
    return whole != parameter->elements * ms_dtypes_bytes[dtype];
}

uint64_t ms_parts_master_bytes(const ms_trace *trace,
                               const ms_parameter *parameter)
{
    uint64_t whole = trace->graph->storage_bytes[parameter->storage];
    if (!ms_parts_are_masters(trace) || is_packed(trace, parameter, whole))
        return 0;
    return 4 * parameter->part;
}

/* The ranks share the packed bytes of quantized frozen weights, with their
 * scales: NF4Tensor of torchao gathers them as they are. */
static uint64_t weight_part_bytes(const ms_trace *trace,
                                  const ms_parameter *parameter, uint64_t whole)
{
    uint8_t dtype = ms_trace_at(trace, parameter->tensor)->dtype;
    if (is_packed(trace, parameter, whole))
        return over(whole, ranks_of(trace, parameter));
    return parameter->part * ms_dtypes_bytes[part_dtype(trace, dtype)];
}

static uint64_t grad_part_bytes(const ms_trace *trace,
                                const ms_parameter *parameter)
{
    return parameter->part *
           ms_dtypes_bytes[part_dtype(
               trace, ms_precisions_gradient(trace, parameter))];
}

/* Small parameters stay whole on every rank, in their order, until a budget is
 * used up (DeepSpeed, parameter_offload.py, mark_persistent_parameters). */
static bool stays_whole(const ms_trace *trace, const ms_parameter *parameter,
                        uint64_t *whole)
{
    const ms_shape *shape = trace->settings->shape;
    if (shape->root_stays)
        return block_of(trace, parameter) == MS_NONE;
    if (parameter->elements > shape->whole_elements ||
        (shape->whole_in_all > 0 &&
         *whole + parameter->elements > shape->whole_in_all))
        return false;
    *whole += parameter->elements;
    return true;
}

/* A flat step reads its part of the gradients even where gradients are not
 * shared, and even on a single rank. */
static bool shares_gradients(const ms_step_settings *settings)
{
    const ms_shape *shape = settings->shape;
    if (ms_precisions_has_sum(settings))
        return false; /* all-reduced, all of the sum is there */
    if (shape->flat_step.used)
        return shape->shared >= MS_SHARED_OPTIMIZER;
    return (shape->data_ranks > 1 || shape->copies_parts) &&
           shape->shared >= MS_SHARED_GRADIENTS;
}

static uint32_t width_of(const ms_trace *trace, const ms_parameter *parameter)
{
    const ms_tensor *tensor = ms_trace_at(trace, parameter->tensor);
    if (tensor->n_dims < 2)
        return 0;
    return (uint32_t)(tensor->size[0] > tensor->size[1] ? tensor->size[0]
                                                        : tensor->size[1]);
}

static ms_share share_of(const ms_trace *trace, uint32_t parts, uint32_t copies,
                         ms_group_role again)
{
    uint8_t dtype = trace->weight_dtype;
    return (ms_share){.parts = parts,
                      .copies = copies,
                      .again = (uint8_t)again,
                      .whole_bytes = ms_dtypes_bytes[dtype],
                      .part_bytes = ms_dtypes_bytes[part_dtype(trace, dtype)]};
}

/* A storage of an expert's, by its number in the graph. */
static void mark(ms_graph *g, uint32_t storage)
{
    if (storage < g->n_persistent) /* MS_NONE is not */
        g->storage_shard_group[storage] = MS_GROUP_EXPERT_DATA;
}

static bool mark_experts(ms_trace *trace)
{
    bool some = false;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (it->group == MS_GROUP_DATA)
            continue;
        some = true;
        mark(trace->graph, it->storage);
        mark(trace->graph, it->grad_storage);
        mark(trace->graph, it->master);
        for (uint32_t i = 0; i < MS_MOST_STATES; i++)
            mark(trace->graph, it->state[i]);
    }
    return some;
}

/* Ops that gather do so among the ranks that divide what they read. */
static void group_ops(ms_graph *g, uint32_t n_in)
{
    for (uint32_t op = 0; op < g->n_ops; op++) {
        uint32_t end = op + 1 < g->n_ops ? g->in_at[op + 1] : n_in;
        bool gathers = g->op_flags[op] & MS_OP_GATHERS;
        for (uint32_t i = g->in_at[op]; gathers && i < end; i++)
            if (g->in[i] < g->n_persistent &&
                g->storage_shard_group[g->in[i]] != MS_GROUP_DATA)
                g->op_group[op] = g->storage_shard_group[g->in[i]];
    }
}

/* Experts that are divided have other parts on each of the ranks between. */
static ms_share share_of_experts(const ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    uint32_t parts = shape->expert_ranks;
    uint32_t of = shape->expert_split > 0 ? ms_shape_parts(shape) : parts;
    return share_of(trace, parts, shape->data_ranks / of,
                    MS_GROUP_EXPERT_REPLICATE);
}

static ms_err expert_columns(ms_trace *trace, bool shares)
{
    ms_graph *g = trace->graph;
    if (trace->settings->shape->expert_ranks == 0)
        return MS_OK;
    g->storage_shard_group = ms_arena_take(trace->arena, g->n_persistent, 1);
    g->op_group = ms_arena_take(trace->arena, g->n_ops, 1);
    if (!g->storage_shard_group || !g->op_group)
        return ms_fail_nomem(trace->fault);
    if (mark_experts(trace) && shares)
        g->share[MS_GROUP_EXPERT_DATA] = share_of_experts(trace);
    group_ops(g, trace->n_in);
    return MS_OK;
}

/* One rank alone has these experts: there is nothing to divide. */
static bool has_it_alone(const ms_trace *trace, const ms_parameter *parameter)
{
    const ms_shape *shape = trace->settings->shape;
    return parameter->group == MS_GROUP_EXPERT_DATA &&
           shape->expert_split > 0 && shape->expert_ranks == 1 &&
           !shape->copies_parts;
}

ms_err ms_parts_columns(ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    ms_graph *g = trace->graph;
    uint64_t whole = 0;
    bool parameters = shape->shared == MS_SHARED_PARAMETERS &&
                      (shape->data_ranks > 1 || shape->copies_parts);
    MS_TRY(home_columns(trace));
    MS_TRY(element_column(trace));
    bool shares = shares_gradients(trace->settings);
    if (shares || shape->expert_split > 0)
        MS_TRY(expert_columns(trace, shares));
    if (!shares)
        return MS_OK;
    g->share[MS_GROUP_DATA] =
        share_of(trace, ms_shape_parts(shape),
                 shape->data_ranks / ms_shape_parts(shape), MS_GROUP_REPLICATE);
    g->storage_shard_bytes =
        ms_arena_take_raw(trace->arena, g->n_persistent, sizeof(uint64_t));
    g->storage_whole = ms_arena_take(trace->arena, g->n_persistent, 1);
    g->storage_width =
        ms_arena_take(trace->arena, g->n_persistent, sizeof(uint32_t));
    if (!g->storage_shard_bytes || !g->storage_whole || !g->storage_width)
        return ms_fail_nomem(trace->fault);
    for (uint32_t s = 0; s < g->n_persistent; s++)
        g->storage_shard_bytes[s] = MS_UNSHARED;
    g->grads_whole = shape->shared < MS_SHARED_GRADIENTS;
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        uint32_t weight = it->storage;
        if (has_it_alone(trace, it))
            continue;
        if (it->grad_storage != MS_NONE)
            g->storage_shard_bytes[it->grad_storage] =
                grad_part_bytes(trace, it);
        if (!parameters)
            continue;
        g->storage_shard_bytes[weight] =
            weight_part_bytes(trace, it, g->storage_bytes[weight]);
        g->storage_whole[weight] = stays_whole(trace, it, &whole);
        g->storage_width[weight] = width_of(trace, it);
    }
    return MS_OK;
}
