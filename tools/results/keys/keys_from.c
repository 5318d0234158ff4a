/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "from", which tools/from/from.c prints. */

#include "tools/results/keys/keys.h"

static const ms_key file_rows[] = {{.name = "path", .type = MS_KEY_TEXT},
                                   {.name = "format", .type = MS_KEY_TEXT}};
static const ms_keys file = MS_KEYS_OBJECT("from_file", file_rows);

static const ms_key from_rows[] = {
    {.name = "files", .type = MS_KEY_OBJECTS, .of = &file},
    {.name = "command", .type = MS_KEY_TEXT},
    {.name = "told", .type = MS_KEY_TEXTS},
    {.name = "warnings", .type = MS_KEY_TEXTS}};
const ms_keys ms_keys_from = MS_KEYS_OBJECT("from", from_rows);
