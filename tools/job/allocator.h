/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ALLOCATOR_H
#define MS_TOOLS_ALLOCATOR_H

/* The values of --allocator: memory pools by their names. */

#include "sim/pools/steps/pooled.h"

/* What to do next where an option of --allocator is wrong. */
#define MS_ALLOCATOR_HINT "\"memsim help traces\" lists the options"

typedef struct ms_allocator {
    /* as the user wrote it: "torch,expandable_segments=True" */
    const char *spec;
    bool exact; /* there is no pool; all members below are for pools */
    /* the kind of pool; the members below are for torch, except policy */
    ms_heap_options heap;
    const char *conf;    /* PyTorch's options, as in PYTORCH_CUDA_ALLOC_CONF */
    int version, policy; /* -1: not given */
    double fraction;     /* 0: not given */
} ms_allocator;
/* Faults: MS_EUSAGE with the word that is wrong. conf is not yet read. */
ms_err ms_allocator_read(const char *spec, ms_arena *arena,
                         ms_allocator *allocator, ms_fault *fault);
/* The spec as the user wrote it; "exact" for NULL. */
const char *ms_allocator_name(const ms_allocator *allocator);
/* Sets up the pool of a step: takes the version given, or else `version`,
 * and reads conf. */
ms_err ms_allocator_setup(const ms_allocator *allocator,
                          ms_torch_version version, ms_pooled_setup *setup,
                          ms_fault *fault);
#define MS_ALLOCATOR_MOST_STEPS 100u

#endif
