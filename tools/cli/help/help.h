/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_HELP_H
#define MS_TOOLS_HELP_H

/* memsim help: topics, and the parts of them that the man page (manual.h) and
 * completions (candidates.h) have too. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"

/* help.c: a topic, a command, a policy, a layer type or a family. */
ms_err ms_help_topic(const ms_commands *commands, const char *topic,
                     ms_text *text, ms_fault *fault);
void ms_help_short(const ms_commands *commands, ms_text *text);
/* Every topic that there is help on; returns how many. */
uint32_t ms_help_names(const ms_commands *commands, const char **names,
                       uint32_t room);

/* Topic i and what it is; NULL: there are no more. */
const char *ms_help_summary(uint32_t i, const char **summary);
/* The help on an option of some commands, with the words that it takes. */
void ms_help_option(const ms_option *option, const ms_option_use *use,
                    ms_text *words);

/* help_tables.c: topics that walk the tables of the other rooms. */
void ms_help_tables_policies(ms_text *text);
/* The help on a parameter; returns its values: "N", "a|b", of a flag "". */
const char *ms_help_tables_param(const ms_param *param, ms_text *words);
void ms_help_tables_models(ms_text *text);
void ms_help_tables_devices(ms_text *text);
void ms_help_tables_layers(ms_text *text);
void ms_help_tables_ops(ms_text *text);
void ms_help_tables_families(ms_text *text);
void ms_help_tables_training(ms_text *text);
void ms_help_tables_frameworks(ms_text *text);
void ms_help_tables_precisions(ms_text *text);
/* One policy, layer type or family; false: no such name. */
bool ms_help_tables_one(const char *name, ms_text *text);
/* Appends every name that ms_help_tables_one knows; returns how many. */
uint32_t ms_help_tables_names(const char **names, uint32_t room);

/* help_texts.c: topics in prose. */
void ms_help_texts_files(ms_text *text);
void ms_help_texts_huggingface(ms_text *text);
void ms_help_texts_grid(ms_text *text);
void ms_help_texts_units(ms_text *text);
extern const struct ms_help_exit {
    int status;
    const char *meaning;
} ms_help_texts_exits[];
extern const uint32_t ms_help_texts_n_exits;
void ms_help_texts_exit(ms_text *text);
void ms_help_texts_json(ms_text *text);
/* help_changes.c: what advice tries. */
void ms_help_changes_write(ms_text *text);
/* help_traces.c: allocation traces, and the allocators they go through. */
void ms_help_traces_write(ms_text *text);

#endif
