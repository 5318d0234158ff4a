/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RUN_H
#define MS_TOOLS_RUN_H

/* The parts of memsim run: the summary. */

#include "plots/plots.h"
#include "tools/words/words.h"

/* What the summary is written of. */
typedef struct ms_summary {
    const ms_job *job;
    const ms_arguments *arguments;
    const ms_result *result;
    const char *policy; /* in its canonical spelling */
    const ms_style *style;
    ms_arena *arena;
} ms_summary;

ms_err ms_summary_write(const ms_summary *summary, ms_text *text,
                        ms_fault *fault);
/* planline.c: of a plan that a policy chose by a model of its own what that
 * model foresees, beside what the step has; else nothing. */
void ms_planline_put(const ms_result *result, ms_arena *arena, ms_text *text);
/* poolsteps.c: a table of the steps and a sentence about fragmentation, for
 * runs whose steps have lengths of their own; else nothing. */
void ms_poolsteps_put(const ms_summary *summary, ms_text *text);
/* stagetable.c: of a pipeline a row for each rank: its stages, their layers,
 * peak, micro-batches in flight, how long it is busy and what part of the
 * makespan it is idle; then what would even them out, each found by replay,
 * with its command. */
ms_err ms_stagetable_put(const ms_summary *summary, ms_text *text,
                         ms_fault *fault);
/* traffic.c: a line for each link that is used, under a heading; then what is
 * in host memory and on the disk. */
void ms_traffic_links(const ms_result *result, const ms_style *style,
                      ms_text *text);
void ms_traffic_memories(const ms_result *result, ms_text *text);

#endif
