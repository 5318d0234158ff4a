/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/laws/laws.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

uint64_t laws_seed;

#define HOLDS(condition, ...)                                                  \
    do {                                                                       \
        if (!(condition)) {                                                    \
            char what_[256];                                                   \
            snprintf(what_, sizeof what_, __VA_ARGS__);                        \
            ck_abort_msg("seed %llu: %s: %s", (unsigned long long)laws_seed,   \
                         #condition, what_);                                   \
        }                                                                      \
    } while (0)

/* Arenas of the oracle live for one check. */
static void *take(ms_arena *arena, size_t n, size_t size)
{
    void *memory = ms_arena_take(arena, n, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- rows ---------------------------------------------------------------- */

enum { UNBORN, ALIVE, DEAD };

typedef struct row_walk {
    const ms_plan *plan;
    const ms_graph *graph;
    uint8_t *state; /* of rows */
    uint32_t
        *alive;    /* device rows of a storage; of .grad: and what became it */
    uint32_t *far; /* rows in host memory and on the disk */
    uint64_t level_bytes;
} row_walk;

/* The storages whose presence a live row proves. */
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
    if (s == MS_NONE) /* a buffer of the program */
        return;
    walk->alive[s] += change;
    uint8_t category = plan->row[row].category;
    if (walk->graph->storage_category[s] == MS_BECOMES_GRAD &&
        (category == MS_GRADIENTS || category == MS_COMMUNICATION))
        walk->alive[walk->graph->storage_grad[s]] += change;
}

/* Is there what an op reads where it reads it?  The host's cores read the
 * host's memory, copies whatever there is. */
static bool is_there(const row_walk *walk, uint8_t stream, uint32_t s)
{
    if (stream == MS_STREAM_HOST)
        return walk->far[s] > 0;
    return walk->alive[s] > 0 ||
           (stream != MS_STREAM_COMPUTE && walk->far[s] > 0);
}

/* In another memory's format. */
static bool is_far_copy(const row_walk *walk, const ms_row *row)
{
    const uint64_t *far = walk->graph->storage_far_bytes;
    return row->pool != MS_DEVICE_POOL && far != NULL &&
           row->storage < walk->graph->n_persistent &&
           row->bytes == far[row->storage];
}

/* What a rank holds of a storage. */
static uint64_t least_bytes(const ms_graph *graph, uint32_t s)
{
    bool shared = graph->storage_shard_bytes != NULL &&
                  s < graph->n_persistent &&
                  graph->storage_shard_bytes[s] != MS_UNSHARED;
    return shared ? graph->storage_shard_bytes[s] : graph->storage_bytes[s];
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
              is_far_copy(walk, row),
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
        walk->state[r] = DEAD;
        count_row(walk, r, UINT32_MAX);
    }
}

/* A copy elsewhere than at home. */
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

/* What ends the .grad *s, or what became it: an op of the step, or of the
 * backward that makes it anew, or nothing. */
static uint32_t end_of(const ms_graph *graph, uint32_t *s)
{
    if (graph->storage_category[*s] == MS_BECOMES_GRAD)
        *s = graph->storage_grad[*s];
    return *s < graph->n_persistent ? graph->storage_local_end[*s] : MS_NONE;
}

/* Besides the part, and made anew from the parts when they are updated. */
static bool is_whole_copy(const ms_plan *plan, uint32_t r)
{
    const ms_graph *graph = plan->graph;
    uint32_t s = plan->row[r].storage;
    return graph->storage_whole != NULL && s < graph->n_persistent &&
           graph->storage_whole[s] &&
           plan->row[r].bytes == graph->storage_bytes[s];
}

void laws_check_rows(const ms_plan *plan)
{
    ms_arena arena = {0};
    row_walk walk = {.plan = plan, .graph = plan->graph};
    walk.state = take(&arena, plan->n_rows, 1);
    walk.alive = take(&arena, plan->graph->n_storages, sizeof(uint32_t));
    walk.far = take(&arena, plan->graph->n_storages, sizeof(uint32_t));
    for (uint32_t op = 0; op < plan->n_ops; op++)
        check_op(&walk, op);
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint8_t category = plan->row[r].category;
        uint32_t s = plan->row[r].storage;
        if (category == MS_COMMUNICATION || /* gathered, or not reduced */
            s == MS_NONE || is_whole_copy(plan, r))
            continue;
        uint32_t grad = s, end = end_of(plan->graph, &grad);
        if (end < plan->graph->step_first) {
            HOLDS(walk.alive[grad] == 1, "storage %u", grad);
            continue;
        }
        bool stays =
            plan->graph->storage_at_start[s] || category == MS_GRADIENTS;
        stays = stays && !leaves(plan, r) && end == MS_NONE;
        HOLDS(walk.state[r] == (stays ? ALIVE : DEAD),
              "row %u of storage %u, category %u, at the end", r, s, category);
    }
    ms_arena_free(&arena);
}

