/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests and frees of the torch pool: rounding, search, split, merge
 * (sim/pools/README.md 3 to 6).  torchgrow.c says what happens to a request
 * that finds no idle block. */
#include "sim/pools/blocks/ledger.h"

#include <assert.h>
#include <string.h>

const char *const ms_torch_policies[] = {"down", "bump", "firstfit"};
const char *const ms_torch_actions[] = {
    "alloc",         "free_requested", "free_completed",
    "segment_alloc", "segment_free",   "segment_map",
    "segment_unmap", "snapshot",       "oom",
    "move"};

void ms_torch_setup_init(ms_torch_setup *setup, uint64_t total_bytes)
{
    *setup = (ms_torch_setup){.version = MS_TORCH_V2_11,
                              .policy = MS_TORCH_DOWN,
                              .total_bytes = total_bytes};
    ms_torchconf_init(&setup->options);
}

void ms_torch_setup_unbound(ms_torch_setup *setup, uint64_t needed_bytes)
{
    setup->total_bytes = needed_bytes > MS_TORCH_MOST_BYTES / 8
                             ? MS_TORCH_MOST_BYTES
                             : 4 * needed_bytes + (UINT64_C(1) << 40);
    setup->base_bytes = 0;
    setup->options.fraction = 0;
}

ms_err ms_torch_new(const ms_torch_setup *setup, ms_arena *arena,
                    ms_torch **pool, ms_fault *fault)
{
    assert(setup->total_bytes <= MS_TORCH_MOST_BYTES);
    ms_torch *made = ms_arena_take(arena, 1, sizeof *made);
    if (made == NULL)
        return ms_fail_nomem(fault);
    made->version = setup->version;
    made->options = setup->options;
    made->arena = arena;
    made->log = setup->log;
    made->log_of = setup->log_of;
    made->limit_bytes = UINT64_MAX;
    made->spare_block = made->spare_node = made->spare_range = MS_NONE;
    ms_vram_init(&made->vram, setup);
    if (setup->options.fraction > 0)
        ms_torch_set_fraction(made, setup->options.fraction);
    *pool = made;
    return MS_OK;
}

/* ---- statistics ---------------------------------------------------------- */

void ms_torch_reset_peaks(ms_torch *pool)
{
    for (uint32_t i = 0; i < MS_TORCH_N_MEASURES; i++) {
        torch_tally *tally = &pool->tally[i];
        tally->peak[0] = tally->current[0];
        tally->peak[1] = tally->current[1];
        tally->peak[2] = tally->current[0] + tally->current[1];
    }
    pool->oversize_allocations.peak = pool->oversize_allocations.current;
    pool->oversize_segments.peak = pool->oversize_segments.current;
}

/* ---- sizes --------------------------------------------------------------- */

static uint64_t round_up(uint64_t bytes, uint64_t quantum)
{
    return (bytes + quantum - 1) / quantum * quantum;
}

static uint32_t log2_of(uint64_t n)
{
    return 63 - (uint32_t)__builtin_clzll(n);
}

/* Up to the next of the steps into which divisions cut an interval between two
 * powers of two (roundup_power2_next_division in CUDACachingAllocator.cpp). */
static uint64_t round_power(uint64_t bytes, uint32_t divisions)
{
    uint64_t floor = UINT64_C(1) << log2_of(bytes);
    uint64_t part = floor >> log2_of(divisions);
    if (bytes == floor)
        return bytes;
    return part == 0 ? 2 * floor : round_up(bytes, part);
}

static uint64_t round_bytes(const ms_torch *pool, uint64_t bytes)
{
    const ms_torch_options *options = &pool->options;
    if (bytes < TORCH_QUANTUM)
        return TORCH_QUANTUM;
    /* The intervals of roundup_power2_divisions begin at 1 MiB, 2^20. */
    uint32_t log = log2_of(bytes), interval = log > 20 ? log - 20 : 0;
    if (interval >= MS_TORCH_INTERVALS)
        interval = MS_TORCH_INTERVALS - 1;
    uint32_t divisions = options->divisions[interval];
    if (divisions > 0 && bytes > TORCH_QUANTUM * divisions &&
        bytes <= options->bypass_bytes) {
        if (divisions > 1)
            return round_power(bytes, divisions);
        if (pool->version <= MS_TORCH_V2_1)
            return bytes;
    }
    return round_up(bytes, TORCH_QUANTUM);
}

static uint64_t segment_bytes(const ms_torch *pool, uint64_t bytes)
{
    if (bytes <= TORCH_SMALL_MOST)
        return TORCH_SMALL_SEGMENT;
    if (bytes < TORCH_OWN_SEGMENT)
        return pool->options.large_segment_bytes;
    return round_up(bytes, TORCH_ROUND_SEGMENT);
}

