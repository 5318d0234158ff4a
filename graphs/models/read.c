/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/fields.h"
#include "graphs/json/json.h"
#include "graphs/layertypes.h"
#include "graphs/models/build.h"
#include "graphs/models/files/folder.h"
#include "graphs/models/files/inflate.h"
#include "graphs/models/files/namewords.h"
#include "graphs/models/files/reader.h"
#include "graphs/models/huggingface/huggingface.h"
#include "graphs/models/pages/familypage.h"
#include "graphs/opgraph/opgraph.h"
#include "sim/base/files.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FORMAT_VERSION 1
#define OUTLINE_BYTES ((size_t)1 << 20) /* from here on two passes pay */
#define HEAD_BYTES ((size_t)4 << 10)
#define OUTLINE_FOLD 2 /* an op graph's root, its lists, their rows */

/* ---- families ------------------------------------------------------------ */

static const char *const top_keys[] = {"memsim", "name",   "summary",
                                       "family", "like",   "config",
                                       "input",  "layers", "templates"};
#define N_TOP_KEYS (sizeof top_keys / sizeof *top_keys)

/* Leaves out overrides of "page": a page says what a family is, and is no
 * setting of it. */
static ms_err without_pages(const ms_reader *r, ms_reader *own)
{
    ms_override *kept =
        ms_arena_take_raw(r->arena, r->n_overrides + 1, sizeof *kept);
    *own = *r;
    own->overrides = kept;
    own->n_overrides = 0;
    if (kept == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = 0; i < r->n_overrides; i++)
        if (strcmp(r->overrides[i].key, "page") != 0)
            kept[own->n_overrides++] = r->overrides[i];
    return MS_OK;
}

/* Reads the defaults, then the config object, then --set: the later one wins.
 */
static ms_err read_config(const ms_reader *r, const ms_family *family,
                          uint32_t config, ms_value *values)
{
    static const char *const also[] = {"name"};
    const ms_fields keys = {.rows = family->fields,
                            .n = family->n_fields,
                            .extra = family->flat ? top_keys : NULL,
                            .n_extra = family->flat ? N_TOP_KEYS : 0,
                            .owner = family->flat ? "the model" : "\"config\""};
    const ms_fields settings = {
        .rows = keys.rows, .n = keys.n, .extra = also, .n_extra = 1};
    ms_fields_values out = {.values = values};
    ms_reader own;
    for (uint32_t i = 0; i < keys.n; i++)
        values[i] = keys.rows[i].fallback;
    MS_TRY(ms_fields_read_object(&r->json, config, &keys, r->arena, &out,
                                 r->fault));
    MS_TRY(ms_builtins_config(r, &keys, &out));
    MS_TRY(without_pages(r, &own));
    MS_TRY(ms_overrides_apply(&own, &settings, &out));
    return ms_fields_require(&r->json, config, &keys, out.given, r->fault);
}

/* A fault in layers that a page wrote has no line, because the user did not
 * write them. */
static ms_err fail_written(const ms_reader *r, ms_err err,
                           const ms_fault *inner)
{
    return ms_fail(r->fault, err, err == MS_EINPUT ? r->model->path : NULL,
                   inner->hint, "as layers: %s", inner->what);
}

static void forget_spots(ms_model *model)
{
    for (uint32_t i = 0; i < model->n_layers; i++)
        model->layers[i].spot = (ms_spot){0};
}

/* Builds the layers of the family's page with these values. */
static ms_err build_family(const ms_reader *r, ms_page *page)
{
    ms_text text = {.arena = r->arena};
    ms_fault inner = {0};
    ms_model *model = r->model;
    ms_reader native = {.arena = r->arena, .model = model, .fault = &inner};
    uint64_t longest;
    MS_TRY(ms_familypage_write(page, &text, &longest));
    ms_err err = ms_json_read(model->path, text.bytes, text.length, r->arena,
                              &native.json, &inner);
    if (err == MS_OK)
        err = ms_listfile_written(&native);
    if (err != MS_OK)
        return fail_written(r, err, &inner);
    if (longest > 0)
        model->max_sequence = longest;
    forget_spots(model);
    return MS_OK;
}

