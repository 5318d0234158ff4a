/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ALLOCATOR_H
#define MS_TOOLS_ALLOCATOR_H

/* Memory pools by name: what --allocator says. */

#include "sim/pools/steps/pooled.h"

typedef struct ms_allocator {
    const char *spec;     /* as given: "torch,expandable_segments=True" */
    bool exact;           /* no pool; what follows is for others */
    ms_heap_options heap; /* kind; what follows is for torch but policy */
    const char *conf;     /* of it, as PYTORCH_CUDA_ALLOC_CONF */
    int version, policy;  /* of it; -1: not said */
    double fraction;      /* of it; 0: not said */
} ms_allocator;
/* Faults: MS_EUSAGE, the word that is wrong.  conf is not read yet. */
ms_err ms_allocator_read(const char *spec, ms_arena *arena,
                         ms_allocator *allocator, ms_fault *fault);
/* Its spec; "exact" of NULL. */
const char *ms_allocator_name(const ms_allocator *allocator);
/* The pool of a step: version where it is not said, conf read. */
ms_err ms_allocator_setup(const ms_allocator *allocator,
                          ms_torch_version version, ms_pooled_setup *setup,
                          ms_fault *fault);
#define MS_ALLOCATOR_MOST_STEPS 100u

#endif
