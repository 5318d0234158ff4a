/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLACEMENT_H
#define MS_PLACEMENT_H

/* Static planning: every buffer's life and size is known, so all offsets are
 * decided at once (sim/pools/README.md 17).
 *
 * Two buffers whose lives [lower, upper) meet must not share an address.  The
 * height, the highest end of a buffer, is what one cudaMalloc would have to
 * return; no plan is below the bound, the most bytes that are live at once.
 *
 *     ms_placement_buffer buffers[] = {{0, 2, 10, 1}, {1, 3, 20, 1}};
 *     uint64_t offsets[2], height;
 *     MS_TRY(ms_placement_greedy(buffers, 2, MS_PLACEMENT_SIZE, offsets,
 *                                &height, fault));
 *
 * gives the offsets 20 and 0, and the height 30.
 *
 * Units: bytes; times are any increasing numbers.  Deterministic, no clock.
 * Faults: MS_ENOMEM, and MS_EINPUT where the sizes together exceed 2^62. */

#include "sim/base/base.h"

typedef struct ms_placement_buffer {
    uint64_t lower, upper; /* life: from lower on, up to before upper */
    uint64_t bytes;        /* > 0 */
    uint64_t align;        /* of the offset; 0 is 1 */
} ms_placement_buffer;

#define MS_PLACEMENT_MOST_BYTES (UINT64_C(1) << 62) /* of all together */

/* placement.c: the greedy rules.  Each takes the buffers in an order of its
 * own and puts each into a gap between those already placed that it meets. */
typedef enum ms_placement_rule {
    MS_PLACEMENT_SIZE,      /* TensorFlow Lite Micro's */
    MS_PLACEMENT_SIZE_BEST, /* TensorFlow Lite's arena */
    MS_PLACEMENT_SPAN_BEST,
    MS_PLACEMENT_AREA,
    MS_PLACEMENT_START,
    MS_PLACEMENT_START_BEST, /* as an online best fit would */
    MS_PLACEMENT_XLA_SPATIAL,
    MS_PLACEMENT_XLA_TEMPORAL,
    MS_PLACEMENT_N_RULES
} ms_placement_rule;

typedef enum ms_placement_fit {
    MS_PLACEMENT_FIRST, /* the lowest gap that is large enough */
    MS_PLACEMENT_BEST,  /* the smallest; the space above all is no gap */
    MS_PLACEMENT_TOP    /* the same, and up to the height so far is a gap */
} ms_placement_fit;

typedef struct ms_placement_row {
    const char *name, *help;
    const char *keys; /* what the order goes by; placement.c reads them */
    ms_placement_fit fit;
} ms_placement_row;
extern const ms_placement_row ms_placement_rows[MS_PLACEMENT_N_RULES];

/* offsets: room for n. */
ms_err ms_placement_greedy(const ms_placement_buffer *buffers, uint32_t n,
                           ms_placement_rule rule, uint64_t *offsets,
                           uint64_t *height, ms_fault *fault);
/* The most bytes that are live at once. */
ms_err ms_placement_bound(const ms_placement_buffer *buffers, uint32_t n,
                          ms_arena *arena, uint64_t *bytes, ms_fault *fault);
/* The times of the buffers as ranks: lives[i] counts distinct times below. */
typedef struct ms_placement_life {
    uint32_t lower, upper;
} ms_placement_life;
ms_err ms_placement_rank(const ms_placement_buffer *buffers, uint32_t n,
                         ms_arena *arena, ms_placement_life *lives,
                         uint32_t *n_times, ms_fault *fault);

/* placecsv.c: "id,lower,upper,size[,alignment]", as minimalloc reads it; the
 * columns in any order, and of a solution "offset" besides, which is not
 * read.  bytes: NUL-terminated where length ends; ids point into the arena. */
typedef struct ms_placement_list {
    ms_placement_buffer *buffers;
    const char **ids;
    uint32_t n, capacity, ids_capacity;
} ms_placement_list;
ms_err ms_placecsv_read(const char *name, const char *bytes, size_t length,
                        ms_arena *arena, ms_placement_list *list,
                        ms_fault *fault);

/* placeobjects.c: buffers share whole objects, as textures do (TensorFlow
 * Lite's GPU delegate): none lies across two.  The sizes together are at most
 * MS_PLACEMENT_MOST_BYTES (ms_placement_bound says whether); objects: room for
 * n, the number of each buffer's, from 0 by first use; object_bytes: room for
 * n.
 *
 * Greedy, in the order of first use: each takes the free object whose size is
 * nearest to its own, which grows where it is too small. */
ms_err ms_placeobjects_greedy(const ms_placement_buffer *buffers, uint32_t n,
                              ms_arena *arena, uint32_t *objects,
                              uint64_t *object_bytes, uint32_t *n_objects,
                              ms_fault *fault);
/* Min-cost flow: each buffer opens an object, for its bytes, or takes over
 * that of one that ended, for the bytes that it is larger than that one; the
 * cheapest such assignment.  Of those that cost the same, the one with the
 * fewest bytes unused, then objects that were left last. */
#define MS_PLACEOBJECTS_MOST 2048u /* buffers, of flow; above: MS_EINPUT */
ms_err ms_placeobjects_flow(const ms_placement_buffer *buffers, uint32_t n,
                            ms_arena *arena, uint32_t *objects,
                            uint64_t *object_bytes, uint32_t *n_objects,
                            ms_fault *fault);
/* The objects one after the other, as offsets. */
void ms_placeobjects_offsets(const ms_placement_buffer *buffers, uint32_t n,
                             const uint32_t *objects, uint32_t n_objects,
                             uint64_t *offsets, uint64_t *height);

/* placeexact.c: a search that finds a plan within a capacity, or proves that
 * there is none, unless it is stopped before. */
#define MS_PLACEEXACT_MOST 4096u /* buffers; above: MS_EINPUT */

typedef enum ms_placeexact_answer {
    MS_PLACEEXACT_FOUND,
    MS_PLACEEXACT_NONE,   /* there is no such plan */
    MS_PLACEEXACT_UNKNOWN /* stopped */
} ms_placeexact_answer;

/* stop is asked every few steps, if it is set, and may look at a clock: then
 * the answer depends on the machine; with most_steps alone it never does. */
typedef struct ms_placeexact_limits {
    uint64_t most_steps;
    bool (*stop)(void *of);
    void *of;
} ms_placeexact_limits;

typedef struct ms_placeexact_result {
    ms_placeexact_answer answer;
    uint64_t n_steps; /* buffers placed, those taken back included */
} ms_placeexact_result;

/* offsets are set where a plan was found. */
ms_err ms_placeexact_search(const ms_placement_buffer *buffers, uint32_t n,
                            uint64_t capacity,
                            const ms_placeexact_limits *limits, ms_arena *arena,
                            uint64_t *offsets, ms_placeexact_result *result,
                            ms_fault *fault);

#endif
