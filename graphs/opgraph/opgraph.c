/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opgraph.h"
#include "graphs/formats/dtypes.h"
#include "graphs/layertypes.h"
#include "graphs/opgraph/opmerge.h"

#include "graphs/json/index.h"
#include "graphs/json/spelling.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define IDS_AT_ONCE 1024u

typedef struct reader {
    const ms_json *json;    /* at work: the outline, or the part */
    const ms_json *outline; /* rows of lists may be folded */
    ms_json part;           /* one of them, in scratch */
    ms_arena *arena;
    ms_arena scratch, temporary; /* temporary: until all is read */
    ms_opgraph *ops;
    ms_fault *fault;
    ms_index modules;
    ms_spelling names; /* of ops and modules, each once */
    ms_opcopies copies;
    uint32_t *ids, n_ids; /* room for lists of ids */
    const char *thing;    /* at work, for faults: "node" 7, of JSON row */
    uint32_t number, row;
    uint8_t *seen;  /* per tensor: made or read by an earlier node */
    uint32_t *made; /* per storage: the node that made it, or MS_NONE */
} reader;

/* ---- pieces -------------------------------------------------------------- */

/* A row of the outline. */
static void begin(reader *r, const char *thing, uint32_t number, uint32_t row)
{
    r->json = r->outline;
    r->thing = thing;
    r->number = number;
    r->row = row;
}

/* A row of a list of the outline, which from here on is one of the part. */
static ms_err enter(reader *r, const char *thing, uint32_t number,
                    uint32_t *row)
{
    begin(r, thing, number, *row);
    ms_arena_reset(&r->scratch);
    MS_TRY(ms_json_unfold(r->outline, row, &r->scratch, &r->part, r->fault));
    r->json = &r->part;
    r->row = *row;
    return MS_OK;
}

