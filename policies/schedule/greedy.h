/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GREEDY_H
#define MS_GREEDY_H

/* Private to policies/schedule: ZB-1p and ZB-2p (Qi et al., Zero Bubble
 * Pipeline Parallelism, ICLR 2024, arXiv 2401.10241, section 3), as
 * sail-sg/zero-bubble-pipeline-parallelism@064369d6a5 finds them (zerobubble/
 * scheduler/zb.py, manual_order and initial_solution).
 *
 * Micro-batch by micro-batch the clock of each rank runs with the times of its
 * stage and of a message.  Before the first backward there are as many forwards
 * as fit into the wait for it; then each rank runs a forward and the inputs'
 * half of a backward in turn.  Halves of weights fill a wait if they fit into
 * it, or shorten it; they run where the limit of memory is reached: p or 2p
 * sets of the rank's activations.  Of eight variants (more forwards before the
 * first backward; a forward that would hold up the next rank's backward waits;
 * a half that is longer than a wait runs in it) the one whose longest rank is
 * shortest is taken.
 *
 * Without costs all halves take as long, messages next to nothing, and the half
 * of the weights keeps the whole set: ZB-1p is then ZB-H1. */

#include "policies/schedule/orders.h"

ms_err ms_greedy_write(ms_order order, const ms_orders_size *size,
                       const ms_orders_costs *costs, ms_arena *arena,
                       ms_schedule *schedule, ms_fault *fault);

#endif
