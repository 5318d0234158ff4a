/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_CANDIDATES_H
#define MS_TOOLS_CANDIDATES_H

/* What could stand where the user types: read off the tables of commands,
 * options, settings, policies and models, so that a new row completes by
 * itself.  The scripts of shellscripts.c ask for it through
 * "memsim completion words -- WORD...".
 *
 * One candidate for the whole last word per line, a tab, what it is:
 *
 *     --precision=fp32
 *     checkpoint:sqrt<tab>split N blocks into round(sqrt N) segments
 *
 * A candidate that ends in one of = : + goes on: no blank behind it.  A line
 * ":files", tab, what of the word stands before the file's name, tab, endings
 * without dot and with blanks between them (none: any): files are wanted. */

#include "tools/cli/commands.h"

/* commands: the table.  words: the command line without the program's name; the
 * last one is being typed and may be empty. */
void ms_candidates_write(const ms_commands *commands, const char *const *words,
                         uint32_t n, ms_text *text);

/* shellscripts.c */
#define MS_SHELLSCRIPTS 3u
typedef struct ms_shellscript {
    const char *shell, *script;
} ms_shellscript;
extern const ms_shellscript ms_shellscripts[MS_SHELLSCRIPTS];

#endif
