/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ROWS_H
#define MS_TOOLS_ROWS_H

/* Reads what memsim sweep wrote: CSV with its header, or JSON Lines.
 *
 *     point, the varied keys, policy, status, message, numbers
 *
 * Files of one sweep (its shards) are read one after the other into the same
 * rows. A header may be repeated, as where shards were concatenated. */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/results/keys/keys.h"

typedef struct ms_sweep_row {
    uint64_t point;                        /* counted from 1 */
    const char **values;                   /* by varied key */
    const char *policy, *status, *message; /* message: "" for none */
    /* a refused or infeasible point may have none; then these are not set: */
    bool has_numbers;
    bool fits_known; /* fits is of the pool that a user has */
    bool fits;       /* the same as fits_exact where that is not known */
    bool fits_exact; /* by the live bytes, without a pool */
    uint64_t peak_allocated_bytes, peak_reserved_bytes, step_ns, recompute_ns,
        stall_ns, exposed_comm_ns, host_peak_bytes, host_reserved_peak_bytes;
    double tokens_per_second; /* negative: does not apply */
    /* "" and 0 in files of memsim 0.1.0: */
    const char *model, *setup;    /* "batch 8 x 1024 tokens, bf16-mixed, adamw,
                                     h100-80gb-sxm" */
    uint64_t job_gpus, job_batch; /* of all GPUs; in samples */
    uint64_t capacity_bytes, context_bytes;
    const char *replayed_because; /* of JSON; NULL: a fold tells such a point */
} ms_sweep_row;

typedef struct ms_rows {
    const char **keys; /* the varied keys, as in the header: "training.batch" */
    uint32_t n_keys;
    ms_sweep_row *rows;
    uint32_t n, capacity;
    const char *name; /* the file whose keys these are; NULL: none yet */
} ms_rows;

/* Does the text begin like rows of a sweep? */
ms_err ms_rows_are(const ms_quote *source, ms_arena *scratch, bool *are,
                   ms_fault *fault);
/* Appends the rows of a text, which must stay in memory. Faults: MS_EINPUT with
 * line and column, for a text that no sweep writes, for an unknown column, and
 * for other varied keys than those of the rows before. */
ms_err ms_rows_read(const ms_quote *source, ms_arena *arena, ms_rows *rows,
                    ms_fault *fault);

#endif
