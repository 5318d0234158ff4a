/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_WORDS_H
#define MS_WORDS_H

/* Words that people type instead of memsim's own: another program's name for
 * the same thing is understood; a name for something merely similar is answered
 * with what to type.
 *
 *     static const ms_word rows[] = {
 *         MS_WORD_MEANS("precision", "bfloat16|bf16-true", "bf16"),
 *         MS_WORD_INSTEAD("precision", "amp", "--precision autocast-fp16",
 *                         "torch.autocast; or autocast-bf16")};
 *
 * Words are compared loosely: case, "-", "_" and blanks are ignored, so that a
 * row's "batchsize" is batch-size and batch_size, too.  "*" at the end of a
 * word stands for any ending. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ms_word {
    const char *of;      /* of what it is a word (a field, a group); or NULL */
    const char *words;   /* "a|b|c" */
    const char *means;   /* understood: memsim's own word */
    const char *instead; /* answered: the words of "memsim run" to type */
    const char *say;     /* why, or what there is not; NULL beside means */
} ms_word;

/* The three kinds of rows; `group` is the member `of`. */
#define MS_WORD_MEANS(group, w, m)                                             \
    {                                                                          \
        .of = (group), .words = (w), .means = (m)                              \
    }
#define MS_WORD_INSTEAD(group, w, what, why)                                   \
    {                                                                          \
        .of = (group), .words = (w), .instead = (what), .say = (why)           \
    }
#define MS_WORD_ANSWER(group, w, why)                                          \
    {                                                                          \
        .of = (group), .words = (w), .say = (why)                              \
    }

/* A table, and what help calls its words. */
typedef struct ms_words {
    const char *title;
    const ms_word *rows;
    uint32_t n;
} ms_words;

/* Are the two, of n and m bytes, the same word? */
bool ms_words_same(const char *a, size_t n, const char *b, size_t m);
/* The row with this word of `of` (NULL: of any), or NULL. */
const ms_word *ms_words_find(const ms_words *table, const char *of,
                             const char *word, size_t length);
/* Which of "a|b|c" is loosely the word; -1: none. */
int ms_words_index(const char *words, const char *word, size_t length);
/* What an answered row says: "write X: why", or why there is nothing. */
void ms_words_hint(const ms_word *row, char *hint, size_t size);

#endif
