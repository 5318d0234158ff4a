/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_JOB_H
#define MS_TOOLS_JOB_H

/* A job, what a user asks for, and the way of its step through the house:
 *
 *     pluginfile.c   the policies of --plugin join the registry
 *     settings.c     arguments to a job (settings.h)
 *     defaultpool.c  the pool where --allocator does not say
 *     pipeline.c     a job to results: the whole way through the house
 *     microrepeats.c steps of many micro-batches
 *
 * Nothing is printed, and it can be called as it is:
 *
 *     ms_arena keep = {0}, trial = {0};
 *     ms_job job;
 *     ms_result result;
 *     ms_settings_init(&job);
 *     job.model = "gpt2";
 *     MS_TRY(ms_spec_parse("checkpoint:sqrt", &keep, &job.spec, fault));
 *     MS_TRY(ms_pipeline_run(&job, &keep, &trial, &result, fault));
 *     const ms_report *report = result.report;
 *     peak = report->ranks[report->worst].peak.allocated_bytes;
 *     ms_arena_free(&trial);
 *     ms_arena_free(&keep); */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/job/allocator.h"

/* ---- pipeline.c: the whole way through the house ------------------------- */

/* What a user asks for. */
typedef struct ms_job {
    const char *model; /* as ms_read_model takes it */
    const ms_override *overrides;
    uint32_t n_overrides;
    ms_training training; /* before ms_resolve_training */
    const ms_device *device;
    bool device_given;
    uint64_t memory_bytes;                  /* 0: the device's */
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: the device's */
    uint32_t gpus;         /* that train side by side; 0: not said */
    uint64_t global_batch; /* samples of the job's step, divided among its data
                              ranks; 0: not said, each has training.batch */
    ms_spec spec;
    const char **plugins; /* files of --plugin, loaded; n_plugins */
    uint32_t n_plugins;
    const char *program; /* a program in text form instead of the policies': */
    const char *program_text; /* what the file, or standard input, holds */
    size_t program_length;
    bool book_device;
    bool wall; /* with book_device: the capacity is a wall */
    bool uses; /* fill plan.use: the ops that read a row */
    const ms_allocator *allocator; /* NULL: exact */
    bool allocator_given;          /* even if as exact */
    bool usual;     /* allocator is the usual one (defaultpool.c) */
    uint32_t steps; /* through it; 0: not said */
    const struct ms_lengths *lengths; /* of them; NULL: all alike */
    bool addresses;                   /* keep where its blocks lie */
    bool brief; /* what of the pool is idle at the peak is not asked for */
    uint64_t whole_ops; /* steps of more have no micro-batches that repeat on
                           their timeline; 0: some million */
} ms_job;

typedef struct ms_result ms_result; /* result.h */

/* The job's settings, of its last step, and whether it has a pool. */
void ms_pipeline_settings(const ms_job *job, ms_training *training);
ms_err ms_pipeline_read(const ms_job *job, ms_arena *keep, ms_result *result,
                        ms_fault *fault);
/* What the policies make of the job's shape, once it is read; the first half
 * of lower. */
ms_err ms_pipeline_shape(const ms_job *job, ms_result *result, ms_fault *fault);
ms_err ms_pipeline_lower(const ms_job *job, ms_arena *keep, ms_result *result,
                         ms_fault *fault);
ms_err ms_pipeline_step(const ms_job *job, ms_arena *trial, ms_result *result,
                        ms_fault *fault);
ms_err ms_pipeline_run(const ms_job *job, ms_arena *keep, ms_arena *trial,
                       ms_result *result, ms_fault *fault);

/* ---- defaultpool.c: the pool where --allocator does not say -------------- */

/* To be called when all of the job's settings are known, and before the
 * pipeline: where its step can go through a pool, job->allocator becomes
 * PyTorch's as the framework sets it up, with what a user of the framework
 * sees; else (a CPU, books by device time, a wall, unified memory) it stays
 * exact.  Nothing happens where the allocator is given. */
void ms_defaultpool_pool(ms_job *job);
/* After the step: micro-batches that are counted (microrepeats.c) went through
 * no pool; the job's allocator is what the step had. */
void ms_defaultpool_settle(const ms_result *result, ms_job *job);
/* Is what a step of the job reports what memsim run tells of it: did it go
 * through a pool, was exact asked for, or is there no other? */
bool ms_defaultpool_is_told(const ms_job *job, const ms_report *report);

/* ---- microrepeats.c: steps of many micro-batches ------------------------- */

/* A step as ms_pipeline_step's, of which the micro-batches that repeat are
 * counted and left out (sim/expand/repeat.h), where it is worth it and they do;
 * else *done is false. */
ms_err ms_microrepeats_step(const ms_job *job, ms_arena *trial,
                            ms_result *result, bool *done, ms_fault *fault);

#endif
