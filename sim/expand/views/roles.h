/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ROLES_H
#define MS_SIM_ROLES_H

/* Private to sim/expand: what a rank is for a micro-batch.
 *
 * A rank runs the units of its stages.  Where stages have copies (sim/stage.h)
 * it runs some of them on one micro-batch and others on another, as DualPipe's
 * ranks do, which are at the beginning of the model for one half of the
 * micro-batches and at its end for the other:
 *
 *     stage 0 = rank 0 units 0-3      role 0: rank 0, units 0-3
 *     stage 1 = rank 1 units 4-7      role 1: rank 0, units 4-7
 *     stage 2 = rank 0 units 4-7      role 2: rank 1, units 0-3
 *     stage 3 = rank 1 units 0-3      role 3: rank 1, units 4-7
 *
 * Without copies role r is rank r. */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct ms_roles {
    const ms_program *program;
    uint32_t n;
    uint32_t *of;   /* per rank and micro-batch; NULL without copies */
    uint32_t *rank; /* per role, as below */
    uint32_t *own;  /* per role and unit: the stage that has it + 1, or 0 */
} ms_roles;

ms_err ms_roles_open(const ms_graph *graph, const ms_program *program,
                     ms_arena *arena, ms_roles *roles, ms_fault *fault);
uint32_t ms_roles_of(const ms_roles *roles, uint16_t rank,
                     uint32_t micro_batch);
uint16_t ms_roles_rank(const ms_roles *roles, uint32_t role);
/* ms_stage_units of the role's units alone. */
void ms_roles_units(const ms_roles *roles, uint32_t role, uint32_t n_units,
                    uint32_t *own);

#endif
