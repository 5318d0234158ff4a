/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim compare --json and the columns of its CSV. */

#include "tools/cli/compare/compare_keys.h"
#include "sim/names.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"

/* ---- JSON ---------------------------------------------------------------- */

/* Turns row i of compare_rows.c into a key of a difference. */
static bool gap(uint32_t i, ms_arena *arena, ms_key *key)
{
    (void)arena;
    if (i >= MS_COMPARE_N_ROWS)
        return false;
    *key = (ms_key){.name = ms_compare_rows[i].key,
                    .type = MS_KEY_INTEGER,
                    .held = MS_HELD_I64,
                    .at = offsetof(ms_compare_difference, of) +
                          i * sizeof(int64_t)};
    return true;
}

#define DIFFERENCE(member) MS_KEYS_AT(U64, ms_compare_difference, member)
static const ms_key difference_rows[] = {
    MS_KEYS_COUNT("variant", DIFFERENCE(variant)),
    MS_KEYS_COUNT("against", DIFFERENCE(against))};
static const ms_keys difference = {.name = "difference",
                                   .rows = difference_rows,
                                   .n = MS_KEYS_N(difference_rows),
                                   .more = gap};

static ms_key_list instants_of(const void *of)
{
    const ms_compare_sheet *sheet = of;
    return (ms_key_list){(void *)sheet->instants, 2, sizeof *sheet->instants};
}

static ms_key_list groups_of(const void *of)
{
    const ms_compare_sheet *sheet = of;
    return (ms_key_list){sheet->groups, sheet->n_groups, sizeof *sheet->groups};
}

static const ms_key explained_rows[] = {
    {.name = "variants",
     .type = MS_KEY_OBJECTS,
     .list = instants_of,
     .of = &ms_alive_keys_instants,
     .help = "at and total_bytes of the two, as in explain"},
    {.name = "groups",
     .type = MS_KEY_OBJECTS,
     .list = groups_of,
     .of = &ms_alive_keys_change,
     .help = "tensors held differently, largest first: as in explain, but "
             "difference_bytes, and variants with bytes, why, next_reader of "
             "each; a tensor that is not alive has 0 bytes, and why says where "
             "it went"},
};
static const ms_keys explained = MS_KEYS_OBJECT("explained", explained_rows);

static ms_key_list members_of(const void *of)
{
    const ms_compare_pools *group = of;
    return (ms_key_list){(void *)group->variants, group->n,
                         sizeof *group->variants};
}

#define POOLS(member) MS_KEYS_AT(U64, ms_compare_pools, member)
static const ms_key pool_group_rows[] = {
    MS_KEYS_COUNT("against", POOLS(against)),
    MS_KEYS_COUNT("best", POOLS(best)),
    {.name = "variants", .type = MS_KEY_LEVELS, .list = members_of}};
static const ms_keys pool_group = MS_KEYS_OBJECT("pool_group", pool_group_rows);

static ms_key_list close_of(const void *of)
{
    const ms_compare_shown_fastest *fastest = of;
    return (ms_key_list){(void *)fastest->close, fastest->n_close,
                         sizeof *fastest->close};
}

#define FASTEST(kind, member) MS_KEYS_AT(kind, ms_compare_shown_fastest, member)
static const ms_key fastest_rows[] = {
    MS_KEYS_COUNT("variant", FASTEST(U64, variant)),
    MS_KEYS_COUNT("error_percent", FASTEST(U64, percent)),
    {.name = "measured", .type = MS_KEY_BOOL, FASTEST(BOOL, known)},
    {.name = "undecided", .type = MS_KEY_LEVELS, .list = close_of}};
static const ms_keys fastest = MS_KEYS_OBJECT("fastest", fastest_rows);

static ms_key_list names_of(const void *of)
{
    const ms_comparison *c = ((const ms_compare_sheet *)of)->comparison;
    return (ms_key_list){&c->variants->name, c->n, sizeof *c->variants};
}

