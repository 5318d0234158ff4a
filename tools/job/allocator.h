/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ALLOCATOR_H
#define MS_TOOLS_ALLOCATOR_H

/* Memory pools by their names: the values of --allocator. */

#include "sim/pools/steps/pooled.h"

typedef struct ms_allocator {
    const char *spec; /* as given: "torch,expandable_segments=True" */
    bool exact;       /* no pool; the members below are for pools */
    /* its kind; the members below are for torch, but for policy */
    ms_heap_options heap;
    const char *conf;    /* its options, as in PYTORCH_CUDA_ALLOC_CONF */
    int version, policy; /* -1: not given */
    double fraction;     /* 0: not given */
} ms_allocator;
/* Faults: MS_EUSAGE with the word that is wrong. conf is not read yet. */
ms_err ms_allocator_read(const char *spec, ms_arena *arena,
                         ms_allocator *allocator, ms_fault *fault);
/* The spec; "exact" for NULL. */
const char *ms_allocator_name(const ms_allocator *allocator);
/* Sets up the pool of a step: takes the default version where none is given,
 * and reads conf. */
ms_err ms_allocator_setup(const ms_allocator *allocator,
                          ms_torch_version version, ms_pooled_setup *setup,
                          ms_fault *fault);
#define MS_ALLOCATOR_MOST_STEPS 100u

#endif
