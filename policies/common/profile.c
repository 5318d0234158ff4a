/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/profile.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"

#include <string.h>

typedef struct profiler {
    const ms_policy_context *context;
    const ms_program *program;
    ms_profile *profile;
    ms_arena *scratch;
    ms_fault *fault;
    ms_plan plan;
    ms_timeline line;
    uint32_t *first_op;  /* n_calls + 1 */
    uint32_t *call_of;   /* per plan op */
    uint32_t *last_use;  /* per row: op, or MS_NONE */
    uint32_t *tensor_of; /* per row, or MS_NONE */
    uint8_t *fixed;      /* per storage: the training loop holds it */
    uint32_t *stamp;     /* per storage: the last call that uses it, plus 1 */
} profiler;

uint64_t ms_profile_copy_ns(const ms_expand_opts *opts, uint64_t bytes, bool in)
{
    double rate = in ? opts->h2d_bytes_per_s : opts->d2h_bytes_per_s;
    double ns = rate > 0 ? (double)bytes / rate * 1e9 : 0;
    return opts->copy_ns + (uint64_t)(ns + 0.5);
}

uint64_t ms_profile_budget(const ms_policy_context *context,
                           const ms_policy_value *budget)
{
    const ms_machine *machine = context->machine;
    if (budget != NULL && budget->given)
        return (uint64_t)budget->number;
    return machine->capacity_bytes > machine->context_bytes
               ? machine->capacity_bytes - machine->context_bytes
               : 0;
}

static ms_err check_context(const ms_policy_context *context, ms_fault *fault)
{
    if (context->opts != NULL && context->machine != NULL)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--policy",
                   "give it a device to run the step on",
                   "this policy measures a step, and nothing says how fast "
                   "copies are");
}

static ms_err replay(profiler *p, const ms_program *program, bool uses,
                     bool book_device)
{
    ms_expand_opts opts = *p->context->opts;
    ms_machine machine = *p->context->machine;
    opts.uses = uses || book_device;
    machine.book_device = book_device;
    MS_TRY(ms_expand(p->context->graph, program, &opts, p->scratch, &p->plan,
                     p->fault));
    return ms_replay(&p->plan, &machine, p->scratch, &p->line, p->fault);
}

/* A mark before each call tells which ops belong to which call. */
static ms_err mark_calls(profiler *p, ms_program *marked)
{
    MS_TRY(ms_program_fork(p->program, p->scratch, marked, p->fault));
    for (uint32_t i = 0; i < p->program->n_calls; i++) {
        const ms_call *call = &p->program->calls[i];
        MS_TRY(ms_program_add(marked, ms_program_call_like(MS_MARK, call),
                              p->scratch, p->fault));
        MS_TRY(ms_program_add(marked, *call, p->scratch, p->fault));
    }
    return MS_OK;
}

static ms_err take_columns(profiler *p)
{
    ms_profile *profile = p->profile;
    const ms_plan *plan = &p->plan;
    size_t n = profile->n_calls, size = sizeof(uint32_t);
    ms_arena *arena = p->context->arena;
    profile->start_ns = ms_arena_take(arena, n + 1, sizeof(uint64_t));
    profile->level_bytes = ms_arena_take(arena, n, sizeof(uint64_t));
    profile->tensors =
        ms_arena_take_raw(arena, plan->n_rows, sizeof *profile->tensors);
    p->first_op = ms_arena_take_raw(p->scratch, n + 1, size);
    p->call_of = ms_arena_take_raw(p->scratch, plan->n_ops, size);
    p->last_use = ms_arena_take_raw(p->scratch, plan->n_rows, size);
    p->tensor_of = ms_arena_take_raw(p->scratch, plan->n_rows, size);
    p->fixed = ms_arena_take(p->scratch, plan->graph->n_storages, 1);
    p->stamp = ms_arena_take(p->scratch, plan->graph->n_storages, size);
    profile->use_at = ms_arena_take(arena, n + 1, size);
    profile->use = ms_arena_take_raw(arena, plan->use_at[plan->n_ops], size);
    if (profile->start_ns == NULL || profile->level_bytes == NULL ||
        profile->tensors == NULL || p->first_op == NULL || p->call_of == NULL ||
        p->last_use == NULL || p->tensor_of == NULL || p->fixed == NULL ||
        p->stamp == NULL || profile->use_at == NULL || profile->use == NULL)
        return ms_fail_nomem(p->fault);
    memset(p->last_use, 0xff, plan->n_rows * size);
    memset(p->tensor_of, 0xff, plan->n_rows * size);
    return MS_OK;
}

