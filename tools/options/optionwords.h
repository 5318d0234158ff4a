/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_OPTIONWORDS_H
#define MS_OPTIONWORDS_H

/* What people call commands and options in other programs (sim/base/words.h),
 * and all tables of such words for "memsim help words". */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"

extern const ms_words ms_optionwords_options;  /* of: NULL */
extern const ms_words ms_optionwords_letters;  /* of: NULL */
extern const ms_words ms_optionwords_commands; /* of: NULL */
#define MS_OPTIONWORDS_TABLES 8u
extern const ms_words *const ms_optionwords_tables[MS_OPTIONWORDS_TABLES];

/* The command's option that this name means, or NULL; *answered is then the row
 * that says what to type instead, or NULL. */
const ms_option *ms_optionwords_find(uint16_t command, const char *name,
                                     size_t length, const ms_word **answered);
/* The option that means a key of --grid, for example "gpus" for "num_gpus"; the
 * key itself where it is no such word. */
const char *ms_optionwords_key(const char *key);
/* Writes what to do about an operand too many: a setting, a policy or a device
 * without its option; "" for any other. */
void ms_optionwords_operand(uint16_t command, const char *word, char *hint,
                            size_t size);
/* The option's value in memsim's own words, for a command line that the user
 * can repeat. */
const char *ms_optionwords_own(const ms_option *option, const char *value,
                               ms_arena *arena);
/* MS_EUSAGE where two names of one setting are both given. */
ms_err ms_optionwords_twice(const ms_arguments *arguments, ms_fault *fault);
void ms_optionwords_help(ms_text *text);

#endif
