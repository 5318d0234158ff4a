/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"

#include <check.h>
#include <string.h>

uint64_t laws_seed;

uint64_t laws_exchanged(const ms_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfers[i].kind == MS_TRANSFER_MEETING)
            bytes += plan->transfers[i].bytes;
    return bytes;
}

uint64_t laws_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- rows ---------------------------------------------------------------- */

enum { UNBORN, ALIVE, DEAD };

typedef struct row_walk {
    const ms_plan *plan;
    const ms_graph *graph;
    uint8_t *state; /* by row */
    uint32_t
        *alive;    /* device rows of a storage; of .grad: and what became it */
    uint32_t *far; /* by storage: rows in host memory or on the disk */
    uint64_t level_bytes;
    uint16_t rank; /* the rank whose ops and rows are checked */
} row_walk;

/* Counts a row for its storage; a gradient's buffer that has become .grad is
 * counted for .grad, too. */
static void count_row(row_walk *walk, uint32_t row, uint32_t change)
{
    const ms_plan *plan = walk->plan;
    uint32_t s = plan->row[row].storage;
    if (plan->row[row].pool != MS_DEVICE_POOL) {
        if (s != MS_NONE)
            walk->far[s] += change;
        return;
    }
    uint64_t bytes = plan->row[row].bytes;
    walk->level_bytes += change == 1 ? bytes : 0 - bytes;
    if (s == MS_NONE) /* a buffer that the program made */
        return;
    walk->alive[s] += change;
    uint8_t category = plan->row[row].category;
    if (walk->graph->storage_category[s] == MS_BECOMES_GRAD &&
        (category == MS_GRADIENTS || category == MS_COMMUNICATION))
        walk->alive[walk->graph->storage_grad[s]] += change;
}

/* Is a storage that an op reads in the memory that the op reads? Ops on the
 * host's cores read host memory; copies read any memory. */
static bool is_there(const row_walk *walk, uint8_t stream, uint32_t s)
{
    if (stream == MS_STREAM_HOST)
        return walk->far[s] > 0;
    return walk->alive[s] > 0 ||
           (stream != MS_STREAM_COMPUTE && walk->far[s] > 0);
}

/* Is the row in the format that the storage has in the other memory (for
 * example fp32 on the host)? */
static bool is_far_copy(const row_walk *walk, const ms_row *row)
{
    const uint64_t *far = walk->graph->storage_far_bytes;
    return row->pool != MS_DEVICE_POOL && far != NULL &&
           row->storage < walk->graph->n_persistent &&
           row->bytes == far[row->storage];
}

/* Does the row have the bytes of a saved tensor, as a hook packs and unpacks
 * it? It may be a view of less than the storage. */
static bool is_save(const row_walk *walk, const ms_row *row)
{
    for (uint32_t i = 0; i < walk->graph->n_saves; i++)
        if (walk->graph->saves[i].storage == row->storage &&
            walk->graph->saves[i].bytes == row->bytes)
            return true;
    return false;
}

/* The least bytes of a storage that a rank holds: its shard where it is shared.
 */
static uint64_t least_bytes(const ms_graph *graph, uint32_t s)
{
    bool shared = graph->storage_shard_bytes != NULL &&
                  s < graph->n_persistent &&
                  graph->storage_shard_bytes[s] != MS_UNSHARED;
    return shared ? graph->storage_shard_bytes[s] : graph->storage_bytes[s];
}

/* Does what comes from another rank lie in a buffer that is there? */
static bool is_in_room(const row_walk *walk, const ms_row *row)
{
    if (row->bytes > 0 || walk->plan->op[row->op].of != MS_NONE)
        return false;
    for (uint32_t r = 0; r < walk->plan->n_rows; r++)
        if (walk->plan->row[r].storage == MS_NONE && walk->state[r] == ALIVE &&
            walk->plan->row[r].bytes >=
                walk->graph->storage_bytes[row->storage])
            return true;
    return false;
}

static uint64_t check_inputs(const row_walk *walk, uint32_t op, uint32_t of)
{
    const ms_graph *graph = walk->graph;
    uint64_t bytes = 0;
    for (uint32_t i = graph->in_at[of]; i < graph->in_at[of + 1]; i++) {
        uint32_t s = graph->in[i];
        uint8_t stream = graph->op_stream[of];
        HOLDS(is_there(walk, stream, s),
              "plan op %u (graph op %u) reads storage %u", op, of, s);
        if (stream != MS_STREAM_COMPUTE)
            continue;
        bool again = false;
        for (uint32_t k = graph->in_at[of]; k < i; k++)
            again |= graph->in[k] == s;
        bytes += again ? 0 : least_bytes(graph, s);
    }
    return bytes;
}

