/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ALLOCTRACE_H
#define MS_ALLOCTRACE_H

/* Traces of allocations, and a pool that they go through.
 *
 * A text trace has one operation a line, headers before them:
 *
 *     # total_bytes 17179869184
 *     # conf max_split_size_mb:64
 *     a 0 1048576 0      malloc: id, bytes, stream (0 where left out)
 *     r 0 7              record_stream: id, stream
 *     w 7 2              stream 7 has 2 more pieces of work (1)
 *     f 0                free: id
 *     c 7                stream 7 finishes all, or the next N
 *     e                  empty_cache
 *     m 0.9              set_per_process_memory_fraction
 *     x CONF             settings now
 *     b 524288000        other processes take so many bytes now
 *     P                  reset peaks
 *     s                  snapshot
 *
 * Heaps (pool.h) have neither empty_cache nor options that change: e and x do
 * nothing to them; m bounds what they may ask for from then on.
 *
 * A recorded history (JSON, tools/recordings/recording.c) says besides which
 * addresses the device answered with, so that every block can be compared.
 *
 * One op after the other, without a file:
 *
 *     ms_allocplay play;
 *     ms_allocplay_row row;
 *     ms_alloctrace_spot spot = {"trace.txt", 1, 0};
 *     MS_TRY(ms_allocplay_start(&play, &setup, &arena, fault));
 *     MS_TRY(ms_alloctext_line(&spot, "a 0 4096", 8, &op, fault));
 *     MS_TRY(ms_allocplay_do(&play, &spot, &op, &row, fault)); */

#include "sim/pools/pool.h"

/* Where an op stands in its file, for faults. */
typedef struct ms_alloctrace_spot {
    const char *name;
    uint32_t line, column; /* from 1; column 0: none */
} ms_alloctrace_spot;

/* ---- alloctext.c: lines -------------------------------------------------- */

#define MS_ALLOCTEXT_MOST 8192u /* bytes of a line */

typedef struct ms_alloctext_op {
    char kind; /* 'a' ...; '#': a header; 0: nothing on the line */
    uint64_t id;
    uint64_t bytes;           /* a, b */
    uint64_t stream;          /* a, r, w, c */
    uint64_t n;               /* w, c; UINT64_MAX: all */
    double fraction;          /* m */
    char key[32];             /* '#' */
    const char *line, *value; /* '#', x: the line and the rest of it */
} ms_alloctext_op;

/* line is NUL-terminated where length ends; faults quote it. */
ms_err ms_alloctext_line(const ms_alloctrace_spot *spot, const char *line,
                         size_t length, ms_alloctext_op *op, ms_fault *fault);

/* What the headers say; a key that is not here is a comment. */
typedef struct ms_alloctext_head {
    uint64_t total_bytes, base_bytes; /* total 0: not said */
    const char *conf;                 /* "": none */
    int policy, version;              /* -1: not said */
} ms_alloctext_head;
/* Takes up one header line; texts go into the arena. */
ms_err ms_alloctext_header(const ms_alloctrace_spot *spot,
                           const ms_alloctext_op *op, ms_arena *arena,
                           ms_alloctext_head *head, ms_fault *fault);

/* ---- allocplay.c: ops through a pool ------------------------------------- */

/* An op that was done, and where its block lies. */
typedef struct ms_allocplay_row {
    char kind;
    bool has_id, ok;
    uint64_t id, address;
} ms_allocplay_row;

/* What the pool holds after it. */
typedef struct ms_allocplay_line {
    uint64_t i; /* of the op, from 0 */
    char op[2]; /* its letter */
    bool has_id;
    uint64_t id, ok, address;
    uint64_t allocated_bytes, active_bytes, reserved_bytes, requested_bytes,
        inactive_split_bytes, device_used_bytes;
    uint64_t allocations, active, inactive_splits, segments; /* how many */
    uint64_t retries, ooms;
} ms_allocplay_line;

typedef struct ms_allocplay_name { /* one slot of the table of ids */
    uint64_t id;
    uint32_t block; /* or one of two marks */
    uint32_t line;  /* 0: empty */
} ms_allocplay_name;

typedef struct ms_allocplay {
    ms_pool *pool;
    ms_arena *arena;
    uint64_t device_bytes; /* no request may be larger; UINT64_MAX: any */
    ms_allocplay_name *names;
    uint32_t names_capacity, n_names;
    uint64_t n_ops, n_allocs, n_oom;
    uint32_t line;      /* of the op that is being done */
    uint32_t first_oom; /* its line; 0: none */
    uint64_t first_oom_bytes;
} ms_allocplay;

ms_err ms_allocplay_start(ms_allocplay *play, const ms_pool_setup *setup,
                          ms_arena *arena, ms_fault *fault);
