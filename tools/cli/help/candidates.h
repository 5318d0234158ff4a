/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_CANDIDATES_H
#define MS_TOOLS_CANDIDATES_H

/* What could be typed next, read off the tables of commands, options, settings,
 * policies and models: a new row is completed without further work. The scripts
 * of shellscripts.c ask for it by "memsim completion words -- WORD...".
 *
 * Each candidate is a line: the whole last word, a tab, and what it is:
 *
 *     --precision=fp32
 *     checkpoint:sqrt<tab>split N blocks into round(sqrt N) segments
 *
 * A candidate that ends in one of = : + goes on, so no blank follows it. A line
 * ":files", tab, the part of the word before the file's name, tab, endings
 * without dots asks the shell for files; no endings: any file. */

#include "tools/cli/commands.h"

/* commands: the table. words: the command line without the program's name; its
 * last word is being typed and may be empty. */
void ms_candidates_write(const ms_commands *commands, const char *const *words,
                         uint32_t n, ms_text *text);

/* shellscripts.c */
#define MS_SHELLSCRIPTS 3u
typedef struct ms_shellscript {
    const char *shell, *script;
} ms_shellscript;
extern const ms_shellscript ms_shellscripts[MS_SHELLSCRIPTS];

#endif