static ms_key_list variants_of(const void *of)
{
    const ms_compare_sheet *sheet = of;
    return (ms_key_list){sheet->variants, sheet->comparison->n,
                         sizeof *sheet->variants};
}

static const ms_key_printed *run_of(const void *element)
{
    return &((const ms_compare_variant *)element)->run;
}

static ms_key_list differences_of(const void *of)
{
    const ms_compare_sheet *sheet = of;
    return (ms_key_list){sheet->differences, sheet->n_differences,
                         sizeof *sheet->differences};
}

static ms_key_list pools_of(const void *of)
{
    const ms_compare_sheet *sheet = of;
    return (ms_key_list){sheet->pools, sheet->n_pools, sizeof *sheet->pools};
}

static bool is_explained(const void *of)
{
    return ((const ms_compare_sheet *)of)->comparison->explain;
}

static const ms_key compare_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", MS_KEYS_AT(TEXT, ms_compare_sheet, memsim)),
    {.name = "model",
     .type = MS_KEY_TEXT,
     MS_KEYS_AT(TEXT, ms_compare_sheet, model),
     .null = true,
     .help = "null where the variants are of several"},
    {.name = "names",
     .type = MS_KEY_TEXTS,
     .list = names_of,
     .help = "of the variants: what varies"},
    {.name = "variants",
     .type = MS_KEY_OBJECTS,
     .list = variants_of,
     .of = &ms_keys_run,
     .printed = run_of,
     .or_of = &ms_keys_run_refused,
     .help = "the object of run --json for each; of one that was refused "
             "status (refused or infeasible), message and policy"},
    {.name = "differences",
     .type = MS_KEY_OBJECTS,
     .list = differences_of,
     .of = &difference,
     .help = "for each variant behind the first that is there, minus that one: "
             "variant, against (numbers from 1), then the columns of --csv "
             "that are bytes or ns: PHASE_CATEGORY_bytes is what "
             "phase_peaks_by_category has"},
    {.name = "fastest",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_compare_sheet, fastest),
     .null = true,
     .of = &fastest,
     .help = "the variant (from 1) that takes least for a step, or for a "
             "sample where they train different numbers; undecided: "
             "variants that are closer to it than the larger error_percent of "
             "the two; error_percent: the largest of these, of all where there "
             "are none, 30 for times that have none (measured is false then); "
             "null: all take the same time"},
    {.name = "pools",
     .type = MS_KEY_OBJECTS,
     .list = pools_of,
     .of = &pool_group,
     .help = "variants (numbers from 1) that differ in their allocators alone: "
             "the first and the best, which reserves least and is not out of "
             "memory where another is not; pool.by_step of each tells the "
             "steps"},
    {.name = "explain",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &explained,
     .there = is_explained,
     .help = "null without --explain"},
};
const ms_keys ms_compare_keys = MS_KEYS_OBJECT("compare", compare_rows);

/* ---- CSV ----------------------------------------------------------------- */

static bool is_there(const void *of)
{
    return ((const ms_compare_line *)of)->rank != NULL;
}

/* Turns row i of compare_rows.c into a column of a line. */
static bool number(uint32_t i, ms_arena *arena, ms_key *key)
{
    (void)arena;
    if (i >= MS_COMPARE_N_ROWS)
        return false;
    *key = (ms_key){.name = ms_compare_rows[i].key,
                    .type = MS_KEY_COUNT,
                    .held = MS_HELD_U64,
                    MS_KEYS_VIA(ms_compare_line, rank),
                    .at = ms_compare_rows[i].offset,
                    .there = is_there};
    return true;
}

/* Was anything allocated? */
static bool has_peak(const void *of)
{
    const ms_compare_line *line = of;
    return line->rank != NULL && line->rank->peak.allocated_bytes > 0;
}

static bool is_pooled(const void *of)
{
    return ((const ms_compare_line *)of)->pooled_rank != NULL;
}

static bool ran_out(const void *of)
{
    return is_pooled(of) && ((const ms_compare_line *)of)->pooled->oom;
}

