/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/program.h"
#include "tests/laws/laws.h"

#include <check.h>

#define MOST_UNITS 8u
#define MOST_OPS 4u /* forward ops of a unit */
#define MOST_PLAN_OPS 256u
#define MOST_STORAGES 512u

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, OOPSLA 2014). */
static uint64_t next(laws_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t laws_below(laws_random *random, uint32_t n)
{
    return (uint32_t)(next(random) % n);
}

bool laws_chance(laws_random *random, uint32_t percent)
{
    return laws_below(random, 100) < percent;
}

/* ---- a training step ----------------------------------------------------- */

typedef struct step_sketch {
    laws_builder builder;
    laws_random *random;
    bool streams; /* some ops run on a second stream */
    uint32_t n_forward[MOST_UNITS];
    uint32_t param[MOST_UNITS * MOST_OPS]; /* by forward op, or MS_NONE */
    uint32_t grad_of[MOST_STORAGES]; /* the gradient of a storage, or MS_NONE */
    uint32_t input;
} step_sketch;

static uint64_t random_bytes(laws_random *random)
{
    if (laws_chance(random, 5))
        return 0;
    uint64_t bytes = 1 + laws_below(random, 1000);
    return laws_chance(random, 30) ? bytes << 12 : bytes;
}

static uint64_t random_ns(laws_random *random)
{
    return laws_chance(random, 15) ? 0 : laws_below(random, 200);
}

static uint32_t add_storage(step_sketch *sketch, uint8_t category,
                            bool at_start)
{
    return laws_build_storage(&sketch->builder, random_bytes(sketch->random),
                              category, at_start);
}

static uint32_t add_op(step_sketch *sketch, uint8_t pass, uint32_t unit,
                       const uint32_t *in, uint32_t n_in, const uint32_t *out,
                       uint32_t n_out)
{
    uint32_t op =
        laws_build_op(&sketch->builder, pass, unit, random_ns(sketch->random),
                      in, n_in, out, n_out);
    if (sketch->streams && laws_chance(sketch->random, 25))
        sketch->builder.graph->op_stream[op] = MS_STREAM_COMM;
    return op;
}

static void add_persistent(step_sketch *sketch)
{
    laws_random *random = sketch->random;
    ms_graph *graph = sketch->builder.graph;
    bool keeps_grads = laws_chance(random, 20);
    uint32_t n_ops = 0;
    for (uint32_t u = 0; u < graph->n_units; u++)
        n_ops += sketch->n_forward[u];
    sketch->input = add_storage(sketch, MS_INPUTS, true);
    uint32_t buffer = add_storage(sketch, MS_PARAMETERS, true);
    graph->storage_buffer[buffer] = 1;
    for (uint32_t op = 0; op < n_ops; op++) {
        sketch->param[op] = MS_NONE;
        if (laws_chance(random, 50))
            continue;
        uint32_t param = add_storage(sketch, MS_PARAMETERS, true);
        uint32_t grad = add_storage(sketch, MS_GRADIENTS, keeps_grads);
        graph->storage_bytes[grad] = graph->storage_bytes[param];
        graph->storage_grad[param] = grad;
        add_storage(sketch, MS_OPTIMIZER_STATE, true);
        sketch->param[op] = param;
    }
    graph->n_persistent = graph->n_storages;
}

/* An op reads its predecessor's result, and sometimes older results. */
static uint32_t choose_inputs(step_sketch *sketch, uint32_t op, uint32_t *in)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t n = 0, made = graph->n_storages - graph->n_persistent;
    in[n++] = made ? graph->n_storages - 1 : sketch->input;
    for (int i = 0; i < 2 && made > 1; i++) {
        uint32_t s = graph->n_persistent + laws_below(sketch->random, made);
        if (laws_chance(sketch->random, 30) && s != in[0] && s != in[n - 1])
            in[n++] = s;
    }
    if (sketch->param[op] != MS_NONE)
        in[n++] = sketch->param[op];
    return n;
}

