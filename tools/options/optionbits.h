/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_OPTIONBITS_H
#define MS_TOOLS_OPTIONBITS_H

/* Private to options_table.c: which commands a row of it is for. */

#include "tools/options/options.h"

#define RUN MS_FOR_RUN
#define COMPARE MS_FOR_COMPARE
/* Commands that simulate one step. */
#define STEP (MS_FOR_RUN | MS_FOR_EXPLAIN)
#define SWEEP MS_FOR_SWEEP
#define REPORT MS_FOR_REPORT
#define CHECK MS_FOR_CHECK
#define DIFF MS_FOR_DIFF
#define STEPS (STEP | COMPARE | SWEEP | REPORT | DIFF)
#define FIT MS_FOR_FIT
#define MODEL (STEPS | MS_FOR_INSPECT | FIT)
#define WORDS (MS_FOR_HELP | MS_FOR_COMPLETION | MS_FOR_SCHEMA)
#define PLOT MS_FOR_PLOT
#define ALLOC MS_FOR_ALLOC
#define CALIBRATE MS_FOR_CALIBRATE
/* Commands that draw, of what no step is. */
#define DRAWN (PLOT | ALLOC | CALIBRATE)
#define EVERY (MS_FOR_TOP | MODEL | DRAWN | CHECK | WORDS)

#endif
