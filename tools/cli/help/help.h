/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_HELP_H
#define MS_TOOLS_HELP_H

/* memsim help: its topics, and the parts of them that the man page (manual.h)
 * and the completions (candidates.h) use, too. */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"

/* help.c: a question, a topic, a command, a policy, a layer type, a family, an
 * option or another program's word for any of these. */
ms_err ms_help_topic(const ms_commands *commands, const char *topic,
                     ms_text *text, ms_fault *fault);
void ms_help_short(const ms_commands *commands, ms_text *text);
/* Every topic, command, policy, layer type and family that has help; returns
 * how many. */
uint32_t ms_help_names(const ms_commands *commands, const char **names,
                       uint32_t room);

/* The name of question or topic i and, in *summary, what it is about; NULL:
 * there are no more. */
const char *ms_help_summary(uint32_t i, const char **summary);
/* help_questions.c: pages that answer a question with commands. The name of
 * question i and, in *asks, the question; NULL: there are no more. */
const char *ms_help_questions_name(uint32_t i, const char **asks);
/* Adds the page of the question that the word leads to and returns its name;
 * NULL: there is none. */
const char *ms_help_questions_put(const char *word, ms_text *text);

/* help_words.c: the help on an option of some commands, with the words that it
 * accepts; the same as a row. */
void ms_help_words_option(const ms_option *option, const ms_option_use *use,
                          ms_text *words);
void ms_help_words_put(const ms_option *option, const ms_option_use *use,
                       ms_text *text);
/* What the word is as an option or in other programs, and the page of the
 * policy that it leads to; false: it is no such word. */
bool ms_help_words_one(const char *word, bool pages, ms_text *text);

/* help_tables.c: topics that walk the tables of the other rooms. */
void ms_help_tables_policies(ms_text *text);
/* The help on a parameter; returns its values: "N", "a|b", or "" for a flag. */
const char *ms_help_tables_param(const ms_param *param, ms_text *words);
void ms_help_tables_models(ms_text *text);
void ms_help_tables_devices(ms_text *text);
void ms_help_tables_layers(ms_text *text);
void ms_help_tables_ops(ms_text *text);
void ms_help_tables_families(ms_text *text);
void ms_help_tables_training(ms_text *text);
void ms_help_tables_frameworks(ms_text *text);
void ms_help_tables_precisions(ms_text *text);
/* Help on one policy, layer type or family; false: there is no such name. */
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
/* help_changes.c: the changes that advice tries. */
void ms_help_changes_write(ms_text *text);
/* help_traces.c: allocation traces, and the allocators that they go through. */
void ms_help_traces_write(ms_text *text);
void ms_help_traces_measured(ms_text *text);
/* help_checks.c: the cases of memsim check. */
void ms_help_checks_write(ms_text *text);
/* help_from.c: the formats of --from, and what of them is read. */
void ms_help_from_write(ms_text *text);

#endif