static void add_forward_op(step_sketch *sketch, uint32_t unit, uint8_t pass)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t in[8], out[3], n_out = 0;
    uint32_t n_in = choose_inputs(sketch, graph->n_ops, in);
    if (laws_chance(sketch->random, 15))
        out[n_out++] = add_storage(sketch, MS_WORKSPACE, false);
    if (laws_chance(sketch->random, 20))
        out[n_out++] = add_storage(sketch, MS_TEMPORARIES, false);
    out[n_out++] = add_storage(sketch, MS_TEMPORARIES, false);
    uint32_t op = add_op(sketch, pass, unit, in, n_in, out, n_out);
    if (laws_chance(sketch->random, 10))
        graph->op_flags[op] |= MS_OP_CORE;
}

static void add_forward(step_sketch *sketch)
{
    ms_graph *graph = sketch->builder.graph;
    for (uint32_t u = 0; u < graph->n_units; u++) {
        graph->forward_at[u] = graph->n_ops;
        uint8_t pass = u >= graph->loss_unit ? MS_LOSS : MS_FORWARD;
        for (uint32_t i = 0; i < sketch->n_forward[u]; i++)
            add_forward_op(sketch, u, pass);
        if (u + 1 == graph->loss_unit || u + 1 == graph->n_units)
            graph->kept[graph->n_kept++] = graph->n_storages - 1;
    }
    graph->forward_at[graph->n_units] = graph->n_ops;
}

/* Lets some variables live longer in the forward, as Python variables do. */
static void stretch_locals(step_sketch *sketch)
{
    ms_graph *graph = sketch->builder.graph;
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++) {
        uint32_t maker = graph->storage_maker[s];
        if (graph->storage_category[s] != MS_WORKSPACE &&
            laws_chance(sketch->random, 20))
            graph->storage_local_end[s] =
                maker + laws_below(sketch->random, graph->n_ops - maker);
    }
}

/* Adds the gradients of op's results to the inputs; returns their number. */
static uint32_t read_gradients(const step_sketch *sketch, uint32_t op,
                               uint32_t *in)
{
    const ms_graph *graph = sketch->builder.graph;
    uint32_t n = 0;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        if (sketch->grad_of[graph->out[i]] != MS_NONE)
            in[n++] = sketch->grad_of[graph->out[i]];
    return n;
}

/* A forward op saves a random part of what it reads and makes, and the backward
 * op that is made next reads it. */
static uint32_t read_saved(step_sketch *sketch, uint32_t op, uint32_t *in,
                           uint32_t n)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t saved[8], n_saved = 0;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        saved[n_saved++] = graph->in[i];
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        saved[n_saved++] = graph->out[i];
    for (uint32_t i = 0; i < n_saved && n < 5; i++) {
        uint32_t s = saved[i];
        if (s < graph->n_persistent || laws_chance(sketch->random, 50) ||
            graph->storage_category[s] == MS_WORKSPACE)
            continue;
        in[n++] = s;
        graph->storage_category[s] = MS_ACTIVATIONS;
        graph->storage_saved_end[s] = graph->n_ops;
    }
    return n;
}

/* Makes the gradients of what the op read, or adds to those that exist. */
static uint32_t make_gradients(step_sketch *sketch, uint32_t op, uint32_t *in,
                               uint32_t *n_in, uint32_t *out)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t n_out = 0;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i];
        if (s < graph->n_persistent)
            continue;
        if (sketch->grad_of[s] != MS_NONE)
            in[(*n_in)++] = sketch->grad_of[s];
        out[n_out] = add_storage(sketch, MS_TEMPORARIES, false);
        sketch->grad_of[s] = out[n_out++];
    }
    return n_out;
}

static void add_weight_gradient(step_sketch *sketch, uint32_t unit,
                                uint32_t param, uint32_t from)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t grad = graph->storage_grad[param];
    bool clones = laws_chance(sketch->random, 30);
    uint32_t buffer = laws_build_storage(
        &sketch->builder, graph->storage_bytes[grad],
        clones ? (uint8_t)MS_TEMPORARIES : MS_BECOMES_GRAD, false);
    if (!clones)
        graph->storage_grad[buffer] = grad;
    add_op(sketch, MS_GRAD_WEIGHT, unit, &from, 1, &buffer, 1);
    uint32_t op = add_op(sketch, MS_ACCUMULATE, unit, &buffer, 1, &grad, 1);
    if (clones)
        graph->op_flags[op] |= MS_OP_CLONES;
}

