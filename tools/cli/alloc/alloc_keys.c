/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim alloc --json for pools that traces went through, and the
 * columns of its CSV. */

#include "tools/cli/alloc/alloc_keys.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/diff/diff.h"

#define POOL(kind, member)                                                     \
    MS_KEYS_VIA(ms_alloc_pool_shown, pool),                                    \
        MS_KEYS_AT(kind, ms_alloc_pool, member)
#define SHOWN(kind, member) MS_KEYS_AT(kind, ms_alloc_pool_shown, member)

/* ---- statistics ---------------------------------------------------------- */

#define STAT(member)                                                           \
    MS_KEYS_COUNT(#member, MS_KEYS_AT(U64, ms_torch_stat, member))
static const ms_key stat_rows[] = {STAT(current), STAT(peak), STAT(allocated),
                                   STAT(freed)};
static const ms_keys stat = MS_KEYS_OBJECT("stat", stat_rows);

static uint8_t kind_of(const void *of)
{
    const ms_alloc_pool_shown *shown = of;
    return shown->pool->as.heap.kind;
}

static bool is_torch(const void *of)
{
    return kind_of(of) == MS_POOL_TORCH;
}

static bool is_heap(const void *of)
{
    return kind_of(of) != MS_POOL_TORCH;
}

static bool is_bfc(const void *of)
{
    return kind_of(of) == MS_POOL_BFC;
}

static bool is_moving(const void *of)
{
    return kind_of(of) == MS_POOL_CONTIGUOUS;
}

/* Says whether the pool counts what was requested; PyTorch 1.13 does not. */
static bool counts_requests(const void *of)
{
    const ms_alloc_pool_shown *shown = of;
    return is_heap(of) || shown->pool->setup.torch.version != MS_TORCH_V1_13;
}

static bool counts_requests_by_scope(const void *of)
{
    return is_torch(of) && counts_requests(of);
}

/* Makes the rows of "allocated_bytes.all" and the like, as far as the pool
 * counts them: heaps have neither small and large pools nor split blocks. */
static bool measure(uint32_t i, ms_arena *arena, ms_key *key)
{
    uint32_t which = i / MS_TORCH_N_SCOPES, scope = i % MS_TORCH_N_SCOPES;
    if (which >= MS_TORCH_N_MEASURES)
        return false;
    *key = (ms_key){
        .name = ms_arena_format(arena, "%s.%s", ms_torchview_measures[which],
                                ms_torchview_scopes[scope]),
        .type = MS_KEY_OBJECT,
        .optional = true,
        .of = &stat,
        .line = 6,
        MS_KEYS_VIA(ms_alloc_pool_shown, pool),
        .at = offsetof(ms_alloc_pool, stats.of) + i * sizeof(ms_torch_stat)};
    if (which == MS_TORCH_REQUESTED_BYTES)
        key->there =
            scope == MS_TORCH_ALL ? counts_requests : counts_requests_by_scope;
    else if (scope != MS_TORCH_ALL || which == MS_TORCH_INACTIVE_SPLIT ||
             which == MS_TORCH_INACTIVE_SPLIT_BYTES)
        key->there = is_torch;
    return key->name != NULL;
}

#define OF_ALL(measure, member)                                                \
    POOL(U64, stats.of[measure][MS_TORCH_ALL].member)
#define COUNT_OF(kind_is, called, ...)                                         \
    {                                                                          \
        .name = (called), .type = MS_KEY_COUNT, .optional = true,              \
        .there = (kind_is), __VA_ARGS__                                        \
    }
static const ms_key stats_rows[] = {
    {.name = "oversize_allocations",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &stat,
     POOL(NOT, stats.oversize_allocations),
     .there = is_torch,
     .line = 6},
    {.name = "oversize_segments",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &stat,
     POOL(NOT, stats.oversize_segments),
     .there = is_torch,
     .line = 6},
    MS_KEYS_COUNT("num_alloc_retries", POOL(U64, stats.retries), .line = 6),
    MS_KEYS_COUNT("num_ooms", POOL(U64, stats.ooms)),
    MS_KEYS_COUNT("num_device_alloc", POOL(U64, stats.device_allocs)),
    MS_KEYS_COUNT("num_device_free", POOL(U64, stats.device_frees)),
    {.name = "max_split_size", /* -1: there is none */
     .type = MS_KEY_INTEGER,
     .optional = true,
     POOL(I64, stats.max_split_bytes),
     .there = is_torch},
    /* Heaps use TensorFlow's names (tf.config.experimental.get_memory_info,
     * AllocatorStats) where torch has none. TensorFlow frees what other
     * streams use once they are past it, so that what is in use is what is
     * active. */
    COUNT_OF(is_heap, "touched_bytes", POOL(U64, told.touched_bytes)),
    COUNT_OF(is_heap, "largest_alloc_size", POOL(U64, told.largest_bytes)),
    COUNT_OF(is_heap, "largest_free_block_bytes",
             POOL(U64, told.largest_idle_bytes)),
    COUNT_OF(is_bfc, "num_allocs", OF_ALL(MS_TORCH_ALLOCATION, allocated)),
    COUNT_OF(is_bfc, "bytes_in_use", OF_ALL(MS_TORCH_ACTIVE_BYTES, current)),
    COUNT_OF(is_bfc, "peak_bytes_in_use", OF_ALL(MS_TORCH_ACTIVE_BYTES, peak)),
    COUNT_OF(is_bfc, "bytes_reserved",
             OF_ALL(MS_TORCH_RESERVED_BYTES, current)),
    COUNT_OF(is_bfc, "peak_bytes_reserved",
             OF_ALL(MS_TORCH_RESERVED_BYTES, peak)),
    COUNT_OF(is_bfc, "bytes_limit", POOL(U64, told.limit_bytes)),
    COUNT_OF(is_moving, "moves", POOL(U64, told.moves)),
    COUNT_OF(is_moving, "copies", POOL(U64, told.copies)),
    COUNT_OF(is_moving, "moved_bytes", POOL(U64, told.moved_bytes)),
};
static const ms_keys stats = {.name = "stats",
                              .rows = stats_rows,
                              .n = MS_KEYS_N(stats_rows),
                              .more = measure,
                              .more_before = "oversize_allocations"};

/* ---- segments ------------------------------------------------------------ */

#define BLOCK(kind, member) MS_KEYS_AT(kind, ms_torch_block_view, member)
static const ms_key block_rows[] = {
    MS_KEYS_COUNT("address", BLOCK(U64, address)),
    MS_KEYS_COUNT("size", BLOCK(U64, bytes)),
    MS_KEYS_COUNT("requested_size", BLOCK(U64, requested_bytes)),
    {.name = "state",
     .type = MS_KEY_WORD,
     BLOCK(ENUM, state),
     .names = ms_torchview_states,
     .n_names = MS_TORCH_INACTIVE + 1}};
static const ms_keys block = MS_KEYS_OBJECT("block", block_rows);

static ms_key_list blocks_of(const void *of)
{
    const ms_torch_segment_view *view =
        ((const ms_alloc_segment_shown *)of)->view;
    return (ms_key_list){(void *)view->blocks, view->n_blocks,
                         sizeof *view->blocks};
}

#define SEGMENT(kind, member)                                                  \
    MS_KEYS_VIA(ms_alloc_segment_shown, view),                                 \
        MS_KEYS_AT(kind, ms_torch_segment_view, member)
static const ms_key segment_rows[] = {
    MS_KEYS_COUNT("address", SEGMENT(U64, address)),
    MS_KEYS_COUNT("total_size", SEGMENT(U64, bytes)),
    MS_KEYS_COUNT("stream", SEGMENT(U64, stream)),
    {.name = "segment_type",
     .type = MS_KEY_WORD,
     .null = true,
     MS_KEYS_AT(TEXT, ms_alloc_segment_shown, type),
     .words = "small|large"},
    MS_KEYS_COUNT("allocated_size", SEGMENT(U64, allocated_bytes)),
    MS_KEYS_COUNT("active_size", SEGMENT(U64, active_bytes)),
    MS_KEYS_COUNT("requested_size", SEGMENT(U64, requested_bytes)),
    {.name = "is_expandable", .type = MS_KEY_BOOL, SEGMENT(BOOL, expandable)},
    {.name = "blocks",
     .type = MS_KEY_OBJECTS,
     .list = blocks_of,
     .element_line = 7,
     .of = &block}};
static const ms_keys segment = MS_KEYS_OBJECT("segment", segment_rows);

static ms_key_list segments_of(const void *of)
{
    const ms_alloc_pool_shown *shown = of;
    return (ms_key_list){shown->segments, shown->n_segments,
                         sizeof *shown->segments};
}

/* ---- pools --------------------------------------------------------------- */

#define FOLLOWED(called, member)                                               \
    MS_KEYS_COUNT(called, MS_KEYS_AT(U64, ms_allocfollow_result, member))
static const ms_key recorded_rows[] = {
    FOLLOWED("events", n_addresses), FOLLOWED("segment_events", n_answers),
    FOLLOWED("blocks", n_blocks), FOLLOWED("differences", n_different)};
static const ms_keys recorded = MS_KEYS_OBJECT("recorded", recorded_rows);

static bool is_of_text(const void *of)
{
    const ms_alloc_pool_shown *shown = of;
    return !shown->is_recorded;
}

static bool is_given(const void *of)
{
    const ms_alloc_pool_shown *shown = of;
    return shown->pool->follow.given;
}

static bool ran_out(const void *of)
{
    const ms_alloc_pool_shown *shown = of;
    return shown->pool->follow.play.n_oom > 0;
}

static const ms_key pool_rows[] = {
    {.name = "allocator", .type = MS_KEY_TEXT, POOL(TEXT, as.spec), .help = ""},
    {.name = "kind", .type = MS_KEY_TEXT, SHOWN(TEXT, kind), .help = ""},
    {.name = "version",
     .type = MS_KEY_TEXT,
     .null = true,
     SHOWN(TEXT, version),
     .help = ""},
    {.name = "va",
     .type = MS_KEY_WORD,
     SHOWN(TEXT, va),
     .words = "down|bump|firstfit|recorded",
     .help = "as given; which pool; whose rules hold (torch); whence addresses "
             "come"},
    {.name = "operations",
     .type = MS_KEY_COUNT,
     POOL(U64, follow.play.n_ops),
     .line = 5,
     .help = ""},
    {.name = "allocations",
     .type = MS_KEY_COUNT,
     POOL(U64, follow.play.n_allocs),
     .help = ""},
    {.name = "out_of_memory",
     .type = MS_KEY_COUNT,
     POOL(U64, follow.play.n_oom),
     .help = "how many; of the last, requests that the pool could not serve"},
    MS_KEYS_COUNT_OR_NULL("first_out_of_memory_line",
                          POOL(U32, follow.play.first_oom), .there = ran_out),
    MS_KEYS_COUNT("device_used_bytes", POOL(U64, device_used_bytes)),
    {.name = "recorded",
     .type = MS_KEY_OBJECT,
     .null = true,
     .optional = true,
     .of = &recorded,
     POOL(NOT, follow.result),
     .left_out = is_of_text,
     .there = is_given,
     .line = 5,
     .help = "of a history held against itself: what was compared, what "
             "differs"},
    {.name = "stats",
     .type = MS_KEY_OBJECT,
     .of = &stats,
     .line = 5,
     .help = "at the end, named as in torch.cuda.memory_stats(): "
             "MEASURE.SCOPE (all, small_pool, large_pool) with current, peak, "
             "allocated and freed; num_..."},
    {.name = "segments",
     .type = MS_KEY_OBJECTS,
     .list = segments_of,
     .of = &segment,
     .line = 5,
     .element_line = 6,
     .help = "at the end, with their blocks, as torch.cuda.memory_snapshot() "
             "has them"},
};
static const ms_keys pool = MS_KEYS_OBJECT("pool", pool_rows);
/* Of several traces, the totals: without the segments, the last of the rows. */
static const ms_keys pool_totals = {
    .name = "pool", .rows = pool_rows, .n = MS_KEYS_N(pool_rows) - 1};

/* ---- what grows ---------------------------------------------------------- */

static bool has_no_site(const void *of)
{
    const ms_alloc_leak_shown *shown = of;
    return shown->site == NULL;
}

static ms_key_list counts_of(const void *of)
{
    const ms_alloc_leak_shown *shown = of;
    return (ms_key_list){&shown->levels->count, shown->n,
                         sizeof *shown->levels};
}

static ms_key_list bytes_of(const void *of)
{
    const ms_alloc_leak_shown *shown = of;
    return (ms_key_list){&shown->levels->bytes, shown->n,
                         sizeof *shown->levels};
}

#define LEAK(kind, member) MS_KEYS_AT(kind, ms_alloc_leak_shown, member)
static const ms_key leak_rows[] = {
    MS_KEYS_TEXT_OR_NULL("site", LEAK(TEXT, site)),
    COUNT_OF(has_no_site, "request_bytes", LEAK(U64, request_bytes)),
    COUNT_OF(has_no_site, "stream", LEAK(U64, stream)),
    {.name = "alive", .type = MS_KEY_LEVELS, .list = counts_of},
    {.name = "bytes", .type = MS_KEY_LEVELS, .list = bytes_of}};
static const ms_keys leak = MS_KEYS_OBJECT("leak", leak_rows);

static bool is_periodic(const void *of)
{
    const ms_alloc_sheet *sheet = of;
    return sheet->leaks->by == MS_ALLOC_PERIOD;
}

static ms_key_list leaks_of(const void *of)
{
    const ms_alloc_sheet *sheet = of;
    return (ms_key_list){sheet->grown, sheet->leaks->n_found,
                         sizeof *sheet->grown};
}

#define LEAKS(kind, member)                                                    \
    MS_KEYS_VIA(ms_alloc_sheet, leaks), MS_KEYS_AT(kind, ms_alloc_leaks, member)
static const char *const marks[] = {"step", "reset", "trace", "period"};
static const ms_key leaks_rows[] = {
    MS_KEYS_COUNT("steps", LEAKS(U32, n_points)),
    {.name = "steps_by",
     .type = MS_KEY_WORD,
     LEAKS(ENUM, by),
     .names = marks,
     .n_names = MS_KEYS_N(marks)},
    MS_KEYS_COUNT_OR_NULL("period_allocations", LEAKS(U32, period),
                          .there = is_periodic),
    {.name = "groups",
     .type = MS_KEY_OBJECTS,
     .list = leaks_of,
     .of = &leak,
     .element_line = 3,
     .help = "what grows: its site, or the size and stream of its requests; "
             "how many and how many bytes are alive at each step"}};
static const ms_keys leaks = MS_KEYS_OBJECT("leaks", leaks_rows);

/* ---- the run ------------------------------------------------------------- */

#define HELD(kind, member) MS_KEYS_AT(kind, ms_alloc_held, member)
static const ms_key held_rows[] = {
    MS_KEYS_COUNT("blocks", HELD(U64, blocks)),
    MS_KEYS_COUNT("bytes", HELD(U64, bytes)),
    MS_KEYS_COUNT("reserved_bytes", HELD(U64, reserved_bytes)),
    {.name = "anew", .type = MS_KEY_BOOL, HELD(BOOL, anew)}};
static const ms_keys held = MS_KEYS_OBJECT("held", held_rows);

static bool is_recorded(const void *of)
{
    const ms_alloc_sheet *sheet = of;
    return sheet->run->source.is_recorded;
}

static bool has_leaks(const void *of)
{
    const ms_alloc_sheet *sheet = of;
    return sheet->leaks != NULL;
}

static ms_key_list pools_of(const void *of)
{
    const ms_alloc_sheet *sheet = of;
    return (ms_key_list){sheet->pools, sheet->run->n_pools,
                         sizeof *sheet->pools};
}

#define SHEET(kind, member) MS_KEYS_AT(kind, ms_alloc_sheet, member)
#define RUN(kind, member)                                                      \
    MS_KEYS_VIA(ms_alloc_sheet, run), MS_KEYS_AT(kind, ms_alloc_run, member)
/* The members that are equal for all pools. */
#define FIRST(kind, member)                                                    \
    MS_KEYS_VIA(ms_alloc_sheet, first), MS_KEYS_AT(kind, ms_alloc_pool, member)
#define TRACE_ROWS(of_pool)                                                    \
    {.name = "trace",                                                          \
     .type = MS_KEY_TEXT,                                                      \
     RUN(TEXT, source.name),                                                   \
     .help = ""},                                                              \
        {.name = "device_bytes",                                               \
         .type = MS_KEY_COUNT,                                                 \
         FIRST(U64, setup.torch.total_bytes),                                  \
         .help = ""},                                                          \
        {.name = "base_bytes",                                                 \
         .type = MS_KEY_COUNT,                                                 \
         FIRST(U64, setup.torch.base_bytes),                                   \
         .help = ""},                                                          \
        {.name = "conf",                                                       \
         .type = MS_KEY_TEXT,                                                  \
         RUN(TEXT, head.conf),                                                 \
         .help = "the file, the device's memory, what others hold of it, and " \
                 "the options that the trace has"},                            \
        {.name = "held_at_start",                                              \
         .type = MS_KEY_OBJECT,                                                \
         .optional = true,                                                     \
         .of = &held,                                                          \
         RUN(NOT, held),                                                       \
         .there = is_recorded,                                                 \
         .line = 1,                                                            \
         .help = "of a recording: in segments that other options do not "      \
                 "reach, unless it is allocated anew"},                        \
    {                                                                          \
        .name = "allocators", .type = MS_KEY_OBJECTS, .list = pools_of,        \
        .of = (of_pool), .line = 1, .element_line = 4, .end_line = 1,          \
        .help = "a pool for each --allocator"                                  \
    }
#define LEAKS_ROW                                                              \
    {                                                                          \
        .name = "leaks", .type = MS_KEY_OBJECT, .optional = true,              \
        .of = &leaks, .there = has_leaks, .line = 1, .help = "with --leaks"    \
    }
static const ms_key alloc_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", SHEET(TEXT, memsim)),
    TRACE_ROWS(&pool),
    LEAKS_ROW,
};
const ms_keys ms_alloc_keys = MS_KEYS_OBJECT("alloc", alloc_rows);

