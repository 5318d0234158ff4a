/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ALLOC_H
#define MS_ALLOC_H

/* memsim alloc: traces of allocations through memory pools, side by side.
 *
 *     alloc.c       options to runs, the stream of operations through them
 *     alloc_read.c  where operations come from: text or a recorded history
 *     alloc_leaks.c what grows from step to step
 *     alloc_map.c   where blocks lie, as a figure
 *     alloc_data.c  runs as JSON
 *     alloc_keys.c  the rows of its keys
 *     alloc_text.c  runs for people
 *     alloc_traces.c, alloc_table.c  several traces, side by side
 *
 * A trace is read once, as it comes: each operation goes through every pool
 * before the next is read.  Of several, one comes after the other; what is told
 * of each is kept, the rest is not. */

#include "policies/common/policy.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/commands.h"
#include "tools/differences/pairings.h"
#include "tools/job/allocator.h"
#include "tools/job/outputs.h"
#include "tools/terminal/screen.h"

#define MS_ALLOC_MOST_POOLS 8u
#define MS_ALLOC_STREAMS 7u

/* ---- alloc_read.c -------------------------------------------------------- */

/* bytes[at, end) has not yet been taken. A text is read in pieces, a
 * recorded history as a whole. */
typedef struct ms_alloc_source {
    const char *path, *name;
    int file;
    char *bytes;
    uint32_t capacity;
    size_t at, end;
    bool ended; /* the file has no more bytes */
    uint32_t line;
    bool is_recorded, is_pickle; /* a recorded history: JSON, or a pickle */
    /* buffers with their lifetimes, for the arena */
    bool is_csv;
    ms_recording recording;
} ms_alloc_source;

ms_err ms_alloc_read_open(ms_alloc_source *source, const char *path,
                          ms_arena *arena, ms_fault *fault);
/* MS_EINPUT: the file holds no allocation. */
ms_err ms_alloc_read_empty(const ms_alloc_source *source, ms_fault *fault);
void ms_alloc_read_close(ms_alloc_source *source);
/* Reads the rest of the file at once and ends it with a NUL; nothing may
 * have been taken from it. */
ms_err ms_alloc_read_all(ms_alloc_source *source, ms_arena *arena,
                         ms_fault *fault);
/* The next line of a text, ended with a NUL; *line is NULL at the end. */
ms_err ms_alloc_read_line(ms_alloc_source *source, ms_arena *arena, char **line,
                          size_t *length, ms_fault *fault);

/* ---- alloc_leaks.c: what grows ------------------------------------------- */

/* How steps are told apart; the first way that the trace allows is taken. */
typedef enum ms_alloc_mark {
    MS_ALLOC_STEPS,  /* by lines "# step ..." */
    MS_ALLOC_RESETS, /* by resets of the peaks */
    MS_ALLOC_TRACES, /* each is a trace of its own: its end */
    MS_ALLOC_N_MARKS,
    /* by a sequence of allocations that recurs */
    MS_ALLOC_PERIOD = MS_ALLOC_N_MARKS
} ms_alloc_mark;

/* an open-addressing hash table; row MS_NONE: the slot is empty */
typedef struct ms_alloc_slots {
    uint64_t *keys;
    uint32_t *rows, capacity;
} ms_alloc_slots;

/* begin and end count allocations and frees; end is UINT64_MAX while it is
 * alive. */
typedef struct ms_alloc_life {
    uint64_t bytes, begin, end;
    uint32_t group;
    uint32_t held_by; /* the last trace that held it when it began */
} ms_alloc_life;

/* Allocations that belong together: those of one site, a row of sites; where
 * site is MS_NONE, those of equal bytes and stream. */
typedef struct ms_alloc_group {
    uint32_t site;
    uint64_t bytes, stream;
} ms_alloc_group;

typedef struct ms_alloc_level {
    uint64_t count, bytes;
} ms_alloc_level;

