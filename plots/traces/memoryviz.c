/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank's step as a memory snapshot of PyTorch. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "plots/traces/pickling.h"
#include "sim/graph.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"
#include "sim/timeline.h"

#define NAME_BYTES (MS_STORAGE_NAME + 64u)

/* Words that come again and again. */
typedef enum word {
    W_ADDRESS,
    W_ADDR,
    W_SIZE,
    W_ACTION,
    W_STREAM,
    W_TIME,
    W_CATEGORY,
    W_FRAMES,
    W_FILENAME,
    W_LINE,
    W_NAME,
    W_STATE,
    W_REQUESTED,
    W_HISTORY,
    W_REAL,
    N_WORDS
} word;

static const char *const words[N_WORDS] = {
    "address", "addr",     "size",           "action",   "stream",
    "time_us", "category", "frames",         "filename", "line",
    "name",    "state",    "requested_size", "history",  "real_size",
};

typedef struct place {
    uint64_t address;
    uint32_t row;
} place;

typedef enum part { HEAD, TRACE, SEGMENTS, DONE } part;

typedef struct memoryviz {
    const ms_export *of;
    ms_torch_setup setup; /* of the pool */
    const ms_plan *plan;
    ms_arena *arena;
    ms_text text;
    ms_pickling p;
    part part;
    ms_torch *pool;
    const ms_request *requests;
    uint32_t n, at; /* of the requests */
    place *places;  /* of what is alive at the end, by address */
    uint32_t n_places;
    ms_pickling_list list, traces;
    uint32_t *block; /* per row: of the pool */
    /* What was written already; 0: not yet. */
    uint32_t words[N_WORDS], actions[MS_TORCH_N_ACTIONS];
    uint32_t categories[MS_N_CATEGORIES], states[3], file;
    uint32_t *storages, *buffers, *ops, *layers;
    const ms_request *request; /* that is being served */
    ms_fault *fault;
} memoryviz;

/* ---- frames -------------------------------------------------------------- */

static void put_key(memoryviz *m, word key)
{
    ms_pickling_word(&m->p, &m->words[key], words[key]);
}

static void put_number(memoryviz *m, word key, uint64_t value)
{
    put_key(m, key);
    ms_pickling_int(&m->p, value);
}

static uint32_t line_of(const memoryviz *m, uint32_t layer)
{
    return layer == MS_NONE || m->of->lines == NULL ? 0 : m->of->lines[layer];
}

static void put_frame(memoryviz *m, uint32_t *memo, const char *name,
                      uint32_t layer)
{
    if (*memo > 0) {
        ms_pickling_again(&m->p, *memo);
        return;
    }
    ms_pickling_dict(&m->p);
    put_key(m, W_FILENAME);
    ms_pickling_word(&m->p, &m->file, m->of->model_path);
    put_number(m, W_LINE, line_of(m, layer));
    put_key(m, W_NAME);
    ms_pickling_text(&m->p, name);
    ms_pickling_dict_end(&m->p);
    ms_pickling_keep(&m->p, memo);
}

static void put_op_frame(memoryviz *m, const ms_plan_op *op, uint32_t layer)
{
    const ms_graph *graph = m->plan->graph;
    const char *pass = ms_names_pass[op->pass];
    uint32_t of = op->of == MS_NONE ? graph->n_ops : op->of;
    char name[NAME_BYTES];
    if (op->of == MS_NONE)
        snprintf(name, sizeof name, "%s", pass);
    else
        snprintf(name, sizeof name, "%s (%s)", graph->op_name[of], pass);
    put_frame(m, &m->ops[(size_t)of * MS_N_PASSES + op->pass], name, layer);
}

static uint32_t layer_of(const ms_graph *graph, const ms_row *row,
                         const ms_plan_op *op)
{
    if (op->of != MS_NONE)
        return graph->op_layer[op->of];
    return row->storage != MS_NONE && graph->storage_layer != NULL
               ? graph->storage_layer[row->storage]
               : MS_NONE;
}

