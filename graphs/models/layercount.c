/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/layercount.h"

#include "graphs/json/json.h"

#include <inttypes.h>

ms_err ms_layercount_array(const ms_json *json, uint32_t row, ms_fault *fault)
{
    const ms_json_node *node = &json->nodes[row];
    if (node->kind != MS_JSON_ARRAY || node->value.n == 0)
        return ms_json_fail(json, row, fault, NULL,
                            "\"layers\" must be an array of at least one "
                            "layer");
    for (uint32_t i = row + 1; i != MS_NONE; i = json->nodes[i].next)
        if (json->nodes[i].kind != MS_JSON_OBJECT)
            return ms_json_fail(json, i, fault, NULL,
                                "a layer must be an object, not %s",
                                ms_json_kind_name(json, i));
    return MS_OK;
}

/* Returns how often a group repeats its layers, as far as a literal says it or,
 * outside of other groups, the config. */
static uint64_t least_times(const ms_json *json, uint32_t row,
                            const ms_variable *config)
{
    uint32_t repeat = ms_json_find(json, row, "repeat");
    ms_fault passed_over;
    int64_t times = 0;
    if (ms_json_find(json, row, "when") != MS_NONE)
        return 0;
    if (repeat == MS_NONE)
        return 1;
    if (json->nodes[repeat].kind == MS_JSON_INT)
        times = json->nodes[repeat].value.i;
    else if (json->nodes[repeat].kind == MS_JSON_STRING &&
             ms_numbers_integer(json->nodes[repeat].value.s, config, &times,
                                &passed_over) != MS_OK)
        times = 0;
    /* A number that does not fit is refused when the group is read. */
    bool fits = times > 0 && times <= MS_LAYERLIST_MAX;
    return fits ? (uint64_t)times : 1;
}

ms_err ms_layercount_fail(const ms_layerlist *list, uint32_t row,
                          ms_fault *fault)
{
    return ms_json_fail(list->json, row, fault,
                        "write out what is not repeated, or make a model of "
                        "fewer, wider layers",
                        "more than %" PRIu64 " layers, with those of repeats "
                        "and templates",
                        list->most);
}

/* The node of a group's layers, or MS_NONE. */
static uint32_t layers_of(const ms_json *json, uint32_t templates, uint32_t row)
{
    uint32_t name = ms_json_find(json, row, "template");
    if (name == MS_NONE || templates == MS_NONE ||
        json->nodes[name].kind != MS_JSON_STRING)
        return ms_json_find(json, row, "layers");
    return ms_json_find(json, templates, json->nodes[name].value.s);
}

/* Each element adds one or more to the count, so that templates which use each
 * other end at the limit. */
static ms_err count(const ms_layerlist *list, uint32_t row, uint64_t times,
                    const ms_variable *config, uint32_t depth, uint64_t *n,
                    ms_fault *fault)
{
    const ms_json *json = list->json;
    MS_TRY(ms_layercount_array(json, row, fault));
    for (uint32_t i = row + 1; i != MS_NONE; i = json->nodes[i].next) {
        uint32_t layers = layers_of(json, list->templates, i);
        uint64_t inner = times * least_times(json, i, config);
        *n += times;
        if (*n > list->most)
            return ms_layercount_fail(list, i, fault);
        if (layers != MS_NONE && inner > 0 && depth + 1 < MS_JSON_DEPTH)
            MS_TRY(count(list, layers, inner, NULL, depth + 1, n, fault));
    }
    return MS_OK;
}

ms_err ms_layercount_least(const ms_layerlist *list, uint64_t *n,
                           ms_fault *fault)
{
    *n = 0;
    return count(list, list->row, 1, list->variables, 0, n, fault);
}