static ms_err read_family(const ms_reader *r, const ms_family *family,
                          ms_page *page)
{
    ms_value values[MS_FIELDS_MAX];
    uint32_t config = family->flat ? 0 : ms_json_find(&r->json, 0, "config");
    if (config == MS_NONE)
        return ms_json_fail(&r->json, 0, r->fault, "see memsim help models",
                            "family \"%s\" needs the key \"config\"",
                            family->name);
    if (r->json.nodes[config].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, config, r->fault, NULL,
                            "\"config\" must be an object, not %s",
                            ms_json_kind_name(&r->json, config));
    MS_TRY(read_config(r, family, config, values));
    r->model->family = family->name;
    page->values = values;
    page->config_row = config;
    page->config = ms_builtins_place(r, &page->config_row);
    return build_family(r, page);
}

/* Opens the family that a model names. */
static ms_err open_family(const ms_reader *r, uint32_t node, ms_page *page,
                          ms_family *family)
{
    ms_known name;
    *page = (ms_page){.overrides = r->overrides,
                      .n_overrides = r->n_overrides,
                      .arena = r->arena,
                      .fault = r->fault};
    if (r->json.nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(&r->json, node, r->fault, NULL,
                            "\"family\" must be a string, not %s",
                            ms_json_kind_name(&r->json, node));
    ms_known_node(&r->json, node, &name);
    return ms_familypage_open(page, &name, family);
}

/* ---- the file ------------------------------------------------------------ */

static ms_err check_version(const ms_reader *r)
{
    static const char hint[] = "see memsim help files";
    if (r->json.nodes[0].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, 0, r->fault, hint,
                            "a model must be an object, not %s",
                            ms_json_kind_name(&r->json, 0));
    uint32_t node = ms_json_find(&r->json, 0, "memsim");
    if (node == MS_NONE) /* absent: version 1, the only one so far */
        return MS_OK;
    if (r->json.nodes[node].kind != MS_JSON_INT ||
        r->json.nodes[node].value.i != FORMAT_VERSION)
        return ms_json_fail(&r->json, node, r->fault,
                            "this memsim reads version 1",
                            "unknown format version");
    return MS_OK;
}

static ms_err check_text(const ms_reader *r, uint32_t node)
{
    if (node == MS_NONE)
        return MS_OK;
    if (r->json.nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(
            &r->json, node, r->fault, NULL, "\"%s\" must be a string, not %s",
            r->json.nodes[node].key, ms_json_kind_name(&r->json, node));
    const char *text = r->json.nodes[node].value.s;
    if (strlen(text) > MS_MAX_NAME)
        return ms_json_fail(&r->json, node, r->fault, NULL,
                            "\"%s\" has more than %u bytes",
                            r->json.nodes[node].key, MS_MAX_NAME);
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return ms_json_fail(&r->json, node, r->fault, NULL,
                                "a control character in \"%s\"",
                                r->json.nodes[node].key);
    return MS_OK;
}

/* The name of "dir/gpt3.json", without its folder and endings. */
static const char *base_name(const char *path, ms_arena *arena)
{
    static const char *const endings[] = {".gz", ".json", ".log"};
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t length = strlen(base);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (length > n && memcmp(base + length - n, endings[i], n) == 0)
            length -= n;
    }
    return ms_arena_text(arena, base, length);
}

static ms_err read_name(const ms_reader *r)
{
    uint32_t node = ms_json_find(&r->json, 0, "name");
    MS_TRY(check_text(r, node));
    MS_TRY(check_text(r, ms_json_find(&r->json, 0, "summary")));
    r->model->name = node == MS_NONE ? base_name(r->model->path, r->arena)
                                     : r->json.nodes[node].value.s;
    return r->model->name == NULL ? ms_fail_nomem(r->fault) : MS_OK;
}

/* The fault of a key that belongs to the other form of a file. */
static ms_err refuse(const ms_reader *r, const char *key, const char *beside)
{
    uint32_t node = ms_json_find(&r->json, 0, key);
    if (node == MS_NONE)
        return MS_OK;
    return ms_json_fail_key(&r->json, node, r->fault, "keep one of the two",
                            "\"%s\" beside \"%s\"", key, beside);
}

static ms_err read_native(ms_reader *r);

/* Reads a model that is like another, with other numbers.  Its layers stand in
 * no file of the user's. */
static ms_err read_like(const ms_reader *r, uint32_t like)
{
    static const char *const others[] = {"family", "input", "layers",
                                         "templates"};
    const ms_fields keys = {
        .extra = top_keys, .n_extra = N_TOP_KEYS, .owner = "the model"};
    const ms_likeness likeness = {.json = &r->json,
                                  .config = ms_json_find(&r->json, 0, "config"),
                                  .outer = r->likeness};
    ms_fields_values none = {0};
    ms_reader base = *r;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        MS_TRY(refuse(r, others[i], "like"));
    MS_TRY(
        ms_fields_read_object(&r->json, 0, &keys, r->arena, &none, r->fault));
    if (likeness.config != MS_NONE &&
        r->json.nodes[likeness.config].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, likeness.config, r->fault, NULL,
                            "\"config\" must be an object, not %s",
                            ms_json_kind_name(&r->json, likeness.config));
    base.likeness = &likeness;
    MS_TRY(ms_builtins_open(r, like, &base.json));
    MS_TRY(read_native(&base));
    forget_spots(r->model);
    return MS_OK;
}

/* Reads the form that the file has: a family, a layer list, or a model like
 * another. */
static ms_err read_body(const ms_reader *r)
{
    const ms_fields keys = {
        .extra = top_keys, .n_extra = N_TOP_KEYS, .owner = "the model"};
    ms_fields_values none = {0};
    uint32_t family = ms_json_find(&r->json, 0, "family");
    uint32_t layers = ms_json_find(&r->json, 0, "layers");
    uint32_t like = ms_json_find(&r->json, 0, "like");
    if (like != MS_NONE)
        return read_like(r, like);
    if (family != MS_NONE && ms_chainfile_is(r, family))
        return ms_chainfile_read(r);
    if (family != MS_NONE && ms_dagfile_is(r, family))
        return ms_dagfile_read(r);
    if (family != MS_NONE) {
        ms_page page;
        ms_family row;
        MS_TRY(refuse(r, "input", "family"));
        MS_TRY(refuse(r, "layers", "family"));
        MS_TRY(refuse(r, "templates", "family"));
        MS_TRY(open_family(r, family, &page, &row));
        if (row.flat)
            MS_TRY(refuse(r, "config", "family"));
        else
            MS_TRY(ms_fields_read_object(&r->json, 0, &keys, r->arena, &none,
                                         r->fault));
        return read_family(r, &row, &page);
    }
    MS_TRY(
        ms_fields_read_object(&r->json, 0, &keys, r->arena, &none, r->fault));
    if (layers == MS_NONE)
        return ms_json_fail(&r->json, 0, r->fault, "see memsim help models",
                            "a model needs \"family\" and \"config\", "
                            "\"input\" and \"layers\", or \"like\"");
    return ms_listfile_read(r, layers);
}

/* Does the layer encode positions by rotation? */
static bool rotates(ms_layer *layer)
{
    const char *type = layer->kind->type;
    if (strcmp(type, "attention") == 0)
        return ms_build_field(layer, "rotary")->b;
    return strcmp(type, "latent_attention") == 0 || strcmp(type, "rotary") == 0;
}

/* Finds the longest sequence for which the model has positions. */
static void find_max_sequence(ms_model *model)
{
    uint32_t embedding = ms_layer_find("embedding");
    bool learned = false;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        ms_layer *layer = &model->layers[i];
        model->rotary |= rotates(layer);
        if (layer->kind != &ms_layer_kinds[embedding] ||
            ms_build_field(layer, "ids")->i != MS_IDS_POSITIONS)
            continue;
        uint64_t rows = (uint64_t)ms_build_field(layer, "vocab")->i;
        learned = true;
        if (model->max_sequence == 0 || rows < model->max_sequence)
            model->max_sequence = rows;
    }
    model->rotary &= !learned;
}

