/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_IDLE_H
#define MS_SIM_IDLE_H

/* How long what is saved for backward waits there: from the end of the last op
 * that touches it before the end of the first micro-batch's forward (the loss
 * included) to the start of the first that reads it after; where none does, to
 * the end of the step.  Swapping and recomputing can use this time.
 *
 *     a_1, 8 MiB, is read last at 20 ms and next at 50 ms: it waits for 30 ms,
 *     in which 50 GB/s take it out and bring it back in 0.34 ms. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* Of each way; each copy takes copy_ns more.  0: nothing can be copied. */
typedef struct ms_idle_links {
    double out_bytes_per_s, in_bytes_per_s;
    uint64_t copy_ns;
} ms_idle_links;

/* alone: it can be copied out and back while it waits.  together: it can beside
 * all others of which this is said: copies of one way follow one another, out
 * as tensors become idle, back as they are needed.  uses: ops that read it. */
typedef struct ms_idle_tensor {
    uint64_t bytes, from_ns, to_ns;
    uint32_t row, uses;
    bool alone, together;
} ms_idle_tensor;

/* Of the rank, by from_ns; their bytes sum to the report's
 * saved_for_backward_bytes.  Needs plan.use.  *n is 0 where the program does
 * not mark that instant. */
ms_err ms_idle_list(const ms_timeline *line, uint16_t rank,
                    const ms_idle_links *links, ms_arena *arena,
                    ms_idle_tensor **list, uint32_t *n, ms_fault *fault);

#endif
