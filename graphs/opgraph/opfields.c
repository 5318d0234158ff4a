/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of an op graph as data, for its reader and its schema. */

#include "graphs/layertypes.h"
#include "graphs/opgraph/opgraph.h"
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

#define MOST_BYTES (INT64_C(1) << 58)

const ms_field ms_opfields_storage[MS_OPFIELDS_STORAGE] = {
    {.name = "id", .type = MS_INT, .help = "from 0, in order"},
    {.name = "bytes",
     .type = MS_INT,
     .low = 0,
     .high = MOST_BYTES,
     .help = "the size in bytes"},
    {.name = "kind",
     .type = MS_WORD,
     .words = "act|param|buffer|input",
     .help = "made by a node, or there before the step"},
    {.name = "name", .type = MS_TEXT, .help = "of a parameter or buffer"},
};
const ms_field ms_opfields_tensor[MS_OPFIELDS_TENSOR] = {
    {.name = "id", .type = MS_INT, .help = "from 0, in order"},
    {.name = "storage", .type = MS_INT, .help = "the id of its storage"},
    {.name = "shape",
     .type = MS_INTS,
     .low = 0,
     .high = INT64_C(1) << 50,
     .help = "a size"},
    {.name = "dtype",
     .type = MS_WORD,
     .words = "float32|float16|bfloat16|float64|int64|int32|bool|uint8",
     .help = "of its elements"},
    {.name = "strides",
     .type = MS_INTS,
     .low = 0,
     .high = INT64_C(1) << 50,
     .help = "a stride"},
    {.name = "offset",
     .type = MS_INT,
     .low = 0,
     .high = MOST_BYTES,
     .help = "the offset"},
};
/* INTS: ids of tensors, as many as there are. */
const ms_field ms_opfields_node[MS_OPFIELDS_NODE] = {
    {.name = "op", .type = MS_TEXT, .required = true, .help = "aten.addmm"},
    {.name = "real_op",
     .type = MS_TEXT,
     .help = "what runs without the tracing mode, where it differs"},
    {.name = "overload", .type = MS_TEXT, .help = "default, Tensor, ..."},
    {.name = "mod", .type = MS_TEXT, .help = "the module, h.0.attn"},
    {.name = "in", .type = MS_INTS, .required = true, .help = "what it reads"},
    {.name = "out", .type = MS_INTS, .required = true, .help = "and makes"},
    {.name = "ends",
     .type = MS_INTS,
     .help = "tensors that lose their last name after it"},
};
const ms_field ms_opfields_batch = {.name = "batch",
                                    .type = MS_INT,
                                    .low = 1,
                                    .high = INT64_C(1) << 30,
                                    .help = "samples of one run"};

/* Keys that are read elsewhere, then what recorders note of PyTorch's own
 * saves and order, which are derived here. */
const char *const ms_opfields_node_more[] = {"args", "flops", "id",    "kwargs",
                                             "prod", "seq",   "saved", NULL};
const char *const ms_opfields_top[] = {
    "format",      "name",      "summary",   "meta",
    "loss_start",  "storages",  "tensors",   "nodes",
    "case",        "flops_fwd", "bwd_order", "saved_outside_ops",
    "saved_bytes", NULL};
#define MOST_KEYS 32u

ms_err ms_opfields_check(const ms_json *json, uint32_t object, bool node,
                         ms_fault *fault)
{
    const char *const *keys = node ? ms_opfields_node_more : ms_opfields_top;
    const char *names[MOST_KEYS];
    char hint[96] = "the format is described in memsim help files";
    uint32_t n = 0;
    for (; keys[n] != NULL; n++)
        names[n] = keys[n];
    for (uint32_t i = 0; node && i < MS_OPFIELDS_NODE; i++)
        names[n++] = ms_opfields_node[i].name;
    for (uint32_t i = ms_json_first(json, object); i != MS_NONE;
         i = json->nodes[i].next) {
        const char *key = json->nodes[i].key;
        uint32_t known = 0;
        while (known < n &&
               (*names[known] != *key || strcmp(names[known], key) != 0))
            known++;
        if (known < n)
            continue;
        const char *near = ms_names_nearest(key, names, n);
        if (near != NULL)
            snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
        return ms_json_fail(json, i, fault, hint, "unknown key \"%s\" in %s",
                            key, node ? "a node" : "an op graph");
    }
    return MS_OK;
}

uint32_t ms_opfields_place(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (uint32_t place = 0;; place++) {
        size_t here = strcspn(words, "|");
        if (here == length && memcmp(words, word, length) == 0)
            return place;
        if (words[here] == '\0')
            return MS_NONE;
        words += here + 1;
    }
}
