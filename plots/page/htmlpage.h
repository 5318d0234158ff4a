/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_HTMLPAGE_H
#define MS_PLOTS_HTMLPAGE_H

/* A page to hand on: one HTML file that needs nothing else, no network, and
 * shows steps to zoom into, tensor by tensor.
 *
 *     htmlpage.c      the file: style, script and data in one
 *     pageshare.c     how much of it a step may have
 *     pagestep.c      the data of a step: what its figures show, from a record
 *     pagelevels.c    its memory, event by event
 *     pagetensors.c   its largest tensors
 *     pagelives.c     the data of a recorded history of allocations
 *     pageoverlay.c   the data of one of two steps on one axis
 *     page.css, page.js   embedded by embed.cmake; page.js reads the data
 *
 * Data is JSON in a block that browsers do not run.  Names may be any bytes:
 * the script only ever sets texts, and a policy in the file (CSP) lets no other
 * script run than the one with the hash of page.js.
 *
 *     ms_text data = {.arena = arena};
 *     ms_text_add(&data, "{\"variants\": [{\"step\": ");
 *     MS_TRY(ms_pagestep_put(&step, &data, fault));
 *     ms_text_add(&data, "}]}");
 *     MS_TRY(ms_htmlpage_make("gpt2", &data, &page, fault));
 */

#include "plots/record/record.h"

#define MS_PAGE_BYTES 3000000u /* no page is larger */
#define MS_PAGE_STEPS 8u       /* of a page, at most */
/* The categories; then that of memory whose category nobody recorded. */
#define MS_PAGE_CATEGORIES (MS_N_CATEGORIES + 1u)

/* ---- htmlpage.c ---------------------------------------------------------- */

/* data: the object that page.js reads, with the keys of tools/cli/report/ or
 * tools/cli/diff/.  page: the file. */
ms_err ms_htmlpage_make(const char *title, const ms_text *data, ms_text *page,
                        ms_fault *fault);
/* "categories": [["parameters", "#2F62A8"], ...], "works": ..., "phases": ...:
 * what a page says once, names with their colours. */
void ms_htmlpage_put_colors(ms_text *text);

/* ---- pageshare.c --------------------------------------------------------- */

/* What of a step is told one by one.  What is over is told together, and
 * counted. */
typedef struct ms_pageshare {
    uint32_t events;  /* of more, the parts have points */
    uint32_t parts;   /* of the time, each with up to three points */
    uint32_t tensors; /* with names, the largest */
    uint32_t turns;   /* of all stages; of more, each stage's slices */
    uint32_t slices;  /* of a stream or stage, neighbours joined */
    uint32_t groups;  /* of what is alive at the peak, the largest */
} ms_pageshare;

/* A page of n steps: what writes its data where each has such a share. */
typedef struct ms_pagedata {
    const char *title;
    uint32_t n;
    ms_err (*put)(const void *of, const ms_pageshare *share, ms_text *data,
                  ms_fault *fault);
    const void *of;
} ms_pagedata;
/* The file, of at most MS_PAGE_BYTES: shares are halved until it is.
 * MS_EUSAGE: with less it would not be a figure. */
ms_err ms_pageshare_fit(const ms_pagedata *data, ms_text *page,
                        ms_fault *fault);

/* ---- pagestep.c ---------------------------------------------------------- */

/* A step, and of which rank (of report.ranks). */
typedef struct ms_pagestep {
    const ms_record *record; /* with ranks */
    uint32_t rank;
    /* Of a step that was simulated; NULL: it was read back, and has neither
     * events nor tensors. */
    const ms_timeline *line;
    const uint32_t *group_of; /* by row of the plan: its group at the peak, or
                                 MS_NONE; NULL: there are no groups */
    ms_pageshare most;
} ms_pagestep;

/* An object:
 *
 *     {"end": 31056134, "timed": true,
 *      "phases": [[0, 9189373, "forward"], ...],
 *      "reserved": [[0, 8589934592], ...], "again": [[0, 0], ...],
 *      "lanes": [{"name": "compute", "slices": [[0, 7000, 0, 7000], ...]}],
 *      "stages": [{"rank": 0, "hidden": 0, "slices": [],
 *                  "turns": [[0, 900, "forward", 0, 0, 0], ...]}],
 *      "events": 2140, "shown": 2140, "points": [1, 0, 1, 0, 248879616, ...],
 *      "tensors": {...} or null}
 *
 * Times in ns, of a step that takes none in events.  A slice: from, to, then
 * pairs of a work (row of "works") and its ns.  A turn: from, to, kind,
 * micro-batch, stage, ns run again.  A stage has slices of its compute stream
 * instead where the turns of all stages are too many; hidden: how many. */
