/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/devicecurves.h"
#include "graphs/json/fields.h"
#include "graphs/machines/kernelkinds.h"
#include "sim/replay/collective.h"

#include <math.h>
#include <string.h>

static const ms_field curve_fields[] = {
    {.name = "ranks",
     .type = MS_INT,
     .required = true,
     .low = 2,
     .high = 1048576,
     .help = "how many GPUs took part"},
};
static const char *const curve_extra[] = {"kib", "gbps", "collective"};

/* 0: no number */
static double number_at(const ms_json *json, uint32_t node)
{
    const ms_json_node *number = &json->nodes[node];
    if (number->kind == MS_JSON_INT)
        return (double)number->value.i;
    return number->kind == MS_JSON_FLOAT ? number->value.f : 0;
}

/* The array under key, of n numbers. */
static ms_err find_numbers(const ms_devicefile *r, uint32_t curve,
                           const char *key, uint32_t *first, uint32_t *n)
{
    const ms_json *json = &r->json;
    uint32_t node = ms_json_find(json, curve, key);
    if (node == MS_NONE)
        return ms_json_fail(json, curve, r->fault, NULL,
                            "the curve lacks the key \"%s\"", key);
    if (json->nodes[node].kind != MS_JSON_ARRAY ||
        json->nodes[node].value.n == 0)
        return ms_json_fail(json, node, r->fault, NULL,
                            "\"%s\" must be an array of numbers", key);
    *n = json->nodes[node].value.n;
    *first = ms_json_first(json, node);
    for (uint32_t i = *first; i != MS_NONE; i = json->nodes[i].next) {
        double number = number_at(json, i);
        if (number < MS_DEVICECURVES_LEAST || number > 1e10)
            return ms_json_fail(json, i, r->fault, NULL,
                                "\"%s\" must hold numbers from %g to 1e10", key,
                                MS_DEVICECURVES_LEAST);
    }
    return MS_OK;
}

static ms_err read_points(const ms_devicefile *r, uint32_t node,
                          ms_curve *curve)
{
    const ms_json *json = &r->json;
    uint32_t kib, gbps, n_gbps;
    MS_TRY(find_numbers(r, node, "kib", &kib, &curve->n));
    MS_TRY(find_numbers(r, node, "gbps", &gbps, &n_gbps));
    if (curve->n != n_gbps)
        return ms_json_fail(json, node, r->fault, NULL,
                            "the curve has %u sizes and %u rates", curve->n,
                            n_gbps);
    ms_curve_point *points = ms_arena_take(r->arena, n_gbps, sizeof *points);
    if (points == NULL)
        return ms_fail_nomem(r->fault);
    curve->points = points;
    double before_s = 0, before_bytes = 0;
    for (uint32_t i = 0; i < n_gbps; i++) {
        double bytes = floor(number_at(json, kib) * 1024);
        points[i] =
            (ms_curve_point){(uint64_t)bytes, number_at(json, gbps) * 1e9};
        double s = bytes / points[i].bytes_per_s;
        if (bytes <= before_bytes || s < before_s)
            return ms_json_fail(json, kib, r->fault,
                                "leave out the smaller size",
                                "sizes must ascend, and the time they take");
        before_bytes = bytes;
        before_s = s;
        kib = json->nodes[kib].next;
        gbps = json->nodes[gbps].next;
    }
    return MS_OK;
}

static ms_err check_object(const ms_devicefile *r, uint32_t node)
{
    if (r->json.nodes[node].kind == MS_JSON_OBJECT)
        return MS_OK;
    return ms_json_fail(&r->json, node, r->fault, NULL,
                        "a curve must be an object, not %s",
                        ms_json_kind_name(&r->json, node));
}

/* In the order of ms_collective. */
static const char *const collectives[] = {"all-gather", "reduce-scatter",
                                          "all-reduce", "broadcast",
                                          "all-to-all", "send"};

