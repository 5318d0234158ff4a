/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim fit --json. */

#include "tools/cli/fit/fit_keys.h"

const char *const ms_fit_keys_goals[MS_FIT_N_GOALS] = {"tokens", "step",
                                                       "memory"};

/* ---- a set-up ------------------------------------------------------------ */

#define SHOWN(kind, member) MS_KEYS_AT(kind, ms_fit_shown, member)
#define POINT(kind, member)                                                    \
    MS_KEYS_VIA(ms_fit_shown, point), MS_KEYS_AT(kind, ms_fit_point, member)

static const ms_keys chosen_settings = {.name = "chosen_settings",
                                        .any = "^training\\."};

static ms_key_list settings(const void *of)
{
    const ms_fit_shown *shown = of;
    return (ms_key_list){(void *)shown->settings, shown->n_settings,
                         sizeof *shown->settings};
}

typedef struct ms_fit_shown_setting setting;
static const ms_key set_up_rows[] = {
    MS_KEYS_COUNT("point", SHOWN(U64, number)),
    MS_KEYS_TEXT("policy", SHOWN(TEXT, policy)),
    MS_KEYS_TEXT("words", SHOWN(TEXT, words)),
    MS_KEYS_COUNT("batch", SHOWN(U64, batch)),
    {.name = "settings",
     .type = MS_KEY_OBJECT,
     .list = settings,
     MS_KEYS_AT(TEXT, setting, value),
     .of = &chosen_settings},
    MS_KEYS_COUNT("peak_allocated_bytes", POINT(U64, peak_bytes)),
    MS_KEYS_COUNT("peak_reserved_bytes", POINT(U64, reserved_bytes)),
    MS_KEYS_COUNT("used_bytes", POINT(U64, used_bytes)),
    {.name = "fits", .type = MS_KEY_BOOL, POINT(BOOL, fits)},
    {.name = "proven",
     .type = MS_KEY_BOOL,
     SHOWN(BOOL, proven),
     .help = "the numbers are those of \"allocator\", as memsim run has them"},
    {.name = "headroom_bytes",
     .type = MS_KEY_INTEGER,
     POINT(I64, headroom_bytes)},
    MS_KEYS_COUNT("host_peak_bytes", POINT(U64, host_peak_bytes)),
    MS_KEYS_COUNT("host_reserved_peak_bytes",
                  POINT(U64, host_reserved_peak_bytes)),
    MS_KEYS_COUNT("step_ns", POINT(U64, step_ns)),
    {.name = "error_percent",
     .type = MS_KEY_COUNT,
     POINT(SOME, error_percent),
     .null = true,
     .help = "of step_ns, as in time of run"},
    MS_KEYS_COUNT("recompute_ns", POINT(U64, recompute_ns)),
    MS_KEYS_COUNT("stall_ns", POINT(U64, stall_ns)),
    MS_KEYS_COUNT("exposed_comm_ns", POINT(U64, exposed_comm_ns)),
    {.name = "tokens_per_second",
     .type = MS_KEY_NUMBER,
     POINT(RATE, tokens_per_second),
     .null = true}};
static const ms_keys set_up = MS_KEYS_OBJECT("set_up", set_up_rows);

static const ms_key without_rows[] = {
    MS_KEYS_TEXT("lacks", MS_KEYS_AT(TEXT, ms_fit_shown_without, lacks)),
    {.name = "set_up",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_shown_without, set_up),
     .null = true,
     .of = &set_up}};
static const ms_keys without = MS_KEYS_OBJECT("without", without_rows);

/* ---- the largest batch --------------------------------------------------- */

#define SHEET(kind, member) MS_KEYS_AT(kind, ms_fit_sheet, member)
#define MAX(kind, member)                                                      \
    MS_KEYS_VIA(ms_fit_sheet, max), MS_KEYS_AT(kind, ms_fit_max, member)

static const ms_keys rungs = {.name = "rungs", .any = "^[0-9]+$"};

static ms_key_list rates(const void *of)
{
    const ms_fit_sheet *sheet = of;
    return (ms_key_list){(void *)sheet->rates, sheet->max->n_rungs,
                         sizeof *sheet->rates};
}