/* ---- the clock ----------------------------------------------------------- */

/* What takes no time is no kernel: the host goes on at once.  How much longer
 * an op takes beside others is checked in test_clock.c. */
void laws_check_clock(const ms_plan *plan, const ms_timeline *line,
                      const ms_machine *machine)
{
    static const ms_machine none;
    uint64_t free_ns[MS_N_STREAMS] = {0}, all_ns = 0, host_ns = 0;
    uint32_t sync = 0;
    bool varies = memcmp(machine->demand, none.demand, sizeof none.demand) != 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (; sync < plan->n_sync && plan->sync[sync].op == op; sync++)
            host_ns =
                larger(host_ns, plan->sync[sync].until == MS_NONE
                                    ? all_ns
                                    : line->end_ns[plan->sync[sync].until]);
        uint8_t stream = plan->op[op].stream;
        uint64_t start_ns = larger(free_ns[stream], host_ns);
        for (uint32_t i = plan->wait_at ? plan->wait_at[op] : 0;
             plan->wait_at && i < plan->wait_at[op + 1]; i++)
            start_ns = larger(start_ns, line->end_ns[plan->wait[i]]);
        HOLDS(line->start_ns[op] == start_ns, "op %u starts at %llu, not %llu",
              op, (unsigned long long)line->start_ns[op],
              (unsigned long long)start_ns);
        uint64_t least_ns = start_ns + plan->op[op].ns;
        HOLDS(varies ? line->end_ns[op] >= least_ns
                     : line->end_ns[op] == least_ns,
              "op %u", op);
        HOLDS((line->gap_cause[op] == MS_GAP_NONE) ==
                  (start_ns == free_ns[stream]),
              "op %u", op);
        free_ns[stream] = line->end_ns[op];
        all_ns = larger(all_ns, line->end_ns[op]);
        host_ns += plan->op[op].ns > 0 ? machine->launch_ns : 0;
    }
    HOLDS(line->step_ns == all_ns, "%llu", (unsigned long long)all_ns);
}

/* ---- levels -------------------------------------------------------------- */

typedef struct running_level {
    const ms_timeline *line;
    uint64_t bytes[MS_N_CATEGORIES], host_bytes, total_bytes, peak_bytes;
    uint32_t peak_event;
    uint64_t t_ns;
    uint32_t n;
} running_level;

static void step_level(running_level *now, uint32_t row, bool allocates)
{
    const ms_plan *plan = now->line->plan;
    uint64_t bytes = plan->row[row].bytes, sum = 0;
    bool device = plan->row[row].pool == MS_DEVICE_POOL;
    uint64_t *level =
        device ? &now->bytes[plan->row[row].category] : &now->host_bytes;
    HOLDS(allocates || *level >= bytes, "event %u", now->n);
    *level = allocates ? *level + bytes : *level - bytes;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum += now->bytes[c];
    now->total_bytes = sum;
    if (sum > now->peak_bytes) {
        now->peak_bytes = sum;
        now->peak_event = now->n;
    }
    now->n++;
}

static void check_peak(const running_level *now)
{
    const ms_level *level = &now->line->ranks[0].pool[MS_DEVICE_POOL];
    HOLDS(now->n == now->line->n_events, "%u events", now->n);
    HOLDS(level->peak_bytes == now->peak_bytes, "%llu",
          (unsigned long long)now->peak_bytes);
    HOLDS(level->peak_event == now->peak_event, "event %u", now->peak_event);
    HOLDS(level->now_bytes == now->total_bytes, "at the end");
    HOLDS(now->host_bytes == 0 || now->line->plan->graph->storage_pool,
          "host memory at the end");
}

