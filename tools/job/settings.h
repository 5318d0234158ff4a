/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SETTINGS_H
#define MS_TOOLS_SETTINGS_H

/* Reads arguments into a job, and writes a job back as words. */

#include "tools/job/job.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"

#define MS_DEFAULT_DEVICE "h100-80gb-sxm"

void ms_settings_init(ms_job *job);
/* Reads all arguments but the policies. */
ms_err ms_settings_shared(const ms_arguments *arguments, ms_arena *arena,
                          ms_job *job, ms_fault *fault);
/* The same without ms_settings_check, for commands whose variants add
 * settings. */
ms_err ms_settings_open(const ms_arguments *arguments, ms_arena *arena,
                        ms_job *job, ms_fault *fault);
/* Reads all arguments, the policies included: each --policy is joined to
 * those before it. */
ms_err ms_settings_read(const ms_arguments *arguments, ms_arena *arena,
                        ms_job *job, ms_fault *fault);
/* The same with the default pool, for commands that report what users see. */
ms_err ms_settings_usual(const ms_arguments *arguments, ms_arena *arena,
                         ms_job *job, ms_fault *fault);
/* Refuses settings that a memory pool excludes. It is to be called once all
 * settings are known. */
ms_err ms_settings_check(const ms_job *job, ms_fault *fault);
/* Sets one more setting by its key: that of a row of settings_table.h that
 * grids take, model.KEY, a policy's name, or a key of ms_training_set. Policies
 * are joined to those before. key, value and arena must last as long as job. */
ms_err ms_settings_put(ms_job *job, const char *key, const char *value,
                       ms_arena *arena, ms_fault *fault);
/* The policies in canonical spelling, or "program:FILE"; NULL: no memory. */
const char *ms_settings_policy(const ms_job *job, ms_arena *arena);
/* Says whether the value of a row of ms_training_fields is the default of
 * the table. */
bool ms_settings_is_default(const ms_job *job, uint32_t row);
/* Writes the object "settings" (settings_json.c): {"training.batch": 1, ...,
 * "device": "...", "defaults": [...]} */
void ms_settings_json(const ms_job *job, const ms_training *training,
                      ms_text *text);
/* Writes the defaults that were taken: "batch=1 sequence=2048 ...
 * device=h100-80gb-sxm". */
void ms_settings_defaults(const ms_job *job, const ms_training *training,
                          ms_text *text);
/* Writes the defaults that were taken for the memories of a node: "
 * --host-memory=2048GiB". pools has a bit for each ms_pool_kind that is
 * used. */
void ms_settings_node_defaults(const ms_job *job, unsigned pools,
                               ms_text *text);
/* Says whether the option changes the result, rather than where it is
 * written. */
bool ms_settings_shapes(ms_option_id id);
/* Writes the command line again, without its outputs and with `extra`; words
 * are quoted for a shell. */
void ms_settings_command(const ms_arguments *arguments, const char *extra,
                         ms_text *text);
/* Writes the whole command line again, as it was given. */
void ms_settings_again(const char *command, const ms_arguments *arguments,
                       ms_text *text);
/* Writes a "memsim fit" with the same settings on that many GPUs. It has no
 * policies, since the search chooses them. */
void ms_settings_fit(const ms_arguments *arguments, uint32_t gpus,
                     ms_text *text);
/* Writes the command line with other policies in place of those given. */
void ms_settings_instead(const ms_arguments *arguments, const char *policy,
                         ms_text *text);
/* The same, but on that many GPUs. */
void ms_settings_setup(const ms_arguments *arguments, const char *policy,
                       uint32_t gpus, ms_text *text);
/* Writes a command that compares the step with the same step under
 * expandable segments. */
void ms_settings_compare(const ms_arguments *arguments, const char *policy,
                         const char *allocator, ms_text *text);
/* The value of a training field as the user would write it. */
ms_label ms_settings_value(const ms_training *training, const char *field);

/* ---- pluginfile.c: policies from shared libraries ------------------------ */

/* Loads each --plugin for the rest of the process and adds its policy to the
 * registry. It is to be called once, before policies are parsed. Faults:
 * MS_ESYSTEM where the file cannot be read, MS_EINPUT where it is no plugin
 * of memsim. */
ms_err ms_pluginfile_load(const ms_arguments *arguments, ms_arena *arena,
                          ms_fault *fault);

#endif