#define LINE(kind, member) MS_KEYS_AT(kind, ms_compare_line, member)
#define VARIANT(kind, member)                                                  \
    MS_KEYS_VIA(ms_compare_line, variant), MS_KEYS_AT(kind, ms_variant, member)
#define RECORD(kind, member) VARIANT(kind, record.member), .there = is_there
#define POOLED(called, member, ...)                                            \
    MS_KEYS_COUNT(called, MS_KEYS_VIA(ms_compare_line, pooled_rank),           \
                  MS_KEYS_AT(U64, ms_pooled_rank, member), .there = is_pooled, \
                  __VA_ARGS__)
static const ms_key line_rows[] = {
    MS_KEYS_COUNT("variant", LINE(U64, number), .help = "from 1"),
    MS_KEYS_TEXT("name", VARIANT(TEXT, name), .help = "what varies"),
    MS_KEYS_TEXT("model", RECORD(TEXT, model), .help = ""),
    MS_KEYS_TEXT("device", RECORD(TEXT, device), .help = ""),
    MS_KEYS_TEXT("policy", VARIANT(TEXT, policy), .help = ""),
    MS_KEYS_TEXT("status", LINE(TEXT, status), .help = "as in run, or refused"),
    MS_KEYS_TEXT("message", VARIANT(TEXT, refused),
                 .help =
                     "why it is infeasible or refused: what follows is then "
                     "empty, but for allocator"),
    {.name = "fits",
     .type = MS_KEY_BOOL,
     RECORD(BOOL, report.fits),
     .help = ""},
    MS_KEYS_COUNT("parameters", RECORD(U64, parameters), .help = ""),
    MS_KEYS_COUNT("capacity_bytes", RECORD(U64, report.capacity_bytes),
                  .help = ""),
    {.name = "headroom_bytes",
     .type = MS_KEY_INTEGER,
     RECORD(I64, report.headroom_bytes),
     .help = "as in run"},
    {.name = "phase",
     .type = MS_KEY_WORD,
     MS_KEYS_VIA(ms_compare_line, rank),
     MS_KEYS_AT(U8, ms_rank_report, peak.phase),
     .names = ms_names_phase,
     .n_names = MS_N_PHASES,
     .there = has_peak,
     .help = "of the peak; then the columns that differences has: peaks of the "
             "step and its phases, what is alive at the peak, times, what "
             "links move, what is alive at the peak of each phase"},
    MS_KEYS_COUNT("host_peak_bytes", RECORD(U64, report.host_peak_bytes),
                  .help = ""),
    MS_KEYS_COUNT("host_reserved_peak_bytes",
                  RECORD(U64, report.far[MS_HOST_POOL].reserved_bytes),
                  .help = ""),
    {.name = "tokens_per_second",
     .type = MS_KEY_NUMBER,
     RECORD(RATE, report.tokens_per_second),
     .help = "as in run"},
    MS_KEYS_TEXT("allocator", VARIANT(TEXT, allocator),
                 .help = "the pool; of exact what follows is empty"),
    POOLED("reserved_most_bytes", reserved_most_bytes, .help = ""),
    POOLED("segments", segments, .help = "as in pool of run"),
    POOLED("idle_bytes", at_peak.idle_bytes, .help = ""),
    POOLED("largest_idle_bytes", at_peak.largest_idle_bytes, .help = ""),
    POOLED("next_request_bytes", at_peak.next_bytes, .help = ""),
    POOLED("usable_bytes", at_peak.usable_bytes, .help = "as in its at_peak"),
    POOLED("retries", retries, .help = "as in pool"),
    MS_KEYS_COUNT("out_of_memory_step", MS_KEYS_VIA(ms_compare_line, pooled),
                  MS_KEYS_AT(U32, ms_pooled, lack.step), .there = ran_out,
                  .help = "in which the pool could not serve a request; 0 is "
                          "construction"),
};
const ms_keys ms_compare_keys_line = {.name = "line",
                                      .rows = line_rows,
                                      .n = MS_KEYS_N(line_rows),
                                      .more = number,
                                      .more_before = "host_peak_bytes"};