static void check_event(running_level *now, uint32_t row, uint32_t op,
                        bool allocates, uint64_t t_ns)
{
    const ms_event *event = &now->line->events[now->n];
    now->t_ns = larger(now->t_ns, t_ns);
    HOLDS(event->row == row, "event %u is of row %u", now->n, event->row);
    HOLDS(event->op_act == (op << 1 | allocates), "event %u", now->n);
    HOLDS(event->t_ns == now->t_ns, "event %u", now->n);
    step_level(now, row, allocates);
}

void laws_check_levels(const ms_plan *plan, const ms_timeline *line)
{
    running_level now = {.line = line};
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            check_event(&now, r, op, true, line->start_ns[op]);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            check_event(&now, plan->release[i], op, false, line->end_ns[op]);
    }
    check_peak(&now);
}

/* The end of the last op that uses or drops each row. */
static uint64_t *last_ends(const ms_plan *plan, const ms_timeline *line,
                           ms_arena *arena)
{
    uint64_t *last_ns = take(arena, plan->n_rows, sizeof *last_ns);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint64_t end_ns = line->end_ns[op];
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            last_ns[plan->use[i]] = larger(last_ns[plan->use[i]], end_ns);
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            last_ns[plan->release[i]] =
                larger(last_ns[plan->release[i]], end_ns);
    }
    return last_ns;
}

void laws_check_device_levels(const ms_plan *plan, const ms_timeline *line)
{
    ms_arena arena = {0};
    uint64_t *last_ns = last_ends(plan, line, &arena);
    uint8_t *state = take(&arena, plan->n_rows, 1);
    running_level now = {.line = line};
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = &line->events[e];
        uint32_t r = event->row;
        bool allocates = event->op_act & 1u;
        HOLDS(event->t_ns >= now.t_ns, "event %u", e);
        HOLDS(state[r] == (allocates ? UNBORN : ALIVE), "event %u", e);
        HOLDS(event->t_ns ==
                  (allocates ? line->start_ns[plan->row[r].op] : last_ns[r]),
              "event %u", e);
        state[r] = allocates ? ALIVE : DEAD;
        now.t_ns = event->t_ns;
        step_level(&now, r, allocates);
    }
    check_peak(&now);
    ms_arena_free(&arena);
}

/* ---- the report ---------------------------------------------------------- */

static void check_times(const ms_timeline *line, const ms_times *time)
{
    uint64_t sum = time->forward_ns + time->backward_ns + time->recompute_ns +
                   time->optimizer_ns + time->exposed_comm_ns + time->stall_ns +
                   time->memory_wait_ns + time->page_wait_ns + time->bubble_ns +
                   time->host_bound_ns + time->idle_ns;
    HOLDS(time->step_ns == line->step_ns, "step");
    HOLDS(sum == time->step_ns, "parts sum to %llu", (unsigned long long)sum);
}

/* What is waited for was under way: no more can be exposed than was busy. */
static void check_overlap(const ms_rank_report *rank)
{
    uint64_t exposed_ns = rank->stalls_ns[MS_CAUSE_PACK], bytes = 0;
    for (int link = 0; link < MS_N_LINKS; link++) {
        const ms_link_use *use = &rank->links[link];
        HOLDS(use->time.exposed_ns <= use->time.busy_ns, "link %d", link);
        HOLDS(use->network_bytes <= use->bytes, "link %d", link);
        exposed_ns += use->time.exposed_ns;
        bytes += use->bytes;
    }
    HOLDS(exposed_ns == rank->time.exposed_comm_ns + rank->time.stall_ns,
          "links expose %llu", (unsigned long long)exposed_ns);
    HOLDS(rank->comm.exposed_ns <= rank->comm.busy_ns, "collectives");
    HOLDS(rank->comm.exposed_ns == rank->time.exposed_comm_ns, "collectives");
    HOLDS(rank->copies.exposed_ns <= rank->copies.busy_ns, "copies");
    HOLDS(bytes == rank->h2d_bytes + rank->d2h_bytes + rank->comm_bytes +
                       rank->nvme_bytes,
          "links move %llu", (unsigned long long)bytes);
}

