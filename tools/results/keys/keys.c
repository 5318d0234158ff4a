/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of the other results. */

#include "tools/results/keys/keys.h"
#include "tools/alive/alive_keys.h"
#include "tools/results/keys/compare_rows.h"
#include "tools/search/fit.h"

/* ---- compare ------------------------------------------------------------- */

/* What ms_compare_rows gives to a difference. */
static bool column(uint32_t i, ms_arena *arena, ms_key *key)
{
    (void)arena;
    if (i >= ms_compare_rows_n)
        return false;
    *key = (ms_key){.name = ms_compare_rows[i].key, .type = MS_KEY_INTEGER};
    return true;
}

static const ms_key difference_rows[] = {MS_KEYS_COUNT("variant"),
                                         MS_KEYS_COUNT("against")};
static const ms_keys difference = {.name = "difference",
                                   .rows = difference_rows,
                                   .n = MS_KEYS_N(difference_rows),
                                   .more = column};

static const ms_key explained_rows[] = {
    {.name = "variants",
     .type = MS_KEY_OBJECTS,
     .of = &ms_alive_keys_instants,
     .help = "at and total_bytes of the two, as in explain"},
    {.name = "groups",
     .type = MS_KEY_OBJECTS,
     .of = &ms_alive_keys_change,
     .help = "tensors held differently, largest first: as in explain, but "
             "difference_bytes, and variants with bytes, why, next_reader of "
             "each; a tensor that is not alive has 0 bytes, and why says where "
             "it went"},
};
static const ms_keys explained = MS_KEYS_OBJECT("explained", explained_rows);

static const ms_key refused_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim"),
    {.name = "status", .type = MS_KEY_WORD, .words = "refused|infeasible"},
    MS_KEYS_TEXT("message"),
    MS_KEYS_TEXT("policy"),
};
static const ms_keys refused = MS_KEYS_OBJECT("refused", refused_rows);

static const ms_key pool_group_rows[] = {
    MS_KEYS_COUNT("against"),
    MS_KEYS_COUNT("best"),
    {.name = "variants", .type = MS_KEY_LEVELS}};
static const ms_keys pool_group = MS_KEYS_OBJECT("pool_group", pool_group_rows);

static const ms_key compare_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim"),
    {.name = "model",
     .type = MS_KEY_TEXT,
     .null = true,
     .help = "null where the variants are of several"},
    {.name = "names",
     .type = MS_KEY_TEXTS,
     .help = "of the variants: what varies"},
    {.name = "variants",
     .type = MS_KEY_OBJECTS,
     .of = &ms_keys_run,
     .or_of = &refused,
     .help = "the object of run --json for each; of one that was refused "
             "status (refused or infeasible), message and policy"},
    {.name = "differences",
     .type = MS_KEY_OBJECTS,
     .of = &difference,
     .help = "for each variant behind the first that is there, minus that one: "
             "variant, against (numbers from 1), then the columns of --csv "
             "that are bytes or ns: PHASE_CATEGORY_bytes is what "
             "phase_peaks_by_category has"},
    {.name = "pools",
     .type = MS_KEY_OBJECTS,
     .of = &pool_group,
     .help = "variants (numbers from 1) that differ in their allocators alone: "
             "the first and the best, which reserves least and is not out of "
             "memory where another is not; pool.by_step of each tells the "
             "steps"},
    {.name = "explain",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &explained,
     .help = "null without --explain"},
};
const ms_keys ms_keys_compare = MS_KEYS_OBJECT("compare", compare_rows);

/* ---- fit ----------------------------------------------------------------- */

static const ms_keys chosen_settings = {.name = "chosen_settings",
                                        .any = "^training\\."};

static const ms_key set_up_rows[] = {
    MS_KEYS_COUNT("point"),
    MS_KEYS_TEXT("policy"),
    MS_KEYS_TEXT("words"),
    MS_KEYS_COUNT("batch"),
    {.name = "settings", .type = MS_KEY_OBJECT, .of = &chosen_settings},
    MS_KEYS_COUNT("peak_allocated_bytes"),
    MS_KEYS_COUNT("peak_reserved_bytes"),
    MS_KEYS_COUNT("used_bytes"),
    {.name = "fits", .type = MS_KEY_BOOL},
    {.name = "proven",
     .type = MS_KEY_BOOL,
     .help = "the numbers are those of \"allocator\", as memsim run has them"},
    {.name = "headroom_bytes", .type = MS_KEY_INTEGER},
    MS_KEYS_COUNT("host_peak_bytes"),
    MS_KEYS_COUNT("host_reserved_peak_bytes"),
    MS_KEYS_COUNT("step_ns"),
    MS_KEYS_COUNT("recompute_ns"),
    MS_KEYS_COUNT("stall_ns"),
    MS_KEYS_COUNT("exposed_comm_ns"),
    {.name = "tokens_per_second", .type = MS_KEY_NUMBER, .null = true}};
static const ms_keys set_up = MS_KEYS_OBJECT("set_up", set_up_rows);

static const ms_key without_rows[] = {
    MS_KEYS_TEXT("lacks"),
    {.name = "set_up", .type = MS_KEY_OBJECT, .null = true, .of = &set_up}};