/* Innermost first, as a stack is told: the tensor, the op, the layer. */
static void put_frames(memoryviz *m, uint32_t row)
{
    const ms_row *it = &m->plan->row[row];
    const ms_plan_op *op = &m->plan->op[it->op];
    const ms_graph *graph = m->plan->graph;
    uint32_t layer = layer_of(graph, it, op);
    char buffer[MS_STORAGE_NAME];
    uint32_t *memo = it->storage != MS_NONE ? &m->storages[it->storage]
                                            : &m->buffers[it->buffer];
    ms_pickling_list list = ms_pickling_list_begin(&m->p);
    ms_pickling_item(&m->p, &list);
    put_frame(m, memo, ms_dumpplan_row_name(m->plan, row, buffer), layer);
    ms_pickling_item(&m->p, &list);
    put_op_frame(m, op, layer);
    if (layer != MS_NONE) {
        ms_pickling_item(&m->p, &list);
        put_frame(m, &m->layers[layer], graph->layer_name[layer], layer);
    }
    ms_pickling_list_end(&m->p, &list);
}

static void put_no_frames(memoryviz *m)
{
    ms_pickling_list none;
    put_key(m, W_FRAMES);
    none = ms_pickling_list_begin(&m->p);
    ms_pickling_list_end(&m->p, &none);
}

/* ---- the trace ----------------------------------------------------------- */

static void put_entry(void *of, const ms_torch_entry *entry)
{
    memoryviz *m = of;
    const ms_request *request = m->request;
    bool is_block = entry->action <= MS_TORCH_FREE_COMPLETED;
    ms_pickling_item(&m->p, &m->list);
    ms_pickling_dict(&m->p);
    put_key(m, W_ACTION);
    ms_pickling_word(&m->p, &m->actions[entry->action],
                     ms_torch_actions[entry->action]);
    put_number(m, W_ADDR, entry->address);
    put_number(m, W_SIZE, entry->bytes);
    put_number(m, W_STREAM, entry->stream);
    put_number(m, W_TIME, request != NULL ? request->t_ns / 1000 : 0);
    if (is_block && request != NULL) {
        uint8_t category = m->plan->row[request->row].category;
        put_key(m, W_FRAMES);
        put_frames(m, request->row);
        put_key(m, W_CATEGORY);
        ms_pickling_word(&m->p, &m->categories[category],
                         ms_names_category[category]);
    } else {
        put_no_frames(m);
    }
    /* The page stays blank where entries have categories and none of them is
     * "unknown": it then adds that to a list whose name it misspells. */
    if (entry->action == MS_TORCH_SNAPSHOT) {
        put_key(m, W_CATEGORY);
        ms_pickling_text(&m->p, "unknown");
    }
    ms_pickling_dict_end(&m->p);
}

static ms_err serve(memoryviz *m, const ms_request *request)
{
    ms_torch *pool = m->pool;
    const ms_row *row = &m->plan->row[request->row];
    uint32_t *block = &m->block[request->row];
    m->request = request;
    switch (request->kind) {
    case MS_REQUEST_ALLOC:
        MS_TRY(ms_torch_malloc(pool, ms_active_asked(m->plan, row),
                               ms_active_memory(m->plan, row), block,
                               m->fault));
        if (*block == MS_NONE)
            return ms_fail(m->fault, MS_EINFEASIBLE, NULL, NULL,
                           "no device has addresses for all that rank %u "
                           "allocates",
                           (unsigned)m->of->rank);
        break;
    case MS_REQUEST_FREE:
        ms_torch_free(pool, *block);
        break;
    case MS_REQUEST_FREE_LATER:
        ms_torch_free_later(pool, *block);
        break;
    default:
        ms_torch_free_now(pool, *block);
        break;
    }
    return MS_OK;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->address, y = ((const place *)b)->address;
    return (x > y) - (x < y);
}

/* Where each row is at the end: its last event counts. */
static ms_err find_places(memoryviz *m)
{
    uint32_t *alive = ms_arena_take(m->arena, m->plan->n_rows, sizeof *alive);
    m->places = ms_arena_take_raw(m->arena, m->plan->n_rows, sizeof *m->places);
    if (alive == NULL || m->places == NULL)
        return ms_fail_nomem(m->fault);
    for (uint32_t i = 0; i < m->n; i++)
        alive[m->requests[i].row] =
            m->requests[i].kind == MS_REQUEST_ALLOC ||
            m->requests[i].kind == MS_REQUEST_FREE_LATER;
    for (uint32_t row = 0; row < m->plan->n_rows; row++)
        if (alive[row])
            m->places[m->n_places++] = (place){
                ms_torchview_block(m->pool, m->block[row]).address, row};
    if (m->n_places > 0)
        qsort(m->places, m->n_places, sizeof *m->places, by_address);
    return MS_OK;
}