static uint64_t sum_of(const uint64_t *bytes)
{
    uint64_t sum = 0;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum += bytes[c];
    return sum;
}

/* Where a mark lies, told by hand: ops and releases before it. */
static uint64_t level_at(const ms_plan *plan, const struct ms_plan_mark *mark)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < plan->op[mark->op + 1].alloc_at; r++)
        if (plan->row[r].category != MS_WORKSPACE &&
            plan->row[r].pool == MS_DEVICE_POOL)
            bytes += plan->row[r].bytes;
    for (uint32_t i = 0; i < mark->releases; i++) {
        uint32_t r = plan->release[i];
        if (plan->row[r].category != MS_WORKSPACE &&
            plan->row[r].pool == MS_DEVICE_POOL)
            bytes -= plan->row[r].bytes;
    }
    return bytes;
}

static void check_marks(const ms_plan *plan, const ms_rank_report *rank)
{
    uint32_t last = plan->n_micro_batches - 1;
    for (uint32_t m = 0; m < plan->n_marks; m++) {
        const struct ms_plan_mark *mark = &plan->marks[m];
        bool late = mark->mark > MS_MARK_AFTER_FORWARD;
        HOLDS(mark->releases >= plan->op[mark->op].release_at &&
                  mark->releases <= plan->op[mark->op + 1].release_at,
              "mark %u", m);
        if (mark->micro_batch == (late ? last : 0))
            HOLDS(rank->levels[mark->mark] == level_at(plan, mark), "mark %u",
                  mark->mark);
    }
}

void laws_check_report(const ms_timeline *line, const ms_report *report,
                       bool in_host_order)
{
    const ms_plan *plan = line->plan;
    const ms_rank_report *rank = &report->ranks[0];
    running_level now = {.line = line};
    uint64_t highest[MS_N_CATEGORIES] = {0}, at_peak[MS_N_CATEGORIES] = {0};
    for (uint32_t e = 0; e < line->n_events; e++) {
        step_level(&now, line->events[e].row, line->events[e].op_act & 1u);
        for (int c = 0; c < MS_N_CATEGORIES; c++) {
            highest[c] = larger(highest[c], now.bytes[c]);
            if (e == rank->peak.event)
                at_peak[c] = now.bytes[c];
        }
    }
    for (int c = 0; c < MS_N_CATEGORIES; c++) {
        HOLDS(rank->category_peaks[c] == highest[c], "category %d", c);
        HOLDS(rank->peak.by_category[c] == at_peak[c], "category %d", c);
    }
    HOLDS(rank->peak.allocated_bytes == now.peak_bytes, "peak");
    HOLDS(sum_of(rank->peak.by_category) == now.peak_bytes, "breakdown");
    for (int p = 0; p < MS_N_PHASES; p++) {
        uint64_t bytes = rank->phase_peaks_with_workspace[p];
        HOLDS(bytes <= now.peak_bytes, "phase %d", p);
        HOLDS(sum_of(rank->phase_by_category[p]) == bytes, "phase %d", p);
    }
    HOLDS(rank->parameters_bytes <= highest[MS_PARAMETERS], "buffers are not");
    check_times(line, &rank->time);
    check_overlap(rank);
    if (in_host_order)
        check_marks(plan, rank);
}

/* ---- everything kept ----------------------------------------------------- */

/* References of each storage, as a template: made, then dropped by the drop
 * lists, the training loop's variables and nobody else. */
typedef struct template_walk {
    const ms_graph *graph;
    uint32_t *references;
    uint64_t level_bytes;
    uint64_t rebound_bytes; /* old values of variables that the op rebinds */
    uint64_t *after_alloc, *after_drops; /* per issued op, 0 the start */
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

/* A gradient becomes .grad in place: then no kernel runs. */
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
    walk.references = take(&arena, graph->n_storages, sizeof(uint32_t));
    walk.lives = take(&arena, graph->n_storages, 1);
    walk.after_alloc = take(&arena, most, sizeof(uint64_t));
    walk.after_drops = take(&arena, most, sizeof(uint64_t));
    run_template(&walk, micro_batches);
    compare_template(&walk, plan);
    ms_arena_free(&arena);
}
