/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/stamps.h"
#include "graphs/formats/precisions.h"
#include "graphs/lowering/stampspace.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <stddef.h>
#include <string.h>

/* ---- where it applies ---------------------------------------------------- */

/* Of what ranks share, each parameter's part follows from itself, or is found
 * for all of them once they are there; so are homes in other memories. */
static bool is_plain_shape(const ms_step_settings *settings)
{
    return !ms_precisions_has_sum(settings) && !ms_layerwise_is(settings) &&
           !settings->shape->offload.delayed &&
           settings->shape->empty_stages.n == 0;
}

bool ms_stamps_apply(const ms_step_settings *settings)
{
    const ms_training *training = settings->training;
    const ms_precision_row *precision = ms_precisions_of(training);
    return settings->train && !settings->model->ops &&
           is_plain_shape(settings) && precision->optimizers == 0 &&
           training->retain_graph == 0 && training->frozen_blocks == 0 &&
           training->optimizer_in_backward == 0;
}

/* ---- the spaces ---------------------------------------------------------- */

typedef struct stamper {
    ms_trace *trace;
    const ms_blockrun *run;
    ms_stampspace layers, ops, storages, nodes, units, parameters, saves;
    ms_stampspace in, out, drop;
    uint32_t *unit_layer; /* the first of each unit */
    bool ok;
} stamper;

static uint8_t block_of(const stamper *s, uint32_t layer)
{
    if (layer == MS_NONE || layer < s->run->first)
        return MS_STAMP_OUT;
    uint32_t block = (layer - s->run->first) / s->run->period;
    return block < MS_STAMP_OUT ? (uint8_t)block : MS_STAMP_OUT;
}

/* rows: of n items of stride bytes, in each of which there is a row whose block
 * is looked up, or the layer itself. */
static void open_space(stamper *s, ms_stampspace *space, uint32_t n,
                       const ms_stampcolumn *rows, const uint8_t *lookup)
{
    uint8_t *block;
    if (!s->ok)
        return;
    block = ms_arena_take_raw(s->trace->scratch, n + 1, 1);
    for (uint32_t i = 0; i < n && block; i++) {
        uint32_t row = i;
        if (rows)
            memcpy(&row, (const char *)rows->from + rows->at + i * rows->stride,
                   sizeof row);
        block[i] = lookup ? lookup[row] : block_of(s, row);
    }
    s->ok = block && ms_stampspace_open(space, n, block, s->run->left_out + 1,
                                        s->trace->scratch);
}

static uint32_t list_end(const ms_graph *g, const uint32_t *at, uint32_t op,
                         uint32_t all)
{
    return op + 1 < g->n_ops ? at[op + 1] : all;
}

/* Entries of a list belong where their ops do.  drops: of an op of no block
 * those of a drop list do where the storages do that end behind it (autocast's
 * copies of weights). */
static void open_entries(stamper *s, ms_stampspace *space, const uint32_t *at,
                         uint32_t all, const uint32_t *drops)
{
    const ms_graph *g = s->trace->graph;
    uint8_t *block = ms_arena_take_raw(s->trace->scratch, all + 1, 1);
    if (!s->ok || !block) {
        s->ok = false;
        return;
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t i = at[op]; i < list_end(g, at, op, all); i++) {
            block[i] = s->ops.block[op];
            if (drops && block[i] == MS_STAMP_OUT)
                block[i] = s->storages.block[MS_DROP_STORAGE(drops[i])];
        }
    s->ok = ms_stampspace_open(space, all, block, s->run->left_out + 1,
                               s->trace->scratch);
}

/* A unit is named by its first layer. */
static void open_units(stamper *s, const ms_forward *forward)
{
    const ms_model *model = s->trace->settings->model;
    uint32_t *layer = ms_arena_take_raw(s->trace->scratch, forward->n_units + 1,
                                        sizeof *layer);
    uint32_t l = 0;
    if (!s->ok || !layer) {
        s->ok = false;
        return;
    }
    for (uint32_t u = 0; u < forward->n_units; u++) {
        while (model->layers[l].name != forward->unit_name[u])
            l++;
        layer[u] = l;
    }
    open_space(s, &s->units, forward->n_units,
               &(ms_stampcolumn){.from = layer, .stride = sizeof *layer}, NULL);
    s->unit_layer = layer;
}

