/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PICKLING_H
#define MS_PICKLING_H

/* Private to plots/: plain data as a Python pickle of protocol 2, with the few
 * opcodes that PyTorch's memory_viz knows (sim/pools/README.md 15).
 *
 *     ms_pickling_begin(&p);
 *     ms_pickling_dict(&p);
 *     ms_pickling_word(&p, &memo_of_size, "size");
 *     ms_pickling_int(&p, 512);
 *     ms_pickling_dict_end(&p);
 *     ms_pickling_end(&p);
 *
 * Dicts are not empty.  A list's items go in batches of at most 1000, as
 * CPython's do: the page makes one call with as many arguments of each. */

#include "plots/plots.h"

typedef struct ms_pickling {
    ms_text *text;
    uint32_t n_memo;
} ms_pickling;

/* n: items so far; a list may be written in pieces. */
typedef struct ms_pickling_list {
    uint32_t n;
} ms_pickling_list;

void ms_pickling_begin(const ms_pickling *p);
void ms_pickling_end(const ms_pickling *p);
void ms_pickling_int(const ms_pickling *p, uint64_t value); /* below 2^63 */
void ms_pickling_minus_one(const ms_pickling *p);
void ms_pickling_float(const ms_pickling *p, double value);
void ms_pickling_bool(const ms_pickling *p, bool value);
/* Invalid UTF-8 becomes "?". */
void ms_pickling_text(const ms_pickling *p, const char *words);
/* The same text, written once: *memo is 0 before the first time. */
void ms_pickling_word(ms_pickling *p, uint32_t *memo, const char *words);
/* What was just written can be had again by *memo, which is never 0. */
void ms_pickling_keep(ms_pickling *p, uint32_t *memo);
void ms_pickling_again(const ms_pickling *p, uint32_t memo);
void ms_pickling_dict(const ms_pickling *p);
void ms_pickling_dict_end(const ms_pickling *p);
void ms_pickling_zeros(const ms_pickling *p); /* (0, 0) */
/* Before each item of a list, and at its end. */
ms_pickling_list ms_pickling_list_begin(const ms_pickling *p);
void ms_pickling_item(const ms_pickling *p, ms_pickling_list *list);
void ms_pickling_list_end(const ms_pickling *p, const ms_pickling_list *list);

#endif
