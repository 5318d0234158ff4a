/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_DEEPSPEED_H
#define MS_POLICIES_DEEPSPEED_H

/* zero:STAGE,impl=deepspeed: the calls of DeepSpeed's code, as far as memory
 * and traffic go (policies/sources.md 4; deepspeedai/DeepSpeed
 * deepspeed/runtime/zero/stage_1_and_2.py, stage3.py,
 * partitioned_param_coordinator.py).  A unit is DeepSpeed's module: its hooks
 * run before and after it.  One bucket of stage 2, by hand:
 *
 *     take ipg_bucket                 at the start of each backward
 *     run backward unit 4
 *     move .grad of 4.weight to packed, ipg_bucket   (.grad is freed)
 *     ...                             the next one would not fit:
 *     take flattened                  as large as what is in the bucket
 *     move the bucket's to packed, flattened
 *     reduce them to shard, whole     an all-reduce; the owners keep parts
 *     give flattened */

#include "policies/common/policy.h"
#include "sim/program.h"

typedef struct ms_deepspeed {
    uint32_t stage;
    bool contiguous, scatter, multi_rank, overlap, round_robin, quantized;
    bool quantized_gradients;
    bool views;               /* linear layers save views of their weights */
    uint32_t secondary_ranks; /* 1: no secondary parts */
    uint64_t bucket, prefetch, max_live, max_reuse; /* elements */
} ms_deepspeed;

/* ---- private to deepspeed*.c --------------------------------------------- */

/* A parameter, in the order of the flat group. */
typedef struct ms_deepspeed_row {
    uint32_t weight, grad; /* storages; grad MS_NONE: frozen */
    uint32_t set;          /* of its .grad alone, once a call has named it */
    uint64_t elements;
    uint64_t at; /* in the flat group */
    bool made;   /* a backward makes its .grad */
} ms_deepspeed_row;

/* A buffer of the program that is taken again and again. */
typedef struct ms_deepspeed_buffer {
    uint32_t id;
    const char *name;
    uint64_t bytes;
    bool taken;
} ms_deepspeed_buffer;

/* Stage 3 lets so many fetches or reductions be under way, or the host waits
 * for the oldest (stage3.py, max_param_reduce_events;
 * partitioned_param_coordinator.py, __max_ongoing_fetch_events): events, each a
 * buffer of no bytes. */
#define MS_DEEPSPEED_UNDER_WAY 2u
typedef struct ms_deepspeed_events {
    const char *name;
    uint32_t n, buffer[MS_DEEPSPEED_UNDER_WAY + 1]; /* oldest first */
} ms_deepspeed_events;

typedef struct ms_deepspeed_writer {
    const ms_policy_context *context;
    const ms_graph *graph;
    const ms_deepspeed *how;
    ms_arena *arena;
    ms_fault *fault;
    ms_program *program; /* the new one */
    uint32_t ranks, node_ranks;
    ms_deepspeed_events fetches, reductions;
    uint64_t item_bytes; /* of an element of .grad */
    uint64_t stretch;    /* elements of the flat group that a rank owns */
    ms_deepspeed_row *rows;
    uint32_t n_rows;
    uint32_t *row_of;            /* per persistent storage, or MS_NONE */
    uint32_t *grad_at, *grad_of; /* per unit: rows whose .grad it makes */
    ms_deepspeed_buffer *buffers;
    uint32_t n_buffers, buffers_capacity;
    uint32_t *list; /* room for all persistent storages */
    /* The bucket under way. */
    uint32_t bucket[2], active; /* buffers */
    uint32_t *in, n_in;         /* rows */
    uint64_t filled;            /* elements */
    /* Stages 1 and 2: of the backward under way. */
    bool has_sum;   /* BF16_Optimizer: stage 1 without parts of .grad */
    bool far;       /* gradients leave the device when they are reduced */
    bool open;      /* the buckets are there */
    bool has_parts; /* this backward's partition is there */
    uint32_t parts; /* its buffer, where it is added to an older one */
    uint32_t all_grads, all_weights; /* sets */
} ms_deepspeed_writer;

/* ---- deepspeedcalls.c: calls, buffers, events ---------------------------- */

/* Adds the call; buffer MS_NONE or a row of w->buffers.  Below, by verb, in the
 * name of like. */
ms_err ms_deepspeedcalls_emit(ms_deepspeed_writer *w, ms_call call,
                              uint32_t buffer);
