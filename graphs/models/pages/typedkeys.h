/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TYPEDKEYS_H
#define MS_TYPEDKEYS_H

/* The keys that a page of a family has, as rows of a table ("keys"):
 *
 *     "keys": {
 *       "width": {"type": "integer", "low": 1, "high": 65536,
 *                 "required": true, "help": "features of a layer"},
 *       "inner": {"type": "integer", "low": 1, "high": 65536,
 *                 "help": "of the MLP; default 4 * width"},
 *       "norm":  {"type": "word", "words": "pre|post", "help": "where"}}
 *
 * Types are integer, number (both from low to high), boolean and word (one of
 * "words"; the first unless "default" names another).  An integer or number
 * without "default" that is not required is null in expressions where it is
 * not given, and its help says what that means.  A page that is like another
 * may say single members anew: {"norm": {"default": "post"}}. */

#include "graphs/models/pages/page.h"

#define MS_TYPEDKEYS_MOST 60u

/* Fills page->keys from the pages, the deepest first.  Faults: MS_EINPUT at a
 * member that is none. */
ms_err ms_typedkeys_read(ms_page *page);
/* The value of a key as expressions see it; known: is there such a key? */
ms_err ms_typedkeys_find(const ms_page *page, const char *key, ms_known *value,
                         bool *known);

#endif