/* row MS_NONE: at the thing as a whole. */
static ms_err wrong(const reader *r, uint32_t row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static ms_err wrong(const reader *r, uint32_t row, const char *format, ...)
{
    static const char hint[] = "the format is described in memsim help files";
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (row == MS_NONE)
        row = r->row;
    if (!r->thing)
        return ms_json_fail(r->json, row, r->fault, hint, "%s", what);
    return ms_json_fail(r->json, row, r->fault, hint, "%s %u: %s", r->thing,
                        r->number, what);
}

static uint32_t children(const reader *r, uint32_t row)
{
    return r->json->nodes[row].value.n;
}

static bool is_array(const reader *r, uint32_t row)
{
    return row != MS_NONE && r->json->nodes[row].kind == MS_JSON_ARRAY;
}

static ms_err wrong_int(const reader *r, uint32_t row, int64_t low,
                        int64_t high, const char *noun)
{
    if (row == MS_NONE)
        return wrong(r, row, "%s is missing", noun);
    if (high < low)
        return wrong(r, row, "%s is out of range: there are none", noun);
    if (high == low)
        return wrong(r, row, "%s must be %" PRId64, noun, low);
    return wrong(r, row, "%s must be an integer from %" PRId64 " to %" PRId64,
                 noun, low, high);
}

/* The next value of a fixed-place array, moving *row along. */
static ms_err next_int(const reader *r, uint32_t *row, int64_t low,
                       int64_t high, const char *noun, int64_t *value)
{
    uint32_t at = *row;
    if (at == MS_NONE || r->json->nodes[at].kind != MS_JSON_INT ||
        r->json->nodes[at].value.i < low || r->json->nodes[at].value.i > high)
        return wrong_int(r, at, low, high, noun);
    *value = r->json->nodes[at].value.i;
    *row = r->json->nodes[at].next;
    return MS_OK;
}

/* The same by a field's bounds; its help is the noun. */
static ms_err next_field(const reader *r, uint32_t *row, const ms_field *field,
                         int64_t *value)
{
    return next_int(r, row, field->low, field->high, field->help, value);
}

static ms_err next_text(const reader *r, uint32_t *row, const char *noun,
                        const char **value)
{
    uint32_t at = *row;
    if (at == MS_NONE)
        return wrong(r, at, "%s is missing", noun);
    if (r->json->nodes[at].kind != MS_JSON_STRING)
        return wrong(r, at, "%s must be a string", noun);
    *value = r->json->nodes[at].value.s;
    if (strlen(*value) > MS_MAX_NAME)
        return wrong(r, at, "%s has more than %u bytes", noun, MS_MAX_NAME);
    for (const char *c = *value; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            return wrong(r, at, "%s has a control character in it", noun);
    *row = r->json->nodes[at].next;
    return MS_OK;
}

static ms_err required(const reader *r, uint32_t object, const char *key,
                       uint32_t *row)
{
    *row = ms_json_find(r->json, object, key);
    if (*row != MS_NONE)
        return MS_OK;
    return ms_json_fail(r->json, object, r->fault,
                        "export the graph again, whole",
                        "the key \"%s\" is missing", key);
}

static ms_err take_from(const reader *r, ms_arena *arena, void *items,
                        uint64_t n, size_t size)
{
    void *taken = ms_arena_take(arena, (size_t)n, size);
    if (!taken)
        return ms_fail_nomem(r->fault);
    memcpy(items, &taken, sizeof taken);
    return MS_OK;
}

static ms_err take(const reader *r, void *items, uint64_t n, size_t size)
{
    return take_from(r, r->arena, items, n, size);
}

/* The same text, kept. */
static ms_err keep_name(reader *r, const char **name)
{
    *name = ms_spelling_of_key(
        &r->names,
        &(ms_scan_text){(const unsigned char *)*name, strlen(*name), false});
    return *name == NULL ? ms_fail_nomem(r->fault) : MS_OK;
}

/* ---- storages and tensors ------------------------------------------------ */

enum { STORAGE_ID, STORAGE_BYTES, STORAGE_KIND, STORAGE_NAME };

static ms_err storage_kind(const reader *r, uint32_t row, const char *word,
                           uint8_t *kind)
{
    uint32_t place =
        ms_opfields_place(ms_opfields_storage[STORAGE_KIND].words, word);
    if (place == MS_NONE)
        return wrong(r, row,
                     "\"%s\" is no kind of storage: act, param, buffer or "
                     "input",
                     word);
    *kind = (uint8_t)place;
    return MS_OK;
}

/* [sid, bytes, kind, name]: sids count from 0. */
static ms_err read_storage(const reader *r, uint32_t row, uint32_t id)
{
    ms_opstorage *storage = &r->ops->storages[id];
    int64_t sid, bytes = 0;
    const char *word = "", *name = "";
    if (!is_array(r, row) || children(r, row) > MS_OPFIELDS_STORAGE)
        return wrong(r, row, "a storage is [id, bytes, kind, name]");
    uint32_t item = ms_json_first(r->json, row);
    MS_TRY(next_int(r, &item, id, id, "the id (they count from 0)", &sid));
    MS_TRY(next_field(r, &item, &ms_opfields_storage[STORAGE_BYTES], &bytes));
    storage->bytes = (uint64_t)bytes;
    uint32_t at = item;
    MS_TRY(next_text(r, &item, "the kind", &word));
    MS_TRY(storage_kind(r, at, word, &storage->kind));
    MS_TRY(next_text(r, &item, "the name", &name));
    storage->name =
        *name == '\0' ? "" : ms_arena_text(r->arena, name, strlen(name));
    return storage->name == NULL ? ms_fail_nomem(r->fault) : MS_OK;
}

static ms_err read_storages(reader *r, uint32_t list)
{
    ms_opgraph *ops = r->ops;
    if (!is_array(r, list))
        return wrong(r, list, "\"storages\" must be a list");
    ops->n_storages = children(r, list);
    MS_TRY(take(r, &ops->storages, ops->n_storages, sizeof *ops->storages));
    uint32_t id = 0;
    for (uint32_t row = ms_json_first(r->outline, list); row != MS_NONE;
         row = r->outline->nodes[row].next, id++) {
        uint32_t at = row;
        MS_TRY(enter(r, "storage", id, &at));
        MS_TRY(read_storage(r, at, id));
    }
    return MS_OK;
}

enum { TENSOR_SHAPE = 2, TENSOR_DTYPE, TENSOR_STRIDES, TENSOR_OFFSET };

static ms_err dtype_of(const reader *r, uint32_t row, const char *word,
                       uint8_t *dtype)
{
    /* In the order of the words. */
    static const uint8_t dtypes[] = {MS_FLOAT32, MS_FLOAT16, MS_BFLOAT16,
                                     MS_FLOAT64, MS_INT64,   MS_INT32,
                                     MS_BYTE,    MS_BYTE};
    uint32_t place =
        ms_opfields_place(ms_opfields_tensor[TENSOR_DTYPE].words, word);
    if (place >= sizeof dtypes)
        return wrong(r, row, "unknown dtype \"%s\"", word);
    *dtype = dtypes[place];
    return MS_OK;
}

static ms_err read_dims(const reader *r, uint32_t list, uint32_t field,
                        int64_t *dims, uint8_t *n)
{
    const ms_field *sizes = &ms_opfields_tensor[field];
    if (!is_array(r, list) || children(r, list) > MS_MAX_DIMS)
        return wrong(r, list, "a list of at most %u was expected, each %s",
                     MS_MAX_DIMS, sizes->help);
    uint32_t item = ms_json_first(r->json, list);
    *n = (uint8_t)children(r, list);
    for (uint32_t d = 0; d < *n; d++)
        MS_TRY(next_field(r, &item, sizes, &dims[d]));
    return MS_OK;
}

/* Expanded tensors have more elements than their storage. */
static ms_err check_elements(const reader *r, uint32_t row,
                             const ms_optensor *tensor)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        if (__builtin_mul_overflow(n, (uint64_t)tensor->size[d], &n) ||
            n > UINT64_C(1) << 58)
            return wrong(r, row, "it has more than 2^58 elements");
    return MS_OK;
}

/* The last element a tensor can reach must lie in its storage. */
static ms_err check_extent(const reader *r, uint32_t row,
                           const ms_optensor *tensor, int64_t offset)
{
    int64_t last = offset;
    for (uint32_t d = 0; d < tensor->n_dims; d++) {
        int64_t step;
        if (tensor->size[d] == 0)
            return MS_OK;
        if (__builtin_mul_overflow(tensor->size[d] - 1, tensor->stride[d],
                                   &step) ||
            __builtin_add_overflow(last, step, &last))
            return wrong(r, row, "its strides overflow");
    }
    uint64_t bytes = r->ops->storages[tensor->storage].bytes;
    uint64_t room = bytes / ms_dtypes_bytes[tensor->dtype];
    if ((uint64_t)last >= room)
        return wrong(r, row,
                     "it reaches element %" PRId64 "; storage %u (%" PRIu64
                     " bytes) has room for %" PRIu64,
                     last, tensor->storage, bytes, room);
    return MS_OK;
}

static ms_err set_layout(reader *r, ms_optensor *tensor,
                         const ms_oplayout *layout)
{
    const ms_oplayout *kept =
        ms_opcopies_of(&r->copies, layout, sizeof *layout);
    if (kept == NULL)
        return ms_fail_nomem(r->fault);
    tensor->size = kept->size;
    tensor->stride = kept->stride;
    return MS_OK;
}

/* [tid, sid, shape, dtype, strides, offset] */
static ms_err read_tensor(reader *r, uint32_t row, uint32_t id)
{
    ms_oplayout layout = {0};
    ms_optensor *tensor = &r->ops->tensors[id];
    int64_t tid, sid = 0, offset = 0;
    uint8_t n_strides = 0;
    const char *word = "";
    if (!is_array(r, row) || children(r, row) > MS_OPFIELDS_TENSOR)
        return wrong(r, row,
                     "a tensor is [id, storage, shape, dtype, strides, "
                     "offset]");
    uint32_t item = ms_json_first(r->json, row);
    MS_TRY(next_int(r, &item, id, id, "the id (they count from 0)", &tid));
    MS_TRY(next_int(r, &item, 0, (int64_t)r->ops->n_storages - 1,
                    "the id of its storage", &sid));
    tensor->storage = (uint32_t)sid;
    MS_TRY(read_dims(r, item, TENSOR_SHAPE, layout.size, &tensor->n_dims));
    item = r->json->nodes[item].next;
    uint32_t at = item;
    MS_TRY(next_text(r, &item, "the dtype", &word));
    MS_TRY(dtype_of(r, at, word, &tensor->dtype));
    MS_TRY(read_dims(r, item, TENSOR_STRIDES, layout.stride, &n_strides));
    if (n_strides != tensor->n_dims)
        return wrong(r, item, "it has %u sizes, but %u strides", tensor->n_dims,
                     n_strides);
    item = r->json->nodes[item].next;
    MS_TRY(next_field(r, &item, &ms_opfields_tensor[TENSOR_OFFSET], &offset));
    MS_TRY(set_layout(r, tensor, &layout));
    MS_TRY(check_elements(r, row, tensor));
    return check_extent(r, row, tensor, offset);
}

static ms_err read_tensors(reader *r, uint32_t list)
{
    ms_opgraph *ops = r->ops;
    uint32_t id = 0;
    begin(r, NULL, 0, list);
    if (!is_array(r, list))
        return wrong(r, list, "\"tensors\" must be a list");
    ops->n_tensors = children(r, list);
    MS_TRY(take(r, &ops->tensors, ops->n_tensors, sizeof *ops->tensors));
    for (uint32_t row = ms_json_first(r->outline, list); row != MS_NONE;
         row = r->outline->nodes[row].next, id++) {
        uint32_t at = row;
        MS_TRY(enter(r, "tensor", id, &at));
        MS_TRY(read_tensor(r, at, id));
    }
    return MS_OK;
}

/* ---- nodes --------------------------------------------------------------- */

/* Most lists have an id or two: they lie one behind the other. */
static ms_err take_ids(reader *r, uint32_t n, uint32_t **ids)
{
    if (r->ids == NULL || n > r->n_ids) {
        r->n_ids = n > IDS_AT_ONCE ? n : IDS_AT_ONCE;
        MS_TRY(take(r, &r->ids, r->n_ids, sizeof *r->ids));
    }
    *ids = r->ids;
    r->ids += n;
    r->n_ids -= n;
    return MS_OK;
}

static ms_err read_ids(reader *r, uint32_t list, uint32_t *n,
                       const uint32_t **ids)
{
    uint32_t *taken = NULL;
    if (!is_array(r, list))
        return wrong(r, list,
                     "\"in\" and \"out\" are needed, and like \"ends\" "
                     "they are lists of tensor ids");
    *n = children(r, list);
    MS_TRY(take_ids(r, *n, &taken));
    uint32_t item = ms_json_first(r->json, list);
    for (uint32_t i = 0; i < *n; i++) {
        int64_t id = 0;
        MS_TRY(next_int(r, &item, 0, (int64_t)r->ops->n_tensors - 1,
                        "the id of a tensor", &id));
        taken[i] = (uint32_t)id;
    }
    *ids = taken;
    return MS_OK;
}

static ms_err module_of(reader *r, const char *name, uint32_t *row)
{
    MS_TRY(keep_name(r, &name));
    *row = ms_index_add(&r->modules, name, r->ops->n_modules);
    if (*row == r->ops->n_modules)
        r->ops->modules[r->ops->n_modules++] = name;
    return MS_OK;
}

static ms_err text_of(const reader *r, uint32_t node, const char *key,
                      const char *fallback, const char **text)
{
    uint32_t row = ms_json_find(r->json, node, key);
    *text = fallback;
    return row == MS_NONE ? MS_OK : next_text(r, &row, key, text);
}

/* What a run without the tracing mode executes, where it differs. */
static ms_err read_op_name(reader *r, uint32_t row, ms_opnode *node)
{
    const char *name = NULL;
    MS_TRY(text_of(r, row, "op", NULL, &name));
    if (!name || *name == '\0')
        return wrong(r, row, "a node needs an \"op\"");
    node->renamed = ms_json_find(r->json, row, "real_op") != MS_NONE;
    MS_TRY(text_of(r, row, "real_op", name, &name));
    MS_TRY(text_of(r, row, "overload", "default", &node->overload));
    MS_TRY(keep_name(r, &name));
    MS_TRY(keep_name(r, &node->overload));
    node->name = name;
    node->op = strncmp(name, "aten.", 5) == 0 ? name + 5 : name;
    return MS_OK;
}

static bool reads_storage(const reader *r, const ms_opnode *node,
                          uint32_t storage)
{
    for (uint32_t i = 0; i < node->n_in; i++)
        if (r->ops->tensors[node->in[i]].storage == storage)
            return true;
    return false;
}

/* A storage that the node does not read (and may look at or write into) is
 * one that it makes, and nothing made it before. */
static ms_err note_storage(reader *r, uint32_t row, const ms_opnode *node,
                           uint32_t tensor)
{
    uint32_t s = r->ops->tensors[tensor].storage;
    const ms_opstorage *storage = &r->ops->storages[s];
    if (storage->bytes == 0 || reads_storage(r, node, s))
        return MS_OK;
    if (storage->kind != MS_OPSTORAGE_ACT)
        return wrong(r, row,
                     "it makes tensor %u in storage %u, which exists before "
                     "the step",
                     tensor, s);
    if (r->made[s] != MS_NONE && r->made[s] != r->number)
        return wrong(r, row,
                     "it makes tensor %u in storage %u, which node %u made",
                     tensor, s, r->made[s]);
    r->made[s] = r->number;
    return MS_OK;
}

enum { READ = 1, MADE }; /* reader.seen */

/* A tensor is made once, before it is read. */
static ms_err note_order(reader *r, uint32_t row, const ms_opnode *node)
{
    const ms_opgraph *ops = r->ops;
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t t = node->in[i];
        uint8_t kind = ops->storages[ops->tensors[t].storage].kind;
        if (kind == MS_OPSTORAGE_ACT && r->seen[t] != MADE)
            return wrong(
                r, row, "it reads tensor %u, which no node before it makes", t);
        if (r->seen[t] == 0)
            r->seen[t] = READ;
    }
    for (uint32_t k = 0; k < node->n_out; k++) {
        uint32_t t = node->out[k];
        if (r->seen[t] != 0)
            return wrong(r, row, "it makes tensor %u, which exists already", t);
        r->seen[t] = MADE;
        MS_TRY(note_storage(r, row, node, t));
    }
    return MS_OK;
}

