/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_NODELIST_H
#define MS_NODELIST_H

/* Nodes that were measured one by one, gradients among them: a DAG with a time
 * and an output of each (the model of Checkmate, Jain et al., MLSys 2020), or
 * the log of a run (DTR, Kirisame et al., ICLR 2021).  Nothing is derived from
 * it: no backward, optimizer, launch or device.
 *
 *     nodelist.names[3]  "b1"    reads storages in[in_at[3] .. in_at[4])
 *                                makes storages out_at[3] .. out_at[4] - 1
 *
 * A node makes none where its results are views of what it reads; who reads
 * such a view says so in via.  A storage ends behind node ends[s], its last
 * reader or the one behind which the run let go of it. */

#include "sim/base/base.h"

typedef enum ms_node_kind {
    MS_NODE_FORWARD,
    MS_NODE_BACKWARD,
    MS_NODE_CONSTANT, /* it makes what is there from then on */
    MS_NODE_OUTPUTS   /* the last: what it reads is there at the end */
} ms_node_kind;

typedef struct ms_nodelist {
    uint32_t n, n_storages;
    const char **names;
    uint8_t *kind;
    uint64_t *cost_ns;
    uint32_t *in_at, *in; /* n + 1; storages, in the order of arguments */
    uint32_t *via;        /* per entry of in: the node whose view of the storage
                             it is, or its maker; NULL: there are no views */
    uint32_t *view_at, *view; /* n + 1; storages of which a node makes views;
                                 NULL: there are none */
    uint32_t *out_at;         /* n + 1 */
    uint64_t *bytes;          /* per storage */
    uint32_t *ends;           /* per storage: a node */
} ms_nodelist;

#endif
