/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The oracle of the WORK verb: it finds the op that each call of a program of
 * one rank became, and checks it. */
#include "sim/graph.h"
#include "sim/measure/waits.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/asserts.h"

#include <check.h>
#include <math.h>
#include <string.h>

typedef struct work_walk {
    const ms_plan *plan, *without;
    const ms_expand_opts *opts;
    const ms_program *program;
    const ms_call **call; /* the WORK calls, in order */
    uint32_t n;
    ms_arena arena;
} work_walk;

static const ms_task *task_of(const work_walk *walk, uint32_t k)
{
    return &walk->program->tasks[walk->call[k]->work.task];
}

/* The amount that a stream does in a second; 0: any amount takes no time. */
static double rate_of(const ms_expand_opts *opts, const ms_task *task)
{
    if (task->unit == MS_TASK_NS)
        return 1e9;
    if (task->unit == MS_TASK_FLOPS)
        return opts->flops_per_s;
    switch ((ms_stream_kind)task->stream) {
    case MS_STREAM_H2D:
        return opts->h2d_bytes_per_s;
    case MS_STREAM_D2H:
        return opts->d2h_bytes_per_s;
    case MS_STREAM_HOST:
        return opts->host_bytes_per_s;
    case MS_STREAM_NVME_READ:
        return opts->nvme_read_bytes_per_s;
    case MS_STREAM_NVME_WRITE:
        return opts->nvme_write_bytes_per_s;
    default:
        return opts->hbm_bytes_per_s;
    }
}

/* Is ns the amount over the rate, rounded to the nearest? It is checked by
 * multiplication, not by the division of the code under test. */
static bool lasts(const ms_expand_opts *opts, const ms_task *task, uint64_t ns)
{
    double rate = rate_of(opts, task), amount = (double)task->amount;
    if (rate == 0)
        return ns == 0;
    return fabs((double)ns * rate - amount * 1e9) <= rate * 0.500001;
}

static bool is_of(const ms_plan *plan, uint32_t row, uint32_t storage)
{
    const ms_graph *graph = plan->graph;
    uint32_t s = plan->row[row].storage;
    return s == storage ||
           (s != MS_NONE && graph->storage_category[s] == MS_BECOMES_GRAD &&
            graph->storage_grad[s] == storage);
}

static bool is_in(const work_walk *walk, uint32_t k, uint32_t row)
{
    const ms_program *program = walk->program;
    uint32_t set = walk->call[k]->set;
    for (uint32_t i = set == MS_NOTHING ? 1 : program->set_at[set];
         set != MS_NOTHING && i < program->set_at[set + 1]; i++)
        if (is_of(walk->plan, row, program->set_item[i]))
            return true;
    return false;
}

/* Can op be the k-th WORK call? */
static bool is_work(const work_walk *walk, uint32_t op, uint32_t k)
{
    const ms_plan_op *it = &walk->plan->op[op];
    const ms_task *task = task_of(walk, k);
    for (uint32_t i = walk->plan->use_at[op]; i < walk->plan->use_at[op + 1];
         i++)
        if (!is_in(walk, k, walk->plan->use[i]))
            return false;
    return it->of == MS_NONE && it->pass == MS_COPY &&
           it->stream == task->stream &&
           it->micro_batch == walk->call[k]->micro_batch &&
           it->alloc_at == it[1].alloc_at && lasts(walk->opts, task, it->ns);
}

static uint32_t n_uses(const ms_plan *plan, uint32_t op)
{
    return plan->use_at[op + 1] - plan->use_at[op];
}

static bool is_same(const work_walk *walk, uint32_t op, uint32_t other)
{
    const ms_plan_op *a = &walk->plan->op[op], *b = &walk->without->op[other];
    return a->of == b->of && a->pass == b->pass && a->stream == b->stream &&
           n_uses(walk->plan, op) == n_uses(walk->without, other) &&
           a->ns == b->ns && a->micro_batch == b->micro_batch &&
           a[1].alloc_at - a->alloc_at == b[1].alloc_at - b->alloc_at;
}

/* Finds which ops may be WORK calls by comparing with the plan without them:
 * can[op * (n + 1) + k] says that the ops before op can be k WORK calls and op
 * - k ops of that plan. Ops may look alike, so all alignments are followed. */
static uint8_t *align(work_walk *walk)
{
    size_t width = (size_t)walk->n + 1;
    uint32_t n_ops = walk->plan->n_ops;
    uint8_t *can = laws_take(&walk->arena, (n_ops + 1) * width, 1);
    can[0] = 1;
    for (uint32_t op = 0; op < n_ops; op++)
        for (uint32_t k = 0; k <= walk->n && k <= op; k++) {
            if (!can[op * width + k])
                continue;
            if (op - k < walk->without->n_ops && is_same(walk, op, op - k))
                can[(op + 1) * width + k] = 1;
            if (k < walk->n && is_work(walk, op, k))
                can[(op + 1) * width + k + 1] = 1;
        }
    HOLDS(can[n_ops * width + walk->n], "%u of %u ops are work", walk->n,
          n_ops);
    return can;
}

