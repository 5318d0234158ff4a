/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_RENUMBER_H
#define MS_SIM_RENUMBER_H

/* Private to sim/fold: what is known of the calls of one graph, told of another
 * one that differs from it in numbers alone (sim/fold/classes/likeness.h).  An
 * answer gets the new numbers when it is next asked for.
 *
 *     if (ms_renumber_fits(&learner, other)) {
 *         *graph_of_the_learner = *other;
 *         ms_renumber_turn(&learner);
 *     }
 *     use(ms_renumber_answer(&learner, id)->effect);
 *
 * A worked example: an answer of batch 1 says that a call takes 8 MiB, those of
 * storage 61, for 20 ns, those of op 40.  At batch 2 storage 61 has 16 MiB and
 * op 40 takes 38 ns.  What copies and collectives of weights take is the same;
 * where it is not, nothing fits. */

#include "sim/fold/calls/learn.h"

/* May it turn to the graph?  false: what was learnt is of the numbers of its
 * own. */
bool ms_renumber_fits(const ms_learner *learner, const ms_graph *graph);
/* Turns to it, once it has come in the place of the learner's graph.  false:
 * there is no room, and it has to forget. */
bool ms_renumber_turn(ms_learner *learner);
/* An answer, with the effect that it has in the graph at hand. */
const ms_answer *ms_renumber_answer(ms_learner *learner, uint32_t id);

#endif
