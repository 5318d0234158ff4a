/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/huggingface/safetensors.h"

#include "graphs/model.h"
#include "graphs/models/files/folder.h"

#include "graphs/json/index.h"
#include "sim/base/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LENGTH_BYTES 8u
#define MOST_HEADER 100000000u
#define MOST_DIMS 8u
#define INDEX_BYTES (UINT64_C(64) << 20)

/* One file, while its tensors are compared. */
typedef struct weights {
    ms_page *page;
    const char *path;
    ms_json header;
    int64_t *blocks; /* the highest number of a block so far, or -1 */
} weights;

typedef struct dtype {
    const char *name;
    uint32_t bits;
    bool packed; /* may hold several weights: shapes say nothing */
} dtype;
static const dtype dtypes[] = {
    {"F64", 64, false},       {"F32", 32, false},    {"F16", 16, false},
    {"BF16", 16, false},      {"F8_E4M3", 8, false}, {"F8_E5M2", 8, false},
    {"F8_E8M0", 8, true},     {"F6_E2M3", 6, true},  {"F6_E3M2", 6, true},
    {"F4", 4, true},          {"I64", 64, true},     {"I32", 32, true},
    {"I16", 16, true},        {"I8", 8, true},       {"U64", 64, true},
    {"U32", 32, true},        {"U16", 16, true},     {"U8", 8, true},
    {"BOOL", 8, true},        {"C64", 64, true},     {"F8_E4M3FNUZ", 8, false},
    {"F8_E5M2FNUZ", 8, false}};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

/* ---- a header ------------------------------------------------------------ */

static ms_err fail_file(const weights *w, const char *what)
{
    return ms_fail(w->page->fault, MS_EINPUT, w->path,
                   "move it away where its shapes do not matter", "%s", what);
}

static ms_err read_header(weights *w, FILE *file)
{
    unsigned char first[LENGTH_BYTES];
    char what[96];
    uint64_t length = 0;
    if (fread(first, 1, sizeof first, file) != sizeof first)
        return fail_file(w, "no safetensors: shorter than 8 bytes");
    for (uint32_t i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | first[i];
    if (length > MOST_HEADER) {
        snprintf(what, sizeof what,
                 "a header of %" PRIu64 " bytes; at most %u are allowed",
                 length, MOST_HEADER);
        return fail_file(w, what);
    }
    char *bytes = ms_arena_take_raw(w->page->arena, (size_t)length + 1, 1);
    if (bytes == NULL)
        return ms_fail_nomem(w->page->fault);
    if (fread(bytes, 1, (size_t)length, file) != length) {
        snprintf(what, sizeof what,
                 "the header of %" PRIu64 " bytes is cut off", length);
        return fail_file(w, what);
    }
    bytes[length] = '\0';
    return ms_json_read(w->path, bytes, (size_t)length, w->page->arena,
                        &w->header, w->page->fault);
}

/* ---- a tensor ------------------------------------------------------------ */

typedef struct extent {
    const dtype *dtype;
    uint32_t n;
    int64_t size[MOST_DIMS];
} extent;

static ms_err fail_entry(const weights *w, uint32_t row, const char *what)
{
    return ms_json_fail(&w->header, row, w->page->fault, NULL,
                        "tensor \"%.100s\": %s", w->header.nodes[row].key,
                        what);
}

static ms_err read_dtype(const weights *w, uint32_t row, extent *shape)
{
    uint32_t node = ms_json_find(&w->header, row, "dtype");
    shape->dtype = NULL;
    if (node == MS_NONE || w->header.nodes[node].kind != MS_JSON_STRING)
        return fail_entry(w, row, "no \"dtype\"");
    for (uint32_t i = 0; i < N_DTYPES; i++)
        if (strcmp(dtypes[i].name, w->header.nodes[node].value.s) == 0)
            shape->dtype = &dtypes[i];
    return shape->dtype != NULL ? MS_OK
                                : fail_entry(w, row, "unknown \"dtype\"");
}

/* Sizes, and whether the tensor has the bytes that they need. */
static ms_err read_shape(const weights *w, uint32_t row, extent *shape)
{
    const ms_json *json = &w->header;
    uint32_t list = ms_json_find(json, row, "shape");
    uint64_t bits = shape->dtype->bits;
    shape->n = 0;
    if (list == MS_NONE || json->nodes[list].kind != MS_JSON_ARRAY)
        return fail_entry(w, row, "no \"shape\"");
    for (uint32_t i = ms_json_first(json, list); i != MS_NONE;
         i = json->nodes[i].next) {
        if (json->nodes[i].kind != MS_JSON_INT || json->nodes[i].value.i < 0 ||
            shape->n == MOST_DIMS)
            return fail_entry(w, row, "\"shape\" must hold up to 8 sizes");
        shape->size[shape->n++] = json->nodes[i].value.i;
        if (__builtin_mul_overflow(bits, (uint64_t)json->nodes[i].value.i,
                                   &bits))
            return fail_entry(w, row, "its size is beyond 2^64 bits");
    }
    uint32_t at = ms_json_find(json, row, "data_offsets");
    if (at == MS_NONE || json->nodes[at].kind != MS_JSON_ARRAY ||
        json->nodes[at].value.n != 2 ||
        json->nodes[at + 1].kind != MS_JSON_INT ||
        json->nodes[at + 2].kind != MS_JSON_INT)
        return fail_entry(w, row, "no \"data_offsets\"");
    int64_t begin = json->nodes[at + 1].value.i,
            end = json->nodes[at + 2].value.i;
    if (begin < 0 || end < begin || (uint64_t)(end - begin) != (bits + 7) / 8)
        return fail_entry(w, row,
                          "\"data_offsets\" contradicts \"shape\" and "
                          "\"dtype\"");
    return MS_OK;
}

static void put_sizes(const int64_t *size, uint32_t n, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (uint32_t i = 0; i < n && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", size[i]);
    if (used < room)
        snprintf(text + used, room - used, "]");
}

static ms_err fail_shape(const weights *w, const char *name,
                         const extent *shape, const int64_t *want,
                         const char *keys, uint32_t n)
{
    char have[128], need[128];
    put_sizes(shape->size, shape->n, have, sizeof have);
    put_sizes(want, n, need, sizeof need);
    return ms_fail(w->page->fault, MS_EINPUT, w->path,
                   "which of the two is right? the weights belong to another "
                   "config.json",
                   "\"%.100s\" is %s, but %s of config.json say %s", name, have,
                   keys, need);
}

/* Against a row of the page's "tensors"; what is null there is not known. */
static ms_err compare(const weights *w, const char *name, const extent *shape,
                      const ms_json *page, uint32_t row)
{
    const ms_names names = ms_page_names(w->page);
    int64_t want[MOST_DIMS];
    char keys[160] = "";
    uint32_t n = 0;
    size_t used = 0;
    bool same = true;
    for (uint32_t i = ms_json_first(page, row); i != MS_NONE && n < MOST_DIMS;
         i = page->nodes[i].next) {
        ms_known value;
        const char *text = page->nodes[i].value.s;
        MS_TRY(ms_expression_value(text, &names, &value));
        if (value.kind != MS_KIND_INT)
            return MS_OK;
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s\"%s\"",
                                 n > 0 ? ", " : "", text);
        same &= n < shape->n && shape->size[n] == value.is.i;
        want[n++] = value.is.i;
        if (used >= sizeof keys)
            used = sizeof keys - 1;
    }
    if (same && n == shape->n)
        return MS_OK;
    return fail_shape(w, name, shape, want, keys, n);
}

/* "model.layers.0.x" ends in "layers.0.x". */
static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0 &&
           (n == m || name[n - m - 1] == '.');
}

