/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_COMPARE_H
#define MS_TOOLS_COMPARE_H

/* The parts of memsim compare:
 *
 *     variants.c         models, policies and grids to variants, simulated
 *     variants_named.c   --variant, --label; no two variants are one
 *     variants_read.c    results to variants
 *     compare.c          the command
 *     compare_rows.c     what is compared, as a table
 *     compare_text.c     side by side, for people
 *     compare_pools.c    which allocator helps
 *     compare_needless.c policies that change nothing
 *     compare_tensors.c  of two, what --explain tells
 *     compare_data.c     JSON and CSV
 *     compare_keys.c     the rows of their keys and columns
 *     compare_figure.c   bars, pareto, timeline; those of memsim plot, too
 *
 * A variant is a record: whether it was simulated or read from a result is
 * known to variants.c alone (and to --explain, which needs the tensors).
 */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/pools/steps/pooled.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare_rows.h"
#include "tools/job/job.h"
#include "tools/job/points.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#define MS_VARIANTS_MOST 40u

/* The texts of a variant may hold any bytes. */
typedef struct ms_variant {
    const char *name;   /* what varies: "batch=8", "checkpoint:sqrt, batch=8" */
    const char *policy; /* canonical spelling */
    const char *allocator; /* "exact", "torch,max_split_size_mb:128" */
    const char *beside;    /* what else varies: variants for which it is the
                              same differ in their pools */
    const char *refused; /* why there are no numbers; NULL: there are.  Then: */
    const char *setup;   /* "batch 8 x 1024 tokens, bf16-mixed, adamw" */
    const char *device;  /* "h100-80gb-sxm, 79.18 GiB less 0.49 GiB for ..." */
    const char *file;    /* "a.json, result 2": read from there; or NULL */
    const char *json;    /* its object, where it was asked for: */
    size_t json_length;
    uint32_t gpus; /* of the job; 0: not known */
    double work; /* tokens, or samples where there are none, that a step of all
                    of them does; 0: not known */
    ms_record record; /* names and report */
    ms_fault fault;   /* of a refused one */
    /* Of one that was simulated: */
    ms_job job;
    ms_result result;
    ms_points_seat seat;
} ms_variant;

typedef struct ms_comparison {
    ms_variant *variants;
    uint32_t n, capacity;
    uint32_t n_sources; /* texts that results came from */
    uint32_t base;  /* the first that is not refused: others are held against
                       it */
    bool explain;   /* the rest is set: of two variants */
    const char *at; /* as given, or NULL: the peaks */
    uint32_t top;   /* groups to tell of; MS_NONE: all */
    ms_alive alive[2];
    ms_group *groups; /* that they hold differently */
    uint32_t n_groups;
} ms_comparison;

/* What is compared, as data: a number of the rank with the highest peak. */

/* Of variants that are not refused. */
uint64_t ms_compare_values_of(const ms_variant *variant, uint32_t row);
const ms_rank_report *ms_compare_values_rank(const ms_variant *variant);

/* ---- variants.c ---------------------------------------------------------- */

/* What the command line names, with names and jobs.  points must be open, and
 * holds what the variants share: close them before it. */
ms_err ms_variants_read(const ms_hall *hall, ms_points *points,
                        ms_comparison *comparison, ms_fault *fault);
/* What is needed of each besides its report. */
enum {
    MS_VARIANTS_JSON = 1u,     /* ms_variant.json */
    MS_VARIANTS_TIMELINE = 2u, /* record.ranks */
    MS_VARIANTS_ADDRESSES = 4u /* record.addresses of those with a pool */
};
/* Simulates them.  What is said of a variant's job
 * refuses that variant alone, unless all are: then the first's fault. */
ms_err ms_variants_fill(const ms_hall *hall, ms_points *points, uint32_t needs,
                        ms_comparison *comparison, ms_fault *fault);
/* "ok", ..., "infeasible" or "refused". */
const char *ms_variants_status(const ms_variant *variant);
/* Finds the base; where all are refused what the first was refused for. */
ms_err ms_variants_base(ms_comparison *comparison, ms_fault *fault);
void ms_variants_close(ms_points *points, ms_comparison *comparison);

/* ---- variants_named.c ---------------------------------------------------- */

/* What --variant says: "QLoRA: lora.rank=16 lora.base=nf4". */
typedef struct ms_named {
    const char *name;
    const char **keys, **values; /* keys as ms_grid_key has them */
    uint32_t n;
} ms_named;

ms_err ms_variants_named_read(const char *text, ms_arena *arena,
                              ms_named *named, ms_fault *fault);
/* On top of what the job has; policies join. */
ms_err ms_variants_named_put(const ms_named *named, ms_arena *arena,
                             ms_job *job, ms_fault *fault);
/* MS_EUSAGE for a key that the grid, or --allocators, says as well. */
ms_err ms_variants_named_check(const ms_named *named, const ms_grid *grid,
                               bool has_allocators, ms_fault *fault);
/* MS_EUSAGE where two that were simulated are the same step. */
ms_err ms_variants_named_differ(const ms_comparison *comparison,
                                ms_arena *arena, ms_fault *fault);
/* --label: names in the order of the variants, instead of those they have. */
ms_err ms_variants_named_label(const ms_arguments *arguments,
                               ms_comparison *comparison, ms_fault *fault);