typedef struct ms_alloc_leaks {
    ms_arena *arena;
    bool of_traces; /* each of several is a step, by MS_ALLOC_TRACES */
    uint64_t clock;
    ms_alloc_slots id_slots, group_slots, site_slots;
    const char **sites; /* of all traces, each once */
    uint32_t n_sites, sites_capacity, n_traces;
    uint32_t *site_of; /* by site of the trace that is under way */
    ms_alloc_life *lives;
    ms_alloc_group *groups;
    uint32_t n_lives, lives_capacity, n_groups, groups_capacity, n_ids;
    struct ms_alloc_marks {
        uint64_t *at;
        uint32_t n, capacity;
    } marks[MS_ALLOC_N_MARKS];

    /* What ms_alloc_leaks_find computes. */
    ms_alloc_mark by;
    /* of MS_ALLOC_PERIOD: the number of allocations of a step */
    uint32_t period;
    uint64_t *points;
    uint32_t n_points;
    ms_alloc_level *levels; /* by group and point */
    /* the groups that grow, the largest growth first */
    uint32_t *found, n_found;
} ms_alloc_leaks;
typedef struct ms_alloc_marks ms_alloc_marks;

/* A trace begins; recording: NULL of a text.  What an earlier one left and this
 * one does not hold, at its address and as large, has been freed in between.
 * What stays keeps the site that the earlier one has of it; of what else it
 * holds the site is not known.  site below is one of this recording. */
ms_err ms_alloc_leaks_begin(ms_alloc_leaks *leaks,
                            const ms_recording *recording, ms_fault *fault);
ms_err ms_alloc_leaks_alloc(ms_alloc_leaks *leaks, uint64_t id, uint64_t bytes,
                            uint64_t stream, uint32_t site, ms_fault *fault);
/* Ends the life of an id. An id that is not known was allocated before the
 * trace, and is passed over. */
void ms_alloc_leaks_free(ms_alloc_leaks *leaks, uint64_t id);
ms_err ms_alloc_leaks_mark(ms_alloc_leaks *leaks, ms_alloc_mark kind,
                           ms_fault *fault);
/* MS_EINPUT where the trace has no steps that can be told apart. */
ms_err ms_alloc_leaks_find(ms_alloc_leaks *leaks, const ms_alloc_source *source,
                           ms_fault *fault);
ms_alloc_level *ms_alloc_leaks_levels(const ms_alloc_leaks *leaks,
                                      uint32_t group);
uint64_t ms_alloc_leaks_growth(const ms_alloc_leaks *leaks, uint32_t group);

/* ---- alloc.c ------------------------------------------------------------- */

typedef struct ms_alloc_pool {
    ms_allocator as;
    /* the setup that follows from the options and the trace's header */
    ms_pool_setup setup;
    ms_allocfollow follow; /* its member play holds the pool */
    /* where its blocks lie, if a figure is drawn of them */
    ms_addressmap map;
    ms_torch_stats stats; /* at the end */
    ms_pool_stats told;
    uint64_t device_used_bytes;
} ms_alloc_pool;

/* What is alive when a recording starts. */
typedef struct ms_alloc_held {
    uint64_t blocks, bytes, reserved_bytes; /* bytes: the sum of the blocks */
    /* it is allocated again, in the pool of this run */
    bool anew;
} ms_alloc_held;

typedef struct ms_alloc_run {
    ms_alloc_source source;
    ms_alloc_pool *pools;
    uint32_t n_pools;
    uint64_t memory_bytes; /* --memory; 0: not given */
    ms_alloctext_head head;
    uint32_t conf_line;
    bool started, device_known;
    bool anew; /* what is alive when a recording starts is allocated again */
    ms_alloc_held held;
    ms_arena *keep;
    /* the row of the first pool after the last operation */
    ms_allocplay_row row;
    ms_alloc_leaks *leaks; /* NULL: --leaks was not given */
    ms_picture figure;
    /* the streams whose blocks have a colour of their own */
    uint64_t streams[MS_ALLOC_STREAMS];
    uint32_t n_streams;
} ms_alloc_run;