/* The number after "layers." in a name, or -1: the page's names of blocks are
 * those of its tensors that have "0". */
static int64_t block_of(const char *name, const char *pattern)
{
    const char *zero = strstr(pattern, "0.");
    if (zero == NULL || zero == pattern)
        return -1;
    size_t length = (size_t)(zero - pattern); /* "layers." */
    for (const char *at = name; (at = strchr(at, pattern[0])) != NULL; at++) {
        int64_t number = 0;
        if ((at != name && at[-1] != '.') || strncmp(at, pattern, length) != 0)
            continue;
        const char *digit = at + length;
        for (; *digit >= '0' && *digit <= '9' && number < INT32_MAX; digit++)
            number = number * 10 + (*digit - '0');
        if (digit != at + length && *digit == '.')
            return number;
    }
    return -1;
}

static ms_err check_tensor(const weights *w, uint32_t row, const ms_json *page,
                           uint32_t list)
{
    const char *name = w->header.nodes[row].key;
    extent shape;
    if (strcmp(name, "__metadata__") == 0)
        return MS_OK;
    if (w->header.nodes[row].kind != MS_JSON_OBJECT)
        return fail_entry(w, row, "must be an object");
    MS_TRY(read_dtype(w, row, &shape));
    MS_TRY(read_shape(w, row, &shape));
    for (uint32_t i = ms_json_first(page, list); i != MS_NONE;
         i = page->nodes[i].next) {
        int64_t block = block_of(name, page->nodes[i].key);
        if (block > *w->blocks)
            *w->blocks = block;
        if (!shape.dtype->packed && ends_in(name, page->nodes[i].key))
            MS_TRY(compare(w, name, &shape, page, i));
    }
    return MS_OK;
}

static ms_err check_file(weights *w, const ms_json *page, uint32_t list,
                         bool *there)
{
    MS_TRY(ms_folder_file(w->path, there, w->page->fault));
    if (!*there)
        return MS_OK;
    FILE *file = fopen(w->path, "rb");
    if (file == NULL)
        return ms_fail(w->page->fault, MS_ESYSTEM, w->path, NULL,
                       "cannot read: %s", strerror(errno));
    ms_err err = read_header(w, file);
    fclose(file);
    MS_TRY(err);
    if (w->header.nodes[0].kind != MS_JSON_OBJECT)
        return fail_file(w, "no safetensors: its header is no object");
    for (uint32_t i = ms_json_first(&w->header, 0); i != MS_NONE;
         i = w->header.nodes[i].next)
        MS_TRY(check_tensor(w, i, page, list));
    return MS_OK;
}