static void add_backward_op(step_sketch *sketch, uint32_t unit, uint32_t op)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t in[8], out[8];
    bool is_last = op + 1 == graph->forward_at[graph->n_units];
    uint32_t n_in = read_gradients(sketch, op, in);
    if (n_in == 0 && !is_last)
        return;
    n_in = read_saved(sketch, op, in, n_in);
    uint32_t n_out = make_gradients(sketch, op, in, &n_in, out);
    uint32_t own = add_op(sketch, MS_GRAD_INPUT, unit, in, n_in, out, n_out);
    if (sketch->param[op] != MS_NONE && n_out > 0)
        add_weight_gradient(sketch, unit, sketch->param[op],
                            graph->out[graph->out_at[own]]);
}

static void add_backward(step_sketch *sketch)
{
    ms_graph *graph = sketch->builder.graph;
    for (uint32_t s = 0; s < MOST_STORAGES; s++)
        sketch->grad_of[s] = MS_NONE;
    graph->backward_at[graph->n_units] = graph->n_ops;
    for (uint32_t u = graph->n_units; u-- > 0;) {
        for (uint32_t op = graph->forward_at[u + 1];
             op-- > graph->forward_at[u];)
            add_backward_op(sketch, u, op);
        graph->backward_at[u] = graph->n_ops;
    }
}

static uint32_t unit_of_param(const step_sketch *sketch, uint32_t param)
{
    const ms_graph *graph = sketch->builder.graph;
    uint32_t op = 0;
    while (sketch->param[op] != param)
        op++;
    return graph->op_unit[op];
}

/* What an op of the step makes for itself is read for weights of the same unit
 * alone: another unit may be another rank's. */
static void add_step(step_sketch *sketch)
{
    ms_graph *graph = sketch->builder.graph;
    uint32_t scratch = MS_NONE, of = MS_NONE;
    graph->step_first = graph->n_ops;
    for (uint32_t p = 0; p < graph->n_persistent; p++) {
        uint32_t grad = graph->storage_grad[p], n = 0, in[4];
        if (grad == MS_NONE || graph->storage_maker[grad] == MS_NONE)
            continue;
        in[n++] = p;
        in[n++] = grad;
        in[n++] = grad + 1; /* optimizer state */
        uint32_t unit = unit_of_param(sketch, p);
        bool reads = scratch != MS_NONE && laws_chance(sketch->random, 50);
        if (reads && unit == of)
            in[n++] = scratch;
        of = unit;
        scratch = add_storage(sketch, MS_TEMPORARIES, false);
        add_op(sketch, MS_STEP, MS_NONE, in, n, &scratch, 1);
    }
}

void laws_graph(laws_random *random, ms_arena *arena, ms_graph *graph)
{
    step_sketch sketch = {.random = random, .streams = laws_chance(random, 25)};
    uint32_t n_units = 2 + laws_below(random, MOST_UNITS - 1);
    laws_build_open(&sketch.builder, graph, arena, MOST_STORAGES, MOST_PLAN_OPS,
                    n_units);
    graph->loss_unit = n_units - 1;
    graph->keep_to_step = laws_chance(random, 30);
    graph->tokens = laws_below(random, 1000);
    for (uint32_t u = 0; u < n_units; u++)
        sketch.n_forward[u] = 1 + laws_below(random, MOST_OPS);
    add_persistent(&sketch);
    add_forward(&sketch);
    stretch_locals(&sketch);
    add_backward(&sketch);
    add_step(&sketch);
    laws_build_close(&sketch.builder);
}

/* ---- choices ------------------------------------------------------------- */

