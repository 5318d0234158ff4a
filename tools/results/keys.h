/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_KEYS_H
#define MS_TOOLS_KEYS_H

/* Short forms of rows of ms_keys, for keys.c and keys_*.c: the keys of the JSON
 * that commands print, one row each, which memsim help json and memsim schema
 * walk.  A key that a command prints is added there too. */

#include "tools/results/schema.h"

#define MS_KEYS_N(table) (sizeof(table) / sizeof((table)[0]))
#define MS_KEYS_OBJECT(called, table)                                          \
    {                                                                          \
        .name = (called), .rows = (table), .n = MS_KEYS_N(table)               \
    }
#define MS_KEYS_COUNT(key)                                                     \
    {                                                                          \
        .name = (key), .type = MS_KEY_COUNT                                    \
    }
#define MS_KEYS_COUNT_OR_NULL(key)                                             \
    {                                                                          \
        .name = (key), .type = MS_KEY_COUNT, .null = true                      \
    }
#define MS_KEYS_TEXT(key)                                                      \
    {                                                                          \
        .name = (key), .type = MS_KEY_TEXT                                     \
    }
#define MS_KEYS_TEXT_OR_NULL(key)                                              \
    {                                                                          \
        .name = (key), .type = MS_KEY_TEXT, .null = true                       \
    }
#define MS_KEYS_CATEGORIES                                                     \
    .type = MS_KEY_COUNTS, .names = ms_names_category,                         \
    .n_names = MS_N_CATEGORIES

#define MS_KEYS_VERSION                                                        \
    {                                                                          \
        .name = "schema_version", .type = MS_KEY_VERSION                       \
    }

extern const ms_keys ms_keys_run_settings;  /* "settings" */
extern const ms_keys ms_keys_run_overheads; /* "overheads" */
extern const ms_keys ms_keys_timeline;      /* "timeline" of a run */
extern const ms_keys ms_keys_saved;         /* "saved" of explain */

#endif
