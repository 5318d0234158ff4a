/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/pools/steps/planned.h"
#include "sim/pools/steps/pooledmap.h"
#include "sim/pools/steps/pooledsteps.h"
#include "sim/pools/steps/poolinstant.h"
#include "sim/replay/hostclock.h"
#include "sim/timeline.h"

#include <assert.h>

/* Blocks of a plan by row, and which of them outlive it. */
typedef struct pooled_blocks {
    uint32_t *block; /* per row, MS_NONE: not there */
    uint32_t *first; /* per rank and persistent storage: a row that is left */
    uint32_t *next;  /* per row: another of the same storage */
    const ms_plan *plan;
} pooled_blocks;

typedef struct pooled_run {
    const ms_pooled_setup *setup;
    ms_pooled_course course;
    const ms_machine *machine;
    ms_timeline *line;
    ms_pooled *out;
    ms_arena scratch;
    ms_fault *fault;
    ms_pool **pools; /* per rank */

    /* the step at hand */
    const ms_timeline *now;
    ms_hostclock *clocks; /* per rank, where there are several streams */
    uint32_t *done;       /* per rank and stream: the first op, in that stream's
                             list, that the host has not seen end */
    uint32_t *queue_at, *queue; /* ops by rank and stream; NULL: one stream */
    pooled_blocks blocks, before;
    uint32_t step; /* 0: construction */
    bool last, endless, failed;
    bool early, known; /* does its peak foretell that of the last step, which
                          is known? */

    struct ms_pooled_moment *looks; /* poolinstant.h */
    uint32_t raises_capacity;
    ms_arena *arena;
    ms_pooledmap map; /* of the last step */
} pooled_run;

/* ---- streams ------------------------------------------------------------- */

static uint32_t stream_of(const ms_plan *plan, uint32_t op)
{
    return plan->op[op].rank * (uint32_t)MS_N_STREAMS + plan->op[op].stream;
}

/* Ops by stream, so that the host can see how far each is. */
static ms_err list_queues(pooled_run *run)
{
    const ms_plan *plan = run->now->plan;
    uint32_t n = plan->n_ranks * (uint32_t)MS_N_STREAMS;
    ms_arena_drop(&run->scratch, run->queue);
    run->queue = NULL;
    if (!plan->wait_at)
        return MS_OK;
    run->queue_at = ms_arena_take(&run->scratch, n + 1, sizeof(uint32_t));
    run->done = ms_arena_take_raw(&run->scratch, n, sizeof(uint32_t));
    run->queue =
        ms_arena_take_raw(&run->scratch, plan->n_ops, sizeof(uint32_t));
    if (!run->queue_at || !run->done || !run->queue)
        return ms_fail_nomem(run->fault);
    for (uint32_t op = 0; op < plan->n_ops; op++)
        run->queue_at[stream_of(plan, op) + 1]++;
    for (uint32_t s = 0; s < n; s++) {
        run->queue_at[s + 1] += run->queue_at[s];
        run->done[s] = run->queue_at[s];
    }
    for (uint32_t op = 0; op < plan->n_ops; op++)
        run->queue[run->done[stream_of(plan, op)]++] = op;
    for (uint32_t s = 0; s < n; s++)
        run->done[s] = run->queue_at[s];
    return MS_OK;
}

/* What the rank's streams have done by now, of what was issued before op. */
static ms_err see_streams(pooled_run *run, uint16_t rank, uint32_t op)
{
    const ms_timeline *now = run->now;
    if (!run->queue)
        return MS_OK;
    for (uint32_t stream = 0; stream < MS_N_STREAMS; stream++) {
        uint32_t s = rank * (uint32_t)MS_N_STREAMS + stream, n = 0;
        uint32_t *at = &run->done[s];
        for (; *at < run->queue_at[s + 1] && run->queue[*at] < op &&
               now->end_ns[run->queue[*at]] <= run->clocks[rank].host_ns;
             ++*at)
            n++;
        if (n > 0)
            MS_TRY(ms_torchstreams_finish(run->pools[rank], stream, n,
                                          run->fault));
    }
    return MS_OK;
}

