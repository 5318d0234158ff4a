/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_NAMES_H
#define MS_SIM_NAMES_H

/* The enumerations of the house and their words. */

#include <stddef.h>
#include <stdint.h>

typedef enum ms_category {
    MS_PARAMETERS, /* weights and buffers of the model */
    MS_OPTIMIZER_STATE,
    MS_GRADIENTS,
    MS_INPUTS,
    MS_ACTIVATIONS,
    MS_TEMPORARIES,
    MS_WORKSPACE,
    MS_COMMUNICATION,
    MS_N_CATEGORIES
} ms_category;

/* The pass an op belongs to.  MS_RECOMPUTE: in plans, forward ops that a RERUN
 * or bind runs again; in graphs, those that a node of backward runs again
 * itself. */
typedef enum ms_pass {
    MS_FORWARD,
    MS_LOSS,
    MS_GRAD_INPUT,
    MS_GRAD_WEIGHT,
    MS_ACCUMULATE,
    MS_STEP,
    MS_RECOMPUTE,
    MS_START, /* the pseudo-op that holds what exists before the step */
    MS_COPY,  /* a MOVE between memories */
    MS_N_PASSES
} ms_pass;

/* The four phases that the user sees for the passes (the loss is part of
 * forward in times, and a phase of its own in phase_peaks). */
typedef enum ms_phase {
    MS_PHASE_FORWARD,
    MS_PHASE_LOSS,
    MS_PHASE_BACKWARD,
    MS_PHASE_OPTIMIZER,
    MS_N_PHASES
} ms_phase;

/* Where a (storage, frame, rank) is now (sim/README.md 3).  SHARD: this rank
 * has its part, the other ranks have theirs.  PACKED: in a flat buffer of the
 * program, with others. */
typedef enum ms_place {
    MS_HERE,
    MS_PENDING,
    MS_GONE,
    MS_HOST,
    MS_NVME,
    MS_SHARD,
    MS_PACKED,
    MS_N_PLACES
} ms_place;

typedef enum ms_pool_kind {
    MS_DEVICE_POOL,
    MS_HOST_POOL,
    MS_NVME_POOL,
    MS_N_POOLS
} ms_pool_kind;

typedef enum ms_stream_kind {
    MS_STREAM_COMPUTE,
    MS_STREAM_H2D,
    MS_STREAM_D2H,
    MS_STREAM_COMM,  /* the queue of the ranks that share states */
    MS_STREAM_OUTER, /* of the groups that hold the same part (HSDP) */
    MS_STREAM_HOST,  /* work of the host's cores, at the rate of its memory */
    MS_STREAM_NVME_READ,
    MS_STREAM_NVME_WRITE,
    MS_STREAM_NEXT,   /* what goes to the rank behind this one alone, where
                         neighbours have queues of their own */
    MS_STREAM_BEFORE, /* to the one before it */
    MS_N_STREAMS
} ms_stream_kind;

/* A set of them: a bit each. */
typedef uint16_t ms_streams;
_Static_assert(MS_N_STREAMS <= 10, "a row has 10 bits for its streams");
#define MS_ALL_STREAMS ((ms_streams)((1u << MS_N_STREAMS) - 1))

/* What an op that moves bytes does. */
typedef enum ms_transfer_kind {
    MS_TRANSFER_H2D,
    MS_TRANSFER_D2H,
    MS_TRANSFER_NVME_READ,
    MS_TRANSFER_NVME_WRITE,
    MS_TRANSFER_GATHER, /* collectives */
    MS_TRANSFER_SCATTER,
    MS_TRANSFER_REDUCE,
    MS_TRANSFER_OUTER,    /* an all-reduce of the outer group */
    MS_TRANSFER_EXCHANGE, /* an all-to-all */
    MS_TRANSFER_MEETING,  /* an op of the graph: of activations */
    MS_TRANSFER_SEND,     /* from one rank to another */
    MS_N_TRANSFERS
} ms_transfer_kind;

/* Which stream's memory a block is: PyTorch's allocator has a pool for each
 * stream.  Work that shares a queue here may take its memory from streams of
 * its own there: torch's FSDP gathers on one and reduces on another, in the
 * order of one communicator; FSDP1 casts what it gathers on a third. */
typedef enum ms_block_home {
    MS_HOME_STREAM,  /* of the op that allocates it */
    MS_HOME_COMPUTE, /* a block of the compute stream in any case */
    MS_HOME_REDUCE,
    MS_HOME_CAST,
    MS_N_HOMES
} ms_block_home;

/* The unit of a WORK call's amount: so many nanoseconds, FLOPs or bytes on a
 * stream, which is neither an op of the graph nor a copy. */
typedef enum ms_task_unit {
    MS_TASK_NS,
    MS_TASK_FLOPS, /* at the device's rate for 16-bit products */
    MS_TASK_BYTES, /* read and written, at the rate of the stream's memory or
                      link */
    MS_N_TASK_UNITS
} ms_task_unit;

/* Instants at which levels are read (MARK calls). */
typedef enum ms_mark {
    MS_MARK_START,          /* the first forward begins */
    MS_MARK_BEFORE_LOSS,    /* the model's output exists */
    MS_MARK_AFTER_FORWARD,  /* after the loss */
    MS_MARK_AFTER_BACKWARD, /* output and loss still held */
    MS_MARK_END,
    MS_N_MARKS
} ms_mark;

extern const char *const ms_names_category[MS_N_CATEGORIES];
extern const char *const ms_names_pass[MS_N_PASSES];
extern const char *const ms_names_phase[MS_N_PHASES];
extern const char *const ms_names_status[]; /* by ms_status */
extern const char *const ms_names_best[];   /* by ms_optimum_class */
extern const char *const ms_names_place[MS_N_PLACES];
extern const char *const ms_names_pool[MS_N_POOLS];
extern const char *const ms_names_stream[MS_N_STREAMS];
extern const char *const ms_names_home[MS_N_HOMES];
extern const char *const ms_names_mark[MS_N_MARKS];
extern const char *const ms_names_task_unit[MS_N_TASK_UNITS];
ms_phase ms_names_phase_of(ms_pass pass);
/* The nearest of n words to word by Damerau-Levenshtein distance (at most 2,
 * at most 1 for words under 5 letters), or NULL. */
const char *ms_names_nearest(const char *word, const char *const *words,
                             size_t n);

/* Bytes of the full name of a storage: layer names have at most 1024. */
#define MS_STORAGE_NAME 1152u

#endif