/* Faults (MS_EINPUT): an id that is not live or already is, a request of none
 * or more than device_bytes, options that PyTorch refuses. */
ms_err ms_allocplay_do(ms_allocplay *play, const ms_alloctrace_spot *spot,
                       const ms_alloctext_op *op, ms_allocplay_row *row,
                       ms_fault *fault);
/* MS_EINPUT at the spot. */
ms_err ms_allocplay_fail(const ms_alloctrace_spot *spot, ms_fault *fault,
                         const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* For allocfollow.c: a block that is there already (MS_NONE: its malloc
 * failed); the slot of a live one,
 * NULL where its malloc failed; a block that was freed by other means. */
ms_err ms_allocplay_name_block(ms_allocplay *play, uint64_t id, uint32_t block,
                               ms_fault *fault);
ms_err ms_allocplay_block(const ms_allocplay *play,
                          const ms_alloctrace_spot *spot, uint64_t id,
                          ms_allocplay_name **found, ms_fault *fault);
void ms_allocplay_forget(const ms_allocplay *play, ms_allocplay_name *name);
void ms_allocplay_tell(const ms_allocplay *play, const ms_allocplay_row *row,
                       ms_allocplay_line *line);

/* ---- allocfollow.c: recorded histories ----------------------------------- */

typedef enum ms_recording_kind {
    MS_RECORDING_ALLOC,
    MS_RECORDING_FREE,
    MS_RECORDING_EMPTY,
    MS_RECORDING_ASKED,     /* "fr" */
    MS_RECORDING_COMPLETED, /* "fc" */
    MS_RECORDING_OOM
} ms_recording_kind;

typedef struct ms_recording_event {
    uint64_t address, bytes, stream;
    uint32_t answers_at, n_answers;
    uint32_t line, column; /* in the file; of a snapshot: the entry, and 0 */
    uint32_t site;         /* of an allocation: where it was made, or MS_NONE */
    uint8_t kind;
    uint8_t category; /* with has_categories: ms_category, or their number */
} ms_recording_event;

/* requested_bytes: UINT64_MAX where the block is idle and nothing is known. */
typedef struct ms_recording_block {
    uint64_t bytes, requested_bytes;
    uint8_t state; /* ms_torch_state */
} ms_recording_block;

typedef struct ms_recording_segment {
    uint64_t address, bytes, stream;
    uint32_t blocks_at, n_blocks;
    bool small;
} ms_recording_segment;

typedef struct ms_recording {
    const char *name, *conf;
    uint32_t device; /* of several: which */
    bool expandable;
    bool has_categories; /* some allocation tells its own */
    uint32_t n_start, n_final, n_events, n_blocks, n_answers;
    ms_recording_segment *start, *final;
    ms_recording_block *blocks; /* of start, then of final */
    ms_recording_event *events;
    ms_torch_entry *answers;
    /* Stacks of a snapshot's frames, each once: "f (a.py:3) < g (b.py:7)". */
    const char **sites;
    /* By site: the phase (ms_phase) that its stack is of, MS_N_PHASES where it
     * does not tell. */
    uint8_t *site_phases;
    uint32_t n_sites;
} ms_recording;

/* What was compared with the record and what was not as recorded. */
typedef struct ms_allocfollow_result {
    uint64_t n_addresses, n_answers, n_blocks; /* compared */
    uint64_t n_different;
    uint32_t first; /* event of the first difference; MS_NONE: at the end */
    char what[160]; /* of it */
} ms_allocfollow_result;

typedef struct ms_allocfollow {
    ms_allocplay play;
    const ms_recording *recording;
    ms_torch_log log; /* setup's: it reads along all the same */
    void *log_of;
    bool given; /* the device answers as recorded, so all can be compared */
    ms_allocfollow_result result;
    uint32_t at;                    /* event */
    const ms_torch_entry *expected; /* of the event that is being done */
    uint32_t n_expected, at_expected;
} ms_allocfollow;

/* A pool as the recording starts; setup's policy is GIVEN (of torch), or
 * another: then nothing is compared, and events say only sizes and lives; a
 * request that ran out of memory then and does not here is freed at once.  A
 * heap starts with requests for what is there, in the order of addresses, and
 * so does torch with anew (unless GIVEN); else it stays in its segments, which
 * options do not reach. */
ms_err ms_allocfollow_start(ms_allocfollow *follow,
                            const ms_recording *recording,
                            const ms_pool_setup *setup, bool anew,
                            ms_arena *arena, ms_fault *fault);
/* The next event; false: it was the last. */
ms_err ms_allocfollow_do(ms_allocfollow *follow, ms_allocplay_row *row,
                         bool *more, ms_fault *fault);
/* Compares the blocks with those at the end. */
ms_err ms_allocfollow_end(ms_allocfollow *follow, ms_arena *arena,
                          ms_fault *fault);

#endif