/* Between steps the device comes to rest. */
static ms_err rest(pooled_run *run)
{
    for (uint16_t rank = 0; rank < run->now->plan->n_ranks; rank++)
        for (uint32_t s = 0; run->queue && s < MS_N_STREAMS; s++)
            MS_TRY(ms_torchstreams_finish(run->pools[rank], s, UINT64_MAX,
                                          run->fault));
    return MS_OK;
}

/* ---- requests ------------------------------------------------------------ */

static void run_out(pooled_run *run, uint32_t op, uint64_t bytes)
{
    uint16_t rank = run->now->plan->op[op].rank;
    const ms_pool *pool = run->pools[rank];
    const ms_torch_setup *torch = &run->setup->torch;
    uint64_t used_bytes = ms_torchview_device_used(pool) + torch->base_bytes;
    run->failed = true;
    if (run->endless)
        return;
    run->out->oom = true;
    run->out->lack = (ms_pooled_oom){
        .step = run->now->plan->op[op].pass == MS_START ? 0 : run->step,
        .rank = rank,
        .op = ms_pooledsteps_same_op(run->line, run->now, op),
        .requested_bytes = bytes,
        .allowed_bytes = ms_pool_allowed(pool),
        .total_bytes = torch->total_bytes,
        .free_bytes = torch->total_bytes - used_bytes,
        .allocated_bytes = ms_torchview_current(pool, MS_TORCH_ALLOCATED_BYTES),
        .reserved_bytes = ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES)};
}

static bool on_device(const ms_row *row)
{
    return row->pool == MS_DEVICE_POOL && row->bytes > 0;
}

static ms_err request(pooled_run *run, uint32_t op, uint32_t r)
{
    const ms_plan *plan = run->now->plan;
    const ms_row *row = &plan->row[r];
    uint32_t *block = &run->blocks.block[r];
    if (!on_device(row) || *block != MS_NONE || run->failed)
        return MS_OK;
    uint64_t bytes = ms_active_asked(plan, row);
    if (bytes == 0)
        return MS_OK;
    uint16_t rank = plan->op[op].rank;
    run->out->ranks[rank].requests++;
    MS_TRY(ms_pool_malloc(run->pools[rank], bytes, ms_active_memory(plan, row),
                          block, run->fault));
    if (*block == MS_NONE)
        run_out(run, op, bytes);
    if (run->map.maps)
        ms_pooledmap_take(&run->map, rank, run->pools[rank], *block, r);
    return MS_OK;
}

static ms_err release(pooled_run *run, uint32_t r)
{
    const ms_plan *plan = run->now->plan;
    const ms_row *row = &plan->row[r];
    uint32_t block = run->blocks.block[r];
    ms_pool *pool = run->pools[plan->op[row->op].rank];
    if (block == MS_NONE)
        return MS_OK;
    run->blocks.block[r] = MS_NONE;
    ms_streams streams = run->queue ? ms_active_foreign(plan, row) : 0;
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        if ((streams & 1u << s) != 0)
            MS_TRY(ms_torchstreams_record(pool, block, s, run->fault));
    ms_pool_free(pool, block);
    if (run->map.maps)
        ms_pooledmap_free(&run->map, plan->op[row->op].rank);
    return MS_OK;
}

/* ---- from step to step --------------------------------------------------- */

static bool outlives(const ms_plan *plan, const ms_row *row)
{
    return row->storage < plan->graph->n_persistent;
}

/* Lists the rows that the step before left by rank and storage, so that adopt
 * finds them without a search. */
