/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_WORKS_H
#define MS_PLOTS_WORKS_H

/* What a stream works on, in colours and words.  Private to plots/. */

#include "plots/record/record.h"
#include "sim/measure/waits.h"

typedef struct ms_look {
    const char *words, *color; /* color NULL: nothing is drawn */
} ms_look;
extern const ms_look ms_works_look[MS_N_WORKS];
/* As what waiting counts, by its cause; a ms_work. */
extern const uint8_t ms_works_wait[MS_N_CAUSES];

#endif
