/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RESULT_H
#define MS_RESULT_H

#include "graphs/model.h"
#include "graphs/training.h"
#include "sim/nouns.h"
#include "sim/shape.h"

/* Every noun on the way, for those who pass them on: who looks into one
 * includes its header.  A result owns none of them, and a copy of it shares
 * them:
 *
 *     graph     lies in the arena that ms_jobway_lower was given; from
 *               ms_points_lower it is lent, as long as the seat is not left
 *     the rest  lies in the arena of the step (ms_jobprogram_make takes its
 *               room) and ends with it
 *
 * NULL: the way did not get there. */
typedef struct ms_result {
    ms_model model;
    ms_training training; /* resolved */
    ms_shape shape;
    const ms_graph *graph;

    ms_program *program;
    ms_plan *plan;
    ms_machine *machine;
    ms_timeline *line;
    ms_report *report;
    /* of such step times, of such peaks; NULL: not known */
    const struct ms_accuracy *accuracy, *peak_accuracy;
} ms_result;

#endif
