/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ROOMS_H
#define MS_SIM_ROOMS_H

/* Private to sim/schedule: room that a rank has at all times for the messages
 * of all micro-batches (ms_schedule_keeps), one buffer of the program a rank.
 *
 * Two stages, four micro-batches, messages of 6 MiB: rank 0 has 24 MiB for
 * gradients, rank 1 as much for what rank 0's forwards make. */

#include "sim/schedule/handover.h"

/* *rooms: per rank its buffer, or MS_NONE where nothing comes; NULL: the
 * schedule keeps no such room. */
ms_err ms_rooms_find(const ms_graph *graph, const ms_schedule *schedule,
                     const ms_handovers *handovers, ms_arena *arena,
                     ms_program *program, uint32_t **rooms, ms_fault *fault);
/* Is what comes handed on again?  A gradient to which a stage adds before it
 * hands it on has a second tensor for the sum: something else, the room, holds
 * what came (can_accumulate_inplace, torch/csrc/autograd/input_buffer.cpp).
 * That one has memory of its own, from the receive on. */
bool ms_rooms_overflows(const ms_handovers *handovers,
                        const ms_program *program, const ms_handover *it);

#endif
