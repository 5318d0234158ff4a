/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MEMSIM_H
#define MEMSIM_H

/* libmemsim: the memory and the time of a training step, from a program.
 *
 *     memsim_job *job = memsim_open("gpt2");
 *     memsim_set(job, "policy", "checkpoint:sqrt");
 *     memsim_set(job, "training.batch", "8");
 *     memsim_numbers numbers = {.size = sizeof numbers};
 *     if (memsim_evaluate(job, &numbers) != MEMSIM_OK)
 *         fprintf(stderr, "%s: %s\n", memsim_where(job), memsim_what(job));
 *     else
 *         printf("%" PRIu64 "\n", numbers.peak_allocated_bytes);
 *     memsim_free(job);
 *
 * A job is what one "memsim run" would simulate; its settings are those of the
 * command line.  It remembers the models and graphs that it has made: after
 * another policy the model is not read again, after another batch it is lowered
 * anew.
 *
 * Bytes are bytes, times nanoseconds.  The same settings give the same numbers,
 * whatever was asked before.  Nothing is printed, no signal is caught and no
 * locale is changed.
 *
 * Threads: one job is for one thread at a time, different jobs are for any; a
 * copy is a job of its own.  There is no state besides the jobs but for tables
 * that are read once and never change.
 *
 * Every function takes NULL for a job: it fails with MEMSIM_NO_MEMORY, or has
 * nothing to give. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when functions or members are added, which older callers do not see;
 * the library's soname changes when something is taken away. */
#define MEMSIM_ABI 1

typedef struct memsim_job memsim_job;

/* The exit statuses of the program. */
typedef enum memsim_status {
    MEMSIM_OK = 0,
    MEMSIM_USAGE = 2,      /* a setting that there is not */
    MEMSIM_INPUT = 3,      /* a model that cannot be read */
    MEMSIM_SYSTEM = 4,     /* a file that cannot be read */
    MEMSIM_INFEASIBLE = 6, /* policies that cannot keep to their budget */
    MEMSIM_NO_MEMORY = 7
} memsim_status;

/* The categories of memory, as by_category counts them. */
enum {
    MEMSIM_PARAMETERS,
    MEMSIM_OPTIMIZER_STATE,
    MEMSIM_GRADIENTS,
    MEMSIM_INPUTS,
    MEMSIM_ACTIVATIONS,
    MEMSIM_TEMPORARIES,
    MEMSIM_WORKSPACE,
    MEMSIM_COMMUNICATION,
    MEMSIM_CATEGORIES
};

/* What a step needs and takes, of the rank that needs most. */
typedef struct memsim_numbers {
    size_t size;  /* set by the caller: sizeof(memsim_numbers); what a library
                     does not know beyond it is left alone */
    int32_t fits; /* 1: reserved and context are within the capacity */
    uint32_t ranks;
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
    uint64_t capacity_bytes,
        context_bytes;        /* of the device; outside the pool */
    uint64_t host_peak_bytes; /* of a node */
    uint64_t by_category[MEMSIM_CATEGORIES]; /* at the peak; their sum is
                                                peak_allocated_bytes */
    uint64_t step_ns, recompute_ns, stall_ns, exposed_comm_ns;
    double tokens_per_second; /* of the job; 0: it has no tokens */
} memsim_numbers;

/* What a step needs and takes, in short. */
typedef struct memsim_brief {
    size_t size;  /* set by the caller, as of memsim_numbers */
    int32_t fits; /* as of memsim_numbers, with bare lifetimes */
    uint64_t peak_allocated_bytes;
    uint64_t step_ns, recompute_ns;
    double tokens_per_second;
} memsim_brief;

/* A level of the device's memory, in the order in which the host issues. */
typedef struct memsim_point {
    uint64_t t_ns, bytes;
} memsim_point;

/* "0.1.0", and MEMSIM_ABI of the library. */
const char *memsim_version(void);
int memsim_abi(void);

/* A job of the model: a built-in one's name, the path of a file, or the path of
 * a folder that has a config.json.  Nothing is read yet.  NULL: no memory. */
memsim_job *memsim_open(const char *model);
/* A job with the same settings.  NULL: no memory. */
memsim_job *memsim_copy(const memsim_job *job);
void memsim_free(memsim_job *job);

/* Sets a key to a value as the command line spells them: "policy", "device",
 * "gpus", "global_batch", "memory", "host_memory", "nvme", "allocator",
 * "steps", "lengths", "training.KEY", "model.KEY" ("training." may be left
 * out).  It replaces the value before; NULL takes it back.  A value that is no
 * value of the key is MEMSIM_USAGE and changes nothing. */
memsim_status memsim_set(memsim_job *job, const char *key, const char *value);

/* Simulates the step.  numbers may be NULL; they are set on MEMSIM_OK alone.
 * With the allocator "exact", after some checkpoints or batches of one model,
 * they come from summaries of what blocks do, which replays have proven, and
 * not from all ops: many times faster, and the same to the byte and the
 * nanosecond. */
memsim_status memsim_evaluate(memsim_job *job, memsim_numbers *numbers);
/* The peak and the time alone, with bare lifetimes, as the allocator "exact"
 * has them, whatever is set: for searches.  They come from summaries for other
 * policies, too; pipelines and policies that watch the level are simulated each
 * time. */
memsim_status memsim_peak(memsim_job *job, memsim_brief *brief);
/* Simulates the step to all that "memsim run --json" prints, without the end of
 * the line.  NULL: it failed.  The text lasts until the job is used again. */
const char *memsim_run(memsim_job *job);
/* The levels of a rank, each where it changes, of the step that memsim_evaluate
 * or memsim_run simulated last; *n of them (n may be NULL), as long as the job
 * is not used again.  NULL: there is no such rank or step, or no memory. */
const memsim_point *memsim_points(memsim_job *job, uint32_t rank, size_t *n);

/* The last fault of a job: where it lies, what is wrong and what to try; empty
 * where there is nothing to say.  They last until the job is used again. */
memsim_status memsim_fault(const memsim_job *job);
const char *memsim_where(const memsim_job *job);
const char *memsim_what(const memsim_job *job);
const char *memsim_hint(const memsim_job *job);

#ifdef __cplusplus
}
#endif

#endif
