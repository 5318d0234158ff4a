/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_FRAMES_H
#define MS_SIM_FRAMES_H

/* Private to sim/expand: where the frames of ranks lie among the cells.
 *
 * A frame has a cell for each storage that a micro-batch makes.  A rank of a
 * pipeline touches few of them, and has as many frames as there are stages: if
 * each had all cells, they would grow with the square of the stages.  So the
 * ranks lie in one another, each so far along that no two of them touch the
 * same cell, as the rows of a sparse table in a parser:
 *
 *     rank 0  touches storages 0-40 and 90     offset 0
 *     rank 1  touches 40-80 and 90             offset 100: 40 is handed over
 *     rank 2  touches 80-89 and 90             offset 1
 *
 * What a rank touches is what its ops do, what is sent to it and what its calls
 * name; another cell of its frames is another rank's, and must not be looked
 * at. */

#include "sim/base/base.h"
#include "sim/nouns.h"

typedef struct ms_frames {
    uint64_t width;         /* cells of a frame, of all ranks */
    const uint64_t *offset; /* per rank, in a frame */
} ms_frames;

/* program->holds is there where it has stages.  MS_ENOMEM. */
ms_err ms_frames_lay(const ms_graph *graph, const ms_program *program,
                     ms_arena *arena, ms_frames *frames, ms_fault *fault);

#endif