/* The op that each call became, by walking an alignment from its end. */
static uint32_t *ops_of(work_walk *walk)
{
    const uint8_t *can = align(walk);
    size_t width = (size_t)walk->n + 1;
    uint32_t *op_of = laws_take(&walk->arena, walk->n, sizeof *op_of);
    uint32_t k = walk->n;
    for (uint32_t op = walk->plan->n_ops; op-- > 0 && k > 0;)
        if (can[op * width + k - 1] && is_work(walk, op, k - 1))
            op_of[--k] = op;
    HOLDS(k == 0, "%u of %u calls have no op", k, walk->n);
    return op_of;
}

/* ---- what it reads ------------------------------------------------------- */

/* A WORK call reads the rows of its set that exist; later readers of such a row
 * wait for it.  Not so a .grad: what adds to it in place is its writer without
 * having read it (clone_or_add), and a later reader waits for that alone. */
static void check_uses(const work_walk *walk, const ms_timeline *line,
                       uint32_t k, uint32_t op)
{
    const ms_plan *plan = walk->plan;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t row = plan->use[i], maker = plan->row[row].op;
        HOLDS(plan->op[maker].pass == MS_START ||
                  line->start_ns[op] >= line->end_ns[maker],
              "work %u uses row %u before it is made", k, row);
        if (plan->row[row].category == MS_GRADIENTS)
            continue;
        for (uint32_t later = op + 1; later < plan->n_ops; later++)
            for (uint32_t u = plan->use_at[later]; u < plan->use_at[later + 1];
                 u++)
                HOLDS(plan->use[u] != row ||
                          line->start_ns[later] >= line->end_ns[op],
                      "op %u reads row %u of work %u", later, row, k);
    }
}

/* Rows of its set that are on the device are among its uses. Not checked: the
 * instant at which a gradient becomes .grad. */
static void check_present(const work_walk *walk, const uint8_t *lives,
                          uint32_t k, uint32_t op)
{
    const ms_plan *plan = walk->plan;
    for (uint32_t row = 0; row < plan->n_rows; row++) {
        bool used = false;
        uint32_t s = plan->row[row].storage;
        if (!lives[row] || plan->row[row].pool != MS_DEVICE_POOL ||
            !is_in(walk, k, row) ||
            plan->graph->storage_category[s] == MS_BECOMES_GRAD)
            continue;
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            used |= is_of(plan, plan->use[i], s);
        HOLDS(used, "work %u does not use row %u", k, row);
    }
}

static void check_sets(work_walk *walk, const ms_timeline *line,
                       const uint32_t *op_of)
{
    const ms_plan *plan = walk->plan;
    uint8_t *lives = laws_take(&walk->arena, plan->n_rows, 1);
    uint32_t k = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        if (k < walk->n && op_of[k] == op) {
            check_uses(walk, line, k, op);
            check_present(walk, lives, k++, op);
        }
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            lives[r] = 1;
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            lives[plan->release[i]] = 0;
    }
}

void laws_check_work(const ms_program *program, const ms_expand_opts *opts,
                     const ms_timeline *line, const ms_plan *without)
{
    work_walk walk = {.plan = line->plan,
                      .without = without,
                      .opts = opts,
                      .program = program};
    walk.call =
        laws_take(&walk.arena, program->n_calls, sizeof(const ms_call *));
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb == MS_WORK)
            walk.call[walk.n++] = &program->calls[i];
    HOLDS(line->plan->n_ops == without->n_ops + walk.n, "%u calls", walk.n);
    check_sets(&walk, line, ops_of(&walk));
    ms_arena_free(&walk.arena);
}

/* ---- its place in the step ----------------------------------------------- */

void laws_check_work_times(const ms_timeline *line, const ms_rank_report *rank)
{
    const ms_plan *plan = line->plan;
    uint64_t compute_ns = 0, host_ns = 0, all_ns = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        const ms_plan_op *it = &plan->op[op];
        uint64_t ns = line->end_ns[op] - line->start_ns[op];
        bool moves = false;
        for (uint32_t i = 0; i < plan->n_transfers; i++)
            moves |= plan->transfers[i].op == op;
        if (it->stream == MS_STREAM_HOST)
            host_ns += ns;
        else if (it->pass == MS_COPY && !moves)
            all_ns += ns;
        if (it->stream == MS_STREAM_COMPUTE && it->pass == MS_COPY && !moves)
            compute_ns += ns;
    }
    uint64_t pack_ns = rank->stalls_ns[MS_CAUSE_PACK];
    HOLDS(compute_ns <= pack_ns && pack_ns <= all_ns,
          "%llu to %llu ns of tasks, %llu ns waited for",
          (unsigned long long)compute_ns, (unsigned long long)all_ns,
          (unsigned long long)pack_ns);
    HOLDS(rank->links[MS_LINK_HOST].time.busy_ns == host_ns, "%llu ns",
          (unsigned long long)host_ns);
}
