/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_COMMUNICATORS_H
#define MS_GRAPHS_COMMUNICATORS_H

/* The table of groups (sim/group.h) that a job's ranks form on a device's
 * nodes.  Ranks fill nodes in their order (rankorder.h).
 *
 *     ms_group groups[MS_N_GROUP_ROLES];
 *     ms_communicators_make(device, &shape, groups);
 *     ns = ms_collective_ns(&groups[MS_GROUP_DATA], MS_ALL_GATHER, bytes); */

#include "graphs/device.h"
#include "sim/group.h"
#include "sim/shape.h"

/* A group of so many ranks, with the links that the device and its nodes have.
 */
ms_group ms_communicators_row(const ms_device *device, ms_group_role role,
                              uint32_t ranks, uint32_t stride);
/* The rows of a job; what it has no use for has one rank. */
void ms_communicators_make(const ms_device *device, const ms_shape *shape,
                           ms_group rows[MS_N_GROUP_ROLES]);

#endif