static void check_bytes(const row_walk *walk, uint32_t r)
{
    const ms_row *row = &walk->plan->row[r];
    if (row->storage == MS_NONE)
        return;
    HOLDS(row->bytes == walk->graph->storage_bytes[row->storage] ||
              row->bytes == least_bytes(walk->graph, row->storage) ||
              is_far_copy(walk, row) || is_save(walk, row) ||
              is_in_room(walk, row),
          "row %u", r);
}

static void check_op(row_walk *walk, uint32_t op)
{
    const ms_plan *plan = walk->plan;
    uint32_t of = plan->op[op].of;
    uint64_t touched_bytes = of == MS_NONE ? 0 : check_inputs(walk, op, of);
    for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
         r++) {
        HOLDS(walk->state[r] == UNBORN && plan->row[r].op == op, "row %u", r);
        HOLDS(plan->op[op].rank == walk->rank, "row %u", r);
        check_bytes(walk, r);
        walk->state[r] = ALIVE;
        count_row(walk, r, 1);
        if (of != MS_NONE && plan->row[r].pool == MS_DEVICE_POOL)
            touched_bytes += plan->row[r].bytes;
    }
    HOLDS(touched_bytes <= walk->level_bytes, "plan op %u", op);
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
        HOLDS(walk->state[plan->use[i]] == ALIVE, "op %u uses row %u", op,
              plan->use[i]);
    for (uint32_t i = plan->op[op].release_at; i < plan->op[op + 1].release_at;
         i++) {
        uint32_t r = plan->release[i];
        HOLDS(walk->state[r] == ALIVE, "op %u releases row %u", op, r);
        HOLDS(plan->op[plan->row[r].op].rank == walk->rank, "row %u", r);
        walk->state[r] = DEAD;
        count_row(walk, r, UINT32_MAX);
    }
}

/* Is the row in another memory than its storage's home? */
static bool leaves(const ms_plan *plan, uint32_t r)
{
    const ms_graph *graph = plan->graph;
    uint32_t s = plan->row[r].storage;
    if (graph->storage_category[s] == MS_BECOMES_GRAD)
        s = graph->storage_grad[s];
    return plan->row[r].pool != (graph->storage_pool != NULL
                                     ? graph->storage_pool[s]
                                     : MS_DEVICE_POOL);
}

/* The op after which a .grad ends, or MS_NONE: an op of the step, or in the
 * backward the op that makes it anew or updates with it. *s becomes the .grad
 * where it was the buffer that became it. */
static uint32_t end_of(const ms_graph *graph, uint32_t *s)
{
    if (graph->storage_category[*s] == MS_BECOMES_GRAD)
        *s = graph->storage_grad[*s];
    return *s < graph->n_persistent ? graph->storage_local_end[*s] : MS_NONE;
}

/* Does forward make the gradient? Then it may be saved elsewhere until
 * backward. */
static bool is_made_early(const ms_graph *graph, uint32_t s)
{
    return graph->storage_category[s] == MS_BECOMES_GRAD &&
           graph->storage_maker[s] < graph->backward_at[graph->n_units];
}

/* A gathered copy that stays beside the shard: the update makes it anew from
 * the shards, so it need not be the same row at the end. */
static bool is_whole_copy(const ms_plan *plan, uint32_t r)
{
    const ms_graph *graph = plan->graph;
    uint32_t s = plan->row[r].storage;
    return graph->storage_whole != NULL && s < graph->n_persistent &&
           graph->storage_whole[s] &&
           plan->row[r].bytes == graph->storage_bytes[s];
}

/* Checks that the row is alive at the end if and only if it must be. */
static void check_end(const row_walk *walk, uint32_t r)
{
    const ms_plan *plan = walk->plan;
    uint8_t category = plan->row[r].category;
    uint32_t s = plan->row[r].storage;
    /* a gathered state, or a gradient that is not yet reduced */
    if (category == MS_COMMUNICATION || s == MS_NONE || is_whole_copy(plan, r))
        return;
    uint32_t grad = s, end = end_of(plan->graph, &grad);
    bool updated = end != MS_NONE && plan->graph->op_pass[end] == MS_STEP;
    if ((end < plan->graph->step_first && !updated) ||
        is_made_early(plan->graph, s)) {
        HOLDS(walk->alive[grad] == 1, "storage %u", grad);
        return;
    }
    bool stays = plan->graph->storage_at_start[s] || category == MS_GRADIENTS;
    stays = stays && !leaves(plan, r) && end == MS_NONE;
    if (category == MS_ACTIVATIONS) /* a copy of what a node saved */
        stays = false;
    HOLDS(walk->state[r] == (stays ? ALIVE : DEAD),
          "row %u of storage %u, category %u, at the end", r, s, category);
}