static ms_err list_left(pooled_run *run)
{
    pooled_blocks *left = &run->before;
    const ms_plan *plan = left->plan;
    uint32_t n_persistent = plan->graph->n_persistent;
    size_t n = (size_t)plan->n_ranks * n_persistent;
    left->first = ms_arena_take_raw(&run->scratch, n, sizeof(uint32_t));
    left->next =
        ms_arena_take_raw(&run->scratch, plan->n_rows, sizeof(uint32_t));
    if (!left->first || !left->next)
        return ms_fail_nomem(run->fault);
    for (size_t i = 0; i < n; i++)
        left->first[i] = MS_NONE;
    for (uint32_t r = plan->n_rows; r-- > 0;) {
        const ms_row *row = &plan->row[r];
        if (left->block[r] == MS_NONE || !outlives(plan, row))
            continue;
        uint32_t *first =
            &left->first[plan->op[row->op].rank * n_persistent + row->storage];
        left->next[r] = *first;
        *first = r;
    }
    return MS_OK;
}

/* A row at the start that was left by the step before keeps its block. */
static void adopt(pooled_run *run, uint32_t r)
{
    pooled_blocks *left = &run->before;
    const ms_plan *plan = run->now->plan;
    const ms_row *row = &plan->row[r];
    if (!on_device(row) || row->storage >= left->plan->graph->n_persistent)
        return;
    uint32_t *at =
        &left->first[plan->op[row->op].rank * left->plan->graph->n_persistent +
                     row->storage];
    while (*at != MS_NONE && left->plan->row[*at].bytes != row->bytes)
        at = &left->next[*at];
    if (*at == MS_NONE)
        return;
    run->blocks.block[r] = left->block[*at];
    left->block[*at] = MS_NONE;
    *at = left->next[*at];
}

/* What the step before left and this one does not find at its start goes. */
static void drop_left(pooled_run *run)
{
    pooled_blocks *left = &run->before;
    for (uint32_t r = 0; r < left->plan->n_rows; r++)
        if (left->block[r] != MS_NONE)
            ms_pool_free(run->pools[left->plan->op[left->plan->row[r].op].rank],
                         left->block[r]);
    ms_arena_drop(&run->scratch, left->block);
    ms_arena_drop(&run->scratch, left->first);
    ms_arena_drop(&run->scratch, left->next);
}

static ms_err turn_over(pooled_run *run)
{
    const ms_plan *plan = run->now->plan;
    run->before = run->blocks;
    run->blocks = (pooled_blocks){.plan = plan};
    run->blocks.block =
        ms_arena_take_raw(&run->scratch, plan->n_rows, sizeof(uint32_t));
    if (!run->blocks.block)
        return ms_fail_nomem(run->fault);
    for (uint32_t r = 0; r < plan->n_rows; r++)
        run->blocks.block[r] = MS_NONE;
    if (!run->before.plan)
        return MS_OK;
    MS_TRY(list_left(run));
    for (uint32_t op = 0; op < plan->n_ops && plan->op[op].pass == MS_START;
         op++)
        for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at;
             r++)
            adopt(run, r);
    drop_left(run);
    return MS_OK;
}

/* ---- what is seen -------------------------------------------------------- */

static ms_err raise_to(pooled_run *run, uint32_t op, uint64_t bytes)
{
    ms_timeline *line = run->line;
    if (line->n_raises == run->raises_capacity)
        line->raises =
            ms_arena_grow(run->arena, line->raises, &run->raises_capacity,
                          line->n_raises + 1, sizeof *line->raises);
    if (!line->raises)
        return ms_fail_nomem(run->fault);
    line->raises[line->n_raises++] = (struct ms_raise){op, bytes};
    return MS_OK;
}

/* After the requests of an op of the last step. */
static ms_err watch(pooled_run *run, uint32_t op)
{
    uint16_t rank = run->now->plan->op[op].rank;
    const ms_pool *pool = run->pools[rank];
    ms_pooled_rank *out = &run->out->ranks[rank];
    uint64_t reserved = ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES);
    uint64_t allocated = ms_torchview_peak(pool, MS_TORCH_ALLOCATED_BYTES);
    if (reserved > out->reserved_peak_bytes) {
        out->reserved_peak_bytes = reserved;
        MS_TRY(raise_to(run, op, reserved));
    }
    if (allocated > out->allocated_peak_bytes) {
        out->allocated_peak_bytes = allocated;
        out->at_peak.op = op;
    }
    return MS_OK;
}

