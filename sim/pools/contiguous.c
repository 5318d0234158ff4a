/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DeepSpeed's contiguous arena (sim/pools/README.md 18; read from
 * contiguous_memory_allocator.py, edaa7221): one buffer, no alignment; the
 * smallest run of idle bytes that is large enough serves, of several the one
 * that came into the table of runs first.  Where none is large enough though
 * together they are, everything moves down: fragmentation costs copies and
 * never fails a request.  (DeepSpeed looks at the largest run as it was after
 * the last release, and stops with an assertion where requests have since taken
 * from it; here it is looked at anew.)  A buffer without a size gets longer at
 * its end by what is missing; a run there counts as freed then. */
#include "sim/pools/blocks/ledger.h"
#include "sim/pools/heap.h"

static uint64_t round_bytes(const ms_torch *pool, uint64_t bytes)
{
    (void)pool;
    return bytes;
}

/* ---- the table of runs --------------------------------------------------- */

static ms_err reserve_runs(ms_torch *pool, ms_fault *fault)
{
    pool_heap *heap = pool->heap;
    if (heap->runs_capacity >= pool->blocks_capacity)
        return MS_OK;
    heap->runs = ms_arena_grow(pool->arena, heap->runs, &heap->runs_capacity,
                               pool->blocks_capacity, sizeof *heap->runs);
    return heap->runs != NULL ? MS_OK : ms_fail_nomem(fault);
}

/* At the end of the table. */
static void enter(ms_torch *pool, uint32_t row)
{
    pool_heap *heap = pool->heap;
    heap->runs[row] = (torch_block){.bytes = pool->blocks[row].bytes,
                                    .address = ++heap->n_places};
    ms_freeset_insert(&heap->idle, heap->runs, row);
}

static void leave(ms_torch *pool, uint32_t row)
{
    ms_freeset_remove(&pool->heap->idle, pool->heap->runs, row);
}

static void join(ms_torch *pool, uint32_t row, uint32_t neighbour)
{
    if (neighbour == MS_NONE || !torch_idle(&pool->blocks[neighbour]))
        return;
    leave(pool, neighbour);
    ms_ledger_absorb(pool, row, neighbour);
}

static void give(ms_torch *pool, uint32_t row)
{
    join(pool, row, pool->blocks[row].next);
    join(pool, row, pool->blocks[row].prev);
    ms_heap_note_ends(pool, row);
    enter(pool, row);
}

static bool apart(const ms_torch *pool, uint32_t row, uint32_t next)
{
    (void)pool;
    (void)row;
    (void)next;
    return false;
}

/* ---- defragmentation ----------------------------------------------------- */

/* By so many bytes, in pieces where old and new place overlap. */
static void move_down(ms_torch *pool, uint32_t row, uint64_t by)
{
    torch_block *block = &pool->blocks[row];
    ms_pool_stats *stats = &pool->heap->stats;
    ms_torch_entry entry = {.action = MS_TORCH_MOVE,
                            .address = block->address - by,
                            .bytes = block->requested_bytes,
                            .stream = pool->streams[block->stream].handle,
                            .from = block->address};
    block->address -= by;
    stats->moves++;
    stats->copies += block->bytes / by + (block->bytes % by > 0);
    stats->moved_bytes += block->bytes;
    if (pool->log != NULL)
        pool->log(pool->log_of, &entry);
}

/* The idle row before its neighbour comes behind it, link by link. */
static void swap_with_next(ms_torch *pool, uint32_t idle)
{
    torch_block *blocks = pool->blocks, *run = &blocks[idle];
    uint32_t row = run->next;
    torch_block *block = &blocks[row];
    block->prev = run->prev;
    run->next = block->next;
    run->prev = row;
    block->next = idle;
    if (block->prev != MS_NONE)
        blocks[block->prev].next = row;
    if (run->next != MS_NONE)
        blocks[run->next].prev = idle;
    run->address += block->bytes;
    ms_heap_note_ends(pool, row);
    ms_heap_note_ends(pool, idle);
}

/* The lowest run moves up through all that lies above it. */
static void defragment(ms_torch *pool)
{
    uint32_t run = pool->heap->first;
    while (!torch_idle(&pool->blocks[run]))
        run = pool->blocks[run].next;
    leave(pool, run);
    while (pool->blocks[run].next != MS_NONE) {
        uint32_t next = pool->blocks[run].next;
        if (torch_idle(&pool->blocks[next])) {
            join(pool, run, next);
            ms_heap_note_ends(pool, run);
            continue;
        }
        move_down(pool, next, pool->blocks[run].bytes);
        swap_with_next(pool, run);
    }
    enter(pool, run);
}

/* ---- requests ------------------------------------------------------------ */

static uint64_t idle_bytes(const ms_torch *pool)
{
    return pool->reserved_bytes -
           ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES);
}

/* Makes the buffer long enough, if it can be. */
static ms_err grow(ms_torch *pool, torch_request *request)
{
    const pool_heap *heap = pool->heap;
    uint64_t fixed = heap->options.size_bytes;
    uint32_t row = MS_NONE;
    if (fixed > 0 && heap->n_segments == 0 && fixed <= ms_heap_left(pool))
        MS_TRY(ms_heap_segment(pool, request, fixed, &row));
    else if (fixed == 0 && request->bytes <= MS_TORCH_MOST_BYTES)
        MS_TRY(ms_heap_extend(pool, request,
                              heap_round_up(request->bytes - idle_bytes(pool),
                                            TORCH_ROUND_SEGMENT),
                              &row));
    MS_TRY(reserve_runs(pool, request->fault));
    if (row != MS_NONE)
        give(pool, row);
    return MS_OK;
}

static ms_err take(ms_torch *pool, torch_request *request)
{
    const pool_heap *heap = pool->heap;
    MS_TRY(reserve_runs(pool, request->fault));
    if (idle_bytes(pool) < request->bytes)
        MS_TRY(grow(pool, request));
    if (idle_bytes(pool) < request->bytes)
        return MS_OK;
    if (ms_freeset_least(&heap->idle, heap->runs, request->bytes) == MS_NONE)
        defragment(pool);
    uint32_t row = ms_freeset_least(&heap->idle, heap->runs, request->bytes);
    leave(pool, row);
    request->block = row;
    if (pool->blocks[row].bytes > request->bytes) {
        request->block = ms_ledger_cut(pool, row, request->bytes);
        ms_heap_note_ends(pool, request->block);
        enter(pool, row);
    }
    return MS_OK;
}

const pool_rules ms_contiguous_rules = {round_bytes, take, give, apart};