void laws_keep(laws_random *random, const ms_graph *graph, ms_arena *arena,
               ms_keep *keep)
{
    ms_fault fault = {0};
    ck_assert_int_eq(ms_program_keep_all(graph, arena, keep, &fault), MS_OK);
    uint32_t gone = laws_below(random, 101), segments = laws_below(random, 101);
    keep->early_stop = laws_chance(random, 50);
    keep->reentrant = laws_chance(random, 30);
    for (uint32_t u = 0, segment = 0; u < graph->n_units; u++) {
        if (laws_chance(random, 40))
            segment++;
        if (laws_chance(random, segments))
            keep->segment[u] = segment;
    }
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++) {
        if (graph->storage_saved_end[s] == MS_NONE)
            continue;
        uint32_t unit = graph->op_unit[graph->storage_maker[s]];
        if (laws_chance(random, keep->segment[unit] != MS_NONE ? 90 : gone))
            keep->place[s] = MS_GONE;
    }
}

static bool is_made_by(const ms_graph *graph, uint32_t storage, uint32_t unit)
{
    return graph->op_unit[graph->storage_maker[storage]] == unit;
}

/* Behind a unit's forward, moves some of what it saved to host memory. */
static void add_move(laws_random *random, const ms_graph *graph,
                     const ms_call *after, ms_arena *arena, ms_program *program)
{
    ms_fault fault = {0};
    uint32_t list[MOST_STORAGES], n = 0;
    ms_call call = ms_program_call(MS_MOVE);
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (graph->storage_saved_end[s] != MS_NONE &&
            is_made_by(graph, s, after->unit) && laws_chance(random, 40))
            list[n++] = s;
    bool disk = laws_chance(random, 20);
    call.move.to = disk ? MS_NVME : MS_HOST;
    call.move.later = !disk && laws_chance(random, 50);
    call.move.in_line = laws_chance(random, 20);
    call.move.pageable = laws_chance(random, 20);
    call.micro_batch = after->micro_batch;
    ck_assert_int_eq(
        ms_program_add_set(program, list, n, arena, &call.set, &fault), MS_OK);
    ck_assert_int_eq(ms_program_add(program, call, arena, &fault), MS_OK);
    if (!laws_chance(random, 10))
        return;
    ms_call sync = ms_program_call(MS_SYNC);
    sync.micro_batch = after->micro_batch;
    sync.sync.compute = laws_chance(random, 50);
    ck_assert_int_eq(ms_program_add(program, sync, arena, &fault), MS_OK);
}

/* Waits for some storages or brings them back, whether they were moved or not.
 */
static void add_wait(laws_random *random, const ms_call *after, ms_arena *arena,
                     ms_program *program)
{
    ms_fault fault = {0};
    bool waits = laws_chance(random, 60);
    ms_call call = ms_program_call(waits ? MS_WAIT : MS_MOVE);
    if (program->n_sets == 0)
        return;
    call.micro_batch = after->micro_batch;
    call.set = laws_below(random, program->n_sets);
    ck_assert_int_eq(ms_program_add(program, call, arena, &fault), MS_OK);
}

void laws_moves(laws_random *random, const ms_graph *graph, ms_arena *arena,
                ms_program *program)
{
    ms_fault fault = {0};
    ms_program old = *program;
    const ms_call *calls = old.calls;
    ck_assert_int_eq(ms_program_fork(&old, arena, program, &fault), MS_OK);
    for (uint32_t i = 0; i < old.n_calls; i++) {
        ck_assert_int_eq(ms_program_add(program, calls[i], arena, &fault),
                         MS_OK);
        if (calls[i].verb == MS_RUN && calls[i].run.pass == MS_FORWARD &&
            laws_chance(random, 50))
            add_move(random, graph, &calls[i], arena, program);
        else if (calls[i].verb == MS_RUN && laws_chance(random, 40))
            add_wait(random, &calls[i], arena, program);
    }
}

/* ---- shared states ------------------------------------------------------- */

