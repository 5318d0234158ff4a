/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_READER_H
#define MS_READER_H

/* Private to graphs: a model file being read.  read.c opens it and knows its
 * forms, listfile.c reads a layer list. */

#include "graphs/fields.h"
#include "graphs/graphs.h"
#include "graphs/json.h"

typedef struct ms_reader {
    ms_json json;
    const ms_override *overrides;
    uint32_t n_overrides;
    ms_arena *arena;
    ms_model *model;
    ms_fault *fault;
    const char *folder; /* of a config.json, "" for this one; or NULL */
} ms_reader;

/* --set model.KEY=VALUE: "name", or a row of keys, whose value it replaces.
 * MS_EUSAGE at another key. */
ms_err ms_read_override(const ms_reader *r, const ms_fields *keys,
                        ms_fields_values *out);
/* layers: the node of "layers". */
ms_err ms_listfile_read(const ms_reader *r, uint32_t layers);

#endif
