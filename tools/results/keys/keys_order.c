/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order in which help and schema list keys. */

#include "tools/results/keys/keys.h"

#include <string.h>

/* Does the key ask to be listed before the key of that name? */
static bool is_before(const ms_key *key, const char *name)
{
    return key->before != NULL && strcmp(key->before, name) == 0;
}

/* Finds the i-th of the rows that are listed together with row r: first all
 * rows that ask to be listed before it, each after its own such rows, then r
 * itself. NULL: there are fewer, and *i is reduced by their number. */
static const ms_key *find_among(const ms_keys *keys, uint32_t r, uint32_t *i)
{
    for (uint32_t k = 0; k < keys->n; k++) {
        if (!is_before(&keys->rows[k], keys->rows[r].name))
            continue;
        const ms_key *key = find_among(keys, k, i);
        if (key != NULL)
            return key;
    }
    return (*i)-- == 0 ? &keys->rows[r] : NULL;
}

bool ms_keys_order(const ms_keys *keys, uint32_t i, ms_arena *arena,
                   ms_key *key)
{
    const ms_key *found = NULL;
    for (uint32_t r = 0; i < keys->n && r < keys->n && found == NULL; r++)
        if (keys->rows[r].before == NULL)
            found = find_among(keys, r, &i);
    *key = found != NULL ? *found : (ms_key){.name = ""};
    return found != NULL ||
           (keys->more != NULL && keys->more(i - keys->n, arena, key));
}
