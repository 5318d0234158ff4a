/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_COMPARE_H
#define MS_TOOLS_COMPARE_H

/* The parts of memsim compare:
 *
 *     variants.c         makes variants of models, policies and grids
 *     variants_named.c   --variant, --label; refuses equal variants
 *     variants_read.c    makes variants of saved results
 *     compare.c          the command
 *     compare_rows.c     the table of what is compared
 *     compare_text.c     the comparison for people
 *     compare_pools.c    says which allocator helps
 *     compare_fastest.c  says which is the fastest, as far as is known
 *     compare_needless.c finds policies that change nothing
 *     compare_tensors.c  what --explain says of two variants
 *     compare_data.c     JSON and CSV
 *     compare_keys.c     the rows of their keys and columns
 *     compare_figure.c   bars, pareto, timeline, address, for memsim plot, too
 *
 * A variant is a record. Only variants.c (and --explain, which needs the
 * tensors) knows whether it was simulated or read from a result. */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/pools/steps/pooled.h"
#include "tools/alive/alive.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare_rows.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/points/points.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#define MS_VARIANTS_MOST 40u

/* The strings of a variant may hold any bytes, since files may. */
typedef struct ms_variant {
    const char *name;   /* what varies: "batch=8", "checkpoint:sqrt, batch=8" */
    const char *policy; /* canonical spelling */
    const char *allocator; /* "exact", "torch,max_split_size_mb:128" */
    /* what varies besides the pool: variants with equal texts differ in
     * their pools alone */
    const char *beside;
    /* why there are no numbers; NULL: there are numbers, and then: */
    const char *refused;
    const char *setup;  /* "batch 8 x 1024 tokens, bf16-mixed, adamw" */
    const char *device; /* "h100-80gb-sxm, 79.18 GiB less 0.49 GiB for ..." */
    /* "a.json, result 2", from which it was read; else NULL */
    const char *file;
    const char *json; /* its object, where JSON was asked for */
    size_t json_length;
    uint32_t gpus; /* of the job; 0: unknown */
    /* the tokens (or samples, where the model has no tokens) of a step of
     * the whole job; 0: unknown */
    double work;
    ms_record record; /* names and report */
    ms_fault fault;   /* why it was refused */
    /* Of a variant that was simulated: */
    ms_job job;
    ms_result result;
    ms_points_seat seat;
} ms_variant;

typedef struct ms_comparison {
    ms_variant *variants;
    uint32_t n, capacity;
    uint32_t n_sources; /* the number of texts that results were read from */
    /* the first variant that was not refused; the others are compared with
     * it */
    uint32_t base;
    /* --explain was given; the members below are set only then */
    bool explain;
    const char *at; /* --at as given; NULL: the peaks */
    uint32_t top;   /* the number of groups to show; MS_NONE: all */
    ms_alive alive[2];
    /* the groups of tensors that the two variants hold differently */
    ms_alike *groups;
    uint32_t n_groups;
} ms_comparison;

/* What is compared, as data: a number of the rank with the highest peak. */

/* The variant must not be refused. */
uint64_t ms_compare_values_of(const ms_variant *variant, uint32_t row);
const ms_rank_report *ms_compare_values_rank(const ms_variant *variant);

/* ---- variants.c ---------------------------------------------------------- */

/* Makes the variants of the command line, with names and jobs. points must
 * be open and holds what the variants share, so close the variants first. */
ms_err ms_variants_read(const ms_hall *hall, ms_points *points,
                        ms_comparison *comparison, ms_fault *fault);
/* What is needed of each variant besides its report. */
enum {
    MS_VARIANTS_JSON = 1u,      /* ms_variant.json */
    MS_VARIANTS_TIMELINE = 2u,  /* record.ranks */
    MS_VARIANTS_ADDRESSES = 4u, /* record.addresses, of variants with a pool */
    MS_VARIANTS_TENSORS = 8u    /* what ms_alive_find looks at */
};
/* Simulates the variants. A fault in the job of one refuses that variant
 * alone, unless all are refused: then the first fault is the command's. */
