/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_STEPSETTINGS_H
#define MS_GRAPHS_STEPSETTINGS_H

/* Private to graphs/: what a step is made of and for, before anything of it is
 * recorded.  Read-only from the moment that lowering has made it, so that what
 * follows from it may be asked at any time: functions that need nothing else
 * take it alone.
 *
 * Invariants: micro_batches > 0 and data_ranks > 0 in shape; batch is that of
 * one micro-batch, training->batch that of a step. */

#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "sim/shape.h"

typedef struct ms_step_settings {
    const ms_model *model;
    const ms_training *training;
    const ms_device *device;
    const ms_shape *shape;
    bool cpu, train;
    uint8_t framework;        /* ms_framework */
    uint64_t batch, sequence; /* per micro-batch */
    uint32_t micro_batches;
} ms_step_settings;

#endif