void laws_check_rows(const ms_plan *plan)
{
    ms_arena arena = {0};
    uint8_t *state = laws_take(&arena, plan->n_rows, 1);
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        row_walk walk = {.plan = plan,
                         .graph = plan->graph,
                         .state = state,
                         .rank = (uint16_t)rank};
        walk.alive =
            laws_take(&arena, plan->graph->n_storages, sizeof(uint32_t));
        walk.far = laws_take(&arena, plan->graph->n_storages, sizeof(uint32_t));
        for (uint32_t op = 0; op < plan->n_ops; op++)
            if (plan->op[op].rank == rank)
                check_op(&walk, op);
        for (uint32_t r = 0; r < plan->n_rows; r++)
            if (plan->op[plan->row[r].op].rank == rank)
                check_end(&walk, r);
    }
    ms_arena_free(&arena);
}

/* ---- the clock ----------------------------------------------------------- */

/* The clock of one rank. */
typedef struct clock_walk {
    const ms_plan *plan;
    const ms_timeline *line;
    uint64_t free_ns[MS_N_STREAMS], all_ns, host_ns;
    uint16_t rank;
} clock_walk;

/* Passes the rank's syncs that stand before op. Op may be another rank's; then
 * the host waits before its own next op. */
static void wait_for_syncs(clock_walk *walk, uint32_t op)
{
    const ms_plan *plan = walk->plan;
    for (uint32_t k = 0; k < plan->n_sync; k++) {
        uint32_t until = plan->sync[k].until;
        if (plan->sync[k].op != op || plan->sync[k].rank != walk->rank)
            continue;
        HOLDS(until == MS_NONE || plan->op[until].rank == walk->rank, "sync %u",
              k);
        walk->host_ns = laws_larger(
            walk->host_ns,
            until == MS_NONE ? walk->all_ns : walk->line->end_ns[until]);
    }
}

static void check_start(const clock_walk *walk, uint32_t op, uint64_t start_ns)
{
    const ms_plan *plan = walk->plan;
    const ms_timeline *line = walk->line;
    uint64_t free_ns = walk->free_ns[plan->op[op].stream];
    for (uint32_t i = plan->wait_at ? plan->wait_at[op] : 0;
         plan->wait_at && i < plan->wait_at[op + 1]; i++)
        start_ns = laws_larger(start_ns, line->end_ns[plan->wait[i]]);
    HOLDS(line->start_ns[op] == start_ns, "op %u starts at %llu, not %llu", op,
          (unsigned long long)line->start_ns[op], (unsigned long long)start_ns);
    HOLDS((line->gap_cause[op] == MS_GAP_NONE) == (start_ns == free_ns),
          "op %u", op);
}

/* An op of no length launches no kernel, so the host goes on at once. How much
 * longer an op takes while others run is checked in test_clock.c. */
static uint64_t check_rank_clock(clock_walk *walk, const ms_machine *machine,
                                 bool varies)
{
    const ms_plan *plan = walk->plan;
    const ms_timeline *line = walk->line;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint8_t stream = plan->op[op].stream;
        if (plan->n_sync > 0)
            wait_for_syncs(walk, op);
        if (plan->op[op].rank != walk->rank)
            continue;
        if (plan->op[op].ns > 0 &&
            (machine->recorded >> plan->op[op].pass & 1u) == 0)
            walk->host_ns +=
                machine->launch_ns + machine->framework_ns[plan->op[op].pass];
        check_start(walk, op,
                    laws_larger(walk->free_ns[stream], walk->host_ns));
        uint64_t least_ns = line->start_ns[op] + plan->op[op].ns;
        HOLDS(varies ? line->end_ns[op] >= least_ns
                     : line->end_ns[op] == least_ns,
              "op %u", op);
        walk->free_ns[stream] = line->end_ns[op];
        walk->all_ns = laws_larger(walk->all_ns, line->end_ns[op]);
    }
    return walk->all_ns;
}

void laws_framework(ms_machine *machine)
{
    for (uint32_t pass = 0; pass < MS_N_PASSES; pass++)
        machine->framework_ns[pass] =
            (uint32_t)(machine->launch_ns * (pass % 4 + 1) / 2);
    machine->recorded = (uint32_t)(machine->launch_ns * 7 % 512);
}

void laws_check_clock(const ms_plan *plan, const ms_timeline *line,
                      const ms_machine *machine)
{
    static const ms_machine none;
    uint64_t all_ns = 0;
    bool varies = memcmp(machine->demand, none.demand, sizeof none.demand) != 0;
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        clock_walk walk = {.plan = plan, .line = line, .rank = (uint16_t)rank};
        all_ns = laws_larger(all_ns, check_rank_clock(&walk, machine, varies));
    }
    HOLDS(line->step_ns == all_ns, "%llu", (unsigned long long)all_ns);
}

/* ---- everything kept ----------------------------------------------------- */

/* The number of references of each storage when everything is kept: it follows
 * from the drop lists and the training loop's variables alone, without the code
 * under test. */