/* Under "collective"; allreduce_curves need not say it. */
static ms_err read_collective(const ms_devicefile *r, uint32_t node,
                              uint32_t *kind)
{
    const ms_json *json = &r->json;
    uint32_t word = ms_json_find(json, node, "collective");
    if (word == MS_NONE)
        return ms_json_fail(json, node, r->fault, NULL,
                            "the curve lacks the key \"collective\"");
    for (uint32_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        if (json->nodes[word].kind == MS_JSON_STRING && i != MS_ALL_REDUCE &&
            strcmp(json->nodes[word].value.s, collectives[i]) == 0) {
            *kind = i;
            return MS_OK;
        }
    return ms_json_fail(json, word, r->fault,
                        "allreduce_curves has those of all-reduces",
                        "\"collective\" must be all-gather, reduce-scatter, "
                        "broadcast, all-to-all or send");
}

static ms_err read_curve(const ms_devicefile *r, uint32_t node,
                         bool is_all_reduce, ms_curve *curve)
{
    const ms_fields keys = {.rows = curve_fields,
                            .n = 1,
                            .extra = curve_extra,
                            .n_extra = is_all_reduce ? 2 : 3,
                            .owner = "the curve"};
    ms_value ranks;
    ms_fields_values out = {.values = &ranks};
    MS_TRY(check_object(r, node));
    MS_TRY(
        ms_fields_read_object(&r->json, node, &keys, r->arena, &out, r->fault));
    MS_TRY(ms_fields_require(&r->json, node, &keys, out.given, r->fault));
    curve->kind = MS_ALL_REDUCE;
    if (!is_all_reduce)
        MS_TRY(read_collective(r, node, &curve->kind));
    curve->ranks = (uint32_t)ranks.i;
    curve->ranks_per_node = r->device->gpus_per_node;
    return read_points(r, node, curve);
}

/* The array under a key, or MS_NONE. */
static ms_err find_array(const ms_devicefile *r, const char *key,
                         uint32_t *node)
{
    *node = ms_json_find(&r->json, 0, key);
    if (*node == MS_NONE || r->json.nodes[*node].kind == MS_JSON_ARRAY)
        return MS_OK;
    return ms_json_fail(&r->json, *node, r->fault, NULL,
                        "\"%s\" must be an array, not %s", key,
                        ms_json_kind_name(&r->json, *node));
}

static uint32_t n_in(const ms_devicefile *r, uint32_t array)
{
    return array == MS_NONE ? 0 : r->json.nodes[array].value.n;
}

static ms_err read_curves(const ms_devicefile *r, uint32_t array,
                          bool is_all_reduce, ms_curve *curves, uint32_t *n)
{
    if (array == MS_NONE)
        return MS_OK;
    for (uint32_t i = ms_json_first(&r->json, array); i != MS_NONE;
         i = r->json.nodes[i].next)
        MS_TRY(read_curve(r, i, is_all_reduce, &curves[(*n)++]));
    return MS_OK;
}

/* Curves of "like" go with its links: another machine has none.  Either key
 * takes the place of what "like" has under it. */
static ms_err read_links(const ms_devicefile *r)
{
    static const char *const links[] = {"nvlink_gbps", "peer_gbps",
                                        "nvls_share", "network_gbps",
                                        "gpus_per_node"};
    ms_device *d = r->device;
    uint32_t reduces, others, n = 0;
    MS_TRY(find_array(r, "allreduce_curves", &reduces));
    MS_TRY(find_array(r, "collective_curves", &others));
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (ms_json_find(&r->json, 0, links[i]) != MS_NONE)
            d->n_curves = 0;
    if (reduces == MS_NONE && others == MS_NONE)
        return MS_OK;
    ms_curve *curves = ms_arena_take(
        r->arena, d->n_curves + n_in(r, reduces) + n_in(r, others) + 1,
        sizeof *curves);
    if (curves == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = 0; i < d->n_curves; i++)
        if ((d->curves[i].kind == MS_ALL_REDUCE ? reduces : others) == MS_NONE)
            curves[n++] = d->curves[i];
    MS_TRY(read_curves(r, reduces, true, curves, &n));
    MS_TRY(read_curves(r, others, false, curves, &n));
    d->curves = curves;
    d->n_curves = n;
    return MS_OK;
}

/* ---- memory -------------------------------------------------------------- */

static const char *const kind_keys[] = {"kind", "kib", "gbps"};

static ms_err read_kind(const ms_devicefile *r, uint32_t node, uint32_t *kind)
{
    const ms_json *json = &r->json;
    uint32_t word = ms_json_find(json, node, "kind");
    if (word == MS_NONE)
        return ms_json_fail(json, node, r->fault, NULL,
                            "the curve lacks the key \"kind\"");
    for (uint32_t i = 0; i < MS_N_MEMORY_KINDS; i++)
        if (json->nodes[word].kind == MS_JSON_STRING &&
            strcmp(json->nodes[word].value.s, ms_kernelkinds_words[i]) == 0) {
            *kind = i;
            return MS_OK;
        }
    return ms_json_fail(json, word, r->fault, NULL,
                        "\"kind\" must be pointwise, norm, softmax, "
                        "reduction, lookup, optimizer or copy");
}

static ms_err read_memory_curve(const ms_devicefile *r, uint32_t node)
{
    const ms_fields keys = {.extra = kind_keys,
                            .n_extra = sizeof kind_keys / sizeof *kind_keys,
                            .owner = "the curve"};
    ms_fields_values out = {0};
    uint32_t kind = 0;
    MS_TRY(check_object(r, node));
    MS_TRY(
        ms_fields_read_object(&r->json, node, &keys, r->arena, &out, r->fault));
    MS_TRY(read_kind(r, node, &kind));
    ms_curve *curve = ms_arena_take(r->arena, 1, sizeof *curve);
    if (curve == NULL)
        return ms_fail_nomem(r->fault);
    r->device->memory_curves[kind] = curve;
    r->device->has_memory_curves = true;
    return read_points(r, node, curve);
}

static ms_err read_memory(const ms_devicefile *r)
{
    uint32_t node;
    MS_TRY(find_array(r, "memory_curves", &node));
    if (node == MS_NONE)
        return MS_OK;
    for (uint32_t i = ms_json_first(&r->json, node); i != MS_NONE;
         i = r->json.nodes[i].next)
        MS_TRY(read_memory_curve(r, i));
    return MS_OK;
}

ms_err ms_devicecurves_read(const ms_devicefile *file)
{
    MS_TRY(read_links(file));
    return read_memory(file);
}