static void find_calls(profiler *p)
{
    const ms_plan *plan = &p->plan;
    uint32_t n = p->profile->n_calls, mark = 0, op = 0;
    for (uint32_t c = 0; c < n; c++) {
        p->first_op[c] = plan->marks[mark].op + 1;
        /* Before each call there is one of ours; a mark adds its own. */
        mark += p->program->calls[c].verb == MS_MARK ? 2 : 1;
    }
    p->first_op[n] = plan->n_ops;
    for (uint32_t c = 0; c < n; c++)
        for (; op < p->first_op[c + 1]; op++)
            p->call_of[op] = c;
}

static void find_times(profiler *p)
{
    const ms_plan *plan = &p->plan;
    uint64_t *start_ns = p->profile->start_ns;
    start_ns[p->profile->n_calls] = p->line.step_ns;
    for (uint32_t c = p->profile->n_calls; c-- > 0;) {
        start_ns[c] = start_ns[c + 1];
        for (uint32_t op = p->first_op[c + 1]; op-- > p->first_op[c];)
            if (plan->op[op].stream == MS_STREAM_COMPUTE)
                start_ns[c] = p->line.start_ns[op];
    }
}

static void raise_level(profiler *p, uint32_t call, uint64_t now_bytes)
{
    uint64_t *level = &p->profile->level_bytes[call];
    *level = now_bytes > *level ? now_bytes : *level;
}

/* Events stand in the order of the ops; a call begins at the level at which
 * the one before ends. */
static void find_levels(profiler *p)
{
    const ms_plan *plan = &p->plan;
    uint64_t now_bytes = 0;
    ms_eventwalk walk;
    const ms_event *event;
    ms_timeline_walk(&p->line, 0, &walk);
    for (uint32_t c = 0; c < p->profile->n_calls; c++) {
        raise_level(p, c, now_bytes);
        for (; (event = ms_timeline_peek(&walk)) != NULL; walk.at++) {
            const ms_row *row = &plan->row[event->row];
            if (event->op_act >> 1 >= p->first_op[c + 1])
                break;
            if (row->pool != MS_DEVICE_POOL)
                continue;
            if (event->op_act & 1u)
                now_bytes += row->bytes;
            else
                now_bytes -= row->bytes;
            raise_level(p, c, now_bytes);
        }
    }
}

/* May the row leave between two uses?  A buffer of the program has no storage.
 */
static bool may_leave(const profiler *p, uint32_t row, uint64_t min_bytes)
{
    const ms_plan *plan = &p->plan;
    const ms_row *r = &plan->row[row];
    const ms_graph *graph = plan->graph;
    uint32_t s = r->storage;
    return s != MS_NONE && r->pool == MS_DEVICE_POOL && r->bytes >= min_bytes &&
           s >= graph->n_persistent && !p->fixed[s] &&
           graph->storage_maker[s] < graph->forward_at[graph->n_units] &&
           plan->op[r->op].of == graph->storage_maker[s] &&
           plan->op[r->op].pass != MS_RECOMPUTE;
}

static void note_gap(profiler *p, uint32_t row, uint32_t before, uint32_t op)
{
    ms_profile *profile = p->profile;
    uint64_t out_ns = p->line.end_ns[before], back_ns = p->line.start_ns[op];
    uint32_t out_call = p->call_of[before], back_call = p->call_of[op];
    uint32_t *id = &p->tensor_of[row];
    /* It can be away only during a call that lies between the two uses. */
    if (back_call < out_call + 2 || p->plan.op[op].of == MS_NONE ||
        back_ns < out_ns)
        return;
    if (*id == MS_NONE)
        *id = profile->n_tensors++;
    else if (profile->tensors[*id].back_ns - profile->tensors[*id].out_ns >=
             back_ns - out_ns)
        return;
    profile->tensors[*id] =
        (ms_profile_tensor){.storage = p->plan.row[row].storage,
                            .micro_batch = p->plan.op[op].micro_batch,
                            .back_op = p->plan.op[op].of,
                            .bytes = p->plan.row[row].bytes,
                            .out_call = out_call,
                            .back_call = back_call,
                            .out_ns = out_ns,
                            .back_ns = back_ns};
}