static void open_spaces(stamper *s, const ms_forward *forward)
{
    const ms_trace *t = s->trace;
    const ms_graph *g = t->graph;
    ms_stampcolumn op = {.from = g->op_layer, .stride = sizeof(uint32_t)};
    ms_stampcolumn storage = {.from = g->storage_layer,
                              .stride = sizeof(uint32_t)};
    ms_stampcolumn node = {.from = t->nodes,
                           .stride = sizeof *t->nodes,
                           .at = offsetof(ms_node, layer)};
    ms_stampcolumn parameter = {.from = t->parameters,
                                .stride = sizeof *t->parameters,
                                .at = offsetof(ms_parameter, layer)};
    ms_stampcolumn save = {.from = g->saves,
                           .stride = sizeof *g->saves,
                           .at = offsetof(ms_save, op)};
    open_space(s, &s->layers, g->n_layers, NULL, NULL);
    open_space(s, &s->ops, g->n_ops, &op, NULL);
    open_space(s, &s->storages, g->n_storages, &storage, NULL);
    open_space(s, &s->nodes, t->n_nodes, &node, NULL);
    open_space(s, &s->parameters, t->n_parameters, &parameter, NULL);
    open_space(s, &s->saves, g->n_saves, &save, s->ops.block);
    open_units(s, forward);
    open_entries(s, &s->in, g->in_at, t->n_in, NULL);
    open_entries(s, &s->out, g->out_at, t->n_out, NULL);
    open_entries(s, &s->drop, g->drop_at, t->n_drop, g->drop);
}

/* ---- columns ------------------------------------------------------------- */

/* With room for the step, and for the closing offsets of the CSR columns. */
static uint32_t room_for(const ms_stampspace *space)
{
    return space->n_stamped + space->n_stamped / 4 + 64;
}

/* What is said of rows once they are stamped: of the old ones nothing. */
static void *take_room(stamper *s, const ms_stampspace *space, size_t size)
{
    void *room = ms_arena_take_raw(s->trace->scratch, room_for(space), size);
    s->ok = s->ok && room;
    return room;
}

/* A new column in place of *column; the caller renames it.  equal: so many
 * bytes of an item, from `at` on, are the same in equal blocks. */
static ms_stampcolumn stamp(stamper *s, ms_arena *arena,
                            const ms_stampspace *space, void *column,
                            size_t stride, size_t equal)
{
    ms_stampcolumn it = {.stride = stride};
    void *from;
    memcpy(&from, column, sizeof from);
    it.from = from;
    if (!s->ok)
        return it;
    it.to = ms_arena_take_raw(arena, room_for(space), stride);
    if (!it.to || !ms_stampspace_equal(space, &it, equal)) {
        s->ok = false;
        return it;
    }
    ms_stampspace_copy(space, &it);
    memcpy(column, &it.to, sizeof it.to);
    return it;
}

static void rename_at(stamper *s, const ms_stampspace *space,
                      const ms_stampspace *named, ms_stampcolumn column,
                      size_t at)
{
    column.at = at;
    if (s->ok)
        s->ok = ms_stampspace_rename(space, named, &column, 0);
}

static void check_equal(stamper *s, const ms_stampspace *space,
                        ms_stampcolumn column, size_t at, size_t size)
{
    column.at = at;
    if (s->ok)
        s->ok = ms_stampspace_equal(space, &column, size);
}

/* A column of names of rows of another space. */
static void stamp_ids(stamper *s, const ms_stampspace *space,
                      const ms_stampspace *named, uint32_t **column,
                      unsigned shift)
{
    ms_stampcolumn it = {.from = *column, .stride = sizeof **column};
    if (!s->ok)
        return;
    it.to = *column =
        ms_arena_take_raw(s->trace->arena, room_for(space), it.stride);
    s->ok = it.to && ms_stampspace_rename(space, named, &it, shift);
}

#define STAMP(space, column)                                                   \
    stamp(s, s->trace->arena, &s->space, &(column), sizeof *(column),          \
          sizeof *(column))
#define STAMP_IDS(space, named, column)                                        \
    stamp_ids(s, &s->space, &s->named, &(column), 0)
#define STAMP_ROWS(space, rows)                                                \
    stamp(s, s->trace->arena, &s->space, &(rows), sizeof *(rows), 0)
#define EQUAL(space, column, type, field)                                      \
    check_equal(s, &s->space, column, offsetof(type, field),                   \
                sizeof(((type *)NULL)->field))
