/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SPELLING_H
#define MS_SPELLING_H

/* Private to json.c: strings as they are meant, from how they are spelt, and
 * keys, of which each is there once: of two keys that are equal the pointers
 * are, too. */

#include "graphs/json/scan.h"

typedef struct ms_spelling {
    ms_arena *arena;      /* of the keys */
    uint32_t n, capacity; /* capacity: 0 or a power of two */
    struct ms_spelling_key {
        const char *text; /* NULL: free */
        uint32_t length, hash;
    } * keys;
} ms_spelling;

/* NULL: no memory. */
const char *ms_spelling_text(const ms_scan_text *text, ms_arena *arena);
const char *ms_spelling_of_key(ms_spelling *keys, const ms_scan_text *text);

#endif
