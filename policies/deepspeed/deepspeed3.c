/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSpeed's stage 3: parameters are fetched before the module that reads
 * them, prefetched along the recorded trace and released behind it
 * (partitioned_param_coordinator.py: fetch_sub_module, release_sub_module).
 *
 *     run r:  gather what it lacks         (several: into a flat buffer)
 *             copy out of the buffers that hold what it reads, give them
 *             prefetch: gather what the next runs read, up to the limit
 *             run
 *             release what no fetch asked for again and no run within
 *             max_reuse_distance elements reads
 *
 * The gathers and what they are copied out by have a stream and memory of their
 * own where they overlap: they need not wait for the compute stream, and what
 * is released stays active until that has passed it.  The host waits for the
 * oldest fetch or reduction where more than two are under way.  Secondary parts
 * (ZeRO++, hpZ): what is released after its first gather of the step leaves a
 * part of it with this rank, and is gathered from a few neighbours until the
 * step has changed it; the host waits for each (partition_parameters.py,
 * _partition_param_sec); what persists has none.  Quantized (ZeRO++, qwZ), int8
 * values and the fp32 scales of their groups are gathered, and copying out
 * dequantizes.
 *
 * The trace is that of a later micro-batch: recorded, forward and backward; the
 * hooks of a module run in its replay, too (activation checkpointing), which is
 * written in parts, unit by unit. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/graph.h"
#include "sim/program.h"

/* What is gathered together and not copied out yet. */
typedef struct group {
    uint32_t set, buffer;
    bool out;
} group;

typedef struct trace {
    ms_deepspeed_writer *w;
    const ms_program *old;
    uint32_t n;                   /* runs */
    uint32_t *call;               /* of old */
    uint32_t *at, *row, capacity; /* CSR: what each run reads and fetches */
    uint32_t *again;  /* per entry: the next run of its micro-batch that reads
                         it, or MS_NONE */
    uint64_t *before; /* elements of the runs before each */
    /* per parameter */
    uint8_t *here, *flying; /* flying: gathered, not waited for yet */
    uint32_t *secondary;    /* its buffer, or MS_NONE */
    uint32_t *fetched_for, *in_group;
    uint64_t n_here; /* elements gathered or on their way */
    group *groups;
    uint32_t n_groups, groups_capacity;
    uint32_t queue_run, queue_item; /* the trace's next entry */
    uint32_t *list, *other;         /* room for all rows */
    uint8_t *saves; /* per run: a forward whose nodes a backward reads */
    ms_deepspeed_views views;
} trace;

/* ---- the trace ----------------------------------------------------------- */

static ms_err add_row(trace *t, uint32_t row, uint32_t run, uint32_t *seen)
{
    uint32_t n = t->at[run + 1];
    if (seen[row] == run + 1)
        return MS_OK;
    seen[row] = run + 1;
    t->row =
        ms_arena_grow(t->w->arena, t->row, &t->capacity, n + 1, sizeof *t->row);
    if (t->row == NULL)
        return ms_fail_nomem(t->w->fault);
    t->row[n] = row;
    t->at[run + 1] = n + 1;
    return MS_OK;
}

static ms_err list_ops(trace *t, uint32_t run, uint32_t first, uint32_t end,
                       uint32_t *seen)
{
    const ms_graph *graph = t->w->graph;
    if (first >= end)
        return MS_OK;
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++) {
        uint32_t s = graph->in[i];
        if (ms_graph_is_weight(graph, s) && !graph->storage_whole[s])
            MS_TRY(add_row(t, t->w->row_of[s], run, seen));
    }
    return MS_OK;
}

/* The parameters of the modules that run, read or not: the hook before a
 * module's backward fetches what the one before its forward did.  What persists
 * is always there. */