/* ---- several traces ------------------------------------------------------ */

static const ms_key trace_rows[] = {TRACE_ROWS(&pool_totals)};
static const ms_keys trace = MS_KEYS_OBJECT("trace", trace_rows);

static ms_key_list traces_of(const void *of)
{
    const ms_alloc_sheet *sheet = of;
    return (ms_key_list){sheet->of, sheet->traces->n, sizeof *sheet->of};
}

static ms_key_list differences_of(const void *of)
{
    const ms_pairings *pairs = &((const ms_alloc_sheet *)of)->traces->pairs;
    return (ms_key_list){pairs->groups, pairs->n, sizeof *pairs->groups};
}

static bool has_pairs(const void *of)
{
    return ((const ms_alloc_sheet *)of)->traces->without == NULL;
}

#define TRACES(kind, member)                                                   \
    MS_KEYS_VIA(ms_alloc_sheet, traces),                                       \
        MS_KEYS_AT(kind, ms_alloc_traces, member)
static const ms_key traces_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", SHEET(TEXT, memsim)),
    {.name = "traces",
     .type = MS_KEY_OBJECTS,
     .list = traces_of,
     .of = &trace,
     .line = 1,
     .element_line = 2,
     .help = "each as that of one trace, without segments"},
    {.name = "lowest",
     .type = MS_KEY_COUNT,
     TRACES(U32, lowest),
     .line = 1,
     .help = ""},
    {.name = "highest",
     .type = MS_KEY_COUNT,
     TRACES(U32, highest),
     .help = "which of them, from 0, allocate least and most at their peaks, "
             "by the first pool"},
    {.name = "difference_bytes",
     .type = MS_KEY_INTEGER,
     TRACES(I64, gap),
     .help = "of these peaks"},
    {.name = "differences",
     .type = MS_KEY_OBJECTS,
     .null = true,
     .list = differences_of,
     .there = has_pairs,
     .of = &ms_diff_keys_group,
     .line = 1,
     .element_line = 2,
     .help = "what one of these two holds at its peak and the other lacks, as "
             "memsim diff tells it: the lowest is the first"},
    MS_KEYS_TEXT_OR_NULL("without", TRACES(TEXT, without), .line = 1,
                         .help = "why there are none"),
    LEAKS_ROW,
};
const ms_keys ms_alloc_keys_traces = MS_KEYS_OBJECT("traces", traces_rows);

