/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_STAGEINPUTS_H
#define MS_SIM_STAGEINPUTS_H

/* Private to sim/schedule: what a stage was handed last, which its module names
 * until it is handed the next one (ms_schedule_keeps.inputs), and the gradient
 * of it, which is its .grad.  While micro-batches follow each other these are
 * there anyway; from the stage's last backward over the end of the step to its
 * next forward each has a buffer of the program.
 *
 * Three stages on a rank, messages of 4 MiB: 24 MiB at the end of the step. */

#include "sim/program.h"
#include "sim/schedule/handover.h"

enum { MS_STAGEINPUTS_INPUT, MS_STAGEINPUTS_GRADIENT, MS_N_STAGEINPUTS };

typedef struct ms_stageinputs {
    /* Per stage its two buffers, or MS_NONE; NULL: the schedule keeps none. */
    uint32_t (*buffer)[MS_N_STAGEINPUTS];
    /* Of the rank at hand, per stage: turns, its first forward and its last
     * backward (or half that hands on); or MS_NONE. */
    uint32_t *first, *last;
} ms_stageinputs;

ms_err ms_stageinputs_find(const ms_graph *graph, const ms_schedule *schedule,
                           const ms_handovers *handovers, ms_arena *arena,
                           ms_program *program, ms_stageinputs *inputs,
                           ms_fault *fault);
/* Sets first and last to those of the rank. */
void ms_stageinputs_open(const ms_schedule *schedule, uint16_t rank,
                         ms_stageinputs *inputs);
/* Appends the calls about a stage's buffers, for which there is room. */
void ms_stageinputs_write(const ms_stageinputs *inputs, uint16_t rank,
                          uint32_t stage, ms_verb verb, ms_program *program);

#endif
