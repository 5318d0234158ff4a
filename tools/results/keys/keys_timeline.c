/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "timeline" in memsim run --json: what figures are drawn from. */

#include "plots/record/record.h"
#include "tools/results/schema/schema.h"

static const ms_key band_rows[] = {{.name = "phase",
                                    .type = MS_KEY_WORD,
                                    .names = ms_record_phases,
                                    .n_names = MS_N_PHASES + 1},
                                   MS_KEYS_COUNT("from_ns"),
                                   MS_KEYS_COUNT("to_ns")};
static const ms_keys band = MS_KEYS_OBJECT("phase", band_rows);

static const ms_key stream_rows[] = {{.name = "stream",
                                      .type = MS_KEY_WORD,
                                      .names = ms_names_stream,
                                      .n_names = MS_N_STREAMS},
                                     {.name = "work_ns",
                                      .type = MS_KEY_SOME,
                                      .names = ms_record_works,
                                      .n_names = MS_N_WORKS},
                                     {.name = "slices", .type = MS_KEY_TABLE}};
static const ms_keys stream = MS_KEYS_OBJECT("stream", stream_rows);

static const ms_key drawn_rows[] = {
    MS_KEYS_COUNT("rank"),
    MS_KEYS_COUNT_OR_NULL("end_ns"),
    MS_KEYS_COUNT_OR_NULL("end_event"),
    MS_KEYS_COUNT("recompute_ns"),
    {.name = "recompute_flops",
     .type = MS_KEY_COUNT,
     .help = "what the rank runs again in the step"},
    {.name = "points",
     .type = MS_KEY_TABLE,
     .help = "the device's level, in at most 600 rows: from t_ns (or event) "
             "on, each category that occurs, reserved_bytes, the highest "
             "until the next row, and, where anything is recomputed, "
             "recompute_ns and recompute_flops, what was so far; the highest "
             "level of each part of the step stays"},
    {.name = "phases",
     .type = MS_KEY_OBJECTS,
     .of = &band,
     .help = "phase (forward, backward, optimizer, or mixed where they "
             "alternate), from_ns, to_ns"},
    {.name = "streams",
     .type = MS_KEY_OBJECTS,
     .of = &stream,
     .help = "compute, then each that works: work_ns, what it does or waits "
             "for and how long; slices, the same for parts of at least 1/600 "
             "of the step"},
    {.name = "host_bytes",
     .type = MS_KEY_LEVELS,
     .null = true,
     .help = "highest level of host memory in each of 600 parts of the step"},
};
static const ms_keys drawn = MS_KEYS_OBJECT("drawn_rank", drawn_rows);

static const ms_key address_kind_rows[] = {
    MS_KEYS_COUNT("parameters"),  MS_KEYS_COUNT("optimizer_state"),
    MS_KEYS_COUNT("gradients"),   MS_KEYS_COUNT("inputs"),
    MS_KEYS_COUNT("activations"), MS_KEYS_COUNT("temporaries"),
    MS_KEYS_COUNT("workspace"),   MS_KEYS_COUNT("communication"),
    MS_KEYS_COUNT("waiting")};
static const ms_keys address_kinds =
    MS_KEYS_OBJECT("address_kinds", address_kind_rows);

static const ms_key address_block_rows[] = {
    {.name = "parameters", .type = MS_KEY_TABLE},
    {.name = "optimizer_state", .type = MS_KEY_TABLE},
    {.name = "gradients", .type = MS_KEY_TABLE},
    {.name = "inputs", .type = MS_KEY_TABLE},
    {.name = "activations", .type = MS_KEY_TABLE},
    {.name = "temporaries", .type = MS_KEY_TABLE},
    {.name = "workspace", .type = MS_KEY_TABLE},
    {.name = "communication", .type = MS_KEY_TABLE},
    {.name = "waiting", .type = MS_KEY_TABLE}};
static const ms_keys address_blocks =
    MS_KEYS_OBJECT("address_blocks", address_block_rows);

static const ms_key address_rows[] = {
    MS_KEYS_TEXT("allocator"),
    {.name = "height_bytes",
     .type = MS_KEY_COUNT,
     .help = "held at any time, laid end to end without the gaps between"},
    MS_KEYS_COUNT("reserved_bytes"),
    MS_KEYS_COUNT("live_bytes"),
    MS_KEYS_COUNT_OR_NULL("live_ns"),
    {.name = "live_event",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "most that was reserved; most that was allocated, and when"},
    {.name = "idle_bytes",
     .type = MS_KEY_COUNT,
     .help = "of the reserved unused then"},
    {.name = "segments", .type = MS_KEY_TABLE, .help = ""},
    {.name = "pages",
     .type = MS_KEY_TABLE,
     .help = "what is held: at_bytes (from the bottom of that height), bytes, "
             "from_ns, to_ns (or from_event, to_event)"},
    {.name = "at_peak",
     .type = MS_KEY_OBJECT,
     .of = &address_kinds,
     .help = "what live_bytes is made of; waiting: freed, and still used by "
             "another stream"},
    MS_KEYS_COUNT("n_blocks"),
    {.name = "n_merged",
     .type = MS_KEY_COUNT,
     .help = "blocks of the step; those too small to be shown singly"},
    {.name = "blocks",
     .type = MS_KEY_OBJECT,
     .of = &address_blocks,
     .help = "by what they are, in tables like those of segments; small ones "
             "share rows of the same area, bytes times time"}};
static const ms_keys addresses = MS_KEYS_OBJECT("addresses", address_rows);

static const ms_key without_rows[] = {
    MS_KEYS_TEXT("policy"),
    MS_KEYS_COUNT("end_ns"),
    MS_KEYS_COUNT("peak_bytes"),
    {.name = "points", .type = MS_KEY_TABLE},
};
static const ms_keys without = MS_KEYS_OBJECT("step_without", without_rows);

static const ms_key timeline_rows[] = {
    MS_KEYS_TEXT("title"),
    MS_KEYS_TEXT("subtitle"),
    MS_KEYS_COUNT("data_ranks"),
    {.name = "ranks",
     .type = MS_KEY_OBJECTS,
     .of = &drawn,
     .help = "per rank: end_ns (the step's), or end_event of a step that takes "
             "no time"},
    {.name = "layers",
     .type = MS_KEY_TABLE,
     .help = "of the rank with the highest peak, in order: name (of a block or "
             "a layer in none), saved_bytes, forward_ns, recompute_ns"},
    {.name = "without",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &without,
     .help =
         "where policies on what waits for backward (checkpoint, swap) "
         "change the step: that rank in the step without them: policy, what "
         "is left out, end_ns, peak_bytes, and points, from t_ns on "
         "allocated_bytes, thinned as above"},
    {.name = "addresses",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &addresses,
     .help = "with --allocator: where the pool's blocks lie on that rank"},
};
const ms_keys ms_keys_timeline = MS_KEYS_OBJECT("timeline", timeline_rows);
