/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SCREEN_H
#define MS_TOOLS_SCREEN_H

/* Text for people: standard output, and faults on standard error. */

#include "sim/base/base.h"

/* ---- screen.c: standard output ------------------------------------------- */

typedef struct ms_style {
    /* all are "" when there is no colour */
    const char *strong, *faint, *good, *bad, *plain;
} ms_style;

/* How wide lines are: as the terminal is, by COLUMNS or what it tells, from 50
 * to 200 columns; 80 where fd (1 or 2) is none, so that a pipe or a file gets
 * the same bytes whatever the terminal. */
uint32_t ms_screen_columns(int fd);
bool ms_screen_is_terminal(int fd);
/* mode: "auto", "always", "never" or NULL (as "auto"); fd: 1 or 2. */
const ms_style *ms_screen_style(int fd, const char *mode);
/* MS_ESYSTEM when not all of it could be written. When the reader of the pipe
 * has gone, the process ends by SIGPIPE, as other programs in a pipe do. */
ms_err ms_screen_print(const ms_text *text, ms_fault *fault);
/* From here on a write to a closed pipe ends the process. To be called before a
 * child process or a library writes to standard output. */
void ms_screen_end_with_reader(void);
/* Copies at most size - 1 bytes of string, cut between characters; characters
 * that could steer a terminal and invalid UTF-8 become '?'. Returns buffer. */
char *ms_screen_safe(const char *string, char *buffer, size_t size);
/* Adds the cell behind as many blanks as make it width columns wide. */
void ms_screen_right(ms_text *text, uint32_t width, const char *cell);
/* The columns that the bytes take; what sets a colour takes none. */
uint32_t ms_screen_width(const char *string, size_t length);
/* The length of the character, or of what sets a colour, at `at`; its columns,
 * 1 or 0. */
size_t ms_screen_step(const char *at, const char *end, uint32_t *width);
/* The length of what is not broken at the beginning of words: a number with its
 * unit; of a word that is wider than room only up to a +, a comma or a |. */
size_t ms_screen_word(const char *words, uint32_t room, uint32_t *width);
/* Adds the label, then the words, filled to the width of standard output; each
 * of their lines starts in column indent, or in the first third of a terminal
 * that is narrower than 80 columns. */
void ms_screen_fill(ms_text *text, uint32_t indent, const char *label,
                    const char *words);

/* ---- complain.c: faults to standard error -------------------------------- */

void ms_complain(const ms_fault *fault, const char *colour_mode);
void ms_complain_note(const char *what, const char *name);
/* "memsim: abc": a line of any length, of three parts. */
void ms_complain_line(const char *a, const char *b, const char *c);
int ms_complain_status(ms_err err);

#endif
