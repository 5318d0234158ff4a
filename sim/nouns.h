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
 *     sim/report.h    the timeline in numbers */

typedef struct ms_graph ms_graph;
typedef struct ms_call ms_call;
typedef struct ms_buffer ms_buffer;
typedef struct ms_program ms_program;
typedef struct ms_keep ms_keep;
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
typedef struct ms_report_names ms_report_names;

#endif
