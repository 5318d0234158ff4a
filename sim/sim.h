/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_H
#define MS_SIM_H

/* The whole of sim/, for plugins and other users outside this house; inside it
 * each file includes the nouns that it speaks of.  sim/ is the ground: the
 * types that the whole house speaks, in the order of the way through it, and
 * the discrete-event simulation itself.
 *
 *   graph --(policy)--> program --expand--> plan --replay--> timeline
 *                                                  --measure--> report
 *
 * A worked example, one tensor by hand.  The activation x of layer 3 is
 * storage 71 of the graph: 8 MiB, made by op 40 (forward), read by op 41 and,
 * in backward, by op 97.  In the graph, op 41's drop list ends the local
 * reference of 71 (the Python variable was rebound), op 97's drop list ends
 * its saved reference.  The default program says "run unit 3 forward, keep
 * all": expand books one row for 71 with both references, so it lives from
 * op 40 to op 97.  A checkpointing program says "run unit 3 forward, keep
 * nothing" and later "run unit 3 again": expand books two rows for 71, the
 * first living from op 40 to op 41, the second from op 40 run again to op 97.
 * Replay turns each row into two events and the running sum into the level.
 *
 *     ms_arena trial = {0};
 *     ms_plan plan;
 *     ms_timeline line;
 *     MS_TRY(ms_expand(&graph, &program, &opts, &trial, &plan, fault));
 *     MS_TRY(ms_replay(&plan, &machine, &trial, &line, fault));
 *     use(line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes);
 *     ms_arena_free(&trial);
 *
 * Units: bytes are uint64_t, times integer nanoseconds (uint64_t), FLOPs
 * double.  Ids are uint32_t rows of tables; MS_NONE is "no row".  CSR pairs
 * are named X_at (n + 1 offsets) and X (values).  Nothing prints, exits or
 * reads a clock; same input, same bytes out. */

#include "sim/base/base.h"
#include "sim/base/size.h"
#include "sim/base/words.h"
#include "sim/expand/hostplace.h"
#include "sim/expand/repeat.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/bylayer.h"
#include "sim/measure/idle.h"
#include "sim/measure/recomputed.h"
#include "sim/measure/requests.h"
#include "sim/measure/waits.h"
#include "sim/names.h"
#include "sim/outside.h"
#include "sim/plan.h"
#include "sim/pools/history/alloctrace.h"
#include "sim/pools/place/placement.h"
#include "sim/pools/steps/pooled.h"
#include "sim/program.h"
#include "sim/replay/collective.h"
#include "sim/report.h"
#include "sim/saves.h"
#include "sim/shape.h"
#include "sim/timeline.h"

#endif
