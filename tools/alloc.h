/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ALLOC_H
#define MS_ALLOC_H

/* memsim alloc: a trace of allocations through memory pools, side by side.
 *
 *     alloc.c       options to runs, the stream of operations through them
 *     alloc_read.c  where operations come from: text or a recorded history
 *     alloc_data.c  runs as JSON
 *     alloc_text.c  runs for people
 *
 * A trace is read once, as it comes: each operation goes through every pool
 * before the next is read. */

#include "tools/tools.h"

#define MS_ALLOC_MOST_POOLS 8u

/* ---- alloc_read.c -------------------------------------------------------- */

/* bytes[at, end) is not yet read; a text is read in pieces, recorded
 * histories as a whole. */
typedef struct ms_alloc_source {
    const char *path, *name;
    int file;
    char *bytes;
    uint32_t capacity;
    size_t at, end;
    bool ended; /* the file has no more */
    uint32_t line;
    bool is_recorded, is_pickle; /* JSON, or a pickle: read as a whole */
    ms_recording recording;
} ms_alloc_source;

ms_err ms_alloc_read_open(ms_alloc_source *source, const char *path,
                          ms_arena *arena, ms_fault *fault);
void ms_alloc_read_close(ms_alloc_source *source);
/* The rest of the file, at once, NUL-terminated; nothing was taken from it. */
ms_err ms_alloc_read_all(ms_alloc_source *source, ms_arena *arena,
                         ms_fault *fault);
/* The next line of a text, NUL-terminated; *line = NULL at the end. */
ms_err ms_alloc_read_line(ms_alloc_source *source, ms_arena *arena, char **line,
                          size_t *length, ms_fault *fault);

/* ---- alloc.c ------------------------------------------------------------- */

typedef struct ms_alloc_pool {
    const char *spec;      /* as given: "torch,expandable_segments=True" */
    const char *conf;      /* of it, as PYTORCH_CUDA_ALLOC_CONF */
    int version, policy;   /* of it; -1: not said */
    double fraction;       /* of it; 0: not said */
    ms_torch_setup setup;  /* what came of it and of the headers */
    ms_allocfollow follow; /* follow.play: the pool */
} ms_alloc_pool;

typedef struct ms_alloc_run {
    ms_alloc_source source;
    ms_alloc_pool *pools;
    uint32_t n_pools;
    uint64_t memory_bytes; /* --memory; 0: not said */
    ms_alloctext_head head;
    uint32_t conf_line;
    bool started, device_known;
    ms_arena *keep;
    ms_allocplay_row row; /* of the first pool, after the last operation */
} ms_alloc_run;

/* ---- alloc_data.c, alloc_text.c ------------------------------------------ */

ms_err ms_alloc_data_json(const ms_alloc_run *run, ms_text *text,
                          ms_fault *fault);
void ms_alloc_text_write(const ms_alloc_run *run, const ms_style *style,
                         ms_text *text);

#endif