void laws_share(laws_random *random, ms_graph *graph, ms_arena *arena)
{
    graph->storage_shard_bytes =
        ms_arena_take(arena, graph->n_persistent, sizeof(uint64_t));
    ck_assert_ptr_nonnull(graph->storage_shard_bytes);
    if (laws_chance(random, 50)) {
        graph->storage_shard_group =
            ms_arena_take(arena, graph->n_persistent, 1);
        ck_assert_ptr_nonnull(graph->storage_shard_group);
    }
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        if (graph->storage_shard_group && laws_chance(random, 30))
            graph->storage_shard_group[s] = MS_GROUP_EXPERT_DATA;
        graph->storage_shard_bytes[s] = MS_UNSHARED;
        bool state = graph->storage_category[s] == MS_GRADIENTS ||
                     (graph->storage_category[s] == MS_PARAMETERS &&
                      !graph->storage_buffer[s]);
        if (state && laws_chance(random, 70))
            graph->storage_shard_bytes[s] =
                laws_chance(random, 10) ? 0 : (graph->storage_bytes[s] + 3) / 4;
    }
}

static void add_collective(laws_random *random, const ms_graph *graph,
                           const ms_call *after, ms_arena *arena,
                           ms_program *program)
{
    static const ms_verb verbs[] = {MS_GATHER, MS_MOVE, MS_REDUCE};
    ms_fault fault = {0};
    uint32_t list[MOST_STORAGES], n = 0;
    ms_call call = ms_program_call(verbs[laws_below(random, 3)]);
    uint8_t category = call.verb == MS_REDUCE ? MS_GRADIENTS : MS_PARAMETERS;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (graph->storage_category[s] == category && laws_chance(random, 40))
            list[n++] = s;
    bool whole = call.verb == MS_REDUCE && laws_chance(random, 20);
    if (call.verb == MS_MOVE)
        call.move.to = MS_SHARD;
    if (call.verb == MS_REDUCE)
        call.reduce.to = whole ? MS_HERE : MS_SHARD;
    if (call.verb == MS_GATHER) {
        call.gather.ahead = laws_chance(random, 50);
        call.gather.limit = laws_chance(random, 30);
    }
    uint8_t group = (uint8_t)laws_below(random, MS_N_GROUP_ROLES);
    if (call.verb == MS_GATHER && laws_chance(random, 30))
        call.gather.group = group;
    if (call.verb == MS_REDUCE) {
        call.reduce.exchange = laws_chance(random, 20);
        call.reduce.group = laws_chance(random, 40) ? group : MS_GROUP_DATA;
    }
    call.micro_batch = after->micro_batch;
    ck_assert_int_eq(
        ms_program_add_set(program, list, n, arena, &call.set, &fault), MS_OK);
    ck_assert_int_eq(ms_program_add(program, call, arena, &fault), MS_OK);
}

void laws_collectives(laws_random *random, const ms_graph *graph,
                      ms_arena *arena, ms_program *program)
{
    ms_fault fault = {0};
    ms_program old = *program;
    const ms_call *calls = old.calls;
    ck_assert_int_eq(ms_program_fork(&old, arena, program, &fault), MS_OK);
    for (uint32_t i = 0; i < old.n_calls; i++) {
        ck_assert_int_eq(ms_program_add(program, calls[i], arena, &fault),
                         MS_OK);
        if (calls[i].verb == MS_RUN && laws_chance(random, 60))
            add_collective(random, graph, &calls[i], arena, program);
    }
}

/* ---- work of the program's own ------------------------------------------- */

#define N_TASKS 12u

/* Makes a task for each unit and stream in turn; some have nothing to do. */
static void add_tasks(laws_random *random, ms_arena *arena, ms_program *program)
{
    static const uint32_t most[MS_N_TASK_UNITS] = {
        [MS_TASK_NS] = 300, [MS_TASK_FLOPS] = 500000, [MS_TASK_BYTES] = 5000};
    ms_fault fault = {0};
    uint32_t stream = laws_below(random, MS_N_STREAMS), row;
    for (uint32_t i = 0; i < N_TASKS; i++) {
        ms_task task = {.name = "task",
                        .unit = (uint8_t)laws_below(random, MS_N_TASK_UNITS),
                        .stream = (uint8_t)((stream + i) % MS_N_STREAMS)};
        if (!laws_chance(random, 10))
            task.amount = laws_below(random, most[task.unit]);
        ck_assert_int_eq(
            ms_program_add_task(program, task, arena, &row, &fault), MS_OK);
    }
}

