/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RESULTS_SHEET_H
#define MS_RESULTS_SHEET_H

/* What the object of memsim run --json is printed from and read into: the
 * report, and what stands beside it in the object. The rows of keys_run.c refer
 * to its members.
 *
 *     ms_sheet_json(&report, &graph, &names, &record, &text); */

#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/pools/steps/pooled.h"
#include "tools/cli/commands.h"
#include "tools/results/keys/keys.h"

typedef struct ms_sheet_op {
    const char *name;
    uint32_t count;
} ms_sheet_op;

/* A step of the pool: its kind and its numbers. */
typedef struct ms_sheet_step {
    ms_pooled_kind *kind;
    ms_pooled_step *step;
} ms_sheet_step;

/* What the plan of a policy is the best of, and how far the step is from what
 * that model of it says. */
typedef struct ms_sheet_optimum {
    const char *best;        /* NULL: nothing is claimed */
    uint64_t unit_bytes;     /* 0: no sizes were rounded */
    uint64_t peak_bytes, ns; /* 0: not foreseen */
    int64_t more_bytes, more_ns;
} ms_sheet_optimum;

typedef struct ms_sheet {
    uint64_t parameters;
    const char *memsim, *model, *device, *policy;
    const char *settings_json; /* NULL: none */
    const char *from_json;     /* NULL: no --from */
    const ms_record *record;   /* of the timeline; NULL: none */
    ms_report *report;         /* read only when printed */
    ms_rank_report *told;      /* one of report->ranks */
    /* Of the pool; NULL where it is exact. */
    ms_pooled *pooled;
    ms_pooled_rank *pooled_rank;          /* of the one told */
    const char *pool_version, *pool_kind; /* version NULL: the pool has none */
    ms_sheet_step *steps;                 /* as many as pooled->setup.steps */
    /* Only for printing: */
    ms_sheet_op *unknown;             /* ops without a rule */
    const char *exceeded[MS_N_POOLS]; /* memories that are too small */
    uint32_t n_unknown, n_exceeded;
    uint64_t used_bytes, libraries_bytes; /* what libraries keep in the pool */
    uint32_t n_libraries;
    double total_flops;
    ms_sheet_optimum optimum;
} ms_sheet;

/* What stands in the place of a run that could not be simulated. */
typedef struct ms_sheet_refused {
    const char *memsim, *message, *policy;
    bool is_infeasible; /* else the job itself is refused */
} ms_sheet_refused;

/* The sheet to print; with text->failed, nothing of it. */
void ms_sheet_open(ms_sheet *sheet, const ms_report *report,
                   const ms_graph *graph, const ms_report_names *names,
                   ms_text *text);
/* The object of memsim run --json (`memsim help json`).  record: what figures
 * are drawn from; NULL: "timeline" is null. */
void ms_sheet_json(const ms_report *report, const ms_graph *graph,
                   const ms_report_names *names, const ms_record *record,
                   ms_text *text);

/* The record, but for what is said of it in words (resultwords.c), from an
 * object of saved JSON. */
ms_err ms_sheet_read(const ms_values *values, uint32_t object,
                     ms_record *record);

#endif