static void find_tensors(profiler *p, uint64_t min_bytes)
{
    const ms_plan *plan = &p->plan;
    for (uint32_t i = 0; i < plan->graph->n_kept; i++)
        p->fixed[plan->graph->kept[i]] = 1;
    for (uint32_t op = p->first_op[0]; op < plan->n_ops; op++)
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
            uint32_t row = plan->use[i];
            if (p->last_use[row] != MS_NONE && may_leave(p, row, min_bytes))
                note_gap(p, row, p->last_use[row], op);
            p->last_use[row] = op;
        }
}

static void find_uses(profiler *p, uint64_t min_bytes)
{
    const ms_plan *plan = &p->plan;
    ms_profile *profile = p->profile;
    uint32_t n = 0;
    for (uint32_t c = 0; c < profile->n_calls; c++) {
        uint32_t end = plan->use_at[p->first_op[c + 1]];
        for (uint32_t i = plan->use_at[p->first_op[c]]; i < end; i++) {
            uint32_t row = plan->use[i], s = plan->row[row].storage;
            if (s == MS_NONE || !may_leave(p, row, min_bytes) ||
                p->stamp[s] == c + 1)
                continue;
            p->stamp[s] = c + 1;
            profile->use[n++] = s;
        }
        profile->use_at[c + 1] = n;
    }
}

static ms_err run(profiler *p, uint64_t min_bytes)
{
    ms_program marked;
    MS_TRY(mark_calls(p, &marked));
    MS_TRY(replay(p, &marked, true, false));
    p->profile->n_calls = p->program->n_calls;
    p->profile->n_ops = p->plan.n_ops;
    MS_TRY(take_columns(p));
    find_calls(p);
    find_times(p);
    find_levels(p);
    find_tensors(p, min_bytes);
    find_uses(p, min_bytes);
    p->profile->peak_bytes = p->line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes;
    p->profile->step_ns = p->line.step_ns;
    return MS_OK;
}

ms_err ms_profile_run(const ms_policy_context *context,
                      const ms_program *program, uint64_t min_bytes,
                      ms_profile *profile, ms_fault *fault)
{
    ms_arena scratch = {0};
    profiler p = {.context = context,
                  .program = program,
                  .profile = profile,
                  .scratch = &scratch,
                  .fault = fault};
    *profile = (ms_profile){0};
    MS_TRY(check_context(context, fault));
    ms_err err = run(&p, min_bytes);
    ms_arena_free(&scratch);
    return err;
}

/* A copy, to which the policies behind this one have done what they do. */
static ms_err finish(profiler *p, const ms_program *program, ms_program *whole)
{
    ms_policy_context context = *p->context;
    context.arena = p->scratch;
    MS_TRY(ms_program_fork(program, p->scratch, whole, p->fault));
    MS_TRY(ms_program_reserve(whole, program->n_calls, p->scratch, p->fault));
    memcpy(whole->calls, program->calls,
           program->n_calls * sizeof *whole->calls);
    whole->n_calls = program->n_calls;
    return context.finish(&context, whole, p->fault);
}

static ms_err replay_finished(profiler *p, const ms_program *program)
{
    ms_program whole = *program;
    ms_arena_reset(p->scratch);
    MS_TRY(check_context(p->context, p->fault));
    if (p->context->finish != NULL)
        MS_TRY(finish(p, program, &whole));
    return replay(p, &whole, false, p->context->machine->book_device);
}

ms_err ms_profile_measure_in(const ms_policy_context *context,
                             const ms_program *program, ms_arena *scratch,
                             uint64_t *peak_bytes, uint64_t *step_ns,
                             ms_fault *fault)
{
    profiler p = {.context = context, .scratch = scratch, .fault = fault};
    MS_TRY(replay_finished(&p, program));
    *peak_bytes = 0;
    for (uint32_t r = 0; r < p.plan.n_ranks; r++) {
        const ms_level *level = &p.line.ranks[r].pool[MS_DEVICE_POOL];
        if (level->peak_bytes > *peak_bytes)
            *peak_bytes = level->peak_bytes;
    }
    *step_ns = p.line.step_ns;
    return MS_OK;
}