/* ---- search -------------------------------------------------------------- */

/* What a block of a range could grow to. */
static uint64_t extent(const ms_torch *pool, uint32_t row)
{
    const torch_block *block = &pool->blocks[row];
    if (block->next == MS_NONE ||
        (pool->blocks[block->next].flags & TORCH_MAPPED) != 0)
        return block->bytes;
    return block->bytes + pool->blocks[block->next].bytes;
}

/* On: prefers blocks that are not at the growing end of a range.  Off: blocks
 * of ranges left over from before do not serve. */
static uint32_t choose_in_ranges(const ms_torch *pool, const torch_freeset *set,
                                 uint32_t row)
{
    const torch_block *blocks = pool->blocks;
    if (!pool->options.expandable) {
        while (row != MS_NONE && blocks[row].range != MS_NONE)
            row = ms_freeset_next(set, blocks, row);
        return row;
    }
    while (blocks[row].range != MS_NONE) {
        uint32_t next = ms_freeset_next(set, blocks, row);
        if (next == MS_NONE || extent(pool, next) >= extent(pool, row))
            return row;
        row = next;
    }
    return row;
}

static bool watches_age(const ms_torch *pool)
{
    return pool->limit_bytes != UINT64_MAX && pool->options.gc_threshold > 0;
}

static uint32_t find_block(ms_torch *pool, const torch_request *request)
{
    const torch_freeset *set =
        pool->streams[request->stream].idle[request->large];
    uint64_t most = pool->options.max_split_bytes;
    if (watches_age(pool))
        pool->searches[request->large]++;
    uint32_t row = ms_freeset_least(set, pool->blocks, request->bytes);
    if (row != MS_NONE && pool->blocks[row].range != MS_NONE)
        row = choose_in_ranges(pool, set, row);
    if (row == MS_NONE)
        return MS_NONE;
    uint64_t bytes = pool->blocks[row].bytes;
    if (request->bytes < most && bytes >= most)
        return MS_NONE;
    if (request->bytes >= most &&
        bytes >= request->bytes + pool->options.max_slack_bytes)
        return MS_NONE;
    ms_ledger_leave_set(pool, row);
    return row;
}

/* ---- split and hand out -------------------------------------------------- */

static bool should_split(const ms_torch *pool, const torch_request *request)
{
    uint64_t rest = pool->blocks[request->block].bytes - request->bytes;
    if (!request->large || pool->options.expandable)
        return rest >= TORCH_QUANTUM;
    return request->bytes < pool->options.max_split_bytes &&
           rest > TORCH_SMALL_MOST;
}

/* Cuts the block to size where it should be; returns the one to hand out. */
static uint32_t fit(ms_torch *pool, const torch_request *request)
{
    uint32_t row = request->block;
    const torch_block *found = &pool->blocks[row];
    bool was_split = torch_split(found), counts = found->range == MS_NONE;
    bool large = request->large;
    if (should_split(pool, request)) {
        row = ms_ledger_cut(pool, row, request->bytes);
        ms_ledger_join_set(pool, request->block);
        if (counts && was_split) {
            ms_ledger_lower(pool, MS_TORCH_INACTIVE_SPLIT_BYTES, large,
                            request->bytes);
        } else if (counts) {
            ms_ledger_raise(pool, MS_TORCH_INACTIVE_SPLIT_BYTES, large,
                            pool->blocks[request->block].bytes);
            ms_ledger_raise(pool, MS_TORCH_INACTIVE_SPLIT, large, 1);
        }
    } else if (counts && was_split) {
        ms_ledger_lower(pool, MS_TORCH_INACTIVE_SPLIT_BYTES, large,
                        found->bytes);
        ms_ledger_lower(pool, MS_TORCH_INACTIVE_SPLIT, large, 1);
    }
    return row;
}

/* ---- malloc -------------------------------------------------------------- */

ms_err ms_torch_prepare(ms_torch *pool, torch_request *request, uint64_t stream)
{
    MS_TRY(
        ms_torchstreams_find(pool, stream, &request->stream, request->fault));
    torch_stream *at = &pool->streams[request->stream];
    if (at->idle[request->large] == NULL) {
        torch_freeset *set = ms_arena_take_raw(pool->arena, 1, sizeof *set);
        if (set == NULL)
            return ms_fail_nomem(request->fault);
        ms_freeset_init(set);
        at->idle[request->large] = set;
    }
    return ms_ledger_reserve(pool, 2, request->fault);
}