static ms_err list_run(trace *t, uint32_t run, uint32_t *seen)
{
    const ms_graph *graph = t->w->graph;
    const ms_call *call = &t->old->calls[t->call[run]];
    bool backward = call->verb == MS_RUN && call->run.pass != MS_FORWARD;
    t->at[run + 1] = t->at[run];
    MS_TRY(list_ops(t, run, graph->backward_at[call->unit + 1],
                    backward ? graph->backward_at[call->unit] : 0, seen));
    if (backward &&
        graph->backward_at[call->unit] == graph->backward_at[call->unit + 1])
        return MS_OK;
    return list_ops(t, run, graph->forward_at[call->unit],
                    graph->forward_at[call->unit + 1], seen);
}
static uint32_t micro_batch_of(const trace *t, uint32_t run)
{
    return t->old->calls[t->call[run]].micro_batch;
}

static void find_again(trace *t, uint32_t *next)
{
    for (uint32_t r = 0; r < t->w->n_rows; r++)
        next[r] = MS_NONE;
    for (uint32_t run = t->n; run-- > 0;)
        for (uint32_t i = t->at[run]; i < t->at[run + 1]; i++) {
            uint32_t r = t->row[i], later = next[r];
            bool same = later != MS_NONE &&
                        micro_batch_of(t, later) == micro_batch_of(t, run);
            t->again[i] = same ? later : MS_NONE;
            next[r] = run;
        }
}

/* Of a unit that is run again (a checkpoint) the last forward counts. */
static ms_err find_saves(trace *t)
{
    uint8_t *fresh = ms_arena_take(t->w->arena, t->w->graph->n_units, 1);
    t->saves = ms_arena_take(t->w->arena, t->n, 1);
    if (!fresh || !t->saves)
        return ms_fail_nomem(t->w->fault);
    for (uint32_t run = t->n; run-- > 0;) {
        const ms_call *call = &t->old->calls[t->call[run]];
        bool back = call->verb == MS_RUN && call->run.pass != MS_FORWARD;
        t->saves[run] = !back && fresh[call->unit];
        fresh[call->unit] = back;
    }
    return ms_deepspeedviews_open(t->w, &t->views);
}

static ms_err take_columns(trace *t)
{
    ms_arena *arena = t->w->arena;
    uint32_t rows = t->w->n_rows, n = t->old->n_calls;
    t->call = ms_arena_take_raw(arena, n, sizeof *t->call);
    t->at = ms_arena_take(arena, n + 1, sizeof *t->at);
    t->before = ms_arena_take(arena, n + 1, sizeof *t->before);
    t->here = ms_arena_take(arena, rows, 1);
    t->fetched_for = ms_arena_take(arena, rows, sizeof *t->fetched_for);
    t->in_group = ms_arena_take_raw(arena, rows, sizeof *t->in_group);
    t->list = ms_arena_take_raw(arena, rows, sizeof *t->list);
    t->other = ms_arena_take_raw(arena, rows, sizeof *t->other);
    t->flying = ms_arena_take(arena, rows, 1);
    t->secondary = ms_arena_take_raw(arena, rows, sizeof *t->secondary);
    if (!t->call || !t->at || !t->before || !t->here || !t->fetched_for ||
        !t->in_group || !t->list || !t->other || !t->flying || !t->secondary)
        return ms_fail_nomem(t->w->fault);
    for (uint32_t r = 0; r < rows; r++)
        t->in_group[r] = t->secondary[r] = MS_NONE;
    return MS_OK;
}

static ms_err record(trace *t)
{
    ms_arena *arena = t->w->arena;
    uint32_t rows = t->w->n_rows;
    MS_TRY(take_columns(t));
    uint32_t *seen = ms_arena_take(arena, rows, sizeof *seen);
    if (seen == NULL)
        return ms_fail_nomem(t->w->fault);
    for (uint32_t i = 0; i < t->old->n_calls; i++)
        if (ms_program_runs(&t->old->calls[i]))
            t->call[t->n++] = i;
    for (uint32_t run = 0; run < t->n; run++) {
        MS_TRY(list_run(t, run, seen));
        t->before[run + 1] = t->before[run];
        for (uint32_t i = t->at[run]; i < t->at[run + 1]; i++)
            t->before[run + 1] += t->w->rows[t->row[i]].elements;
    }
    t->again = ms_arena_take_raw(arena, t->at[t->n], sizeof *t->again);
    if (t->again == NULL)
        return ms_fail_nomem(t->w->fault);
    find_again(t, seen);
    return find_saves(t);
}