static ms_err read_node(reader *r, uint32_t row, ms_opnode *node)
{
    const ms_json *json = r->json;
    const char *module = "";
    if (json->nodes[row].kind != MS_JSON_OBJECT)
        return wrong(r, row, "a node is an object");
    MS_TRY(ms_opfields_check(json, row, true, r->fault));
    node->spot = (ms_spot){json->nodes[row].line, json->nodes[row].column};
    node->number = r->number;
    MS_TRY(read_op_name(r, row, node));
    MS_TRY(text_of(r, row, "mod", "", &module));
    MS_TRY(module_of(r, module, &node->module));
    MS_TRY(read_ids(r, ms_json_find(json, row, "in"), &node->n_in, &node->in));
    MS_TRY(
        read_ids(r, ms_json_find(json, row, "out"), &node->n_out, &node->out));
    MS_TRY(note_order(r, row, node));
    uint32_t ends = ms_json_find(json, row, "ends");
    if (ends != MS_NONE)
        MS_TRY(read_ids(r, ends, &node->n_ends, &node->ends));
    return ms_opargs_read(json, row, &r->scratch, &r->copies, node, r->fault);
}

static ms_err read_nodes(reader *r, uint32_t list)
{
    ms_opgraph *ops = r->ops;
    uint32_t n = 0;
    begin(r, NULL, 0, list);
    if (!is_array(r, list) || children(r, list) == 0)
        return wrong(r, list, "\"nodes\" must be a list of ops, not empty");
    ops->n_nodes = children(r, list);
    MS_TRY(take(r, &ops->nodes, ops->n_nodes, sizeof *ops->nodes));
    MS_TRY(take(r, &ops->modules, ops->n_nodes, sizeof *ops->modules));
    MS_TRY(take_from(r, &r->temporary, &r->seen, ops->n_tensors, 1));
    MS_TRY(take_from(r, &r->temporary, &r->made, ops->n_storages,
                     sizeof *r->made));
    memset(r->made, 0xff, ops->n_storages * sizeof *r->made);
    MS_TRY(ms_index_make(&r->modules, ops->n_nodes, &r->temporary, r->fault));
    for (uint32_t row = ms_json_first(r->outline, list); row != MS_NONE;
         row = r->outline->nodes[row].next, n++) {
        uint32_t at = row;
        MS_TRY(enter(r, "node", n, &at));
        MS_TRY(read_node(r, at, &ops->nodes[n]));
    }
    return MS_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static ms_err read_loss(reader *r)
{
    uint32_t row = MS_NONE;
    int64_t loss = 0;
    begin(r, NULL, 0, 0);
    MS_TRY(required(r, 0, "loss_start", &row));
    MS_TRY(next_int(r, &row, 0, r->ops->n_nodes,
                    "\"loss_start\", the first node of the loss,", &loss));
    r->ops->loss_start = (uint32_t)loss;
    uint32_t meta = ms_json_find(r->json, 0, "meta");
    if (meta == MS_NONE || r->json->nodes[meta].kind != MS_JSON_OBJECT)
        return MS_OK;
    int64_t batch = 0;
    row = ms_json_find(r->json, meta, "batch");
    if (row == MS_NONE)
        return MS_OK;
    MS_TRY(next_int(r, &row, ms_opfields_batch.low, ms_opfields_batch.high,
                    "\"batch\"", &batch));
    r->ops->batch = (uint64_t)batch;
    return MS_OK;
}

static ms_err read_whole(reader *r)
{
    uint32_t storages = 0, tensors = 0, nodes = 0;
    MS_TRY(ms_opfields_check(r->json, 0, false, r->fault));
    MS_TRY(required(r, 0, "storages", &storages));
    MS_TRY(required(r, 0, "tensors", &tensors));
    MS_TRY(required(r, 0, "nodes", &nodes));
    MS_TRY(read_storages(r, storages));
    MS_TRY(read_tensors(r, tensors));
    MS_TRY(read_nodes(r, nodes));
    MS_TRY(ms_opmerge_in_place(r->ops, r->arena, r->fault));
    return read_loss(r);
}

ms_err ms_opgraph_read(const ms_json *json, ms_arena *arena, ms_opgraph *ops,
                       ms_fault *fault)
{
    reader r = {.json = json,
                .outline = json,
                .arena = arena,
                .scratch = {.limit_bytes = arena->limit_bytes},
                .temporary = {.limit_bytes = arena->limit_bytes},
                .ops = ops,
                .fault = fault,
                .names = {.arena = arena}};
    r.copies = (ms_opcopies){.keep = arena, .scratch = &r.temporary};
    *ops = (ms_opgraph){0};
    ms_err err = read_whole(&r);
    ms_arena_drop(arena, r.names.keys); /* the names stay */
    ms_arena_free(&r.scratch);
    ms_arena_free(&r.temporary);
    return err;
}
