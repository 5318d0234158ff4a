/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIDE_H
#define MS_SIDE_H

/* One of the two that memsim diff sets side by side: allocations with their
 * lives, whether they were recorded or simulated, and what follows from them.
 *
 *     recordedside.c    of a recorded history
 *     simulatedside.c   of a step that was simulated
 *     savedside.c       of a saved result: its step again, or its levels alone
 *     side.c            steps, phases, peak and levels of such lives
 *     pairings.c        what one side has and the other lacks
 *
 * A state is what is alive behind an event (plots/page/htmlpage.h).  Of a
 * recording of many steps the one with the highest peak is looked at.  A step
 * is forward, then backward, then the optimizer: what runs forward again within
 * backward is backward, and a step begins where forward follows the optimizer.
 *
 * A worked example.  Allocations of 1, 2, 4 bytes in forward, backward and the
 * optimizer, twice, each freed at once but the first: levels 0 1 3 1 5 1 2 4 2
 * 6 2.  The peak is 6, in state 9, of the second of two steps, which has the
 * states 6 to 10; forward is state 6, backward 7 and 8. */

#include "plots/page/htmlpage.h"

typedef enum ms_side_kind {
    MS_SIDE_RECORDED,
    MS_SIDE_SIMULATED,
    MS_SIDE_SAVED,
    MS_SIDE_N_KINDS
} ms_side_kind;

/* The peak of a phase of the step that is looked at. */
typedef struct ms_side_phase {
    bool is_there;
    uint64_t peak_bytes;
    uint32_t peak_state;
    uint64_t by_category[MS_PAGE_CATEGORIES];
    double from, to; /* in states, or in ns where the levels were saved */
} ms_side_phase;

/* at: from 0 to 1,000,000, where phases of both sides are equally long. */
#define MS_SIDE_AXIS 1000000u
typedef struct ms_side_level {
    uint64_t at;
    uint64_t bytes;
} ms_side_level;

#define MS_SIDE_LEVELS 600u
#define MS_SIDE_KNOTS (3u * MS_N_PHASES + 1u)

typedef struct ms_side {
    const char *name; /* any bytes */
    uint8_t kind;
    bool tells_layers; /* words are names of memsim's tensors and ops */
    /* NULL: of a saved result whose step cannot be made again, as without says.
     * A category of MS_N_CATEGORIES is not known. */
    ms_pagelife *lives;
    uint32_t n, n_states;
    const char *const *words; /* by a life's site */
    const uint8_t *phases;    /* of the words; MS_N_PHASES: not told */
    uint32_t n_words;
    uint8_t phase_without; /* of what has no site */
    const char *without;
    const ms_record_rank *levels; /* of such a result; else NULL */
    /* What side.c finds: */
    uint32_t n_steps;    /* 0: phases are not known */
    uint32_t from, to;   /* the states of the step: from <= s < to */
    uint8_t *phase_of;   /* by state */
    uint64_t *bytes;     /* by state */
    ms_side_level *line; /* of the step */
    uint32_t n_line;
    ms_pageknot knots[MS_SIDE_KNOTS]; /* where on the axis of both it lies */
    uint32_t n_knots;
    double begin, end; /* of the step, as those of phases */
    uint64_t peak_bytes;
    uint32_t peak_state;
    uint8_t peak_phase;
    uint64_t by_category[MS_PAGE_CATEGORIES];
    ms_side_phase phase[MS_N_PHASES]; /* the loss is part of forward */
} ms_side;

/* ---- side.c -------------------------------------------------------------- */

/* Levels, steps, phases and peak, without categories. */
ms_err ms_side_measure(ms_side *side, ms_arena *arena, ms_fault *fault);
/* The phase in which a life begins: what does not tell is of the one before. */
uint8_t ms_side_phase_of(const ms_side *side, const ms_pagelife *life);
bool ms_side_is_alive(const ms_pagelife *life, uint32_t state);
/* Is it alive at some time of the step? */
bool ms_side_is_of_step(const ms_side *side, const ms_pagelife *life);
/* Gives lives whose category nobody knows one by how long they live: made in
 * forward and alive when it ends are activations, made in backward and alive in
 * the optimizer gradients, made by the optimizer for good its state, what is
 * shorter temporaries.  The rest stays unknown. */
void ms_side_guess(ms_side *side);
/* by_category, of the peak and of the phases. */
void ms_side_categorize(ms_side *side);
/* The lines of both on one axis, on which each phase has the mean of its shares
 * of the two steps, with the knots of the way there; lines of at most
 * MS_SIDE_LEVELS levels, each the highest of its part, the peak one of them.
 * edges: where the phases end, 0 where they are not known of both. */
ms_err ms_side_align(ms_side sides[2], uint64_t edges[MS_N_PHASES],
                     ms_arena *arena, ms_fault *fault);

/* ---- recordedside.c ------------------------------------------------------ */

ms_err ms_recordedside_read(const char *path, ms_arena *arena, ms_side *side,
                            ms_fault *fault);

/* ---- simulatedside.c ----------------------------------------------------- */

struct ms_result;
/* Of the rank that is told; the result needs its timeline. */
ms_err ms_simulatedside_of(const struct ms_result *result, ms_arena *arena,
                           ms_side *side, ms_fault *fault);

/* ---- savedside.c --------------------------------------------------------- */

struct ms_job;
/* The job that a saved result is of; *is_known: false where it is not known,
 * with the reason in *why. */
ms_err ms_savedside_job(const ms_record *record, ms_arena *arena,
                        struct ms_job *job, const char **why, ms_fault *fault);
/* The saved levels alone. */
ms_err ms_savedside_of(const ms_record *record, ms_arena *arena, ms_side *side,
                       ms_fault *fault);

#endif
