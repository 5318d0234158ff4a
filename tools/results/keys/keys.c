/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of the other results. */

#include "tools/results/keys/keys.h"
#include "tools/alive/alive_keys.h"
#include "tools/cli/compare/compare_rows.h"
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