#define RENAME(space, named, column, type, field)                              \
    rename_at(s, &s->space, &s->named, column, offsetof(type, field))

/* The offsets of a list, whose entries come in the order of their ops. */
static void stamp_offsets(stamper *s, const ms_stampspace *entries,
                          uint32_t **at, uint32_t all)
{
    const ms_graph *g = s->trace->graph;
    uint32_t sum = 0, *length;
    if (!s->ok)
        return;
    length = ms_arena_take_raw(s->trace->scratch, g->n_ops + 1, sizeof *length);
    if (!length) {
        s->ok = false;
        return;
    }
    for (uint32_t op = 0; op < g->n_ops; op++) {
        uint32_t end = list_end(g, *at, op, all);
        length[op] = end - (*at)[op];
        for (uint32_t i = (*at)[op];
             s->ops.block[op] == MS_STAMP_OUT && i < end; i++)
            length[op] += entries->block[i] == 2 ? s->run->left_out : 0;
    }
    *at = length;
    STAMP(ops, *at);
    uint32_t *of = *at, n_ops = s->ok ? s->ops.n_stamped : 0;
    for (uint32_t op = 0; op < n_ops; op++) {
        uint32_t n = of[op];
        of[op] = sum;
        sum += n;
    }
}

static void stamp_lists(stamper *s)
{
    ms_trace *t = s->trace;
    ms_graph *g = t->graph;
    stamp_offsets(s, &s->in, &g->in_at, t->n_in);
    stamp_offsets(s, &s->out, &g->out_at, t->n_out);
    stamp_offsets(s, &s->drop, &g->drop_at, t->n_drop);
    STAMP_IDS(in, storages, g->in);
    STAMP_IDS(out, storages, g->out);
    stamp_ids(s, &s->drop, &s->storages, &g->drop, 1);
    t->n_in = s->in.n_stamped;
    t->in_capacity = room_for(&s->in);
    t->n_out = s->out.n_stamped;
    t->out_capacity = room_for(&s->out);
    t->n_drop = s->drop.n_stamped;
    t->drop_capacity = room_for(&s->drop);
}

static void stamp_ops(stamper *s)
{
    ms_trace *t = s->trace;
    ms_graph *g = t->graph;
    stamp_lists(s);
    STAMP(ops, g->op_name);
    STAMP(ops, g->op_kind);
    STAMP(ops, g->op_pass);
    STAMP(ops, g->op_flags);
    STAMP(ops, g->op_stream);
    STAMP(ops, g->op_meets);
    STAMP(ops, g->op_flops);
    STAMP(ops, g->op_read_bytes);
    STAMP(ops, g->op_write_bytes);
    STAMP(ops, g->op_ns);
    STAMP_IDS(ops, units, g->op_unit);
    STAMP_IDS(ops, layers, g->op_layer);
    STAMP_IDS(ops, nodes, g->op_node);
    g->n_ops = s->ops.n_stamped;
    t->ops_capacity = room_for(&s->ops);
    t->ends = take_room(s, &s->ops, sizeof *t->ends);
}

/* Those that outlive the micro-batch stay before all others: no stretch that
 * is copied has both. */
static void stamp_persistent(stamper *s)
{
    ms_graph *g = s->trace->graph;
    uint32_t n = g->n_persistent, copied = 0;
    for (uint32_t i = 0; i < n && s->ok; i++)
        copied += s->storages.block[i] == 2;
    if (s->ok && n > 0 && n < s->storages.n)
        s->ok = s->storages.block[n - 1] != 2 || s->storages.block[n] != 2;
    g->n_persistent += copied * s->run->left_out;
}

/* Equal blocks may have written the same name twice. */
static void check_names(stamper *s)
{
    const char *const *name = s->trace->graph->storage_name;
    const ms_stampspace *space = &s->storages;
    for (uint32_t r = 0; r < space->n_equal && s->ok; r++) {
        const char *a = name[space->row[0][r]], *b = name[space->row[1][r]];
        s->ok = a == b || strcmp(a, b) == 0;
    }
}