/* The step before the last one, where it is of the same plan, tells better than
 * the exact pool where the peak will be: its blocks have the pool's sizes. */
static bool foretells(const pooled_run *run)
{
    return !run->setup->brief && !run->known &&
           run->step + 1 == run->setup->steps && run->now == run->line;
}

static void foretell(pooled_run *run, uint32_t op)
{
    uint16_t rank = run->now->plan->op[op].rank;
    struct ms_pooled_moment *look = &run->looks[rank];
    uint64_t allocated =
        ms_torchview_peak(run->pools[rank], MS_TORCH_ALLOCATED_BYTES);
    if (allocated > look->allocated_bytes)
        *look =
            (struct ms_pooled_moment){.op = op, .allocated_bytes = allocated};
}

/* ---- a step -------------------------------------------------------------- */

static ms_err do_op(pooled_run *run, uint32_t op)
{
    const ms_plan *plan = run->now->plan;
    const ms_plan_op *at = &plan->op[op];
    if (run->queue)
        ms_hostclock_sync(&run->clocks[at->rank], op);
    if (at->alloc_at < at[1].alloc_at) {
        if (run->map.maps)
            ms_pooledmap_time(&run->map, run->now, op, true);
        MS_TRY(see_streams(run, at->rank, op));
    }
    if (ms_pooledsteps_empties(plan, at))
        MS_TRY(ms_pool_empty_cache(run->pools[at->rank], run->fault));
    for (uint32_t r = at->alloc_at; r < at[1].alloc_at; r++)
        MS_TRY(request(run, op, r));
    if (run->failed)
        return MS_OK;
    if (run->last && (at->alloc_at < at[1].alloc_at || at->pass == MS_START))
        MS_TRY(watch(run, op));
    if (run->early && at->alloc_at < at[1].alloc_at)
        foretell(run, op);
    if (run->last && op == run->looks[at->rank].op)
        ms_poolinstant_look(plan, op, run->pools[at->rank],
                            &run->looks[at->rank]);
    if (run->queue) {
        ms_hostclock_issue(&run->clocks[at->rank], op);
        MS_TRY(ms_torchstreams_queue(run->pools[at->rank], at->stream, 1,
                                     run->fault));
    }
    if (run->map.maps && at->release_at < at[1].release_at)
        ms_pooledmap_time(&run->map, run->now, op, false);
    for (uint32_t i = at->release_at; i < at[1].release_at; i++)
        MS_TRY(release(run, plan->release[i]));
    return MS_OK;
}

/* Called at the start of the last step and at its end: told then counts what a
 * pool that moves blocks has moved between the two. */
static void tell(pooled_run *run, uint16_t rank, bool from)
{
    ms_pool_stats *told = &run->out->ranks[rank].told, before = *told;
    ms_pool_tell(run->pools[rank], told);
    if (from)
        return;
    told->moves -= before.moves;
    told->copies -= before.copies;
    told->moved_bytes -= before.moved_bytes;
}

static void count_calls(pooled_run *run, bool from)
{
    for (uint16_t rank = 0; rank < run->line->plan->n_ranks; rank++) {
        ms_torch_stats stats;
        ms_torchview_stats(run->pools[rank], &stats);
        ms_pooledsteps_count(run->out, run->step, rank, &stats, from);
        if (from)
            ms_torch_reset_peaks(run->pools[rank]);
        if (run->last)
            tell(run, rank, from);
    }
}

/* The map of the last step begins with what it finds, and where. */
static ms_err open_map(pooled_run *run)
{
    const ms_plan *plan = run->now->plan;
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
        MS_TRY(ms_pooledmap_start(&run->map, rank, run->pools[rank],
                                  &run->scratch, run->arena, run->fault));
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint16_t rank = plan->op[plan->row[r].op].rank;
        ms_pooledmap_take(&run->map, rank, run->pools[rank],
                          run->blocks.block[r], r);
    }
    return MS_OK;
}

