/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim diff --json. */

#include "tools/cli/diff/diff.h"

#define SIDE(kind, member) MS_KEYS_AT(kind, ms_side, member)
#define GROUP(kind, member) MS_KEYS_AT(kind, ms_pairings_group, member)

const char *const ms_diff_keys_categories[MS_PAGE_CATEGORIES] = {
    [MS_PARAMETERS] = "parameters",   [MS_OPTIMIZER_STATE] = "optimizer_state",
    [MS_GRADIENTS] = "gradients",     [MS_INPUTS] = "inputs",
    [MS_ACTIVATIONS] = "activations", [MS_TEMPORARIES] = "temporaries",
    [MS_WORKSPACE] = "workspace",     [MS_COMMUNICATION] = "communication",
    [MS_N_CATEGORIES] = "recorded",
};
const char *const ms_diff_keys_phases[MS_N_PHASES + 1] = {
    [MS_PHASE_FORWARD] = "forward",   [MS_PHASE_LOSS] = "loss",
    [MS_PHASE_BACKWARD] = "backward", [MS_PHASE_OPTIMIZER] = "optimizer",
    [MS_N_PHASES] = "unknown",
};
static const char *const kinds[MS_SIDE_N_KINDS] = {"recorded", "simulated",
                                                   "saved"};

/* ---- a side -------------------------------------------------------------- */

#define CATEGORIES                                                             \
    .type = MS_KEY_COUNTS, .names = ms_diff_keys_categories,                   \
    .n_names = MS_PAGE_CATEGORIES
#define PHASE_WORD                                                             \
    .type = MS_KEY_WORD, .names = ms_diff_keys_phases,                         \
    .n_names = MS_N_PHASES + 1

static bool is_there(const void *of)
{
    return ((const ms_side_phase *)of)->is_there;
}

static const ms_key phase_rows[] = {
    {.name = "peak_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     MS_KEYS_AT(U64, ms_side_phase, peak_bytes),
     .there = is_there,
     .help = "null: no allocation of the step is known to be of the phase"},
    {.name = "by_category",
     CATEGORIES,
     MS_KEYS_AT(U64, ms_side_phase, by_category),
     .help = "there"},
};
static const ms_keys phase_keys =
    MS_KEYS_STRUCT("phase", phase_rows, ms_side_phase);

static ms_key_list at_of(const void *of)
{
    const ms_side *side = of;
    return (ms_key_list){&side->line->at, side->n_line, sizeof *side->line};
}

static ms_key_list bytes_of(const void *of)
{
    const ms_side *side = of;
    return (ms_key_list){&side->line->bytes, side->n_line, sizeof *side->line};
}

static const ms_key side_rows[] = {
    MS_KEYS_TEXT("name", SIDE(TEXT, name)),
    {.name = "kind",
     .type = MS_KEY_WORD,
     SIDE(U8, kind),
     .names = kinds,
     .n_names = MS_SIDE_N_KINDS,
     .help = "saved: a result"},
    {.name = "steps",
     .type = MS_KEY_COUNT,
     SIDE(U32, n_steps),
     .help = "in it; that of the peak is looked at; 0: phases are not known"},
    {.name = "peak_bytes",
     .type = MS_KEY_COUNT,
     SIDE(U64, peak_bytes),
     .help = "the highest allocated"},
    {.name = "peak_phase", PHASE_WORD, SIDE(U8, peak_phase), .help = ""},
    {.name = "by_category",
     CATEGORIES,
     SIDE(U64, by_category),
     .help = "at the peak; recorded: what it is, nobody knows"},
    {.name = "phases",
     .type = MS_KEY_NAMED,
     SIDE(NOT, phase),
     .of = &phase_keys,
     .names = ms_names_phase,
     .n_names = MS_N_PHASES,
     .help = "of the step; the loss is part of forward"},
    {.name = "line_at",
     .type = MS_KEY_LEVELS,
     .list = at_of,
     .help = "the step on the axis of both, from 0 to 1,000,000"},
    {.name = "line_bytes",
     .type = MS_KEY_LEVELS,
     .list = bytes_of,
     .help = "allocated there"},
};
static const ms_keys side_keys = MS_KEYS_OBJECT("side", side_rows);

/* ---- differences --------------------------------------------------------- */