/* ---- op graphs ----------------------------------------------------------- */

static bool is_op_graph(const ms_reader *r)
{
    return r->json.nodes[0].kind == MS_JSON_OBJECT &&
           ms_json_find(&r->json, 0, "format") != MS_NONE;
}

static ms_err read_op_graph(const ms_reader *r)
{
    ms_opgraph *ops = ms_arena_take(r->arena, 1, sizeof *ops);
    if (ops == NULL)
        return ms_fail_nomem(r->fault);
    if (r->n_overrides > 0)
        return ms_fail(r->fault, MS_EUSAGE, r->overrides[0].key,
                       "export the model again with other sizes",
                       "an op graph has no settings \"model.*\"");
    MS_TRY(read_name(r));
    MS_TRY(ms_opgraph_read(&r->json, r->arena, ops, r->fault));
    r->model->ops = ops;
    r->model->fixed_batch = ops->batch > 0 ? ops->batch : 1;
    return MS_OK;
}

/* ---- configurations of Hugging Face -------------------------------------- */

/* A configuration of Hugging Face becomes a native text, which is read as any
 * other.  It is the source of the model from then on, but no fault points into
 * it. */
static ms_err read_hugging_face(ms_reader *r)
{
    ms_huggingface_model made;
    ms_fault inner = {0};
    ms_model *model = r->model;
    ms_reader native = {.arena = r->arena, .model = model, .fault = &inner};
    const char *name = base_name(
        r->folder == NULL || *r->folder == '\0' ? model->path : r->folder,
        r->arena);
    if (name == NULL)
        return ms_fail_nomem(r->fault);
    MS_TRY(ms_huggingface_write(&r->json, name, r->folder, r->overrides,
                                r->n_overrides, r->arena, &made, r->fault));
    model->source = made.text.bytes;
    model->source_length = made.text.length;
    ms_err err = ms_json_read(model->path, model->source, model->source_length,
                              r->arena, &native.json, &inner);
    if (err == MS_OK)
        err = read_native(&native);
    if (err != MS_OK)
        return fail_written(r, err, &inner);
    forget_spots(model);
    model->family = made.type;
    model->refusal = made.refusal;
    model->assumed = made.assumed;
    return MS_OK;
}

