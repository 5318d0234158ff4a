/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/ratefile.h"
#include "graphs/json/json.h"
#include "graphs/model.h"
#include "sim/base/files.h"
#include "sim/replay/collective.h"

#include <string.h>

#define MAX_FILE_BYTES (UINT64_C(1) << 20)

/* Which key says where numbers are from whose keys begin so. */
static const struct {
    const char *prefix, *source;
} sources[] = {
    {"product_", "product_source"},
    {"flash", "attention_source"},
    {"efficient_", "attention_source"},
    {"fp32_share", "fp32_source"},
    {"step_share", "step_source"},
    {"kernel_us", "overhead_source"},
    {"launch_us", "overhead_source"},
    {"h2d_gbps", "host_source"},
    {"d2h_gbps", "host_source"},
    {"pageable_share", "pageable_source"},
    {"half_matmul", "half_matmul_source"},
};
#define N_SOURCES (sizeof sources / sizeof *sources)

static const char *source_of(const char *key)
{
    for (size_t i = 0; i < N_SOURCES; i++)
        if (strncmp(key, sources[i].prefix, strlen(sources[i].prefix)) == 0)
            return sources[i].source;
    return NULL;
}

static bool has_source(const ms_ratefit *fit, uint32_t n, const char *source)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(source_of(fit->changes[i].key), source) == 0)
            return true;
    return false;
}

static bool has_curves(const ms_ratefit *fit)
{
    for (uint32_t i = 0; i < MS_N_MEMORY_KINDS; i++)
        if (fit->new_curves[i])
            return true;
    return false;
}

/* Does the fit say this member anew?  A file's own name is that of another. */
static bool is_replaced(const ms_ratefit *fit, const char *key)
{
    static const char *const own[] = {"memsim_device", "name", "alias",
                                      "source"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(key, own[i]) == 0)
            return true;
    for (uint32_t i = 0; i < fit->n_changes; i++)
        if (strcmp(key, fit->changes[i].key) == 0)
            return true;
    if (strcmp(key, "memory_curves") == 0 ||
        strcmp(key, "memory_curve_source") == 0)
        return has_curves(fit);
    if (strcmp(key, "allreduce_curves") == 0 ||
        strcmp(key, "curve_source") == 0)
        return fit->new_links;
    return has_source(fit, fit->n_changes, key);
}

/* ---- members ------------------------------------------------------------- */

static void put_key(ms_text *text, const char *key)
{
    ms_text_add(text, ",\n    ");
    ms_text_json(text, key);
    ms_text_add(text, ": ");
}

static void put_member(ms_text *text, const char *key, const char *value)
{
    put_key(text, key);
    ms_text_json(text, value);
}

static void put_points(ms_text *text, const ms_curve *curve)
{
    ms_text_add(text, "\"kib\": [");
    for (uint32_t i = 0; i < curve->n; i++) {
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        ms_text_double(text, (double)curve->points[i].bytes / 1024);
    }
    ms_text_add(text, "], \"gbps\": [");
    for (uint32_t i = 0; i < curve->n; i++) {
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        ms_text_double(text, curve->points[i].bytes_per_s / 1e9);
    }
    ms_text_add(text, "]}");
}

static void put_curves(const ms_ratefit *fit, const char *by, ms_text *text)
{
    const char *between = "\n        ";
    put_key(text, "memory_curves");
    ms_text_add(text, "[");
    for (uint32_t i = 0; i < MS_N_MEMORY_KINDS; i++) {
        if (fit->device.memory_curves[i] == NULL)
            continue;
        ms_text_add(text, "%s{\"kind\": \"%s\", ", between,
                    ms_kernelkinds_words[i]);
        put_points(text, fit->device.memory_curves[i]);
        between = ",\n        ";
    }
    ms_text_add(text, "\n    ]");
    put_member(text, "memory_curve_source", by);
}

static void put_links(const ms_ratefit *fit, const char *by, ms_text *text)
{
    put_key(text, "allreduce_curves");
    ms_text_add(text, "[");
    const char *between = "\n        ";
    for (uint32_t i = 0; i < fit->device.n_curves; i++) {
        if (fit->device.curves[i].kind != MS_ALL_REDUCE)
            continue;
        ms_text_add(text, "%s{\"ranks\": %u, ", between,
                    fit->device.curves[i].ranks);
        put_points(text, &fit->device.curves[i]);
        between = ",\n        ";
    }
    ms_text_add(text, "\n    ]");
    put_member(text, "curve_source", by);
}

/* The value at a node as it stands in the file. */
static void put_raw(const ms_json *json, uint32_t node, ms_text *text)
{
    const ms_json_node *row = &json->nodes[node];
    const char *bytes = json->source.bytes;
    size_t end = row->next != MS_NONE ? json->nodes[row->next].key_at
                                      : json->source.length;
    bool brace = row->next == MS_NONE, comma = row->next != MS_NONE;
    while (end > row->at && (strchr(" \t\r\n", bytes[end - 1]) != NULL ||
                             (brace && bytes[end - 1] == '}') ||
                             (comma && bytes[end - 1] == ','))) {
        end--;
        brace &= bytes[end] != '}';
        comma &= bytes[end] != ',';
    }
    ms_text_put(text, bytes + row->at, end - row->at);
}

/* What the device's own file says and the fit does not. */
static ms_err put_base(const ms_ratefit *fit, const char *device, ms_text *text,
                       ms_fault *fault)
{
    char *bytes;
    size_t length;
    ms_json json;
    MS_TRY(ms_files_read(device, MAX_FILE_BYTES, text->arena, &bytes, &length,
                         fault));
    MS_TRY(ms_json_read(device, bytes, length, text->arena, &json, fault));
    for (uint32_t i = ms_json_first(&json, 0); i != MS_NONE;
         i = json.nodes[i].next) {
        if (is_replaced(fit, json.nodes[i].key))
            continue;
        put_key(text, json.nodes[i].key);
        put_raw(&json, i, text);
    }
    return MS_OK;
}

ms_err ms_ratefile_write(const ms_ratefit *fit, const char *device,
                         const char *source, ms_text *text, ms_fault *fault)
{
    size_t n = strlen(device);
    bool is_file = strchr(device, '/') != NULL ||
                   (n > 5 && strcmp(device + n - 5, ".json") == 0);
    const char *by =
        ms_arena_format(text->arena, "memsim calibrate, %s", source);
    if (by == NULL)
        return ms_fail_nomem(fault);
    ms_text_add(text, "{\n    \"memsim_device\": 1");
    put_member(text, "source", by);
    if (is_file)
        MS_TRY(put_base(fit, device, text, fault));
    else
        put_member(text, "like", fit->like->name);
    for (uint32_t i = 0; i < fit->n_changes; i++) {
        const char *group = source_of(fit->changes[i].key);
        if (!has_source(fit, i, group))
            put_member(text, group, by);
        put_key(text, fit->changes[i].key);
        ms_text_double(text, fit->changes[i].after);
    }
    if (has_curves(fit))
        put_curves(fit, by, text);
    if (fit->new_links)
        put_links(fit, by, text);
    ms_text_add(text, "\n}\n");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
