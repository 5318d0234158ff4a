/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_LIKENESS_H
#define MS_SIM_LIKENESS_H

/* Private to sim/fold: graphs that differ in numbers alone, such as those of
 * one model at two batch sizes.  They have the same ops, which read, make and
 * let go of the same storages; bytes and times are others.
 *
 * Whose bytes a row has (the whole storage's, a part's, a far copy's) is found
 * out from how many they are, so that these have to be equal or to differ in
 * both graphs.  Of ops that meet other ranks' expand reads numbers.
 *
 * A worked example: of batch 1 and of batch 2 the attention of unit 3 is op 40
 * and makes storage 61, of 8 and of 16 MiB.  What expand does with one it does
 * with the other. */

#include "sim/fold/classes/classes.h"

/* May expand read its numbers? */
bool ms_likeness_is_plain(const ms_graph *graph);
/* Do two graphs that are prepared and plain differ in numbers alone? */
bool ms_likeness_graphs(const ms_graph *a, const ms_graph *b);
/* Are units that are of one class in their own graph alike in the numbers of
 * another one, too, from which it differs in numbers alone? */
bool ms_likeness_units(const ms_classes *classes, const ms_graph *graph);

#endif