static ms_err start_clocks(pooled_run *run)
{
    uint32_t n = run->now->plan->n_ranks;
    run->clocks = ms_arena_take_raw(&run->scratch, n, sizeof *run->clocks);
    if (!run->clocks)
        return ms_fail_nomem(run->fault);
    for (uint32_t rank = 0; rank < n; rank++)
        run->clocks[rank] = ms_hostclock_open(run->now, run->machine, rank);
    return MS_OK;
}

static ms_err do_step(pooled_run *run, const ms_timeline *now)
{
    const ms_plan *plan = now->plan;
    run->now = now;
    MS_TRY(start_clocks(run));
    MS_TRY(list_queues(run));
    MS_TRY(turn_over(run));
    run->map.is_last = run->last = run->step == run->setup->steps;
    run->early = foretells(run);
    for (uint32_t rank = 0; run->early && rank < plan->n_ranks; rank++)
        run->looks[rank].allocated_bytes = 0;
    if (run->last && run->map.maps)
        MS_TRY(open_map(run));
    count_calls(run, true);
    for (uint32_t op = 0; op < plan->n_ops && !run->failed; op++)
        MS_TRY(do_op(run, op));
    if (!run->failed)
        count_calls(run, false);
    return rest(run);
}

/* ---- all steps ----------------------------------------------------------- */

/* The same pool without a bound, which takes what it needs. */
static void make_endless(const pooled_run *run, ms_pool_setup *setup)
{
    const ms_timeline *highest =
        ms_pooledsteps_highest(&run->course, run->line);
    ms_torch_setup_unbound(&setup->torch, ms_pooledsteps_level(highest));
    setup->heap.allow_growth = true;
    setup->heap.fraction = 0;
    setup->heap.limit_bytes = setup->heap.size_bytes = 0;
}

static ms_err open_pools(pooled_run *run)
{
    ms_pool_setup setup = {run->setup->torch, run->setup->heap};
    uint32_t n = run->line->plan->n_ranks;
    if (run->endless)
        make_endless(run, &setup);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are meant */
    run->pools = ms_arena_take(&run->scratch, n, sizeof *run->pools);
    if (!run->pools)
        return ms_fail_nomem(run->fault);
    for (uint32_t rank = 0; rank < n; rank++) {
        ms_pooledmap_listen(&run->map, rank, &setup.torch);
        MS_TRY(
            ms_pool_new(&setup, &run->scratch, &run->pools[rank], run->fault));
        if (run->setup->fraction > 0 && !run->endless)
            ms_pool_set_fraction(run->pools[rank], run->setup->fraction);
    }
    return MS_OK;
}

static ms_err do_steps(pooled_run *run)
{
    run->blocks = (pooled_blocks){0};
    run->failed = false;
    MS_TRY(open_pools(run));
    for (run->step = 1; run->step <= run->setup->steps && !run->failed;
         run->step++)
        MS_TRY(do_step(run, ms_pooledsteps_line(run->setup, &run->course,
                                                run->line, run->step)));
    return ms_pooledmap_end(&run->map, run->fault);
}

static ms_err run_all(pooled_run *run)
{
    ms_err err = do_steps(run);
    for (uint16_t rank = 0;
         err == MS_OK && !run->failed && rank < run->line->plan->n_ranks;
         rank++) {
        ms_pooled_rank *out = &run->out->ranks[rank];
        const ms_pool *pool = run->pools[rank];
        out->active_peak_bytes = ms_torchview_peak(pool, MS_TORCH_ACTIVE_BYTES);
        out->requested_peak_bytes =
            ms_torchview_peak(pool, MS_TORCH_REQUESTED_BYTES);
        out->segments = ms_torchview_current(pool, MS_TORCH_SEGMENT);
        out->retries = ms_torchview_retries(pool);
        ms_pooledsteps_close(run->out, rank);
    }
    ms_arena_free(&run->scratch);
    run->scratch = (ms_arena){0};
    return err;
}