ms_err ms_profile_measure(const ms_policy_context *context,
                          const ms_program *program, uint64_t *peak_bytes,
                          uint64_t *step_ns, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_err err = ms_profile_measure_in(context, program, &scratch, peak_bytes,
                                       step_ns, fault);
    ms_arena_free(&scratch);
    return err;
}

/* Copies of stages are kept alike. */
static void join_copies(const ms_schedule *schedule, ms_profile_rank *ranks)
{
    uint32_t n = schedule->rank_of != NULL ? schedule->n_stages : 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t m = 0; m < schedule->n_micro_batches; m++) {
            const ms_profile_rank *copy =
                &ranks[ms_schedule_rank(schedule, k, m)];
            ms_profile_rank *own = &ranks[schedule->stages[k].rank];
            if (copy->peak_bytes > own->peak_bytes)
                own->peak_bytes = copy->peak_bytes;
            if (copy->work_ns > own->work_ns)
                own->work_ns = copy->work_ns;
        }
}

ms_err ms_profile_ranks_in(const ms_policy_context *context,
                           const ms_program *program, ms_arena *scratch,
                           ms_profile_rank *ranks, ms_fault *fault)
{
    profiler p = {.context = context, .scratch = scratch, .fault = fault};
    MS_TRY(replay_finished(&p, program));
    for (uint32_t r = 0; r < p.plan.n_ranks; r++) {
        ranks[r].peak_bytes = p.line.ranks[r].pool[MS_DEVICE_POOL].peak_bytes;
        ranks[r].work_ns = p.plan.n_ranks == 1 ? p.line.step_ns : 0;
    }
    for (uint32_t i = 0; i < p.plan.n_ops && p.plan.n_ranks > 1; i++)
        if (p.plan.op[i].stream == MS_STREAM_COMPUTE)
            ranks[p.plan.op[i].rank].work_ns += p.plan.op[i].ns;
    join_copies(context->schedule, ranks);
    return MS_OK;
}

/* ---- copies waited for --------------------------------------------------- */

/* The copy in whose end let op start; MS_NONE: op waited for none. */
static uint32_t waited_for(const profiler *p, uint32_t op)
{
    const ms_plan *plan = &p->plan;
    if (plan->wait_at == NULL || p->line.gap_cause[op] != MS_GAP_COPY)
        return MS_NONE;
    for (uint32_t i = plan->wait_at[op]; i < plan->wait_at[op + 1]; i++)
        if (plan->op[plan->wait[i]].stream == MS_STREAM_H2D &&
            p->line.end_ns[plan->wait[i]] == p->line.start_ns[op])
            return plan->wait[i];
    return MS_NONE;
}

static ms_err list_waited(profiler *p, ms_profile_copy **copies, uint32_t *n)
{
    const ms_plan *plan = &p->plan;
    *n = 0;
    *copies =
        ms_arena_take_raw(p->context->arena, plan->n_ops, sizeof **copies);
    if (*copies == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t copy = waited_for(p, op);
        if (copy == MS_NONE ||
            plan->op[copy].alloc_at == plan->op[copy + 1].alloc_at)
            continue;
        (*copies)[(*n)++] = (ms_profile_copy){
            .storage = plan->row[plan->op[copy].alloc_at].storage,
            .micro_batch = plan->op[copy].micro_batch};
    }
    return MS_OK;
}

ms_err ms_profile_waited(const ms_policy_context *context,
                         const ms_program *program, ms_profile_copy **copies,
                         uint32_t *n, ms_fault *fault)
{
    ms_arena scratch = {0};
    profiler p = {.context = context, .scratch = &scratch, .fault = fault};
    MS_TRY(check_context(context, fault));
    ms_err err = replay(&p, program, false, false);
    if (err == MS_OK)
        err = list_waited(&p, copies, n);
    ms_arena_free(&scratch);
    return err;
}
