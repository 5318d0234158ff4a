/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RESULT_H
#define MS_RESULT_H

#include "graphs/graphs.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"

/* Every noun on the way.  read and lower fill the first part in the keep
 * arena, step the second in the trial arena. */
typedef struct ms_result {
    ms_model model;
    ms_training training; /* resolved */
    ms_shape shape;
    ms_graph graph;

    ms_program program;
    ms_plan plan;
    ms_machine machine;
    ms_timeline line;
    ms_report report;
} ms_result;

#endif
