/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPLIVES_H
#define MS_GRAPHS_OPLIVES_H

/* Private to graphs/: when the tensors of an op graph lose their last name.  An
 * exporter that observed it says so ("ends" of a node); for other tensors it
 * follows from their readers: a module's call holds its arguments until it
 * returns, the rest goes with its last reader. */

#include "graphs/opgraph/opgraph.h"

typedef struct ms_oplives {
    uint32_t *last_use;  /* per tensor: last node that may read it, or NONE */
    uint32_t *last_read; /* per storage: last node that reads it, or NONE */
    uint32_t *until;     /* per tensor: node after which it goes, or NONE */
    uint32_t *at, *list; /* CSR: the tensors that go after a node */
} ms_oplives;

ms_err ms_oplives_find(const ms_opgraph *ops, ms_arena *arena,
                       ms_oplives *lives, ms_fault *fault);

#endif
