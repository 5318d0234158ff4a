/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim alloc --json: pools that a trace went through, or static
 * plans of it. */

#include "tools/results/keys/keys.h"

/* ---- pools --------------------------------------------------------------- */

static const ms_key stat_rows[] = {
    MS_KEYS_COUNT("current"), MS_KEYS_COUNT("peak"), MS_KEYS_COUNT("allocated"),
    MS_KEYS_COUNT("freed")};
static const ms_keys stat = MS_KEYS_OBJECT("stat", stat_rows);

/* "allocated_bytes.all" and its like, as far as the pool counts them. */
static bool measure(uint32_t i, ms_arena *arena, ms_key *key)
{
    if (i >= (uint32_t)MS_TORCH_N_MEASURES * MS_TORCH_N_SCOPES)
        return false;
    *key = (ms_key){
        .name = ms_arena_format(arena, "%s.%s",
                                ms_torchview_measures[i / MS_TORCH_N_SCOPES],
                                ms_torchview_scopes[i % MS_TORCH_N_SCOPES]),
        .type = MS_KEY_OBJECT,
        .optional = true,
        .of = &stat};
    return key->name != NULL;
}

static const ms_key stats_rows[] = {
    {.name = "oversize_allocations",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &stat},
    {.name = "oversize_segments",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &stat},
    MS_KEYS_COUNT("num_alloc_retries"),
    MS_KEYS_COUNT("num_ooms"),
    MS_KEYS_COUNT("num_device_alloc"),
    MS_KEYS_COUNT("num_device_free"),
    {.name = "max_split_size", .type = MS_KEY_INTEGER, .optional = true},
    /* of heaps */
    {.name = "touched_bytes", .type = MS_KEY_COUNT, .optional = true},
    {.name = "largest_alloc_size", .type = MS_KEY_COUNT, .optional = true},
    {.name = "largest_free_block_bytes",
     .type = MS_KEY_COUNT,
     .optional = true},
    {.name = "num_allocs", .type = MS_KEY_COUNT, .optional = true},
    {.name = "bytes_in_use", .type = MS_KEY_COUNT, .optional = true},
    {.name = "peak_bytes_in_use", .type = MS_KEY_COUNT, .optional = true},
    {.name = "bytes_reserved", .type = MS_KEY_COUNT, .optional = true},
    {.name = "peak_bytes_reserved", .type = MS_KEY_COUNT, .optional = true},
    {.name = "bytes_limit", .type = MS_KEY_COUNT, .optional = true},
    {.name = "moves", .type = MS_KEY_COUNT, .optional = true},
    {.name = "copies", .type = MS_KEY_COUNT, .optional = true},
    {.name = "moved_bytes", .type = MS_KEY_COUNT, .optional = true},
};
static const ms_keys stats = {.name = "stats",
                              .rows = stats_rows,
                              .n = MS_KEYS_N(stats_rows),
                              .more = measure};

static const ms_key block_rows[] = {
    MS_KEYS_COUNT("address"),
    MS_KEYS_COUNT("size"),
    MS_KEYS_COUNT("requested_size"),
    {.name = "state",
     .type = MS_KEY_WORD,
     .words = "active_allocated|active_pending_free|inactive"}};
static const ms_keys block = MS_KEYS_OBJECT("block", block_rows);

static const ms_key segment_rows[] = {
    MS_KEYS_COUNT("address"),
    MS_KEYS_COUNT("total_size"),
    MS_KEYS_COUNT("stream"),
    {.name = "segment_type",
     .type = MS_KEY_WORD,
     .null = true,
     .words = "small|large"},
    MS_KEYS_COUNT("allocated_size"),
    MS_KEYS_COUNT("active_size"),
    MS_KEYS_COUNT("requested_size"),
    {.name = "is_expandable", .type = MS_KEY_BOOL},
    {.name = "blocks", .type = MS_KEY_OBJECTS, .of = &block}};
static const ms_keys segment = MS_KEYS_OBJECT("segment", segment_rows);

static const ms_key recorded_rows[] = {
    MS_KEYS_COUNT("events"), MS_KEYS_COUNT("segment_events"),
    MS_KEYS_COUNT("blocks"), MS_KEYS_COUNT("differences")};
static const ms_keys recorded = MS_KEYS_OBJECT("recorded", recorded_rows);

