/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ALLOC_KEYS_H
#define MS_ALLOC_KEYS_H

/* What memsim alloc prints for scripts: structs that alloc_data.c fills, and
 * the rows of their keys. */

#include "tools/cli/alloc/alloc.h"
#include "tools/results/keys/keys.h"

typedef struct ms_alloc_segment_shown {
    const ms_torch_segment_view *view;
    const char *type; /* "small" or "large"; NULL: of a heap */
} ms_alloc_segment_shown;

/* A pool at the end of the trace. */
typedef struct ms_alloc_pool_shown {
    const ms_alloc_pool *pool;
    const char *kind, *va;
    const char *version; /* PyTorch's; NULL: of a heap */
    bool is_recorded;    /* the trace is a recording */
    ms_alloc_segment_shown *segments;
    uint32_t n_segments;
} ms_alloc_pool_shown;

/* A group that grows. */
typedef struct ms_alloc_leak_shown {
    const char *site;               /* NULL: not known; then: */
    uint64_t request_bytes, stream; /* what it goes by */
    ms_alloc_level *levels;         /* n */
    uint32_t n;
} ms_alloc_leak_shown;

typedef struct ms_alloc_sheet {
    const char *memsim;
    const ms_alloc_run *run;
    const ms_alloc_pool *first;  /* of the run */
    ms_alloc_pool_shown *pools;  /* run->n_pools */
    const ms_alloc_leaks *leaks; /* NULL: not asked for */
    ms_alloc_leak_shown *grown;  /* leaks->n_found */
    /* Of several traces, of which run, first and pools are not told: */
    const ms_alloc_traces *traces;
    struct ms_alloc_sheet *of; /* traces->n */
} ms_alloc_sheet;

extern const ms_keys ms_alloc_keys;        /* of ms_alloc_sheet */
extern const ms_keys ms_alloc_keys_traces; /* the same of several traces */
extern const ms_keys ms_alloc_keys_line;   /* CSV: of ms_allocplay_line */

#endif