static void stamp_storages(stamper *s)
{
    ms_trace *t = s->trace;
    ms_graph *g = t->graph;
    STAMP(storages, g->storage_bytes);
    STAMP(storages, g->storage_category);
    STAMP(storages, g->storage_at_start);
    STAMP(storages, g->storage_buffer);
    check_names(s);
    STAMP_ROWS(storages, g->storage_name);
    STAMP_IDS(storages, ops, g->storage_maker);
    STAMP_IDS(storages, ops, g->storage_local_end);
    STAMP_IDS(storages, ops, g->storage_saved_end);
    STAMP_IDS(storages, storages, g->storage_grad);
    STAMP_IDS(storages, layers, g->storage_layer);
    stamp_persistent(s);
    g->n_storages = t->n_numbered = s->storages.n_stamped;
    t->storages_capacity = room_for(&s->storages);
    t->counts = take_room(s, &s->storages, sizeof *t->counts);
}

static void stamp_saves(stamper *s)
{
    ms_trace *t = s->trace;
    ms_graph *g = t->graph;
    ms_stampcolumn saves = STAMP_ROWS(saves, g->saves);
    EQUAL(saves, saves, ms_save, bytes);
    RENAME(saves, storages, saves, ms_save, storage);
    RENAME(saves, nodes, saves, ms_save, node);
    RENAME(saves, ops, saves, ms_save, op);
    RENAME(saves, ops, saves, ms_save, first);
    RENAME(saves, ops, saves, ms_save, last);
    g->n_saves = s->saves.n_stamped;
    t->saves_capacity = room_for(&s->saves);
}

static void stamp_parameters(stamper *s)
{
    ms_trace *t = s->trace;
    ms_stampcolumn rows = stamp(s, t->scratch, &s->parameters, &t->parameters,
                                sizeof *t->parameters, 0);
    EQUAL(parameters, rows, ms_parameter, elements);
    check_equal(s, &s->parameters, rows, offsetof(ms_parameter, update),
                sizeof(void *));
    EQUAL(parameters, rows, ms_parameter, part);
    EQUAL(parameters, rows, ms_parameter, owned);
    EQUAL(parameters, rows, ms_parameter, group);
    EQUAL(parameters, rows, ms_parameter, linear);
    EQUAL(parameters, rows, ms_parameter, added);
    EQUAL(parameters, rows, ms_parameter, far);
    RENAME(parameters, layers, rows, ms_parameter, layer);
    RENAME(parameters, storages, rows, ms_parameter, storage);
    RENAME(parameters, storages, rows, ms_parameter, grad_storage);
    RENAME(parameters, storages, rows, ms_parameter, master);
    RENAME(parameters, storages, rows, ms_parameter, sum);
    RENAME(parameters, storages, rows, ms_parameter, next);
    RENAME(parameters, storages, rows, ms_parameter, kept[MS_KEPT_TWICE]);
    RENAME(parameters, storages, rows, ms_parameter, kept[MS_KEPT_COLUMNS]);
    RENAME(parameters, storages, rows, ms_parameter, kept[MS_KEPT_SUM]);
    RENAME(parameters, storages, rows, ms_parameter, host_grad);
    RENAME(parameters, storages, rows, ms_parameter, copy[0]);
    RENAME(parameters, storages, rows, ms_parameter, copy[1]);
    RENAME(parameters, storages, rows, ms_parameter, original);
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        rename_at(s, &s->parameters, &s->storages, rows,
                  offsetof(ms_parameter, state) + i * sizeof(uint32_t));
    t->n_parameters = s->parameters.n_stamped;
    t->parameters_capacity = room_for(&s->parameters);
}

/* ---- what there is once -------------------------------------------------- */

static void stamp_units(stamper *s, ms_forward *forward, const ms_model *whole)
{
    ms_stampcolumn block = STAMP_ROWS(units, forward->unit_block);
    if (s->ok)
        ms_stampspace_add(&s->units, &block, s->run->blocks);
    STAMP_ROWS(units, forward->unit_name);
    STAMP_IDS(units, layers, s->unit_layer);
    forward->n_units = s->units.n_stamped;
    for (uint32_t u = 0; u < forward->n_units && s->ok; u++)
        forward->unit_name[u] = whole->layers[s->unit_layer[u]].name;
    if (s->ok && forward->loss_unit != MS_NONE)
        s->ok = ms_stampspace_outside(&s->units, &forward->loss_unit);
}

/* Is it the gradient with which backward begins? */
static bool is_root(const ms_graph *g, uint32_t storage)
{
    uint32_t op = g->storage_maker[storage];
    return op != MS_NONE && op > 0 && g->op_pass[op] == MS_GRAD_INPUT &&
           g->op_pass[op - 1] <= MS_LOSS;
}

/* What the optimizer makes of no parameter: of as many bytes in any model, or
 * they are told anew. */