ms_err ms_pagestep_put(const ms_pagestep *step, ms_text *text, ms_fault *fault);

/* ---- pagelevels.c -------------------------------------------------------- */

/* A rank's memory as its states: 0 is before its first event, k is behind its
 * k-th.  A point is a state: how many states and ns behind the point before, a
 * number n, then n pairs of a category and by how many bytes it changes.  Of at
 * most most->events events each is a point; of more the step is cut into
 * most->parts equal times, of each of which the lowest, the highest and the
 * last state are points, so that the highest of any part is exact. */
ms_err ms_pagelevels_put(const ms_timeline *line, uint16_t rank,
                         const ms_pageshare *most, ms_text *text,
                         ms_fault *fault);
/* The same of the levels of a record, each one state behind the other. */
void ms_pagelevels_record(const ms_record_rank *rank, ms_text *text);

/* ---- pagetensors.c ------------------------------------------------------- */

/* An object: the words, and the largest rows of the rank's device, in the order
 * in which they are allocated: name, bytes, category, from and to (alive in the
 * states from <= s < to), made, read and freed (what op does so last), group.
 * name to freed and group: words by their number, or -1.
 *
 *     {"words": ["aten::mm of layers.0.mlp.up, forward", ...],
 *      "rows": [[4, 8388608, 4, 12, 907, 0, 31, 31, 2], ...],
 *      "hidden": 140, "hidden_bytes": 5120}
 *
 * hidden: how many rows are smaller than these; hidden_bytes: the largest of
 * them. */
ms_err ms_pagetensors_put(const ms_pagestep *step, uint16_t rank, ms_text *text,
                          ms_fault *fault);

/* ---- pagelives.c --------------------------------------------------------- */

/* A block of a recorded history: alive in the states from <= s < to; from 1,
 * each state is of one block alone, 0 is what is there before. */
typedef struct ms_pagelife {
    uint64_t bytes;
    uint32_t from, to; /* to MS_NONE: it is there at the end */
    uint32_t site;     /* row of the words: where it was asked for; MS_NONE */
    uint8_t category;  /* of MS_PAGE_CATEGORIES */
    bool held;         /* it was there when the recording began */
} ms_pagelife;

typedef struct ms_pagelives {
    const ms_pagelife *lives; /* in the order of from */
    uint32_t n, n_states;
    const char *const *words; /* any bytes */
    uint32_t n_words;
    const uint32_t *group_of; /* by life, as in ms_pagestep */
    ms_pageshare most;
} ms_pagelives;

/* An object as that of ms_pagestep_put, whose time counts states. */
ms_err ms_pagelives_put(const ms_pagelives *of, ms_text *text, ms_fault *fault);
/* Of it "events", "points" and "shown" (pagelevels.c). */
ms_err ms_pagelevels_lives(const ms_pagelives *of, ms_text *text,
                           ms_fault *fault);
/* The object of "tensors". */
ms_err ms_pagelives_tensors(const ms_pagelives *of, ms_text *text,
                            ms_fault *fault);

/* ---- pageoverlay.c ------------------------------------------------------- */

/* Where an instant of a step lies on an axis: between two knots in proportion,
 * before the first and behind the last with it. */
typedef struct ms_pageknot {
    double t; /* a state, or ns where levels alone are known */
    uint64_t at;
} ms_pageknot;

/* One of two steps on one axis. */
typedef struct ms_pageoverlay {
    const ms_pagelives *lives;    /* of the step; NULL: its levels alone */
    const ms_record_rank *levels; /* then these */
    const ms_pageknot *knots;
    uint32_t n_knots;
} ms_pageoverlay;

/* Of an object:
 *
 *     "knots": [[0, 0], [914, 402311], ...],
 *     "step": {"events": 914, "points": [...], "shown": 914,
 *              "tensors": {...} or null}
 *
 * as in those of ms_pagestep_put; group: the phase that makes it. */
ms_err ms_pageoverlay_put(const ms_pageoverlay *of, ms_text *text,
                          ms_fault *fault);

#endif