ms_err ms_variants_fill(const ms_hall *hall, ms_points *points, uint32_t needs,
                        ms_comparison *comparison, ms_fault *fault);
/* "ok", ..., "infeasible" or "refused". */
const char *ms_variants_status(const ms_variant *variant);
/* Finds the base; where all variants are refused it fails with the first
 * refusal. */
ms_err ms_variants_base(ms_comparison *comparison, ms_fault *fault);
void ms_variants_close(ms_points *points, ms_comparison *comparison);

/* ---- variants_named.c ---------------------------------------------------- */

/* The value of --variant: "QLoRA: lora.rank=16 lora.base=nf4". */
typedef struct ms_named {
    const char *name;
    /* keys are spelled as ms_grid_key spells them */
    const char **keys, **values;
    uint32_t n;
} ms_named;

ms_err ms_variants_named_read(const char *text, ms_arena *arena,
                              ms_named *named, ms_fault *fault);
/* Sets its keys over those of the job; policies are joined. */
ms_err ms_variants_named_put(const ms_named *named, ms_arena *arena,
                             ms_job *job, ms_fault *fault);
/* MS_EUSAGE for a key that the grid or --allocators sets as well. */
ms_err ms_variants_named_check(const ms_named *named, const ms_grid *grid,
                               bool has_allocators, ms_fault *fault);
/* MS_EUSAGE where two simulated variants are the same step. */
ms_err ms_variants_named_differ(const ms_comparison *comparison,
                                ms_arena *arena, ms_fault *fault);
/* --label: replaces the names of the variants, in their order. */
ms_err ms_variants_named_label(const ms_arguments *arguments,
                               ms_comparison *comparison, ms_fault *fault);

/* ---- variants_read.c ----------------------------------------------------- */

/* Appends the results of a text, as ms_results_read_text reads it; their
 * names are not set. text->name must last. */
ms_err ms_variants_read_text(const ms_quote *text, ms_arena *arena,
                             ms_comparison *comparison, ms_fault *fault);
/* Names the results that were read: as the comparison names them from which
 * they come, else by what varies, if that tells them apart and no others are
 * there, else by their files. */
ms_err ms_variants_read_names(ms_arena *arena, ms_comparison *comparison,
                              ms_fault *fault);

/* ---- compare_text.c ------------------------------------------------------ */

void ms_compare_text_write(const ms_comparison *comparison,
                           const ms_style *style, ms_text *text);

/* ---- compare_cells.c ----------------------------------------------------- */

/* "-1.00 GiB", or with the given sign. */
ms_label ms_compare_cells_signed(bool negative, const char *sign,
                                 ms_label size);

/* "yes", "no", or "no: host", "no: disk" where the device has enough memory;
 * row is ignored. */
ms_label ms_compare_cells_fits(const ms_comparison *comparison,
                               uint32_t variant, uint32_t row);
/* What is to spare or (-) missing: on the device, in a node's memories. */
ms_label ms_compare_cells_phase(const ms_comparison *comparison,
                                uint32_t variant, uint32_t row);
/* How far the steps of this kind that were measured were off at most, in 95 of
 * 100; "-": there are none. */