static ms_err put_trace(memoryviz *m)
{
    if (m->at < m->n)
        return serve(m, &m->requests[m->at++]);
    ms_torchview_log_snapshot(m->pool);
    ms_pickling_list_end(&m->p, &m->list);
    ms_pickling_list_end(&m->p, &m->traces);
    m->request = NULL;
    m->part = SEGMENTS;
    return find_places(m);
}

/* ---- segments ------------------------------------------------------------ */

static void put_named(memoryviz *m, const char *key, uint64_t value)
{
    ms_pickling_text(&m->p, key);
    ms_pickling_int(&m->p, value);
}

/* Versions up to 2.0 look for frames in the history. */
static void put_owner(memoryviz *m, const ms_torch_block_view *block)
{
    place key = {block->address, 0};
    const place *at = m->n_places == 0 ? NULL
                                       : bsearch(&key, m->places, m->n_places,
                                                 sizeof *m->places, by_address);
    assert(at != NULL);
    put_key(m, W_FRAMES);
    put_frames(m, at->row);
    put_key(m, W_HISTORY);
    ms_pickling_list list = ms_pickling_list_begin(&m->p);
    ms_pickling_item(&m->p, &list);
    ms_pickling_dict(&m->p);
    put_number(m, W_ADDR, block->address);
    put_number(m, W_REAL, block->requested_bytes);
    put_key(m, W_FRAMES);
    put_frames(m, at->row);
    ms_pickling_dict_end(&m->p);
    ms_pickling_list_end(&m->p, &list);
}

static void put_block(memoryviz *m, const ms_torch_block_view *block)
{
    ms_pickling_dict(&m->p);
    put_number(m, W_ADDRESS, block->address);
    put_number(m, W_SIZE, block->bytes);
    put_number(m, W_REQUESTED, block->requested_bytes);
    put_key(m, W_STATE);
    ms_pickling_word(&m->p, &m->states[block->state],
                     ms_torchview_states[block->state]);
    if (block->state != MS_TORCH_INACTIVE)
        put_owner(m, block);
    else
        put_no_frames(m);
    ms_pickling_dict_end(&m->p);
}

static void put_segment(memoryviz *m, const ms_torch_segment_view *segment)
{
    ms_pickling_dict(&m->p);
    put_named(m, "device", 0);
    put_number(m, W_ADDRESS, segment->address);
    put_named(m, "total_size", segment->bytes);
    put_named(m, "allocated_size", segment->allocated_bytes);
    put_named(m, "active_size", segment->active_bytes);
    put_number(m, W_REQUESTED, segment->requested_bytes);
    put_number(m, W_STREAM, segment->stream);
    ms_pickling_text(&m->p, "segment_type");
    ms_pickling_text(&m->p, segment->small ? "small" : "large");
    ms_pickling_text(&m->p, "segment_pool_id");
    ms_pickling_zeros(&m->p);
    ms_pickling_text(&m->p, "is_expandable");
    ms_pickling_bool(&m->p, segment->expandable);
    put_no_frames(m);
    ms_pickling_text(&m->p, "blocks");
    ms_pickling_list list = ms_pickling_list_begin(&m->p);
    for (uint32_t i = 0; i < segment->n_blocks; i++) {
        ms_pickling_item(&m->p, &list);
        put_block(m, &segment->blocks[i]);
    }
    ms_pickling_list_end(&m->p, &list);
    ms_pickling_dict_end(&m->p);
}

static ms_err put_segments(memoryviz *m)
{
    ms_torch_snapshot snapshot;
    ms_pickling_text(&m->p, "segments");
    ms_pickling_list list = ms_pickling_list_begin(&m->p);
    MS_TRY(ms_torchview_snapshot(m->pool, m->arena, &snapshot, m->fault));
    for (uint32_t i = 0; i < snapshot.n_segments; i++) {
        ms_pickling_item(&m->p, &list);
        put_segment(m, &snapshot.segments[i]);
    }
    ms_pickling_list_end(&m->p, &list);
    return MS_OK;
}

static void put_settings(memoryviz *m)
{
    const ms_torch_options *options = &m->setup.options;
    ms_pickling_text(&m->p, "allocator_settings");
    ms_pickling_dict(&m->p);
    ms_pickling_text(&m->p, "PYTORCH_CUDA_ALLOC_CONF");
    ms_pickling_text(&m->p, m->of->conf != NULL ? m->of->conf : "");
    ms_pickling_text(&m->p, "max_split_size");
    if (options->max_split_bytes == UINT64_MAX)
        ms_pickling_minus_one(&m->p);
    else
        ms_pickling_int(&m->p, options->max_split_bytes);
    ms_pickling_text(&m->p, "garbage_collection_threshold");
    ms_pickling_float(&m->p, options->gc_threshold);
    ms_pickling_text(&m->p, "expandable_segments");
    ms_pickling_bool(&m->p, options->expandable);
    ms_pickling_dict_end(&m->p);
}

