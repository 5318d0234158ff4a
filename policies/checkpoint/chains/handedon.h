/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_HANDEDON_H
#define MS_POLICIES_HANDEDON_H

/* Private to policies/checkpoint: what parts hand to each other, where a plan
 * runs stages again that read it, and who holds it meanwhile.
 *
 *     two parts, checkpoint:recursive: the second one's entry is the hidden
 *     state that the first one sends; it is entered of its stage 1, and no
 *     node saves it when it comes
 *
 * Of a model that is one part all of it is nothing. */

#include "policies/checkpoint/chains/chainparts.h"

typedef struct ms_handedon {
    const ms_policy_context *context;
    const ms_chainparts *parts;
    const ms_chain_plan *plans; /* per part */
    ms_arena *arena;
    uint32_t *entry;    /* per part: the set that its forward holds first */
    uint32_t **entered; /* per part and stage: what of it ends behind the
                           stage's backward */
    /* Per storage: nodes of another part of its rank save it.  NULL: none. */
    uint8_t *is_saved;
    uint32_t *instead; /* per set of the program as it was given: the set that
                          takes its place in HOLD and DROP_SET */
    uint8_t *saves; /* per set: as it comes, do nodes save it?  0: yes, 1: no,
                       2: it is not known yet */
} ms_handedon;

/* Sets are added to `made`, a fork of the program. */
ms_err ms_handedon_find(const ms_policy_context *context,
                        const ms_chainparts *parts, const ms_chain_plan *plans,
                        const ms_program *program, ms_arena *arena,
                        ms_program *made, ms_handedon *handed, ms_fault *fault);
bool ms_handedon_is_saved(const ms_handedon *handed, uint32_t storage);
/* Call i of the program, as it is with the plans; false: it is left out. */
bool ms_handedon_change(ms_handedon *handed, const ms_program *program,
                        uint32_t i, ms_call *call);
/* Where the first half of backward keeps all that its nodes save to its end
 * (ms_schedule_keeps.graphs), of what forward does not save (is_kept, per
 * storage) it keeps nothing: per set of the program the set instead. */
ms_err ms_handedon_retain(const ms_policy_context *context,
                          const ms_program *program, const uint8_t *is_kept,
                          ms_arena *arena, ms_program *made, uint32_t **instead,
                          ms_fault *fault);
/* A HOLD or DROP_SET of the set instead; false: the call is left out. */
bool ms_handedon_instead(const uint32_t *instead, const ms_program *program,
                         ms_call *call);

#endif