static ms_err read_native(ms_reader *r)
{
    MS_TRY(check_version(r));
    if (r->likeness == NULL)
        MS_TRY(read_name(r));
    MS_TRY(ms_huggingface_mixed(&r->json, r->fault));
    MS_TRY(read_body(r));
    find_max_sequence(r->model);
    return MS_OK;
}

/* Is it worth reading as an outline: long, and an op graph by its beginning?
 * One that says so later takes more memory, that is all. */
static bool may_be_op_graph(const char *bytes, size_t length)
{
    static const char key[] = "\"format\"";
    const char *end = bytes + (length < HEAD_BYTES ? length : HEAD_BYTES);
    if (length < OUTLINE_BYTES)
        return false;
    for (const char *at = bytes; at + sizeof key <= end; at++) {
        at = memchr(at, '"', (size_t)(end - at) - sizeof key + 1);
        if (at == NULL || memcmp(at, key, sizeof key - 1) == 0)
            return at != NULL;
    }
    return false;
}

/* Its outline alone becomes rows, and they go as soon as it is read. */
static ms_err read_long(const ms_reader *r, bool *is_one)
{
    ms_arena scratch = {.limit_bytes = r->arena->limit_bytes};
    ms_reader own = *r;
    ms_model *model = r->model;
    ms_err err =
        ms_json_outline(model->path, model->source, model->source_length,
                        OUTLINE_FOLD, &scratch, &own.json, r->fault);
    *is_one = err == MS_OK && is_op_graph(&own);
    if (*is_one)
        err = read_op_graph(&own);
    if (*is_one && err == MS_OK) {
        model->name = ms_arena_text(r->arena, model->name, strlen(model->name));
        err = model->name == NULL ? ms_fail_nomem(r->fault) : MS_OK;
    }
    ms_arena_free(&scratch);
    return err;
}

static ms_err read_form(ms_reader *r)
{
    if (is_op_graph(r))
        return read_op_graph(r);
    if (ms_huggingface_is(&r->json))
        return read_hugging_face(r);
    return read_native(r);
}