/* ---- CSV ----------------------------------------------------------------- */

#define LINE(called, member, ...)                                              \
    MS_KEYS_COUNT(called, MS_KEYS_AT(U64, ms_allocplay_line, member),          \
                  .help = __VA_ARGS__)
static bool has_id(const void *of)
{
    return ((const ms_allocplay_line *)of)->has_id;
}

static const ms_key line_rows[] = {
    LINE("i", i, ""),
    MS_KEYS_TEXT("op", MS_KEYS_AT(CHARS, ms_allocplay_line, op),
                 .help = "of the operation, from 0; its letter"),
    {.name = "id",
     .type = MS_KEY_INTEGER,
     MS_KEYS_AT(U64, ms_allocplay_line, id),
     .there = has_id,
     .absent = "-1",
     .help = "of the block; of w and c the stream; -1: neither"},
    LINE("ok", ok, "0: the pool could not serve it"),
    LINE("addr", address, "of the block that was handed out; else 0"),
    LINE("allocated", allocated_bytes, ""),
    LINE("active", active_bytes, ""),
    LINE("reserved", reserved_bytes, ""),
    LINE("requested", requested_bytes, ""),
    LINE("inactive_split", inactive_split_bytes,
         "bytes after it, as torch.cuda.memory_stats() has them"),
    LINE("n_allocation", allocations, ""),
    LINE("n_active", active, ""),
    LINE("n_inactive_split", inactive_splits, ""),
    LINE("n_segment", segments, "how many of these there are"),
    LINE("retries", retries, ""),
    LINE("ooms", ooms, "how many so far"),
    LINE("dev_used", device_used_bytes, "bytes of the device in use")};
const ms_keys ms_alloc_keys_line = MS_KEYS_OBJECT("line", line_rows);