ms_err ms_deepspeedcalls_wait(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t set, uint32_t buffer);
ms_err ms_deepspeedcalls_move(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t set, uint32_t buffer, ms_move_call how);
ms_err ms_deepspeedcalls_gather(ms_deepspeed_writer *w, const ms_call *like,
                                uint32_t set, uint32_t buffer,
                                ms_gather_call how);
ms_err ms_deepspeedcalls_reduce(ms_deepspeed_writer *w, const ms_call *like,
                                uint32_t set, uint32_t buffer,
                                ms_reduce_call how);
/* Such a buffer, known by name and bytes, that is not taken; from now on it is.
 * *row: of w->buffers. */
ms_err ms_deepspeedcalls_buffer_of(ms_deepspeed_writer *w, ms_buffer value,
                                   uint32_t *row);
/* The same, and takes it. */
ms_err ms_deepspeedcalls_take(ms_deepspeed_writer *w, const ms_call *like,
                              ms_buffer value, uint32_t *row);
ms_err ms_deepspeedcalls_give(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t row);
/* Before one more: the host waits for the oldest of too many; and behind it. */
ms_err ms_deepspeedcalls_await(ms_deepspeed_writer *w, const ms_call *like,
                               ms_deepspeed_events *events);
ms_err ms_deepspeedcalls_record(ms_deepspeed_writer *w, const ms_call *like,
                                ms_deepspeed_events *events);
/* A set of the first n storages of w->list. */
ms_err ms_deepspeedcalls_add_set(ms_deepspeed_writer *w, uint32_t n,
                                 uint32_t *set);
/* Does the backward end before this call? */
bool ms_deepspeedcalls_ends(const ms_call *call);

/* ---- the gradient bucket ------------------------------------------------- */

/* deepspeedrows.c says what may be in it, deepspeedbucket.c fills it,
 * deepspeedreduce.c and deepspeedpp.c reduce it. */

/* Finds the parameters, their places in the flat group, and the gradients that
 * each unit makes. */
ms_err ms_deepspeedrows_open(ms_deepspeed_writer *w);
/* Reduces what w->in lists, as one collective. */
ms_err ms_deepspeedreduce_listed(ms_deepspeed_writer *w, const ms_call *like);
/* The same tensor by tensor, quantized. */
ms_err ms_deepspeedpp_reduce(ms_deepspeed_writer *w, const ms_call *like);
/* The gradient of a row is there: into the bucket, which is reduced first where
 * it would be too full. */
ms_err ms_deepspeedbucket_add(ms_deepspeed_writer *w, const ms_call *like,
                              uint32_t row);
/* The backward of unit has run: its gradients go to the bucket. */
ms_err ms_deepspeedbucket_ready(ms_deepspeed_writer *w, const ms_call *like,
                                uint32_t unit);
/* Reduces what is in the bucket. */
ms_err ms_deepspeedbucket_close(ms_deepspeed_writer *w, const ms_call *like);

/* deepspeedviews.c: whole copies of weights that only a view names, saved by a
 * node of a unit. */
typedef struct ms_deepspeed_kept {
    uint32_t unit, micro_batch, buffer;
} ms_deepspeed_kept;
typedef struct ms_deepspeed_views {
    uint32_t *of; /* per row: the first unit that saved a view of the whole copy
                     there is, or MS_NONE */
    ms_deepspeed_kept *kept;
    uint32_t n_kept, kept_capacity;
} ms_deepspeed_views;
ms_err ms_deepspeedviews_open(ms_deepspeed_writer *w,
                              ms_deepspeed_views *views);
/* The forward of unit has run, and saved its views. */
void ms_deepspeedviews_save(const ms_deepspeed_writer *w,
                            ms_deepspeed_views *views, uint32_t unit);
/* The backward of like's unit has run: its nodes let go of what they saved. */
ms_err ms_deepspeedviews_drop(ms_deepspeed_writer *w, ms_deepspeed_views *views,
                              const ms_call *like);
/* Of rows[0 .. *n), which are released, those that views name let their copies
 * go to buffers; the others move up. */
ms_err ms_deepspeedviews_keep(ms_deepspeed_writer *w, ms_deepspeed_views *views,
                              const ms_call *like, uint32_t *rows, uint32_t *n);
/* deepspeedflat.c: stages 0 to 2; deepspeed3.c: stage 3. */
ms_err ms_deepspeedflat_write(ms_deepspeed_writer *w, const ms_program *old);
ms_err ms_deepspeed3_write(ms_deepspeed_writer *w, const ms_program *old);

#endif