/* ---- several files ------------------------------------------------------- */

static ms_err check_index(weights *w, const char *folder, const ms_json *index,
                          const ms_json *page, uint32_t list, bool *all)
{
    uint32_t map = ms_json_find(index, 0, "weight_map");
    ms_index seen = {0};
    *all = true;
    if (map == MS_NONE || index->nodes[map].kind != MS_JSON_OBJECT)
        return ms_json_fail(index, 0, w->page->fault, NULL,
                            "no \"weight_map\"");
    MS_TRY(ms_index_make(&seen, index->nodes[map].value.n, w->page->arena,
                         w->page->fault));
    for (uint32_t i = ms_json_first(index, map); i != MS_NONE;
         i = index->nodes[i].next) {
        const char *name = index->nodes[i].value.s;
        bool there;
        if (index->nodes[i].kind != MS_JSON_STRING || strchr(name, '/') != NULL)
            return ms_json_fail(index, i, w->page->fault, NULL,
                                "\"weight_map\" must name files beside it");
        if (ms_index_add(&seen, name, i) != i)
            continue;
        w->path = ms_arena_format(w->page->arena, "%s%s", folder, name);
        if (w->path == NULL)
            return ms_fail_nomem(w->page->fault);
        MS_TRY(check_file(w, page, list, &there));
        *all &= there;
    }
    return MS_OK;
}

static ms_err read_index(weights *w, const char *folder, const ms_json *page,
                         uint32_t list, bool *all)
{
    char *bytes;
    size_t length;
    ms_json index;
    ms_arena *arena = w->page->arena;
    const char *path =
        ms_arena_format(arena, "%smodel.safetensors.index.json", folder);
    bool there;
    *all = false;
    if (path == NULL)
        return ms_fail_nomem(w->page->fault);
    MS_TRY(ms_folder_file(path, &there, w->page->fault));
    if (!there)
        return MS_OK;
    w->path = path;
    MS_TRY(ms_files_read(path, INDEX_BYTES, arena, &bytes, &length,
                         w->page->fault));
    MS_TRY(ms_json_read(path, bytes, length, arena, &index, w->page->fault));
    if (index.nodes[0].kind != MS_JSON_OBJECT)
        return ms_json_fail(&index, 0, w->page->fault, NULL,
                            "an index must be an object");
    return check_index(w, folder, &index, page, list, all);
}

/* ---- the whole ----------------------------------------------------------- */

/* The number of blocks, where every file was there. */
static ms_err check_depth(const weights *w)
{
    const ms_names names = ms_page_names(w->page);
    const ms_json *json;
    uint32_t row = ms_page_entry(w->page, "depth", &json);
    ms_known depth;
    if (row == MS_NONE || *w->blocks < 0)
        return MS_OK;
    MS_TRY(ms_expression_value(json->nodes[row].value.s, &names, &depth));
    if (depth.kind != MS_KIND_INT || *w->blocks + 1 == depth.is.i)
        return MS_OK;
    return ms_fail(w->page->fault, MS_EINPUT, w->path,
                   "which of the two is right? the weights belong to another "
                   "config.json",
                   "weights of %" PRId64 " layers, but \"%s\" of config.json "
                   "says %" PRId64,
                   *w->blocks + 1, json->nodes[row].value.s, depth.is.i);
}

/* Has a setting changed the model?  Then it is not compared with the weights in
 * the folder. */
static bool is_changed(const ms_page *page)
{
    static const char *const harmless[] = {"head", "name", "mtp", "model_type",
                                           "page"};
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        for (uint32_t k = 0; k < page->n_overrides; k++)
            n += strcmp(page->overrides[k].key, harmless[i]) == 0;
    return n < page->n_overrides;
}

ms_err ms_safetensors_check(ms_page *page, const char *folder)
{
    const ms_json *json;
    uint32_t list = ms_page_entry(page, "tensors", &json);
    int64_t blocks = -1;
    bool there;
    const char *prefix =
        *folder == '\0' ? "" : ms_arena_format(page->arena, "%s/", folder);
    weights w = {.page = page, .blocks = &blocks};
    if (list == MS_NONE || is_changed(page))
        return MS_OK;
    w.path = prefix == NULL
                 ? NULL
                 : ms_arena_format(page->arena, "%smodel.safetensors", prefix);
    if (w.path == NULL)
        return ms_fail_nomem(page->fault);
    MS_TRY(check_file(&w, json, list, &there));
    if (!there)
        MS_TRY(read_index(&w, prefix, json, list, &there));
    return there ? check_depth(&w) : MS_OK;
}