/* ---- fetching ------------------------------------------------------------ */

static ms_err set_of(trace *t, const uint32_t *rows, uint32_t n, uint32_t *set)
{
    ms_deepspeed_writer *w = t->w;
    for (uint32_t i = 0; i < n; i++)
        w->list[i] = w->rows[rows[i]].weight;
    return ms_program_add_set(w->program, w->list, n, w->arena, set, w->fault);
}

/* Groups of a rank's part that share a scale (partition_parameters.py,
 * CUDAQuantizer): about 8000 elements each, in eights, each as long. */
#define GROUP_ELEMENTS 8000u

static uint64_t groups_of(uint64_t elements)
{
    uint64_t n = (elements + GROUP_ELEMENTS - 1) / GROUP_ELEMENTS;
    while (n < elements && elements % (8 * n) != 0)
        n++;
    return n;
}

/* What is gathered of a parameter, all ranks together. */
static uint64_t gathered_bytes(const trace *t, uint32_t row)
{
    const ms_deepspeed_writer *w = t->w;
    uint64_t part_bytes = w->graph->storage_shard_bytes[w->rows[row].weight];
    uint32_t ranks = w->ranks;
    if (!w->how->quantized)
        return part_bytes * ranks;
    uint64_t elements = (w->rows[row].elements + ranks - 1) / ranks;
    if (t->secondary[row] != MS_NONE) {
        elements *= ranks / w->how->secondary_ranks;
        ranks = w->how->secondary_ranks;
    }
    return (elements + 4 * groups_of(elements)) * ranks;
}

/* One all-gather of n parameters: one where it will lie, several into a flat
 * buffer (all_gather_coalesced). */
static ms_err launch_these(trace *t, const ms_call *like, const uint32_t *list,
                           uint32_t n, ms_group_role among)
{
    ms_deepspeed_writer *w = t->w;
    uint32_t set, buffer = MS_NONE;
    uint64_t bytes = 0;
    bool flat = n > 1 || w->how->quantized;
    ms_gather_call how = {.group = (uint8_t)among, .ahead = w->how->overlap};
    if (n == 0)
        return MS_OK;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = list[i];
        t->here[r] = t->flying[r] = 1;
        t->n_here += w->rows[r].elements;
        t->in_group[r] = flat ? t->n_groups : MS_NONE;
        bytes += gathered_bytes(t, r);
    }
    MS_TRY(set_of(t, list, n, &set));
    if (flat) {
        group *groups = ms_arena_grow(w->arena, t->groups, &t->groups_capacity,
                                      t->n_groups + 1, sizeof *groups);
        if (groups == NULL)
            return ms_fail_nomem(w->fault);
        t->groups = groups;
        MS_TRY(ms_deepspeedcalls_take(
            w, like,
            (ms_buffer){.name = "all_gather_output",
                        .bytes = bytes,
                        .category = MS_COMMUNICATION,
                        .stream = w->how->overlap ? MS_STREAM_COMM
                                                  : MS_STREAM_COMPUTE},
            &buffer));
        groups[t->n_groups++] = (group){.set = set, .buffer = buffer};
    }
    MS_TRY(ms_deepspeedcalls_gather(w, like, set, buffer, how));
    if (w->how->overlap)
        return MS_OK;
    return ms_deepspeedcalls_wait(w, like, set, buffer);
}

/* The first n of list: those with secondary parts, then those without. */
static ms_err launch(trace *t, const ms_call *like, uint32_t n)
{
    uint32_t whole = 0, parted = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = t->list[i];
        if (t->secondary[r] != MS_NONE)
            t->other[parted++] = r;
        else
            t->list[whole++] = r;
    }
    MS_TRY(launch_these(t, like, t->other, parted, MS_GROUP_SECONDARY));
    return launch_these(t, like, t->list, whole, MS_GROUP_DATA);
}