static const ms_key max_rows[] = {
    MS_KEYS_TEXT("key", MAX(TEXT, key)),
    MS_KEYS_COUNT("value", MAX(U64, value)),
    MS_KEYS_COUNT_OR_NULL("over", MAX(SOME, over)),
    MS_KEYS_COUNT("cap", MAX(U64, cap)),
    MS_KEYS_COUNT("pays", MAX(U64, pays)),
    {.name = "samples_per_second",
     .type = MS_KEY_OBJECT,
     .list = rates,
     MS_KEYS_AT(RATE, ms_fit_shown_rate, samples_per_second),
     .of = &rungs},
    MS_KEYS_COUNT("values_tried", MAX(U32, searches)),
    MS_KEYS_COUNT("replayed", MAX(U64, replays))};
static const ms_keys max = MS_KEYS_OBJECT("max", max_rows);

static bool has_max(const void *of)
{
    const ms_fit_sheet *sheet = of;
    return sheet->max != NULL;
}

/* ---- what was searched --------------------------------------------------- */

#define FIT(kind, member)                                                      \
    MS_KEYS_VIA(ms_fit_sheet, fit), MS_KEYS_AT(kind, ms_fit, member)

static bool dimension(uint32_t i, ms_arena *arena, ms_key *key)
{
    (void)arena;
    if (i >= MS_FIT_N_AXES)
        return false;
    *key =
        (ms_key){.name = ms_fitchoices_all[i].name,
                 .type = MS_KEY_COUNT,
                 .held = MS_HELD_U64,
                 .at = offsetof(ms_fit_sheet, choices) + i * sizeof(uint64_t),
                 .null = true};
    return true;
}
static const ms_keys dimensions = {.name = "dimensions", .more = dimension};

static const ms_key searched_rows[] = {
    MS_KEYS_COUNT("set_ups", FIT(U32, n_all)),
    MS_KEYS_COUNT("replayed", FIT(U32, count[MS_FIT_REPLAYED])),
    MS_KEYS_COUNT("refused", FIT(U32, count[MS_FIT_REFUSED])),
    MS_KEYS_COUNT("too_big", FIT(U32, count[MS_FIT_TOO_BIG])),
    MS_KEYS_COUNT("beaten", FIT(U32, count[MS_FIT_BEATEN])),
    MS_KEYS_COUNT("too_slow", FIT(U32, count[MS_FIT_TOO_SLOW])),
    MS_KEYS_COUNT("decided", FIT(U32, n_decided)),
    MS_KEYS_COUNT("unproven", FIT(U32, n_failed)),
    {.name = "dimensions", .type = MS_KEY_OBJECT, .of = &dimensions}};
static const ms_keys searched = MS_KEYS_OBJECT("searched", searched_rows);

static ms_key_list not_searched(const void *of)
{
    const ms_fit_sheet *sheet = of;
    return (ms_key_list){sheet->not_searched, sheet->n_not_searched,
                         sizeof *sheet->not_searched};
}

/* ---- the systems --------------------------------------------------------- */

#define LAUNCH(member) MS_KEYS_AT(TEXT, ms_fit_shown_launch, member)

static const ms_key launch_rows[] = {
    MS_KEYS_TEXT("system", LAUNCH(system)),
    {.name = "cannot",
     .type = MS_KEY_TEXT,
     LAUNCH(cannot),
     .null = true,
     .help = "what it does not have of the chosen set-up; null: it has all"},
    {.name = "policy",
     .type = MS_KEY_TEXT,
     LAUNCH(policy),
     .null = true,
     .help = "the chosen set-up's, or that of the first row that the system "
             "has; null: of no row"},
    {.name = "arguments",
     .type = MS_KEY_TEXT,
     LAUNCH(arguments),
     .null = true,
     .help = "on its command line, without the model's own"}};
static const ms_keys launch = MS_KEYS_OBJECT("launch", launch_rows);

static ms_key_list launches(const void *of)
{
    const ms_fit_sheet *sheet = of;
    return (ms_key_list){(void *)sheet->launch, sheet->n_launch,
                         sizeof *sheet->launch};
}

/* ---- the whole ----------------------------------------------------------- */

static ms_key_list withouts(const void *of)
{
    const ms_fit_sheet *sheet = of;
    return (ms_key_list){(void *)sheet->without, sheet->n_without,
                         sizeof *sheet->without};
}

static ms_key_list rows(const void *of)
{
    const ms_fit_sheet *sheet = of;
    return (ms_key_list){sheet->rows, sheet->fit->n_rows, sizeof *sheet->rows};
}

static bool has_from(const void *of)
{
    return ((const ms_fit_sheet *)of)->from_json != NULL;
}

