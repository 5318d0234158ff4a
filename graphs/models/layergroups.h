/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_LAYERGROUPS_H
#define MS_LAYERGROUPS_H

/* The keys of one group of a layer list (layerlist.h) and the variables of
 * its repetitions. */

#include "graphs/models/layernames.h"

typedef struct ms_repetition {
    uint32_t row, layers, each, with; /* nodes, or MS_NONE */
    int64_t times, first;             /* first: its number */
    bool repeats, is_many;            /* "repeat"; that or "each" */
    bool is_block;                    /* each repetition */
    bool is_call;      /* a repetition is a function, that holds its input */
    const char *index; /* NULL: none */
    uint32_t label;    /* of the whole; MS_NONE: each names itself */
} ms_repetition;

/* Reads the keys of element row but "name", "inputs" and "when". */
ms_err ms_layergroups_read(const ms_layernames *names, uint32_t templates,
                           uint32_t row, const ms_scope *in,
                           ms_repetition *group);
/* Binds the variables of repetition k in scope: index, each, with. */
ms_err ms_layergroups_bind(const ms_layernames *names,
                           const ms_repetition *group, int64_t k,
                           ms_scope *scope);

#endif