/* Waiting for one of a group copies all of it out. */
static ms_err copy_out(trace *t, const ms_call *like, uint32_t row)
{
    bool ahead = t->w->how->overlap;
    uint32_t g = t->in_group[row];
    t->in_group[row] = MS_NONE;
    if (g == MS_NONE || t->groups[g].out)
        return MS_OK;
    t->groups[g].out = true;
    MS_TRY(
        ms_deepspeedcalls_move(t->w, like, t->groups[g].set, MS_NONE,
                               (ms_move_call){.to = MS_HERE, .ahead = ahead}));
    return ms_deepspeedcalls_give(t->w, like, t->groups[g].buffer);
}

static ms_err await(trace *t, const ms_call *like, uint32_t row)
{
    if (!t->flying[row])
        return MS_OK;
    t->flying[row] = 0;
    MS_TRY(ms_deepspeedcalls_await(t->w, like, &t->w->fetches));
    MS_TRY(copy_out(t, like, row));
    return ms_deepspeedcalls_record(t->w, like, &t->w->fetches);
}

static ms_err fetch(trace *t, const ms_call *like, uint32_t run)
{
    uint32_t n = 0;
    for (uint32_t i = t->at[run]; i < t->at[run + 1]; i++) {
        uint32_t r = t->row[i];
        if (t->fetched_for[r] < run)
            t->fetched_for[r] = run;
        if (!t->here[r])
            t->list[n++] = r;
    }
    MS_TRY(launch(t, like, n));
    for (uint32_t i = t->at[run]; i < t->at[run + 1]; i++)
        MS_TRY(await(t, like, t->row[i]));
    return MS_OK;
}

/* Takes entries off the trace until what is to be gathered reaches the limit;
 * the last one may pass it. */
static ms_err prefetch(trace *t, const ms_call *like, uint32_t run)
{
    const ms_deepspeed *how = t->w->how;
    uint64_t room = how->max_live > t->n_here ? how->max_live - t->n_here : 0;
    uint64_t most = room < how->prefetch ? room : how->prefetch;
    uint64_t elements = 0;
    uint32_t n = 0;
    if (t->queue_run <= run) {
        t->queue_run = run + 1;
        t->queue_item = t->at[run + 1];
    }
    while (elements < most && t->queue_run < t->n &&
           micro_batch_of(t, t->queue_run) == micro_batch_of(t, run)) {
        if (t->queue_item == t->at[t->queue_run + 1]) {
            t->queue_run++;
            continue;
        }
        uint32_t r = t->row[t->queue_item++];
        t->fetched_for[r] = t->queue_run;
        if (t->here[r])
            continue;
        t->here[r] = 2; /* listed, and on its way from launch on */
        elements += t->w->rows[r].elements;
        t->list[n++] = r;
    }
    return launch(t, like, n);
}

static bool stays(const trace *t, uint32_t item, uint32_t run)
{
    uint32_t again = t->again[item];
    if (t->fetched_for[t->row[item]] > run + 1)
        return true;
    return again != MS_NONE &&
           t->before[again] - t->before[run + 1] < t->w->how->max_reuse;
}

/* The first n of list leave their secondary parts. */
static ms_err leave_parts(trace *t, const ms_call *like, uint32_t n)
{
    ms_deepspeed_writer *w = t->w;
    uint32_t groups = w->ranks / w->how->secondary_ranks;
    if (w->how->secondary_ranks == 1)
        return MS_OK;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = t->list[i], s = w->rows[r].weight;
        if (t->secondary[r] == MS_NONE)
            MS_TRY(ms_deepspeedcalls_take(
                w, like,
                (ms_buffer){.name = "secondary_part",
                            .bytes = w->graph->storage_shard_bytes[s] * groups,
                            .category = MS_COMMUNICATION},
                &t->secondary[r]));
    }
    ms_call sync = ms_program_call_like(MS_SYNC, like);
    sync.sync.compute = true;
    return ms_deepspeedcalls_emit(w, sync, MS_NONE);
}

static ms_err drop_parts(trace *t, const ms_call *like)
{
    for (uint32_t r = 0; r < t->w->n_rows; r++) {
        if (t->secondary[r] != MS_NONE)
            MS_TRY(ms_deepspeedcalls_give(t->w, like, t->secondary[r]));
        t->secondary[r] = MS_NONE;
    }
    return MS_OK;
}

