/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim explain --json. */

#include "tools/cli/explain/explain_keys.h"

#define SHEET(kind, member) MS_KEYS_AT(kind, ms_explain_sheet, member)

/* ---- how long what is saved waits ---------------------------------------- */

#define CLASS(kind, member) MS_KEYS_AT(kind, ms_idletimes_class, member)
#define SAVED(kind, member) MS_KEYS_AT(kind, ms_idletimes, member)

static const ms_key class_rows[] = {
    MS_KEYS_COUNT("from_ns", CLASS(U64, from_ns)),
    {.name = "to_ns",
     .type = MS_KEY_COUNT,
     CLASS(U64, to_ns),
     .help = "waiting for so long, to_ns not included"},
    MS_KEYS_COUNT("bytes", CLASS(U64, bytes)),
    MS_KEYS_COUNT("tensors", CLASS(U32, tensors)),
    MS_KEYS_COUNT("uses", CLASS(U64, uses)),
    MS_KEYS_COUNT("alone_bytes", CLASS(U64, alone_bytes)),
    MS_KEYS_COUNT("hidden_bytes", CLASS(U64, hidden_bytes))};
static const ms_keys class = MS_KEYS_OBJECT("idle_class", class_rows);

static ms_key_list classes(const void *of)
{
    const ms_idletimes *saved = of;
    return (ms_key_list){saved->of, saved->n, sizeof *saved->of};
}

/* Does anything that has bytes wait for backward? */
static bool has_bytes(const void *of)
{
    return ((const ms_idletimes *)of)->all.bytes > 0;
}

static const ms_key saved_rows[] = {
    {.name = "bytes",
     .type = MS_KEY_COUNT,
     SAVED(U64, all.bytes),
     .help = "run's saved_for_backward_bytes"},
    MS_KEYS_COUNT("tensors", SAVED(U32, all.tensors)),
    {.name = "uses",
     .type = MS_KEY_COUNT,
     SAVED(U64, all.uses),
     .help = "how often ops of either pass read them, all together"},
    {.name = "half_ns",
     .type = MS_KEY_COUNT,
     .null = true,
     SAVED(U64, half_ns),
     .there = has_bytes,
     .help =
         "half of the bytes wait for as long, or longer; null where nothing "
         "is saved"},
    {.name = "alone_bytes",
     .type = MS_KEY_COUNT,
     SAVED(U64, all.alone_bytes),
     .help = "what the link could take out and bring back while it waits, each "
             "tensor with the link to itself"},
    {.name = "hidden_bytes",
     .type = MS_KEY_COUNT,
     SAVED(U64, all.hidden_bytes),
     .help = "the same, one copy after the other"},
    {.name = "idle",
     .type = MS_KEY_OBJECTS,
     .list = classes,
     .of = &class,
     .help = "the same by how long they wait, in classes of equal width"}};
static const ms_keys saved = MS_KEYS_OBJECT("saved", saved_rows);

static bool is_marked(const void *of)
{
    const ms_explain_sheet *sheet = of;
    return sheet->saved->is_marked;
}

/* ---- options of the pool ------------------------------------------------- */

typedef struct ms_pooltry pooltry;
static const ms_key option_rows[] = {
    MS_KEYS_TEXT("option", MS_KEYS_AT(TEXT, pooltry, words)),
    MS_KEYS_COUNT("reserved_bytes", MS_KEYS_AT(U64, pooltry, reserved_bytes)),
    {.name = "out_of_memory",
     .type = MS_KEY_BOOL,
     MS_KEYS_AT(BOOL, pooltry, is_lacking)}};
static const ms_keys option = MS_KEYS_OBJECT("pool_option", option_rows);

static bool has_pool(const void *of)
{
    const ms_explain_sheet *sheet = of;
    return sheet->tries != NULL;
}

static ms_key_list options(const void *of)
{
    const ms_pooltries *tries = ((const ms_explain_sheet *)of)->tries;
    return (ms_key_list){(void *)tries->of, tries->n, sizeof *tries->of};
}

/* ---- the whole ----------------------------------------------------------- */

static ms_key_list groups(const void *of)
{
    const ms_explain_sheet *sheet = of;
    return (ms_key_list){sheet->groups, sheet->n_groups, sizeof *sheet->groups};
}

static ms_key_list schedule_lines(const void *of)
{
    const ms_schedulepicture *picture =
        ((const ms_explain_sheet *)of)->schedule;
    return (ms_key_list){(void *)picture->lines, picture->n_lines,
                         sizeof *picture->lines};
}

static bool has_schedule(const void *of)
{
    return ((const ms_explain_sheet *)of)->schedule->n_lines > 0;
}

static bool has_from(const void *of)
{
    return ((const ms_explain_sheet *)of)->from_json != NULL;
}

static const ms_key explain_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", SHEET(TEXT, memsim)),
    MS_KEYS_TEXT("model", SHEET(TEXT, model)),
    MS_KEYS_TEXT("policy", SHEET(TEXT, policy)),
    MS_KEYS_FROM(ms_explain_sheet, has_from),
    {.name = "at",
     .type = MS_KEY_OBJECT,
     SHEET(NOT, at),
     .of = &ms_alive_keys_instant,
     .help = "the instant: time_ns, event, phase, op, layer"},
    {.name = "total_bytes",
     .type = MS_KEY_COUNT,
     SHEET(U64, at.bytes),
     .help = "what is alive then; the groups sum to it"},
    {.name = "device_used_bytes",
     .type = MS_KEY_COUNT,
     MS_KEYS_VIA(ms_explain_sheet, run),
     MS_KEYS_AT(U64, ms_sheet, used_bytes),
     .help = "as in run"},
    {.name = "overheads",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_explain_sheet, run),
     .of = &ms_keys_overheads,
     .help = "as in run: there besides"},
    {.name = "groups",
     .type = MS_KEY_OBJECTS,
     .list = groups,
     .of = &ms_alive_keys_group,
     .help = "tensors that differ in a number only, largest first: category, "
             "layer, role, op (that made them), count, bytes (all of them)"},
    {.name = "saved",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_explain_sheet, saved),
     .there = is_marked,
     .null = true,
     .of = &saved,
     .help =
         "what is saved for backward and waits on the device, from its last "
         "use in forward to the first in backward; null where nothing ends "
         "forward"},
    {.name = "schedule",
     .type = MS_KEY_TEXTS,
     .list = schedule_lines,
     .there = has_schedule,
     .optional = true,
     .help = "where something is made again, a line for each sweep, the first "
             "of them forward, a sign for each block in the model's order (of "
             "many blocks for several, * where they differ): S saves all, p a "
             "part, i nothing but its input, > nothing; r runs forward again, "
             "R again and then back, b back; of measured nodes, a sign each: > "
             "runs, b of backward, r again"},
    {.name = "pool_options",
     .type = MS_KEY_OBJECTS,
     .list = options,
     .there = has_pool,
     .optional = true,
     .of = &option,
     .help = "with --allocator: what it would reserve with an option more, and "
             "whether it would be out of memory"},
};
const ms_keys ms_explain_keys = MS_KEYS_OBJECT("explain", explain_rows);