/* ---- pieces -------------------------------------------------------------- */

static ms_err put_next(memoryviz *m)
{
    switch (m->part) {
    case HEAD:
        ms_pickling_begin(&m->p);
        ms_pickling_dict(&m->p);
        ms_pickling_text(&m->p, "device_traces");
        m->traces = ms_pickling_list_begin(&m->p);
        ms_pickling_item(&m->p, &m->traces);
        m->list = ms_pickling_list_begin(&m->p);
        m->part = TRACE;
        return MS_OK;
    case TRACE:
        return put_trace(m);
    case SEGMENTS:
        MS_TRY(put_segments(m));
        put_settings(m);
        ms_pickling_dict_end(&m->p);
        ms_pickling_end(&m->p);
        m->part = DONE;
        return MS_OK;
    default:
        return MS_OK;
    }
}

static ms_err put_more(void *of, bool *more)
{
    memoryviz *m = of;
    ms_err err = put_next(m);
    *more = m->part != DONE;
    return err;
}

/* ---- the start ----------------------------------------------------------- */

/* The most that a rank has reserved in any step. */
static uint64_t most_reserved_bytes(const ms_pooled *pooled)
{
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < pooled->n_ranks; rank++)
        if (pooled->ranks[rank].reserved_most_bytes > bytes)
            bytes = pooled->ranks[rank].reserved_most_bytes;
    return bytes;
}

/* The pool of the timeline, if it is PyTorch's; where it runs out of memory,
 * all the same the whole step. */
static double set_up(const ms_pooled *pooled, ms_torch_setup *setup)
{
    ms_torch_setup_init(setup, MS_TORCH_MOST_BYTES);
    if (pooled == NULL || pooled->setup.heap.kind != MS_POOL_TORCH)
        return 0;
    *setup = pooled->setup.torch;
    if (!pooled->oom)
        return pooled->setup.fraction;
    ms_torch_setup_unbound(setup, most_reserved_bytes(pooled));
    return 0;
}

static ms_err open_pool(memoryviz *m)
{
    ms_torch_setup *setup = &m->setup;
    double fraction = set_up(m->of->line->pooled, setup);
    ms_request *list;
    setup->log = put_entry;
    setup->log_of = m;
    MS_TRY(ms_requests_list(m->of->line, m->of->machine, m->of->rank, m->arena,
                            &list, &m->n, m->fault));
    m->requests = list;
    MS_TRY(ms_torch_new(setup, m->arena, &m->pool, m->fault));
    if (fraction > 0)
        ms_torch_set_fraction(m->pool, fraction);
    return MS_OK;
}

static uint32_t count_buffers(const ms_plan *plan)
{
    uint32_t n = 0;
    for (uint32_t row = 0; row < plan->n_rows; row++)
        if (plan->row[row].storage == MS_NONE && plan->row[row].buffer >= n)
            n = plan->row[row].buffer + 1;
    return n;
}

ms_err ms_memoryviz_write(const ms_export *of, const char *path,
                          ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = of->line->plan;
    const ms_graph *graph = plan->graph;
    memoryviz m = {.of = of,
                   .plan = plan,
                   .arena = arena,
                   .text = {.arena = arena},
                   .fault = fault};
    m.p.text = &m.text;
    m.block = ms_arena_take_raw(arena, plan->n_rows, sizeof *m.block);
    m.storages = ms_arena_take(arena, graph->n_storages, sizeof(uint32_t));
    m.buffers = ms_arena_take(arena, count_buffers(plan), sizeof(uint32_t));
    m.layers = ms_arena_take(arena, graph->n_layers, sizeof(uint32_t));
    m.ops = ms_arena_take(arena, ((size_t)graph->n_ops + 1) * MS_N_PASSES,
                          sizeof(uint32_t));
    if (m.block == NULL || m.storages == NULL || m.buffers == NULL ||
        m.layers == NULL || m.ops == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(open_pool(&m));
    return ms_output_text(path, put_more, &m, &m.text, fault);
}