static const ms_key group_rows[] = {
    {.name = "difference_bytes",
     .type = MS_KEY_INTEGER,
     GROUP(I64, gap),
     .help = "the second less the first"},
    MS_KEYS_TEXT("name", GROUP(TEXT, name),
                 .help = "tensor and op, or the stack that allocates"),
    {.name = "category",
     .type = MS_KEY_WORD,
     GROUP(U8, category),
     .names = ms_diff_keys_categories,
     .n_names = MS_PAGE_CATEGORIES,
     .help = ""},
    {.name = "phase", PHASE_WORD, GROUP(U8, phase), .help = "that makes it"},
    {.name = "first_count",
     .type = MS_KEY_COUNT,
     GROUP(U32, count[0]),
     .help = ""},
    {.name = "first_bytes",
     .type = MS_KEY_COUNT,
     GROUP(U64, bytes[0]),
     .help = "what the first holds of it at its peak, and the second lacks"},
    {.name = "second_count",
     .type = MS_KEY_COUNT,
     GROUP(U32, count[1]),
     .help = ""},
    {.name = "second_bytes",
     .type = MS_KEY_COUNT,
     GROUP(U64, bytes[1]),
     .help = "the same of the second"},
    {.name = "first_made",
     .type = MS_KEY_COUNT,
     GROUP(U32, made[0]),
     .help = ""},
    {.name = "second_made",
     .type = MS_KEY_COUNT,
     GROUP(U32, made[1]),
     .help = "how many of them the other one makes in its step, too, but does "
             "not hold at its peak"},
};
const ms_keys ms_diff_keys_group = MS_KEYS_OBJECT("difference", group_rows);

/* ---- all ----------------------------------------------------------------- */

typedef struct sheet {
    const char *memsim;
    const ms_diff *diff;
} sheet;

#define DIFF(kind, member)                                                     \
    .via = 1 + offsetof(sheet, diff), MS_KEYS_AT(kind, ms_diff, member)

static ms_key_list sides_of(const void *of)
{
    const ms_diff *diff = ((const sheet *)of)->diff;
    return (ms_key_list){(void *)diff->sides, 2, sizeof diff->sides[0]};
}

static ms_key_list groups_of(const void *of)
{
    const ms_diff *diff = ((const sheet *)of)->diff;
    return (ms_key_list){diff->pairs.groups, diff->pairs.n,
                         sizeof *diff->pairs.groups};
}

static ms_key_list rounding_of(const void *of)
{
    const ms_diff *diff = ((const sheet *)of)->diff;
    return (ms_key_list){(void *)diff->pairs.rounding, 2, sizeof(uint64_t)};
}

static bool has_pairs(const void *of)
{
    return ((const sheet *)of)->diff->has_pairs;
}

static const ms_key diff_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", MS_KEYS_AT(TEXT, sheet, memsim)),
    {.name = "difference_bytes",
     .type = MS_KEY_INTEGER,
     DIFF(I64, gap),
     .help = "of the peaks, the second less the first"},
    MS_KEYS_TEXT("cause", DIFF(TEXT, cause),
                 .help = "a sentence on the largest difference"),
    {.name = "sides",
     .type = MS_KEY_OBJECTS,
     .list = sides_of,
     .of = &side_keys,
     .help = "the two, in order"},
    {.name = "same_count",
     .type = MS_KEY_COUNT,
     .null = true,
     DIFF(U32, pairs.same_count),
     .there = has_pairs,
     .help = "allocations that both hold at their peaks"},
    {.name = "same_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     DIFF(U64, pairs.same_bytes),
     .there = has_pairs,
     .help = "their bytes in the first"},
    {.name = "rounding_bytes",
     .type = MS_KEY_LEVELS,
     .list = rounding_of,
     .help = "of the same ones, by how many bytes the first's are larger, and "
             "the second's: a recording may have rounded them"},
    {.name = "differences",
     .type = MS_KEY_OBJECTS,
     .null = true,
     .list = groups_of,
     .there = has_pairs,
     .of = &ms_diff_keys_group,
     .help = "what one holds at its peak and the other lacks, the largest "
             "first; null: a saved result without its allocations"},
    MS_KEYS_TEXT_OR_NULL("without", DIFF(TEXT, why_not),
                         .help = "why there are none"),
};
const ms_keys ms_diff_keys = MS_KEYS_OBJECT("diff", diff_rows);

void ms_diff_keys_write(const ms_diff *diff, ms_text *text)
{
    const sheet of = {MS_VERSION, diff};
    ms_keys_write(&ms_diff_keys, &of, text);
    ms_text_add(text, "\n");
}