static ms_err clear_ranks(pooled_run *run)
{
    uint32_t n = run->line->plan->n_ranks;
    run->out->ranks = ms_arena_take(run->arena, n, sizeof *run->out->ranks);
    if (!run->out->ranks)
        return ms_fail_nomem(run->fault);
    for (uint32_t rank = 0; rank < n; rank++)
        run->out->ranks[rank].at_peak.op = MS_NONE;
    if (run->setup->addresses)
        run->out->maps = ms_arena_take(run->arena, n, sizeof *run->out->maps);
    if (run->setup->addresses && !run->out->maps)
        return ms_fail_nomem(run->fault);
    run->map = (ms_pooledmap){
        .maps = run->out->maps, .n = n, .takes_time = run->line->step_ns > 0};
    run->line->n_raises = run->raises_capacity = 0;
    run->line->raises = NULL;
    return ms_pooledsteps_open(run->out, n, run->arena, run->fault);
}

static ms_err run_pools(pooled_run *run)
{
    const ms_timeline *line = run->line;
    MS_TRY(ms_poolinstant_guess(line, run->setup->brief, run->arena,
                                &run->looks, run->fault));
    MS_TRY(run_all(run));
    if (run->out->oom) {
        run->endless = true;
        MS_TRY(clear_ranks(run));
        MS_TRY(run_all(run));
    }
    if (ms_poolinstant_found(line, run->looks, run->out))
        return MS_OK;
    run->known = true;
    MS_TRY(clear_ranks(run));
    MS_TRY(run_all(run));
    ms_poolinstant_found(line, run->looks, run->out);
    return MS_OK;
}

static void close_line(const pooled_run *run)
{
    ms_timeline *line = run->line;
    const ms_pooled_oom *lack = &run->out->lack;
    ms_pooledsteps_exact(line, run->out);
    for (uint16_t rank = 0; rank < line->plan->n_ranks; rank++) {
        ms_rank_levels *levels = &line->ranks[rank];
        const ms_pooled_rank *out = &run->out->ranks[rank];
        if (out->reserved_peak_bytes < levels->reserved_peak_bytes)
            continue; /* there is no device with as much */
        levels->active_peak_bytes = out->active_peak_bytes;
        levels->requested_peak_bytes = out->requested_peak_bytes;
        levels->reserved_peak_bytes = out->reserved_peak_bytes;
    }
    if (run->out->oom)
        line->lack = (ms_lack){.missing_bytes = lack->requested_bytes,
                               .t_ns = line->start_ns[lack->op],
                               .op = lack->op};
    line->pooled = run->out;
}

static ms_err run_plan(const pooled_run *run)
{
    MS_TRY(ms_planned_run(run->machine, run->arena, run->line, run->out,
                          run->fault));
    ms_pooledsteps_planned(run->out);
    return MS_OK;
}

ms_err ms_pooled_run(const ms_pooled_setup *setup,
                     const ms_pooled_course *course, const ms_machine *machine,
                     ms_arena *arena, ms_timeline *line, ms_fault *fault)
{
    ms_pooled *out = ms_arena_take(arena, 1, sizeof *out);
    if (!out)
        return ms_fail_nomem(fault);
    out->setup = *setup;
    pooled_run run = {.setup = &out->setup,
                      .course = course ? *course : (ms_pooled_course){0},
                      .machine = machine,
                      .line = line,
                      .out = out,
                      .arena = arena,
                      .fault = fault};
    assert(setup->steps > 0 && !line->by_device);
    out->kinds = run.course.kinds;
    out->n_kinds = run.course.n;
    MS_TRY(clear_ranks(&run));
    if (setup->heap.kind == MS_POOL_ARENA)
        MS_TRY(run_plan(&run));
    else
        MS_TRY(run_pools(&run));
    close_line(&run);
    return MS_OK;
}
