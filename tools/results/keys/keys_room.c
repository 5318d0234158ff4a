/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allocates the elements of an array that is read, or the rows of a table. */

#include "graphs/json/json.h"
#include "tools/results/keys/keys.h"

#include <string.h>

ms_err ms_keys_room_take(const ms_values *values, uint32_t value, uint32_t n,
                         uint32_t most, size_t size, void *place)
{
    if (n > most)
        return ms_json_fail(values->json, value, values->fault, NULL,
                            "%u of them; there are at most %u", n, most);
    void *room = ms_arena_take(values->arena, n, size);
    memcpy(place, &room, sizeof room);
    return room != NULL ? MS_OK : ms_fail_nomem(values->fault);
}

ms_err ms_keys_room_rows(const ms_values *values, uint32_t value, uint32_t most,
                         size_t size, uint32_t *n, void *place)
{
    ms_value_table table;
    MS_TRY(ms_values_table(values, value, &table));
    *n = table.n_rows;
    return ms_keys_room_take(values, value, *n, most, size, place);
}
