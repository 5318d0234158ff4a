/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_NOUNS_H
#define MS_SIM_NOUNS_H

/* The nouns by name, for headers that only pass them on.  Each is defined in a
 * header of its own, listed in the order in which a step passes through them:
 *
 *     sim/graph.h     the model: one micro-batch and the optimizer step
 *     sim/program.h   what is done with it: a list of calls
 *     sim/machine.h   on what: rates, memories
 *     sim/plan.h      the program expanded: each op, each allocation
 *     sim/timeline.h  the plan replayed: when each of them happens
 *     sim/report.h    the timeline in numbers
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

typedef struct ms_graph ms_graph;
typedef struct ms_call ms_call;
typedef struct ms_buffer ms_buffer;
typedef struct ms_program ms_program;
typedef struct ms_keep ms_keep;
typedef struct ms_online ms_online;
typedef struct ms_expand_opts ms_expand_opts;
typedef struct ms_machine ms_machine;
typedef struct ms_plan ms_plan;
typedef struct ms_row ms_row;
typedef struct ms_timeline ms_timeline;
typedef struct ms_pooled ms_pooled;
typedef struct ms_rank_report ms_rank_report;
typedef struct ms_report ms_report;
typedef struct ms_shape ms_shape;
typedef struct ms_point ms_point;
typedef struct ms_layer_use ms_layer_use;
typedef struct ms_foreseen ms_foreseen;
typedef struct ms_report_names ms_report_names;

/* What of the message that a stage was handed last lasts to the next one
 * (ms_graph.stage_inputs). */
typedef enum ms_stage_inputs {
    MS_INPUTS_GO, /* nothing */
    MS_INPUTS_STAY,
    MS_INPUTS_STAY_FIRST /* before this step there was none */
} ms_stage_inputs;

#endif
