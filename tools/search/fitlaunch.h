/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FITLAUNCH_H
#define MS_TOOLS_FITLAUNCH_H

/* A set-up as the arguments of systems that train: those that say how ranks
 * divide the work, what is recomputed, and the batches.  The model's own are
 * not among them.  What a system does not have is named instead, in the
 * spelling of -p and --set:
 *
 *     zero:1+tensor:4,sp+pipeline:8,chunks=2, 512 samples on 64 GPUs
 *         --use-distributed-optimizer --tensor-model-parallel-size 4
 *         --sequence-parallel --pipeline-model-parallel-size 8 ...
 *     swap:torchtune
 *         cannot: swap:torchtune
 *
 * Names are those of NVIDIA/Megatron-LM, megatron/training/arguments.py (core
 * 0.13), and pytorch/torchtitan@b5bcd76c, torchtitan/config/job_config.py. */

#include "tools/search/fit.h"

typedef struct ms_fitlaunch {
    const char *system;    /* "Megatron-LM" */
    const char *label;     /* "megatron:" */
    const char *cannot;    /* of the chosen point; NULL: it has all */
    uint32_t point;        /* whose the arguments are; MS_NONE: no row's */
    const char *arguments; /* NULL: none */
    const char *hint;      /* policies with which fit finds what it has */
} ms_fitlaunch;
#define MS_FITLAUNCH_SYSTEMS 2u

/* The chosen point as the arguments of each system; where a system does not
 * have it, the first of the rows that it has (point), if any. */
ms_err ms_fitlaunch_of(const ms_fit *fit, uint32_t chosen, ms_arena *arena,
                       ms_fitlaunch launch[MS_FITLAUNCH_SYSTEMS],
                       ms_fault *fault);

#endif