/* ---- alloc_map.c --------------------------------------------------------- */

/* All four do nothing where no figure is asked for. listen: before the pool
 * is made; start: once the pool is there; tick: before an operation; note:
 * after an operation that run->row tells of. */
void ms_alloc_map_listen(const ms_alloc_run *run, ms_alloc_pool *pool);
ms_err ms_alloc_map_start(const ms_alloc_run *run, ms_alloc_pool *pool,
                          ms_fault *fault);
void ms_alloc_map_tick(ms_alloc_pool *pool);
/* event: the one that was replayed, of a recording. NULL: the operation is
 * of a text trace, and was made on `stream`. */
ms_err ms_alloc_map_note(ms_alloc_run *run, ms_alloc_pool *pool,
                         uint64_t stream, const ms_recording_event *event,
                         ms_fault *fault);
ms_err ms_alloc_map_draw(ms_alloc_run *run, ms_arena *arena, bool quiet,
                         ms_fault *fault);

/* ---- alloc_outputs.c ----------------------------------------------------- */

/* Refuses CSV of several allocators, a figure of too many, either of several
 * traces, two results on standard output, and an output file that is the trace
 * itself. *figure is what --plot asks for. */
ms_err ms_alloc_outputs_check(const ms_hall *hall, uint32_t n_allocators,
                              ms_picture *figure, ms_fault *fault);

/* ---- alloc_traces.c: several traces -------------------------------------- */

/* Runs of several traces through the same pools. */
typedef struct ms_alloc_traces {
    const ms_alloc_run *runs;
    uint32_t n;
    ms_alloc_leaks *leaks; /* NULL: --leaks was not given */
    /* By what the first pool allocates at its peak; the first of equals. */
    uint32_t lowest, highest, most_reserved;
    int64_t gap; /* of these peaks */
    ms_side sides[2];
    /* what one holds and the other lacks; without: why that is not known */
    ms_pairings pairs;
    const char *without;
} ms_alloc_traces;

/* Fills in what follows from runs, n and leaks. */
ms_err ms_alloc_traces_compare(ms_alloc_traces *traces, ms_arena *arena,
                               ms_fault *fault);
uint64_t ms_alloc_traces_peak(const ms_alloc_run *run, uint32_t pool,
                              ms_torch_measure measure);

/* ---- alloc_data.c, alloc_text.c, alloc_table.c --------------------------- */

ms_alloc_held ms_alloc_data_held(const ms_alloc_run *run);
ms_err ms_alloc_data_json(const ms_alloc_run *run, ms_text *text,
                          ms_fault *fault);
/* Totals of each trace, and what ms_alloc_traces_compare found. */
ms_err ms_alloc_data_traces(const ms_alloc_traces *traces, ms_text *text,
                            ms_fault *fault);
void ms_alloc_text_write(const ms_alloc_run *run, const ms_style *style,
                         ms_text *text);
/* Its parts, of one run or of several: PyTorch's version, the device, of which
 * one the only trace is, and options; what is out of memory first; what is not
 * as recorded; what is held at the start; what grows. */
void ms_alloc_text_device(const ms_alloc_run *run, bool is_only, ms_text *text);
void ms_alloc_text_oom(const ms_alloc_run *run, uint32_t pool, ms_text *text);
void ms_alloc_text_different(const char *name, const ms_alloc_pool *pool,
                             const ms_style *style, ms_text *text);
void ms_alloc_text_held(const ms_alloc_run *runs, uint32_t n, ms_text *text);
void ms_alloc_text_leaks(const ms_alloc_leaks *leaks, const ms_style *style,
                         ms_text *text);
void ms_alloc_table_write(const ms_alloc_traces *traces, const ms_style *style,
                          ms_text *text);

#endif