typedef struct template_walk {
    const ms_graph *graph;
    uint32_t *references;
    uint64_t level_bytes;
    /* of variables that the op assigns anew, while the old value is still there
     */
    uint64_t rebound_bytes;
    uint64_t *after_alloc, *after_drops; /* by issued op; 0 is the start */
    uint32_t n;
    uint8_t *lives; /* .grad exists */
} template_walk;

static void end_one(template_walk *walk, uint32_t s)
{
    if (walk->references[s] > 0 && --walk->references[s] == 0)
        walk->level_bytes -= walk->graph->storage_bytes[s];
}

static void end_kept(template_walk *walk)
{
    for (uint32_t i = 0; i < walk->graph->n_kept; i++)
        end_one(walk, walk->graph->kept[i]);
    walk->after_drops[walk->n - 1] = walk->level_bytes;
}

static bool is_kept(const ms_graph *graph, uint32_t s)
{
    for (uint32_t i = 0; i < graph->n_kept; i++)
        if (graph->kept[i] == s)
            return true;
    return false;
}

static void make(template_walk *walk, uint32_t s)
{
    const ms_graph *graph = walk->graph;
    walk->level_bytes += graph->storage_bytes[s];
    if (walk->references[s] > 0)
        walk->rebound_bytes += graph->storage_bytes[s];
    walk->references[s] = is_kept(graph, s);
    if (graph->storage_local_end[s] != MS_NONE)
        walk->references[s]++;
    if (graph->storage_saved_end[s] != MS_NONE)
        walk->references[s]++;
}

/* Autograd may take a gradient's buffer as .grad instead of copying it: then no
 * kernel runs. False: it copies or adds. */
static bool steal(template_walk *walk, uint32_t op)
{
    const ms_graph *graph = walk->graph;
    uint32_t grad = graph->out[graph->out_at[op]];
    if (walk->lives[grad] || (graph->op_flags[op] & MS_OP_CLONES))
        return false;
    walk->lives[grad] = 1;
    walk->references[graph->in[graph->in_at[op]]] = 0;
    return true;
}

static void run_template_op(template_walk *walk, uint32_t op)
{
    const ms_graph *graph = walk->graph;
    bool accumulates = graph->op_pass[op] == MS_ACCUMULATE;
    bool stolen = accumulates && steal(walk, op);
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        if (!accumulates)
            make(walk, s);
        else if (!stolen && !walk->lives[s]) {
            walk->level_bytes += graph->storage_bytes[s];
            walk->lives[s] = 1;
        }
    }
    if (!stolen)
        walk->after_alloc[walk->n++] = walk->level_bytes;
    walk->level_bytes -= walk->rebound_bytes;
    walk->rebound_bytes = 0;
    for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++)
        end_one(walk, MS_DROP_STORAGE(graph->drop[i]));
    walk->after_drops[walk->n - 1] = walk->level_bytes;
}

static void compare_template(const template_walk *walk, const ms_plan *plan)
{
    uint64_t level_bytes = 0;
    HOLDS(plan->n_ops == walk->n, "%u ops in the template", walk->n);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            level_bytes += plan->row[r].bytes;
        HOLDS(level_bytes == walk->after_alloc[op], "op %u", op);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            level_bytes -= plan->row[plan->release[i]].bytes;
        HOLDS(level_bytes == walk->after_drops[op], "op %u", op);
    }
}

static void run_template(template_walk *walk, uint32_t micro_batches)
{
    const ms_graph *graph = walk->graph;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (graph->storage_at_start[s]) {
            walk->lives[s] = 1;
            walk->level_bytes += graph->storage_bytes[s];
        }
    walk->after_alloc[0] = walk->after_drops[0] = walk->level_bytes;
    walk->n = 1;
    for (uint32_t m = 0; m < micro_batches; m++) {
        for (uint32_t op = 0; op < graph->step_first; op++)
            run_template_op(walk, op);
        if (!graph->keep_to_step)
            end_kept(walk);
    }
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++)
        run_template_op(walk, op);
    if (graph->keep_to_step)
        end_kept(walk);
}

void laws_check_template(const ms_graph *graph, const ms_plan *plan,
                         uint32_t micro_batches)
{
    ms_arena arena = {0};
    size_t most = (size_t)graph->n_ops * micro_batches + 1;
    template_walk walk = {.graph = graph};
    walk.references = laws_take(&arena, graph->n_storages, sizeof(uint32_t));
    walk.lives = laws_take(&arena, graph->n_storages, 1);
    walk.after_alloc = laws_take(&arena, most, sizeof(uint64_t));
    walk.after_drops = laws_take(&arena, most, sizeof(uint64_t));
    run_template(&walk, micro_batches);
    compare_template(&walk, plan);
    ms_arena_free(&arena);
}
