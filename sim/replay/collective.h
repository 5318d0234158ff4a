/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_COLLECTIVE_H
#define MS_SIM_COLLECTIVE_H

/* What a collective takes. */

#include "sim/group.h"

/* The curve of the kind and so many ranks where there is one; that of their
 * all-reduce, but no faster than the model; else NCCL's own model
 * (NVIDIA/nccl src/graph/tuning.cc): the fastest of its protocols and, of an
 * all-reduce, of rings, trees and switches, or the one that the group forces,
 * alpha + bytes / bandwidth each.  A curve is of NCCL's own choice and does not
 * count where the algorithm is forced.  bytes: of the whole, all ranks
 * together; of an all-to-all what a rank sends and keeps. */
uint64_t ms_collective_ns(const ms_group *group, ms_collective kind,
                          uint64_t bytes);
/* What each rank sends, and receives: (n - 1) / n of the bytes; twice that for
 * an all-reduce; the bytes themselves for a broadcast and a message. */
uint64_t ms_collective_sent_bytes(const ms_group *group, ms_collective kind,
                                  uint64_t bytes);
/* Of these what goes between nodes, on average over a node's ranks: what
 * passes the nodes' borders, which the node's ranks carry together; of an
 * all-reduce as the model's fastest way has it, or the forced one. */
uint64_t ms_collective_network_bytes(const ms_group *group, ms_collective kind,
                                     uint64_t bytes);

#endif
