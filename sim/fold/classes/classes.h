/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_CLASSES_H
#define MS_SIM_CLASSES_H

/* Private to sim/fold: units by content.  Each storage has an owner, most often
 * the unit whose op makes it, and an index among the owner's.  A unit's forward
 * (or backward) names the storages of its ops by owner, counted from the unit,
 * and index; units with the same names, sizes, times, drop lists and references
 * are of one class, and expand cannot tell them apart.
 *
 * What is read far from where it is made (the angles of rotary embeddings, an
 * encoder's output) has the owner `shared`; what no unit touches (the
 * optimizer's state) has the owner `rest`.  These two are the same for all.
 * Where many units make what is used by themselves and by one other unit far
 * away (autocast's copies of weights, which go together at the end), each has a
 * second owner for it, named by its unit, too: one of all would be in another
 * state for each unit.
 *
 * A worked example: unit 7 reads what unit 6 makes first and makes a tensor of
 * its own.  In class: reads (-1, 0), makes (0, 0), owners -1 and 0.  Unit 8
 * says the same of units 7 and 8: one class. */

#include "sim/fold/classes/intern.h"
#include "sim/nouns.h"

/* A storage that is touched further away than this belongs to all units. */
#define MS_CLASSES_NEAR 4u

/* Owners as a unit sees them: so many units behind it, or one of these. */
#define MS_CLASSES_SHARED INT32_MAX
#define MS_CLASSES_REST (INT32_MAX - 1)
/* The second owner of a unit: this, and so many units behind it. */
#define MS_CLASSES_SECOND (INT32_MAX / 2)
/* Is it the first owner of a unit that is seen? */
#define MS_CLASSES_IS_FIRST(owner) ((owner) < MS_CLASSES_SECOND / 2)

/* What a call runs of a unit. */
typedef enum ms_class_side {
    MS_CLASS_FORWARD,
    MS_CLASS_BACKWARD,
    MS_N_CLASS_SIDES
} ms_class_side;

typedef struct ms_class {
    int32_t *owner; /* those of which its ops touch storages */
    uint32_t n_owners, first_unit;
} ms_class;

typedef struct ms_classes {
    const ms_graph *graph;
    /* Of each unit the first, then these two, then of each unit the second, if
     * there are such. */
    uint32_t n_owners;
    uint32_t shared, rest;
    uint32_t *owner, *index;        /* per storage */
    uint32_t *cell_at, *cell;       /* per owner: its storages by index */
    uint32_t *kind;                 /* per owner: equal for equal storages */
    uint32_t *kind_first;           /* per kind: the first owner of it */
    uint32_t *of[MS_N_CLASS_SIDES]; /* per unit: its class */
    /* Forward ops that write a storage in place: per storage the last of them,
     * per op the one before it, or MS_NONE. */
    uint32_t *writer, *writer_before;
    /* Per unit: how many units behind it backward reads last what its forward
     * makes or finishes in place; from how many units before it that is. */
    uint32_t *read_behind, *made_before;
    ms_class *classes;
    uint32_t n_classes;
} ms_classes;

/* The graph is prepared (ms_prepare_graph). */
ms_err ms_classes_open(ms_classes *classes, const ms_graph *graph,
                       ms_arena *arena, ms_fault *fault);

static inline uint32_t ms_classes_owner(const ms_classes *classes,
                                        uint32_t unit, int32_t owner)
{
    if (MS_CLASSES_IS_FIRST(owner))
        return (uint32_t)((int32_t)unit + owner);
    if (owner >= MS_CLASSES_REST)
        return owner == MS_CLASSES_REST ? classes->rest : classes->shared;
    return classes->rest + 1 +
           (uint32_t)((int32_t)unit + (owner - MS_CLASSES_SECOND));
}

/* The same the other way round. */
static inline int32_t ms_classes_seen(const ms_classes *classes, uint32_t unit,
                                      uint32_t owner)
{
    if (owner < classes->shared)
        return (int32_t)owner - (int32_t)unit;
    if (owner <= classes->rest)
        return owner == classes->rest ? MS_CLASSES_REST : MS_CLASSES_SHARED;
    return MS_CLASSES_SECOND + (int32_t)(owner - classes->rest - 1) -
           (int32_t)unit;
}

/* The ops [*first, *end) of one side of a unit. */
void ms_classes_ops(const ms_graph *graph, uint32_t unit, ms_class_side side,
                    uint32_t *first, uint32_t *end);

#endif