ms_label ms_compare_cells_error(const ms_comparison *comparison,
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
/* differ: whether the variants' devices have different capacities. short:
 * whether a node of any variant has too little of that memory. */
bool ms_compare_cells_differ(const ms_comparison *comparison);
bool ms_compare_cells_short(const ms_comparison *comparison, ms_pool_kind pool);

/* ---- compare_pools.c ----------------------------------------------------- */

/* A row on what a real pool makes of a variant; "-" where the pool is exact. */
typedef struct ms_compare_pool_row {
    const char *label;
    ms_label (*cell)(const ms_pooled *pooled, const ms_pooled_rank *rank);
} ms_compare_pool_row;
extern const ms_compare_pool_row ms_compare_pools_rows[];
extern const uint32_t ms_compare_pools_n_rows;
/* That of the rank with the highest peak; NULL: the pool is exact. */
const ms_pooled_rank *ms_compare_pools_rank(const ms_variant *variant);
/* "2: 1024", or "2:" where the variants have different lengths. */
ms_label ms_compare_pools_label(const ms_comparison *comparison, uint32_t step);
/* The number of steps that have rows of their own; 0: all steps are alike. */
uint32_t ms_compare_pools_steps(const ms_comparison *comparison);

/* A cell of the table above, and the cell of a step, counted from 1. */
ms_label ms_compare_pools_cell(const ms_comparison *comparison,
                               uint32_t variant, uint32_t row);
ms_label ms_compare_pools_step_cell(const ms_comparison *comparison,
                                    uint32_t variant, uint32_t step);
/* Says whether the pools differ or one is not as PyTorch sets it up by
 * default. Else only what they reserve matters. */
bool ms_compare_pools_tell(const ms_comparison *comparison);
/* Variants that differ in their pools alone; the text says which pool helps. */
typedef struct ms_compare_pool_group {
    /* n members; the first with a pool; the best reserves least, and those
     * that run out of memory come last */
    uint32_t n, first, best;
    uint32_t of[MS_VARIANTS_MOST];
} ms_compare_pool_group;
/* Finds the group that begins with this variant; false: it begins none. */
bool ms_compare_pools_group(const ms_comparison *comparison, uint32_t variant,
                            ms_compare_pool_group *group);
/* Writes a sentence for each group. */
void ms_compare_pools_write(const ms_comparison *comparison, ms_text *text);
/* Writes "note:     2: checkpoint:selective changes nothing here" for
 * variants that were simulated. */
ms_err ms_compare_needless_write(const ms_comparison *c, ms_text *text,
                                 ms_fault *fault);

/* ---- compare_fastest.c --------------------------------------------------- */

typedef struct ms_compare_fastest {
    uint32_t of; /* the variant whose step, or sample, takes least */
    double cost;
    /* Those that are closer to it than the larger error_percent of the two
     * (MS_ACCURACY_UNKNOWN, where one is not known), and by how much slower. */
    uint32_t close[MS_VARIANTS_MOST], n_close;
    double more_percent[MS_VARIANTS_MOST];
    uint32_t n_same; /* of those, that take exactly as long */
    /* The largest error_percent of the fastest and the others of those, of all
     * where there are no others; known: none of these is MS_ACCURACY_UNKNOWN's.
     */
    uint32_t percent;
    bool known;
} ms_compare_fastest;

/* false: all take the same time, or there is only one. */
bool ms_compare_fastest_find(const ms_comparison *comparison,
                             ms_compare_fastest *found);
/* Writes "fastest:  2 by the clock, but 1 (+6.1 %) is within the 38 % ...". */
void ms_compare_fastest_write(const ms_comparison *comparison, ms_text *text);

/* ---- compare_tensors.c --------------------------------------------------- */

void ms_compare_tensors_write(const ms_comparison *comparison,
                              const ms_style *style, ms_text *text);

/* ---- compare_data.c ------------------------------------------------------ */

void ms_compare_data_json(const ms_comparison *comparison, ms_text *text);
void ms_compare_data_csv(const ms_comparison *comparison, ms_text *text);

/* ---- compare_figure.c ---------------------------------------------------- */

/* kind: "bars" (also for NULL), "pareto", "timeline", "pipeline" or "address".
 * The subtitle is made here, and the title where the user gives none. */
ms_err ms_compare_figure_trade(const ms_variant *variant, ms_arena *arena,
                               ms_trade *trade, ms_fault *fault);
ms_err ms_compare_figure_draw(const ms_comparison *comparison, const char *kind,
                              const ms_drawing *drawing, ms_fault *fault);

#endif