static const ms_key pool_rows[] = {
    {.name = "allocator", .type = MS_KEY_TEXT, .help = ""},
    {.name = "kind", .type = MS_KEY_TEXT, .help = ""},
    {.name = "version", .type = MS_KEY_TEXT, .null = true, .help = ""},
    {.name = "va",
     .type = MS_KEY_WORD,
     .words = "down|bump|firstfit|recorded",
     .help = "as given; which pool; whose rules hold (torch); whence addresses "
             "come"},
    {.name = "operations", .type = MS_KEY_COUNT, .help = ""},
    {.name = "allocations", .type = MS_KEY_COUNT, .help = ""},
    {.name = "out_of_memory",
     .type = MS_KEY_COUNT,
     .help = "how many; of the last, requests that the pool could not serve"},
    MS_KEYS_COUNT_OR_NULL("first_out_of_memory_line"),
    MS_KEYS_COUNT("device_used_bytes"),
    {.name = "recorded",
     .type = MS_KEY_OBJECT,
     .null = true,
     .optional = true,
     .of = &recorded,
     .help = "of a history held against itself: what was compared, what "
             "differs"},
    {.name = "stats",
     .type = MS_KEY_OBJECT,
     .of = &stats,
     .help = "at the end, named as in torch.cuda.memory_stats(): "
             "MEASURE.SCOPE (all, small_pool, large_pool) with current, peak, "
             "allocated and freed; num_..."},
    {.name = "segments",
     .type = MS_KEY_OBJECTS,
     .of = &segment,
     .help = "at the end, with their blocks, as torch.cuda.memory_snapshot() "
             "has them"},
};
static const ms_keys pool = MS_KEYS_OBJECT("pool", pool_rows);

static const ms_key leak_rows[] = {
    MS_KEYS_TEXT_OR_NULL("site"),
    {.name = "request_bytes", .type = MS_KEY_COUNT, .optional = true},
    {.name = "stream", .type = MS_KEY_COUNT, .optional = true},
    {.name = "alive", .type = MS_KEY_LEVELS},
    {.name = "bytes", .type = MS_KEY_LEVELS}};
static const ms_keys leak = MS_KEYS_OBJECT("leak", leak_rows);

static const ms_key leaks_rows[] = {
    MS_KEYS_COUNT("steps"),
    {.name = "steps_by", .type = MS_KEY_WORD, .words = "step|reset|period"},
    MS_KEYS_COUNT_OR_NULL("period_allocations"),
    {.name = "groups",
     .type = MS_KEY_OBJECTS,
     .of = &leak,
     .help = "what grows: its site, or the size and stream of its requests; "
             "how many and how many bytes are alive at each step"}};
static const ms_keys leaks = MS_KEYS_OBJECT("leaks", leaks_rows);

static const ms_key held_rows[] = {MS_KEYS_COUNT("blocks"),
                                   MS_KEYS_COUNT("bytes"),
                                   MS_KEYS_COUNT("reserved_bytes"),
                                   {.name = "anew", .type = MS_KEY_BOOL}};
static const ms_keys held = MS_KEYS_OBJECT("held", held_rows);

static const ms_key alloc_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim"),
    {.name = "trace", .type = MS_KEY_TEXT, .help = ""},
    {.name = "device_bytes", .type = MS_KEY_COUNT, .help = ""},
    {.name = "base_bytes", .type = MS_KEY_COUNT, .help = ""},
    {.name = "conf",
     .type = MS_KEY_TEXT,
     .help = "the file, the device's memory, what others hold of it, and the "
             "options that the trace has"},
    {.name = "held_at_start",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &held,
     .help = "of a recording: in segments that other options do not reach, "
             "unless it is allocated anew"},
    {.name = "allocators",
     .type = MS_KEY_OBJECTS,
     .of = &pool,
     .help = "a pool for each --allocator"},
    {.name = "leaks",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &leaks,
     .help = "with --leaks"},
};
const ms_keys ms_keys_alloc = MS_KEYS_OBJECT("alloc", alloc_rows);

/* ---- static plans -------------------------------------------------------- */

static const ms_key plan_rows[] = {
    {.name = "allocator", .type = MS_KEY_TEXT, .help = ""},
    {.name = "order", .type = MS_KEY_TEXT, .help = ""},
    {.name = "rule",
     .type = MS_KEY_TEXT,
     .null = true,
     .help = "as given; its order; the rule whose plan it is"},
    {.name = "arena_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "null where there is no plan within the capacity"},
    {.name = "lower_bound_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "no plan is lower"},
    {.name = "proven", .type = MS_KEY_BOOL, .help = ""},
    {.name = "steps",
     .type = MS_KEY_COUNT,
     .help = "whether no plan is smaller; steps that the exact search took"}};
static const ms_keys plan = MS_KEYS_OBJECT("plan", plan_rows);

static const ms_key plans_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim"),
    MS_KEYS_TEXT("trace"),
    {.name = "buffers", .type = MS_KEY_COUNT, .help = ""},
    {.name = "bound_bytes",
     .type = MS_KEY_COUNT,
     .help = "how many there are; what is alive at once, which no arena is "
             "smaller than"},
    {.name = "allocators",
     .type = MS_KEY_OBJECTS,
     .of = &plan,
     .help = "a plan for each --allocator arena"},
};
const ms_keys ms_keys_alloc_plans = MS_KEYS_OBJECT("plans", plans_rows);