static ms_err read_any(ms_reader *r, const char *name, const char *bytes,
                       size_t length)
{
    bool is_one = false;
    char *whole = (char *)(uintptr_t)bytes;
    if (ms_inflate_is_packed(bytes, length))
        MS_TRY(ms_inflate_bytes(name, MS_JSON_MAX_BYTES, r->arena, &whole,
                                &length, r->fault));
    bytes = whole;
    ms_arena rows = {.limit_bytes = r->arena->limit_bytes};
    *r->model =
        (ms_model){.path = name, .source = bytes, .source_length = length};
    if (ms_dtrlog_is(bytes, length)) {
        r->model->name = base_name(name, r->arena);
        return r->model->name != NULL ? ms_dtrlog_read(r)
                                      : ms_fail_nomem(r->fault);
    }
    if (may_be_op_graph(bytes, length))
        MS_TRY(read_long(r, &is_one));
    if (is_one)
        return MS_OK;
    ms_err err = ms_json_read_apart(name, bytes, length, &rows, r->arena,
                                    &r->json, r->fault);
    if (err == MS_OK)
        err = read_form(r);
    ms_arena_free(&rows);
    return err;
}

ms_err ms_read_model_bytes(const char *name, const char *bytes, size_t length,
                           const ms_override *overrides, uint32_t n_overrides,
                           ms_arena *arena, ms_model *model, ms_fault *fault)
{
    ms_reader r = {.overrides = overrides,
                   .n_overrides = n_overrides,
                   .arena = arena,
                   .model = model,
                   .fault = fault};
    return read_any(&r, name, bytes, length);
}

/* ---- finding the model --------------------------------------------------- */

static ms_err read_builtin(ms_reader *r, const char *path)
{
    char hint[384];
    const ms_builtin *builtin = ms_builtins_find(path);
    if (builtin == NULL)
        builtin = ms_namewords_model(path, hint, sizeof hint);
    if (builtin == NULL)
        return ms_fail(r->fault, MS_EINPUT, path, hint,
                       "neither a file here nor a built-in model");
    const char *name = ms_arena_format(r->arena, "%s.json", builtin->name);
    if (name == NULL)
        return ms_fail_nomem(r->fault);
    return read_any(r, name, builtin->text, strlen(builtin->text));
}

/* A file of the user's goes before a built-in model of the same name; a path
 * with a slash can only be a file. */
ms_err ms_read_model(const char *path, const ms_override *overrides,
                     uint32_t n_overrides, ms_arena *arena, ms_model *model,
                     ms_fault *fault)
{
    char *bytes;
    size_t length;
    bool input = strcmp(path, "-") == 0, here = input;
    ms_reader r = {.overrides = overrides,
                   .n_overrides = n_overrides,
                   .arena = arena,
                   .model = model,
                   .fault = fault};
    if (!input) {
        bool may_be_ours = ms_builtins_find(path) != NULL;
        MS_TRY(
            ms_folder_find(&path, may_be_ours, &r.folder, &here, arena, fault));
        if (!here && strchr(path, '/') == NULL)
            return read_builtin(&r, path);
    }
    ms_err err =
        ms_files_read(path, MS_JSON_MAX_BYTES, arena, &bytes, &length, fault);
    if (err != MS_OK && !input && !here && fault != NULL)
        ms_namewords_id(path, fault->hint, sizeof fault->hint);
    MS_TRY(err);
    return read_any(&r, input ? "standard input" : path, bytes, length);
}

/* The arena has no such block where a built-in model's text is in the program.
 */
void ms_read_forget_source(ms_model *model, ms_arena *arena)
{
    ms_arena_drop(arena, (void *)(uintptr_t)model->source);
    model->source = "";
    model->source_length = 0;
}

/* ---- errors at a layer --------------------------------------------------- */

/* Returns the offset of a spot in the source of the model. */
static size_t offset_of(const ms_model *model, ms_spot spot)
{
    const char *c = model->source;
    const char *end = c + model->source_length;
    for (uint32_t line = 1; line < spot.line; line++) {
        const char *next = memchr(c, '\n', (size_t)(end - c));
        if (next == NULL)
            return model->source_length;
        c = next + 1;
    }
    for (uint32_t column = 1; column < spot.column && c < end; column++)
        for (c++; c < end && ((unsigned char)*c & 0xC0) == 0x80;)
            c++;
    return (size_t)(c - model->source);
}

ms_err ms_read_fail(const ms_model *model, const ms_layer *layer,
                    ms_fault *fault, const char *hint, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (layer == NULL || layer->spot.line == 0)
        return ms_fail(fault, MS_EINPUT, model->path, hint, "%s", what);
    ms_quote at = {model->path, model->source, model->source_length,
                   offset_of(model, layer->spot)};
    return ms_fail_at(fault, MS_EINPUT, &at, hint, "%s", what);
}
