/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_JOB_H
#define MS_TOOLS_JOB_H

/* A job, what a user asks for, and the way of its step through the house:
 *
 *     pluginfile.c   the policies of --plugin join the registry
 *     settings.c     arguments to a job (settings.h)
 *     defaultpool.c  the pool where --allocator does not say
 *     jobway.c       a job to results: the whole way through the house
 *     microrepeats.c steps of many micro-batches
 *     pipelinerounds.c pipelines of many micro-batches
 *     spend.c        what of a large step goes before its end
 *
 * Nothing is printed, and it can be called as it is:
 *
 *     ms_arena keep = {0}, trial = {0};
 *     ms_job job;
 *     ms_result result;
 *     ms_settings_init(&job);
 *     job.model = "gpt2";
 *     MS_TRY(ms_spec_parse("checkpoint:sqrt", &keep, &job.spec, fault));
 *     MS_TRY(ms_jobway_run(&job, &keep, &trial, &result, fault));
 *     const ms_report *report = result.report;
 *     peak = report->ranks[report->worst].peak.allocated_bytes;
 *     ms_arena_free(&trial);
 *     ms_arena_free(&keep); */

#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/report.h"
#include "tools/job/allocator.h"

/* ---- jobway.c: the whole way through the house --------------------------- */

/* What a user asks for. */
typedef struct ms_job {
    const char *model; /* as ms_read_model takes it */
    const ms_override *overrides;
    uint32_t n_overrides;
    ms_training training; /* as given, before ms_resolve_training */
    const ms_device *device;
    bool device_given;
    uint64_t memory_bytes;                  /* 0: the device's */
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: the device's */
    uint32_t gpus; /* GPUs that train side by side; 0: not given */
    /* samples of the job's step, divided among its data-parallel ranks; 0: not
     * given, each rank has training.batch */
    uint64_t global_batch;
    ms_spec spec;
    const char *from_json; /* what --from has read; NULL: it was not given */
    const char **plugins;  /* files of --plugin, loaded; n_plugins */
    uint32_t n_plugins;
    const char *program; /* a program in text form instead of the policies': */
    const char *program_text; /* what the file, or standard input, holds */
    size_t program_length;
    bool book_device;
    bool wall; /* with book_device: the capacity is a wall */
    bool uses; /* fill plan.use with the ops that read each row */
    const ms_allocator *allocator; /* NULL: the exact pool */
    bool allocator_given;          /* also where it is exact */
    bool usual;     /* the allocator is the default one (defaultpool.c) */
    uint32_t steps; /* steps through the allocator; 0: not given */
    /* lengths of these steps; NULL: all steps are alike */
    const struct ms_lengths *lengths;
    bool addresses; /* record the addresses of blocks */
    bool brief;     /* leave out what of the pool is idle at the peak */
    bool unmerged;  /* the report alone is asked for: as of ms_machine */
    bool levels;    /* the timeline alone is asked for: no pool, no report */
    bool spends;    /* only the record is asked for (spend.c) */
    /* larger steps are replayed without the micro-batches that repeat; 0: a
     * default of about a million ops */
    uint64_t whole_ops;
} ms_job;

typedef struct ms_result ms_result; /* result.h */

/* The settings of the job's last step, and whether it has a pool. */
void ms_jobway_settings(const ms_job *job, ms_training *training);
ms_err ms_jobway_read(const ms_job *job, ms_arena *keep, ms_result *result,
                      ms_fault *fault);
/* The two halves of lower: reads the policies' shape of the job, and lowers the
 * model to the graph of the result's shape. */
ms_err ms_jobway_shape(const ms_job *job, ms_result *result, ms_fault *fault);
ms_err ms_jobway_graph(const ms_job *job, ms_arena *arena, ms_result *result,
                       ms_fault *fault);
ms_err ms_jobway_lower(const ms_job *job, ms_arena *keep, ms_result *result,
                       ms_fault *fault);
ms_err ms_jobway_step(const ms_job *job, ms_arena *trial, ms_result *result,
                      ms_fault *fault);
ms_err ms_jobway_run(const ms_job *job, ms_arena *keep, ms_arena *trial,
                     ms_result *result, ms_fault *fault);

/* ---- spend.c: what of a large step goes before its end ------------------- */

/* Private to jobway.c.
 *
 * A run without policies that only writes its record reads the model, the
 * program and most columns of the graph for the last time when it is expanded:
 * of a chain of 10^6 layers 500 of 1,360 MiB.  (Beside a step with policies the
 * record has one without, of the same graph.)  What is gone is NULL in a graph
 * of the result's own. */

/* Is the job one that asks for none of it, and the graph a large one? */
bool ms_spend_pays(const ms_job *job, const ms_result *result);
/* Before expand: what only lowering, dumps and hooks of the program read.
 * keep: where model and graph lie. */
ms_err ms_spend_early(const ms_job *job, ms_arena *keep, ms_arena *trial,
                      ms_result *result, ms_fault *fault);
/* Behind expand: the calls, and the columns that it alone has read. */
ms_err ms_spend_late(ms_arena *keep, ms_arena *trial, ms_result *result,
                     ms_fault *fault);

/* ---- defaultpool.c: the pool where --allocator does not say -------------- */

/* Sets job->allocator where none is given. To be called when all settings are
 * known, and before the pipeline. A step that can go through a pool gets
 * PyTorch's, set up as the framework does, because that is what a user sees.
 * Other steps (on a CPU, with books by device time, with a wall, in unified
 * memory) stay exact. */
void ms_defaultpool_pool(ms_job *job);
/* To be called after the step: one whose repeated micro-batches were counted
 * (microrepeats.c) went through no pool, and job->allocator becomes what the
 * step had. */
void ms_defaultpool_settle(const ms_result *result, ms_job *job);
/* Does a step of the job report what memsim run would: did it go through a
 * pool, was the exact pool asked for, or is there no other? */
bool ms_defaultpool_is_told(const ms_job *job, const ms_report *report);

struct ms_accuracy_peaks; /* graphs/machines/accuracy.h */

/* ---- stepaccuracy.c: how far such times and peaks were off --------------- */

/* Sets the result's accuracy, and the error_percent of its report, from
 * measured runs of the kind of this step. */
void ms_stepaccuracy_find(const ms_job *job, ms_result *result);
/* What kind of peak it is; false: of one that no measured run is like. */
bool ms_stepaccuracy_kind(const ms_job *job, const ms_result *result,
                          struct ms_accuracy_peaks *kind);

/* ---- microrepeats.c: steps of many micro-batches ------------------------- */

/* Does what ms_jobway_step does, but counts the micro-batches that repeat and
 * leaves them out (sim/repeat/repeat.h). *done is false where that is not worth
 * it or they do not repeat. */
ms_err ms_microrepeats_step(const ms_job *job, ms_arena *trial,
                            ms_result *result, bool *done, ms_fault *fault);

/* ---- pipelinerounds.c: pipelines of many micro-batches ------------------- */

/* Of each rank of a pipeline the four levels of the peak, and the times, from
 * a step of fewer micro-batches (sim/repeat/rounds.h); program, plan, machine
 * and line of the result are of that one then.  *ranks is NULL where its rounds
 * do not repeat or it has too few. */
ms_err ms_pipelinerounds_step(const ms_job *job, ms_arena *trial,
                              ms_result *result, ms_rank_report **ranks,
                              ms_fault *fault);

#endif