static bool is_shared(const ms_optimizer_state *optimizer, uint32_t storage)
{
    bool is = storage == optimizer->buckets || storage == optimizer->step_order;
    for (uint32_t i = 0; i < optimizer->n_slots; i++)
        is |= storage == optimizer->slots[i];
    for (uint32_t i = 0; i < optimizer->n_maps; i++)
        is |= storage == optimizer->maps[i];
    return is;
}

/* Other storages of no layer are the model's inputs, what kernels work in and
 * the root of gradients; more would be made of all blocks together. */
static bool has_common(const ms_trace *trace)
{
    const ms_graph *g = trace->graph;
    for (uint32_t i = 0; i < g->n_storages; i++)
        if (g->storage_layer[i] == MS_NONE && !is_root(g, i) &&
            !is_shared(trace->optimizer, i) &&
            g->storage_category[i] != MS_INPUTS &&
            g->storage_category[i] != MS_WORKSPACE)
            return true;
    return false;
}

/* What the optimizer has made for the step is only per parameter. */
static bool is_plain_optimizer(const ms_trace *trace)
{
    const ms_optimizer_state *optimizer = trace->optimizer;
    uint64_t flat = 0;
    for (uint32_t i = 0; i < 6; i++)
        flat |= optimizer->flat_bytes[i] | optimizer->flat_elements[i];
    for (uint32_t p = 0; p < trace->n_parameters; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (it->due_end > 0 || it->grad != MS_NONE)
            return false;
    }
    return flat == 0 && !optimizer->stepper;
}

static bool sum_bytes(ms_trace *trace)
{
    const ms_graph *g = trace->graph;
    trace->all_bytes = 0;
    for (uint32_t i = 0; i < g->n_storages; i++)
        if (__builtin_add_overflow(trace->all_bytes, g->storage_bytes[i],
                                   &trace->all_bytes))
            return false;
    return trace->all_bytes <= UINT64_C(1) << 62;
}

/* A storage of no block, or MS_NONE. */
static void rename_outside(stamper *s, uint32_t *storage)
{
    if (s->ok && *storage != MS_NONE)
        s->ok = ms_stampspace_outside(&s->storages, storage);
}

bool ms_stamps_unfold(ms_trace *trace, ms_forward *forward,
                      const ms_blockrun *run, const ms_model *whole)
{
    stamper it = {.trace = trace, .run = run, .ok = true}, *s = &it;
    ms_graph *g = trace->graph;
    if (g->n_untrained > 0 || trace->n_searched > 0 || g->n_unknown > 0 ||
        has_common(trace) || !is_plain_optimizer(trace) || g->unit_state)
        return false;
    if (ms_parts_are_stretches(trace->settings->shape)) {
        ms_parts_join(trace);
        ms_optimstates_fit(trace);
    }
    open_spaces(s, forward);
    for (uint32_t i = 0; i < g->n_kept; i++)
        rename_outside(s, &g->kept[i]);
    rename_outside(s, &trace->optimizer->buckets);
    rename_outside(s, &trace->optimizer->step_order);
    for (uint32_t i = 0; i < trace->optimizer->n_slots; i++)
        rename_outside(s, &trace->optimizer->slots[i]);
    for (uint32_t i = 0; i < trace->optimizer->n_maps; i++)
        rename_outside(s, &trace->optimizer->maps[i]);
    if (!s->ok)
        return false;
    stamp_saves(s);
    stamp_parameters(s);
    stamp_storages(s);
    stamp_ops(s);
    stamp_units(s, forward, whole);
    STAMP(layers, g->layer_bytes);
    STAMP(layers, g->layer_type);
    STAMP(layers, g->layer_role);
    if (g->layer_split)
        STAMP(layers, g->layer_split);
    STAMP(layers, trace->is_head);
    if (s->ok && trace->head.layer != MS_NONE)
        s->ok = ms_stampspace_outside(&s->layers, &trace->head.layer);
    return s->ok;
}

/* Parts that depend on each other are told by the whole model's. */
bool ms_stamps_settle(ms_trace *trace)
{
    bool stretches = ms_parts_are_stretches(trace->settings->shape);
    if (stretches)
        ms_parts_split(trace);
    if (stretches || trace->optimizer->buckets != MS_NONE)
        ms_optimstates_fit(trace);
    return trace->err == MS_OK && ms_optimstates_home(trace) &&
           sum_bytes(trace);
}
