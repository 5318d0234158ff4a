/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ALIVE_KEYS_H
#define MS_TOOLS_ALIVE_KEYS_H

/* Instants and groups of tensors as JSON, for memsim explain and memsim compare
 * --explain: structs that are printed, and the rows of their keys.
 *
 *     ms_group_shown shown;
 *     ms_alive_keys_group_show(results, &group, &shown, &text);
 *     ms_keys_write(&ms_alive_keys_group, &shown, &text);
 */

#include "tools/alive/alive.h"
#include "tools/job/result.h"
#include "tools/results/keys/keys.h"

typedef struct ms_instant_shown {
    uint64_t t_ns, bytes;           /* bytes: of what is alive */
    uint32_t event;                 /* MS_NONE: before the first */
    const char *phase, *op, *layer; /* NULL: none */
} ms_instant_shown;

/* A group in one run. */
typedef struct ms_side_shown {
    uint64_t bytes;
    const char *why;           /* NULL: nothing to say */
    const char *op;            /* that reads it next; NULL: none does */
    const char *layer;         /* of that op, or NULL */
    const char *const *remove; /* what would leave at most half of the bytes */
    uint32_t n_remove;
} ms_side_shown;

/* side[1] is all zero unless two runs are compared. */
typedef struct ms_group_shown {
    const char *layer, *role, *op; /* layer, op: NULL where there is none */
    ms_side_shown side[2];
    uint32_t count;
    uint8_t category;
} ms_group_shown;

void ms_alive_keys_instant_show(const ms_result *result,
                                const ms_instant *instant,
                                ms_instant_shown *shown);
/* results: of each side, the second NULL unless two runs are compared.  Words
 * are made in the arena of text, which fails where they cannot be. */
void ms_alive_keys_group_show(const ms_result *const results[2],
                              const ms_alike *group, ms_group_shown *shown,
                              ms_text *text);

extern const ms_keys ms_alive_keys_instant;  /* of ms_instant_shown */
extern const ms_keys ms_alive_keys_instants; /* it, with what is alive */
extern const ms_keys ms_alive_keys_group;    /* of ms_group_shown, one run */
extern const ms_keys ms_alive_keys_change;   /* the same, two runs */

#endif