ms_err ms_torch_malloc(ms_torch *pool, uint64_t bytes, uint64_t stream,
                       uint32_t *block, ms_fault *fault)
{
    /* A request that is larger than any device fails like one of this size, and
     * would overflow when it is rounded. */
    uint64_t most = 2 * MS_TORCH_MOST_BYTES,
             asked = bytes < most ? bytes : most;
    uint64_t rounded = round_bytes(pool, asked);
    torch_request request = {.bytes = rounded,
                             .segment_bytes = segment_bytes(pool, rounded),
                             .large = rounded > TORCH_SMALL_MOST,
                             .fault = fault};
    assert(bytes > 0);
    *block = MS_NONE;
    if (pool->n_events > 0)
        ms_torchstreams_process(pool);
    MS_TRY(ms_torch_prepare(pool, &request, stream));
    request.block = find_block(pool, &request);
    if (request.block == MS_NONE) {
        if (watches_age(pool))
            MS_TRY(ms_torchgrow_collect(pool, fault));
        MS_TRY(ms_torchgrow_any(pool, &request));
        if (request.block == MS_NONE) {
            pool->ooms++;
            ms_ledger_note(pool, MS_TORCH_OOM, ms_vram_left(&pool->vram),
                           rounded, request.stream);
            return MS_OK;
        }
    }
    *block = fit(pool, &request);
    ms_ledger_book(pool, *block, bytes);
    return MS_OK;
}

/* ---- free ---------------------------------------------------------------- */

/* The host lets go: no longer allocated, still active. */
static void request_free(ms_torch *pool, uint32_t row)
{
    torch_block *block = &pool->blocks[row];
    bool large = (block->flags & TORCH_LARGE) != 0;
    assert((block->flags & TORCH_ALLOCATED) != 0);
    block->flags &= (uint16_t)~TORCH_ALLOCATED;
    ms_ledger_note(pool, MS_TORCH_FREE_REQUESTED, block->address,
                   block->requested_bytes, block->stream);
    ms_ledger_lower(pool, MS_TORCH_ALLOCATION, large, 1);
    ms_ledger_lower(pool, MS_TORCH_ALLOCATED_BYTES, large, block->bytes);
    if (block->bytes >= pool->options.max_split_bytes)
        ms_ledger_bump(&pool->oversize_allocations, false);
}

void ms_torch_free(ms_torch *pool, uint32_t block)
{
    request_free(pool, block);
    if (pool->blocks[block].uses != MS_NONE)
        ms_torchstreams_defer(pool, block);
    else
        ms_ledger_complete(pool, block);
}

void ms_torch_free_later(ms_torch *pool, uint32_t block)
{
    request_free(pool, block);
    ms_torchstreams_forget(pool, block);
    pool->blocks[block].flags |= TORCH_LATER;
}

void ms_torch_free_now(ms_torch *pool, uint32_t block)
{
    assert((pool->blocks[block].flags & TORCH_LATER) != 0);
    pool->blocks[block].flags &= (uint16_t)~TORCH_LATER;
    ms_ledger_complete(pool, block);
}

uint64_t ms_torch_rounded(const ms_torch *pool, uint64_t bytes, bool *small)
{
    uint64_t rounded_bytes = round_bytes(pool, bytes);
    *small = rounded_bytes <= TORCH_SMALL_MOST;
    return rounded_bytes;
}

/* ---- the outside --------------------------------------------------------- */

ms_err ms_torch_empty_cache(ms_torch *pool, ms_fault *fault)
{
    return ms_torchgrow_release_all(pool, fault);
}

/* Since 2.11 a fraction of 1 is no limit. */
void ms_torch_set_fraction(ms_torch *pool, double fraction)
{
    pool->limit_bytes = UINT64_MAX;
    if (fraction < 1 || pool->version < MS_TORCH_V2_11)
        pool->limit_bytes =
            (uint64_t)(fraction * (double)pool->vram.total_bytes);
}

void ms_torch_set_base(ms_torch *pool, uint64_t bytes)
{
    pool->vram.base_bytes = bytes;
}

ms_err ms_torch_set_conf(ms_torch *pool, const char *conf, const char *where,
                         ms_fault *fault)
{
    double before = pool->options.fraction;
    MS_TRY(
        ms_torchconf_change(conf, where, pool->version, &pool->options, fault));
    if (pool->options.fraction != before)
        ms_torch_set_fraction(pool, pool->options.fraction);
    return MS_OK;
}

void ms_torch_answer(ms_torch *pool, const ms_torch_entry *list, uint32_t n)
{
    pool->vram.answers = list;
    pool->vram.n_answers = n;
    pool->vram.at_answer = 0;
}

uint32_t ms_torch_answers_taken(const ms_torch *pool)
{
    return pool->vram.at_answer;
}