static const ms_keys without = MS_KEYS_OBJECT("without", without_rows);

static const ms_keys rungs = {.name = "rungs", .any = "^[0-9]+$"};

static const ms_key max_rows[] = {
    MS_KEYS_TEXT("key"),
    MS_KEYS_COUNT("value"),
    MS_KEYS_COUNT_OR_NULL("over"),
    MS_KEYS_COUNT("cap"),
    MS_KEYS_COUNT("pays"),
    {.name = "samples_per_second", .type = MS_KEY_OBJECT, .of = &rungs},
    MS_KEYS_COUNT("values_tried"),
    MS_KEYS_COUNT("replayed")};
static const ms_keys max = MS_KEYS_OBJECT("max", max_rows);

/* What ms_fitchoices_all gives to "dimensions". */
static bool dimension(uint32_t i, ms_arena *arena, ms_key *key)
{
    (void)arena;
    if (i >= MS_FIT_N_AXES)
        return false;
    *key = (ms_key){
        .name = ms_fitchoices_all[i].name, .type = MS_KEY_COUNT, .null = true};
    return true;
}
static const ms_keys dimensions = {.name = "dimensions", .more = dimension};

static const ms_key searched_rows[] = {
    MS_KEYS_COUNT("set_ups"),
    MS_KEYS_COUNT("replayed"),
    MS_KEYS_COUNT("refused"),
    MS_KEYS_COUNT("too_big"),
    MS_KEYS_COUNT("beaten"),
    MS_KEYS_COUNT("too_slow"),
    MS_KEYS_COUNT("decided"),
    MS_KEYS_COUNT("unproven"),
    {.name = "dimensions", .type = MS_KEY_OBJECT, .of = &dimensions}};
static const ms_keys searched = MS_KEYS_OBJECT("searched", searched_rows);

static const ms_key fit_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim"),
    {.name = "status",
     .type = MS_KEY_WORD,
     .words = "ok|infeasible",
     .help = "ok or infeasible"},
    MS_KEYS_TEXT("model"),
    MS_KEYS_TEXT("device"),
    {.name = "settings", .type = MS_KEY_OBJECT, .of = &ms_keys_settings},
    {.name = "parameters", .type = MS_KEY_COUNT, .help = ""},
    {.name = "capacity_bytes", .type = MS_KEY_COUNT, .help = ""},
    {.name = "context_bytes", .type = MS_KEY_COUNT, .help = "as in run"},
    {.name = "fits", .type = MS_KEY_BOOL, .help = "does any set-up fit?"},
    {.name = "goal",
     .type = MS_KEY_WORD,
     .words = "tokens|step|memory",
     .help = "what was sought: tokens, step or memory"},
    {.name = "allocator",
     .type = MS_KEY_TEXT,
     .help = "what is told went through it"},
    {.name = "given",
     .type = MS_KEY_TEXT,
     .null = true,
     .help = "the policies of every set-up"},
    {.name = "max",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &max,
     .help = "with --max: key, value, over (the smallest that was tried and "
             "does not fit, or null), cap, pays (the least batch with all but "
             "5 % of the most samples a second), samples_per_second of a GPU "
             "by batch, values_tried, replayed"},
    {.name = "recommendation",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &set_up,
     .help = "the best set-up: point, policy, words, batch, settings, numbers "
             "as a sweep's, used_bytes (what nvidia-smi shows), "
             "headroom_bytes"},
    {.name = "smallest",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &set_up,
     .help = ""},
    {.name = "smallest_beyond_node",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &set_up,
     .help = "where nothing fits: what needs least, and what would, had the "
             "node more host memory"},
    {.name = "command",
     .type = MS_KEY_TEXT,
     .null = true,
     .help = "the command line that runs it"},
    {.name = "without",
     .type = MS_KEY_OBJECTS,
     .of = &without,
     .help = "for each part of it: lacks, set_up"},
    {.name = "plain",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &set_up,
     .help = ""},
    {.name = "on_device",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &set_up,
     .help = ""},
    {.name = "fastest",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &set_up,
     .help = "the set-up without any choice; the best that leaves the host's "
             "memory alone; the fastest by the clock"},
    {.name = "rows",
     .type = MS_KEY_OBJECTS,
     .of = &set_up,
     .help = "what fits and nothing beats, the best first: those within 30 % "
             "of the fastest by headroom, then the others by time"},
    {.name = "equals",
     .type = MS_KEY_COUNT,
     .help = "how many of the rows are within 30 % of the fastest"},
    {.name = "searched",
     .type = MS_KEY_OBJECT,
     .of = &searched,
     .help = "set_ups, of these replayed, refused, too_big, beaten, too_slow; "
             "decided (replays that settle kernels, loss and optimizer step), "
             "unproven (fit, but not through the allocator); "
             "dimensions: how many choices, null: fixed"},
    {.name = "not_searched", .type = MS_KEY_TEXTS, .help = "in words"},
};
const ms_keys ms_keys_fit = MS_KEYS_OBJECT("fit", fit_rows);