/* Adds a WORK call whose set is of storages that are there, of others, or
 * empty. */
static void add_work(laws_random *random, const ms_graph *graph,
                     const ms_call *after, ms_arena *arena, ms_program *program)
{
    ms_fault fault = {0};
    uint32_t list[MOST_STORAGES], n = 0;
    ms_call call = ms_program_call_like(MS_WORK, after);
    uint32_t percent = laws_below(random, 20);
    for (uint32_t s = 0; s < graph->n_storages; s++)
        if (laws_chance(random, percent))
            list[n++] = s;
    if (n > 0)
        ck_assert_int_eq(
            ms_program_add_set(program, list, n, arena, &call.set, &fault),
            MS_OK);
    call.work.task = laws_below(random, program->n_tasks);
    ck_assert_int_eq(ms_program_add(program, call, arena, &fault), MS_OK);
}

void laws_work(laws_random *random, const ms_graph *graph, ms_arena *arena,
               ms_program *program)
{
    ms_fault fault = {0};
    ms_program old = *program;
    ck_assert_int_eq(ms_program_fork(&old, arena, program, &fault), MS_OK);
    add_tasks(random, arena, program);
    for (uint32_t i = 0; i < old.n_calls; i++) {
        ck_assert_int_eq(ms_program_add(program, old.calls[i], arena, &fault),
                         MS_OK);
        if (laws_chance(random, 25))
            add_work(random, graph, &old.calls[i], arena, program);
    }
}

/* ---- the uniform chain --------------------------------------------------- */

void laws_chain(uint32_t n, uint64_t unit_bytes, ms_arena *arena,
                ms_graph *graph)
{
    laws_builder builder;
    laws_build_open(&builder, graph, arena, 2 * n + 4, 2 * n + 4, n + 1);
    uint32_t at = laws_build_storage(&builder, unit_bytes, MS_INPUTS, true);
    graph->n_persistent = 1;
    graph->loss_unit = n;
    for (uint32_t u = 0; u < n; u++) {
        uint32_t out =
            laws_build_storage(&builder, unit_bytes, MS_ACTIVATIONS, false);
        graph->forward_at[u] =
            laws_build_op(&builder, MS_FORWARD, u, 10, &at, 1, &out, 1);
        at = out;
    }
    uint32_t loss = laws_build_storage(&builder, 1, MS_ACTIVATIONS, false);
    graph->forward_at[n] =
        laws_build_op(&builder, MS_LOSS, n, 0, &at, 1, &loss, 1);
    graph->unit_block[n] = MS_NONE;
    graph->n_blocks = n;
    graph->kept[graph->n_kept++] = at;
    graph->kept[graph->n_kept++] = loss;
    graph->forward_at[n + 1] = graph->backward_at[n + 1] = graph->n_ops;
    uint32_t delta =
        laws_build_storage(&builder, unit_bytes, MS_TEMPORARIES, false);
    laws_build_op(&builder, MS_GRAD_INPUT, n, 0, &loss, 1, &delta, 1);
    graph->storage_saved_end[loss] = graph->n_ops - 1;
    graph->backward_at[n] = graph->n_ops;
    for (uint32_t u = n; u-- > 0;) {
        uint32_t in[] = {delta, u}; /* a_u is storage u */
        delta = laws_build_storage(&builder, unit_bytes, MS_TEMPORARIES, false);
        if (u > 0)
            graph->storage_saved_end[u] = graph->n_ops;
        laws_build_op(&builder, MS_GRAD_INPUT, u, 20, in, 2, &delta, 1);
        graph->backward_at[u] = graph->n_ops;
    }
    graph->step_first = graph->n_ops;
    laws_build_close(&builder);
}
