/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_DUMPWORDS_H
#define MS_SIM_DUMPWORDS_H

/* Private to sim/text: a program's text, word by word.
 *
 *     ms_dumpwords_word word = ms_dumpwords_next(r);
 *     if (!ms_dumpwords_is(r, &word, "frames"))
 *         return ms_dumpwords_expected(r, &word, "\"frames\"");
 *
 * Faults (MS_EINPUT) are at name:line:column of the word. */

#include "sim/group.h"
#include "sim/program.h"

/* A word of the text: bytes [at, at + length), on one line. */
typedef struct ms_dumpwords_word {
    size_t at, length;
} ms_dumpwords_word;

typedef struct ms_dumpwords {
    const ms_graph *graph;
    ms_quote text; /* offset: where reading goes on */
    ms_arena *arena;
    ms_program *program;
    uint32_t *call_at; /* per call: its offset, for errors of the whole */
    uint32_t call_at_capacity;
    uint32_t *items, items_capacity; /* of the set being read */
    ms_group *groups;                /* the program's */
    uint32_t groups_capacity, next_group;
    ms_fault *fault;
} ms_dumpwords;

#define MS_DUMPWORDS_QUOTED 40 /* bytes of a word repeated in an error */

int ms_dumpwords_shown(const ms_dumpwords_word *word);
const char *ms_dumpwords_start(const ms_dumpwords *r,
                               const ms_dumpwords_word *word);
ms_quote ms_dumpwords_quote(const ms_dumpwords *r,
                            const ms_dumpwords_word *word);
bool ms_dumpwords_is(const ms_dumpwords *r, const ms_dumpwords_word *word,
                     const char *name);
/* The next word of this line, empty at its end. */
ms_dumpwords_word ms_dumpwords_next(ms_dumpwords *r);
/* Goes to the next line that is not empty; false at the end. */
bool ms_dumpwords_next_line(ms_dumpwords *r);
/* Says that something else stands there, or nothing. */
ms_err ms_dumpwords_expected(ms_dumpwords *r, const ms_dumpwords_word *word,
                             const char *what);
/* The row of the next word among n. */
ms_err ms_dumpwords_one_of(ms_dumpwords *r, const char *what,
                           const char *const *words, uint32_t n,
                           uint32_t *value);
ms_err ms_dumpwords_expect(ms_dumpwords *r, const char *name);
/* Nothing follows on the line. */
ms_err ms_dumpwords_end(ms_dumpwords *r);
/* A number from low to high. */
ms_err ms_dumpwords_parse_number(ms_dumpwords *r, const ms_dumpwords_word *word,
                                 const char *what, uint32_t low, uint32_t high,
                                 uint32_t *value);
ms_err ms_dumpwords_number(ms_dumpwords *r, const char *what, uint32_t low,
                           uint32_t high, uint32_t *value);
/* The highest index of a table of n rows; 0 if it has none. */
uint32_t ms_dumpwords_highest(uint32_t n);

#endif