/* ---- variants_read.c ----------------------------------------------------- */

/* Appends the results of a text, as ms_results_read_text takes it, names unset;
 * text->name must last. */
ms_err ms_variants_read_text(const ms_quote *text, ms_arena *arena,
                             ms_comparison *comparison, ms_fault *fault);
/* Names all that were read: as the comparison does that they come from, else by
 * what varies, where that tells them apart and there are no others; else by
 * their files. */
ms_err ms_variants_read_names(ms_arena *arena, ms_comparison *comparison,
                              ms_fault *fault);

/* ---- compare_text.c ------------------------------------------------------ */

void ms_compare_text_write(const ms_comparison *comparison,
                           const ms_style *style, ms_text *text);

/* ---- compare_cells.c ----------------------------------------------------- */

/* "-1.00 GiB", or with the sign given. */
ms_label ms_compare_cells_signed(bool negative, const char *sign,
                                 ms_label size);

/* "yes", "no", or "no: host", "no: disk" where the device has enough; row is
 * not looked at. */
ms_label ms_compare_cells_fits(const ms_comparison *comparison,
                               uint32_t variant, uint32_t row);
/* What is to spare, or (-) lacks: of the device, of a node's memories. */
ms_label ms_compare_cells_phase(const ms_comparison *comparison,
                                uint32_t variant, uint32_t row);
ms_label ms_compare_cells_tokens(const ms_comparison *comparison,
                                 uint32_t variant, uint32_t row);
ms_label ms_compare_cells_headroom(const ms_comparison *comparison,
                                   uint32_t variant, uint32_t row);
ms_label ms_compare_cells_host_room(const ms_comparison *comparison,
                                    uint32_t variant, uint32_t row);
ms_label ms_compare_cells_disk_room(const ms_comparison *comparison,
                                    uint32_t variant, uint32_t row);
ms_label ms_compare_cells_capacity(const ms_comparison *comparison,
                                   uint32_t variant, uint32_t row);
/* Do variants have devices of other capacities?  Has a node of any too little
 * of that memory? */
bool ms_compare_cells_differ(const ms_comparison *comparison);
bool ms_compare_cells_short(const ms_comparison *comparison, ms_pool_kind pool);

/* ---- compare_pools.c ----------------------------------------------------- */

/* What a real pool makes of a variant; "-" where it is exact. */
typedef struct ms_compare_pool_row {
    const char *label;
    ms_label (*cell)(const ms_pooled *pooled, const ms_pooled_rank *rank);
} ms_compare_pool_row;
extern const ms_compare_pool_row ms_compare_pools_rows[];
extern const uint32_t ms_compare_pools_n_rows;
/* Of the rank with the highest peak, or NULL: the pool is exact. */
const ms_pooled_rank *ms_compare_pools_rank(const ms_variant *variant);
/* "2: 1024", or "2:" where variants have lengths of their own. */
ms_label ms_compare_pools_label(const ms_comparison *comparison, uint32_t step);
/* How many steps are told one by one; 0: they are all alike. */
uint32_t ms_compare_pools_steps(const ms_comparison *comparison);

/* The table's cells, of a row of the table above and of a step, from 1. */
ms_label ms_compare_pools_cell(const ms_comparison *comparison,
                               uint32_t variant, uint32_t row);
ms_label ms_compare_pools_step_cell(const ms_comparison *comparison,
                                    uint32_t variant, uint32_t step);
/* Do the pools differ, or does one not come as PyTorch sets it up?  Else what
 * is reserved is all that counts of them. */
bool ms_compare_pools_tell(const ms_comparison *comparison);
/* Variants that differ in their pools alone: which of them helps? */
typedef struct ms_compare_pool_group {
    uint32_t n, first, best; /* members; the first with a pool, the one that
                                reserves least, out of memory last */
    uint32_t of[MS_VARIANTS_MOST];
} ms_compare_pool_group;
/* The group that begins with this variant; false: it begins none. */
bool ms_compare_pools_group(const ms_comparison *comparison, uint32_t variant,
                            ms_compare_pool_group *group);
/* A sentence of each group. */
void ms_compare_pools_write(const ms_comparison *comparison, ms_text *text);
/* "note:     2: checkpoint:selective changes nothing here", of variants that
 * were simulated. */
ms_err ms_compare_needless_write(const ms_comparison *c, ms_text *text,
                                 ms_fault *fault);

/* ---- compare_tensors.c --------------------------------------------------- */

void ms_compare_tensors_write(const ms_comparison *comparison,
                              const ms_style *style, ms_text *text);

/* ---- compare_data.c ------------------------------------------------------ */

void ms_compare_data_json(const ms_comparison *comparison, ms_text *text);
void ms_compare_data_csv(const ms_comparison *comparison, ms_text *text);

/* ---- compare_figure.c ---------------------------------------------------- */

/* kind: "bars" (NULL, too), "pareto", "timeline" or "address".  The subtitle is
 * made here, the title where there is none. */
ms_err ms_compare_figure_trade(const ms_variant *variant, ms_arena *arena,
                               ms_trade *trade, ms_fault *fault);
ms_err ms_compare_figure_draw(const ms_comparison *comparison, const char *kind,
                              const ms_drawing *drawing, ms_fault *fault);

#endif