static ms_err release(trace *t, const ms_call *like, uint32_t run)
{
    uint32_t n = 0, set;
    for (uint32_t i = t->at[run]; i < t->at[run + 1]; i++) {
        uint32_t r = t->row[i];
        if (!t->here[r] || stays(t, i, run))
            continue;
        t->here[r] = 0;
        t->n_here -= t->w->rows[r].elements;
        t->list[n++] = r;
    }
    if (n == 0)
        return MS_OK;
    MS_TRY(leave_parts(t, like, n));
    MS_TRY(ms_deepspeedviews_keep(t->w, &t->views, like, t->list, &n));
    if (n == 0)
        return MS_OK;
    MS_TRY(set_of(t, t->list, n, &set));
    return ms_deepspeedcalls_move(t->w, like, set, MS_NONE,
                                  (ms_move_call){.to = MS_SHARD});
}

/* ---- the step ------------------------------------------------------------ */

/* What persists is gathered anew once its parts are updated. */
static ms_err gather_persistent(trace *t, const ms_call *like)
{
    ms_deepspeed_writer *w = t->w;
    uint32_t n = 0, set;
    for (uint32_t r = 0; r < w->n_rows; r++)
        if (w->graph->storage_whole[w->rows[r].weight])
            t->list[n++] = r;
    if (n == 0)
        return MS_OK;
    MS_TRY(set_of(t, t->list, n, &set));
    MS_TRY(ms_deepspeedcalls_move(w, like, set, MS_NONE,
                                  (ms_move_call){.to = MS_SHARD}));
    return ms_deepspeedcalls_gather(w, like, set, MS_NONE, (ms_gather_call){0});
}

static ms_err before_run(trace *t, const ms_call *call, uint32_t run)
{
    if (t->w->ranks == 1) /* nothing is divided (NoGatherHandle) */
        return MS_OK;
    MS_TRY(fetch(t, call, run));
    return prefetch(t, call, run);
}

static ms_err after_run(trace *t, const ms_call *call, uint32_t run)
{
    bool back = call->verb == MS_RUN && call->run.pass != MS_FORWARD;
    if (t->w->how->views && t->saves[run])
        ms_deepspeedviews_save(t->w, &t->views, call->unit);
    if (t->w->how->views && back)
        MS_TRY(ms_deepspeedviews_drop(t->w, &t->views, call));
    if (t->w->ranks > 1)
        MS_TRY(release(t, call, run));
    return back ? ms_deepspeedbucket_ready(t->w, call, call->unit) : MS_OK;
}

/* The bucket is made once, when the engine is. */
static ms_err take_bucket(ms_deepspeed_writer *w, const ms_call *like)
{
    if (!w->how->contiguous)
        return MS_OK;
    return ms_deepspeedcalls_take(
        w, like,
        (ms_buffer){.name = "ipg_bucket",
                    .bytes = w->how->bucket * w->item_bytes,
                    .category = MS_COMMUNICATION},
        &w->bucket[0]);
}

ms_err ms_deepspeed3_write(ms_deepspeed_writer *w, const ms_program *old)
{
    trace t = {.w = w, .old = old};
    const ms_call *last = NULL; /* run of the backward under way */
    uint32_t run = 0;
    MS_TRY(record(&t));
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i];
        if (i == 0)
            MS_TRY(take_bucket(w, call));
        if (last != NULL && ms_deepspeedcalls_ends(call)) {
            MS_TRY(ms_deepspeedbucket_close(w, last));
            last = NULL;
        }
        if (ms_program_runs(call))
            MS_TRY(before_run(&t, call, run));
        MS_TRY(ms_program_add(w->program, *call, w->arena, w->fault));
        if (ms_program_runs(call))
            MS_TRY(after_run(&t, call, run++));
        if (call->verb == MS_RUN && call->run.pass != MS_FORWARD)
            last = call;
        if (call->verb == MS_STEP_SET && w->ranks > 1) {
            MS_TRY(gather_persistent(&t, call));
            MS_TRY(drop_parts(&t, call));
        }
    }
    return last != NULL ? ms_deepspeedbucket_close(w, last) : MS_OK;
}