static const ms_key fit_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", SHEET(TEXT, memsim)),
    {.name = "status",
     .type = MS_KEY_WORD,
     SHEET(TEXT, status),
     .words = "ok|infeasible",
     .help = "ok or infeasible"},
    MS_KEYS_TEXT("model", SHEET(TEXT, model)),
    MS_KEYS_TEXT("device", SHEET(TEXT, device)),
    {.name = "settings",
     .type = MS_KEY_OBJECT,
     SHEET(JSON, settings_json),
     .of = &ms_keys_settings},
    MS_KEYS_FROM(ms_fit_sheet, has_from),
    {.name = "parameters",
     .type = MS_KEY_COUNT,
     SHEET(U64, parameters),
     .help = ""},
    {.name = "capacity_bytes",
     .type = MS_KEY_COUNT,
     FIT(U64, capacity_bytes),
     .help = ""},
    {.name = "context_bytes",
     .type = MS_KEY_COUNT,
     FIT(U64, context_bytes),
     .help = "as in run"},
    {.name = "fits",
     .type = MS_KEY_BOOL,
     SHEET(BOOL, fits),
     .help = "does any set-up fit?"},
    {.name = "goal",
     .type = MS_KEY_WORD,
     FIT(ENUM, goal),
     .names = ms_fit_keys_goals,
     .n_names = MS_FIT_N_GOALS,
     .help = "what was sought: tokens, step or memory"},
    {.name = "allocator",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, allocator),
     .help = "what is told went through it"},
    {.name = "given",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, given),
     .null = true,
     .help = "the policies of every set-up"},
    {.name = "max",
     .type = MS_KEY_OBJECT,
     .there = has_max,
     .null = true,
     .of = &max,
     .help = "with --max: key, value, over (the smallest that was tried and "
             "does not fit, or null), cap, pays (the least batch with all but "
             "5 % of the most samples a second), samples_per_second of a GPU "
             "by batch, values_tried, replayed"},
    {.name = "recommendation",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_sheet, best),
     .null = true,
     .of = &set_up,
     .help = "the best set-up: point, policy, words, batch, settings, numbers "
             "as a sweep's, used_bytes (what nvidia-smi shows), "
             "headroom_bytes"},
    {.name = "smallest",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_sheet, smallest),
     .null = true,
     .of = &set_up,
     .help = ""},
    {.name = "smallest_beyond_node",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_sheet, smallest_far),
     .null = true,
     .of = &set_up,
     .help = "where nothing fits: what needs least, and what would, had the "
             "node more host memory"},
    {.name = "command",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, command),
     .null = true,
     .help = "the command line that runs it"},
    {.name = "launch",
     .type = MS_KEY_OBJECTS,
     .list = launches,
     .of = &launch,
     .help = "on several GPUs, for Megatron-LM and torchtitan: the arguments "
             "of the best set-up that it has; cannot: what it lacks"},
    {.name = "without",
     .type = MS_KEY_OBJECTS,
     .list = withouts,
     .of = &without,
     .help = "for each part of it: lacks, set_up"},
    {.name = "plain",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_sheet, plain),
     .null = true,
     .of = &set_up,
     .help = ""},
    {.name = "on_device",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_sheet, on_device),
     .null = true,
     .of = &set_up,
     .help = ""},
    {.name = "fastest",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_fit_sheet, fastest),
     .null = true,
     .of = &set_up,
     .help = "the set-up without any choice; the best that leaves the host's "
             "memory alone; the fastest by the clock"},
    {.name = "rows",
     .type = MS_KEY_OBJECTS,
     .list = rows,
     .of = &set_up,
     .help = "what fits and nothing beats, the best first: those within "
             "equal_percent of the fastest by headroom, then the others by "
             "time"},
    {.name = "equals",
     .type = MS_KEY_COUNT,
     SHEET(U32, n_equal),
     .help = "how many of the rows are within equal_percent of the fastest"},
    {.name = "equal_percent",
     .type = MS_KEY_COUNT,
     SHEET(SOME, equal_percent),
     .null = true,
     .help = "step times that are closer do not tell set-ups apart: "
             "error_percent of the fastest, but at most 49, 30 where that is "
             "null; null by memory, and where nothing fits"},
    {.name = "searched",
     .type = MS_KEY_OBJECT,
     .of = &searched,
     .help = "set_ups, of these replayed, refused, too_big, beaten, too_slow; "
             "decided (replays that settle kernels, loss and optimizer step), "
             "unproven (fit, but not through the allocator); "
             "dimensions: how many choices, null: fixed"},
    {.name = "not_searched",
     .type = MS_KEY_TEXTS,
     .list = not_searched,
     .help = "in words"},
};
const ms_keys ms_fit_keys = MS_KEYS_OBJECT("fit", fit_rows);
