/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_READER_H
#define MS_READER_H

/* Private to graphs: a model file being read.  read.c opens it and knows its
 * forms, listfile.c reads a layer list, builtins.c what is compiled in.
 *
 * A file may be another with other numbers:
 *
 *     {"like": "llama-2-7b", "config": {"layers": 40, "hidden": 5120}}
 *
 * "like" names a built-in model, which is read in its stead; a value of a
 * "config" is, in this order, that of --set, of the file, of what it is like.
 * Built-in models are like whole ones, so no chain is longer than two. */

#include "graphs/json/fields.h"
#include "graphs/json/json.h"
#include "graphs/model.h"

/* What a file that is "like" another has to say. */
typedef struct ms_likeness {
    const ms_json *json;
    uint32_t config;                 /* its node, or MS_NONE */
    const struct ms_likeness *outer; /* the file that is like this one */
} ms_likeness;

typedef struct ms_reader {
    ms_json json;
    const ms_likeness *likeness; /* NULL: nothing is like this file */
    const ms_override *overrides;
    uint32_t n_overrides;
    ms_arena *arena;
    ms_model *model;
    ms_fault *fault;
    const char *folder; /* of a config.json, "" for this one; or NULL */
} ms_reader;

/* overrides.c: --set model.KEY=VALUE: "name", or a row of keys, whose value it
 * replaces. MS_EUSAGE at another key. */
ms_err ms_overrides_apply(const ms_reader *r, const ms_fields *keys,
                          ms_fields_values *out);
/* layers: the node of "layers". */
ms_err ms_listfile_read(const ms_reader *r, uint32_t layers);
/* The same of a text that the page of a family wrote: without "input" it is of
 * states only, and the page has bounded its layers. */
ms_err ms_listfile_written(const ms_reader *r);

/* What all times, or all bytes, of a measured file may add up to: whole numbers
 * of a double, and still 64 bits where a policy makes everything a thousand
 * times.  One value is at most 2^50.  False: the sum is more. */
#define MS_READER_MOST (UINT64_C(1) << 53)
static inline bool ms_reader_add(uint64_t *sum, uint64_t value)
{
    *sum += value;
    return *sum <= MS_READER_MOST;
}

/* chainfile.c: a measured chain. */
ms_err ms_chainfile_read(const ms_reader *r);
/* Is the node of "family" the name of one? */
bool ms_chainfile_is(const ms_reader *r, uint32_t family);

/* dagfile.c: a measured DAG. */
ms_err ms_dagfile_read(const ms_reader *r);
bool ms_dagfile_is(const ms_reader *r, uint32_t family);

/* dtrlog.c: the log of a run, a line of JSON for each instruction. */
bool ms_dtrlog_is(const char *bytes, size_t length);
ms_err ms_dtrlog_read(const ms_reader *r);

/* A built-in model by its name, "gpt3" or "gpt3.json"; NULL: there is none. */
const ms_builtin *ms_builtins_find(const char *name);
/* "did you mean "gpt3"?" */
void ms_builtins_hint(const char *name, char *hint, size_t size);
/* The JSON that node like of r names.  MS_EINPUT at the node. */
ms_err ms_builtins_open(const ms_reader *r, uint32_t like, ms_json *json);
/* Values of those "config" that stand over r's own, whose keys it has. */
ms_err ms_builtins_config(const ms_reader *r, const ms_fields *keys,
                          ms_fields_values *out);
/* Where the user wrote the model's numbers: the outermost "config", else the
 * given node. */
const ms_json *ms_builtins_place(const ms_reader *r, uint32_t *node);

#endif
