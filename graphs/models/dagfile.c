/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A DAG of nodes that somebody has measured, gradients among them:
 *
 *     {"memsim": 1, "name": "mine", "family": "dag", "nodes": [
 *        {"id": "f0", "cost_ns": 10, "bytes": 8},
 *        {"id": "loss", "cost_ns": 1, "bytes": 4, "deps": ["f0"]},
 *        {"id": "b0", "cost_ns": 20, "bytes": 8, "deps": ["loss", "f0"],
 *         "backward": true}]}
 *
 * Nodes run in the order of the file, or, where one stands before what it
 * reads, behind that. */
#include "graphs/json/fields.h"
#include "graphs/json/index.h"
#include "graphs/layertypes.h"
#include "graphs/models/files/reader.h"
#include "graphs/nodelist.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COST, BYTES, BACKWARD };
static const char *const top_keys[] = {"memsim", "name", "summary", "family",
                                       "nodes"};
const ms_field ms_dagfile_fields[MS_DAGFILE_FIELDS] = {
    [COST] = {.name = "cost_ns",
              .type = MS_INT,
              .required = true,
              .low = 0,
              .high = INT64_C(1) << 50,
              .help = "ns that it takes to make it once"},
    [BYTES] = {.name = "bytes",
               .type = MS_INT,
               .required = true,
               .low = 0,
               .high = INT64_C(1) << 50,
               .help = "bytes of its output; 0 where nothing reads it"},
    [BACKWARD] = {.name = "backward",
                  .type = MS_BOOL,
                  .help = "it is of the backward pass"}};

/* A file being read; rows are nodes in its order. */
typedef struct dagfile {
    const ms_reader *r;
    uint32_t n, n_deps;
    const char **ids;
    uint32_t *at;         /* its place in the file */
    uint32_t *dep_at;     /* n + 1 */
    uint32_t *dep, *spot; /* the node; where the file names it */
    uint64_t *cost_ns, *bytes;
    uint8_t *is_backward;
    uint32_t *reader; /* the last that reads it, + 1; 0: nobody does */
    uint32_t *order;  /* of nodes: as they run */
} dagfile;

bool ms_dagfile_is(const ms_reader *r, uint32_t family)
{
    const ms_json_node *node = &r->json.nodes[family];
    return node->kind == MS_JSON_STRING &&
           strcmp(node->value.s, MS_DAGFILE_FAMILY) == 0;
}

/* ---- ids and values ------------------------------------------------------ */

/* An id is a string or a whole number. */
static ms_err read_id(const dagfile *f, uint32_t node, const char **id)
{
    const ms_json *json = &f->r->json;
    const ms_json_node *value = &json->nodes[node];
    if (value->kind == MS_JSON_INT)
        *id = ms_arena_format(f->r->arena, "%" PRId64, value->value.i);
    else if (value->kind == MS_JSON_STRING && *value->value.s != '\0')
        *id = value->value.s;
    else
        return ms_json_fail(json, node, f->r->fault, NULL,
                            "an id must be a string or a whole number, not %s",
                            value->kind == MS_JSON_STRING
                                ? "\"\""
                                : ms_json_kind_name(json, node));
    if (*id != NULL && strlen(*id) > MS_MAX_NAME)
        return ms_json_fail(json, node, f->r->fault, NULL,
                            "the id has more than %u bytes", MS_MAX_NAME);
    return *id == NULL ? ms_fail_nomem(f->r->fault) : MS_OK;
}

static ms_err read_values(dagfile *f, uint32_t v)
{
    static const char *const also[] = {"id", "deps"};
    const ms_json *json = &f->r->json;
    const ms_fields keys = {.rows = ms_dagfile_fields,
                            .n = MS_DAGFILE_FIELDS,
                            .extra = also,
                            .n_extra = 2,
                            .owner = "a node"};
    ms_value values[MS_DAGFILE_FIELDS] = {0};
    ms_fields_values out = {.values = values};
    if (json->nodes[f->at[v]].kind != MS_JSON_OBJECT)
        return ms_json_fail(json, f->at[v], f->r->fault, NULL,
                            "a node must be an object, not %s",
                            ms_json_kind_name(json, f->at[v]));
    MS_TRY(ms_fields_read_object(json, f->at[v], &keys, f->r->arena, &out,
                                 f->r->fault));
    MS_TRY(ms_fields_require(json, f->at[v], &keys, out.given, f->r->fault));
    f->cost_ns[v] = (uint64_t)values[COST].i;
    f->bytes[v] = (uint64_t)values[BYTES].i;
    f->is_backward[v] = values[BACKWARD].b;
    return MS_OK;
}

static ms_err read_nodes(dagfile *f, ms_index *index)
{
    const ms_json *json = &f->r->json;
    for (uint32_t v = 0; v < f->n; v++) {
        MS_TRY(read_values(f, v));
        uint32_t id = ms_json_find(json, f->at[v], "id");
        if (id == MS_NONE)
            return ms_json_fail(json, f->at[v], f->r->fault, NULL,
                                "a node needs the key \"id\"");
        MS_TRY(read_id(f, id, &f->ids[v]));
        uint32_t first = ms_index_add(index, f->ids[v], v);
        if (first == v)
            continue;
        return ms_json_fail(json, id, f->r->fault, "give each its own",
                            "the id \"%.60s\" is that of the node in line "
                            "%" PRIu32 " already",
                            f->ids[v], json->nodes[f->at[first]].line);
    }
    return MS_OK;
}

/* ---- what they read ------------------------------------------------------ */

static ms_err read_dep(dagfile *f, const ms_index *index, uint32_t v,
                       uint32_t node)
{
    const char *id;
    MS_TRY(read_id(f, node, &id));
    uint32_t from = ms_index_find(index, id);
    if (from == MS_NONE)
        return ms_json_fail(&f->r->json, node, f->r->fault,
                            "\"deps\" are ids of other nodes",
                            "no node has the id \"%.60s\"", id);
    if (f->reader[from] == v + 1)
        return ms_json_fail(&f->r->json, node, f->r->fault, "name it once",
                            "\"%.60s\" is twice in \"deps\"", id);
    f->reader[from] = v + 1;
    f->dep[f->n_deps] = from;
    f->spot[f->n_deps++] = node;
    return MS_OK;
}

static ms_err read_deps(dagfile *f, const ms_index *index)
{
    const ms_json *json = &f->r->json;
    for (uint32_t v = 0; v < f->n; v++) {
        uint32_t list = ms_json_find(json, f->at[v], "deps");
        f->dep_at[v] = f->n_deps;
        if (list == MS_NONE)
            continue;
        if (json->nodes[list].kind != MS_JSON_ARRAY)
            return ms_json_fail(json, list, f->r->fault, NULL,
                                "\"deps\" must be a list of ids, not %s",
                                ms_json_kind_name(json, list));
        for (uint32_t i = ms_json_first(json, list); i != MS_NONE;
             i = json->nodes[i].next)
            MS_TRY(read_dep(f, index, v, i));
    }
    f->dep_at[f->n] = f->n_deps;
    return MS_OK;
}

/* What is read has bytes, something takes time, and all of it can be added. */
static ms_err check_values(const dagfile *f)
{
    const ms_json *json = &f->r->json;
    uint64_t ns = 0, bytes = 0;
    for (uint32_t v = 0; v < f->n; v++) {
        bool has_time = ms_reader_add(&ns, f->cost_ns[v]);
        if (!has_time || !ms_reader_add(&bytes, f->bytes[v]))
            return ms_json_fail(json, f->at[v], f->r->fault,
                                "times are in ns, sizes in bytes",
                                "the %s of the nodes up to \"%.60s\" add up "
                                "to more than 2^53",
                                has_time ? "bytes" : "ns", f->ids[v]);
        if (f->bytes[v] == 0 && f->reader[v] > 0)
            return ms_json_fail(json, ms_json_find(json, f->at[v], "bytes"),
                                f->r->fault, "say how large its output is",
                                "\"%.60s\" has no bytes, but others read it",
                                f->ids[v]);
    }
    if (ns == 0)
        return ms_json_fail(json, ms_json_find(json, 0, "nodes"), f->r->fault,
                            "times are \"cost_ns\", in ns",
                            "no node takes any time");
    return MS_OK;
}

/* ---- the order ----------------------------------------------------------- */

/* path[0 .. n) is on the way; dep i of the last leads back into it. */
static ms_err fail_cycle(const dagfile *f, const uint32_t *path, uint32_t n,
                         uint32_t i)
{
    char ring[400] = "";
    size_t used = 0;
    uint32_t from = 0;
    while (path[from] != f->dep[i])
        from++;
    for (uint32_t k = from; k < n && used < sizeof ring; k++) {
        bool skips = k - from == 6 && n - k > 1;
        used +=
            (size_t)snprintf(ring + used, sizeof ring - used, "%.40s reads ",
                             skips ? "... which" : f->ids[path[k]]);
        k = skips ? n - 1 : k;
    }
    return ms_json_fail(&f->r->json, f->spot[i], f->r->fault,
                        "a DAG has no cycle", "%.360s%.40s", ring,
                        f->ids[f->dep[i]]);
}

/* Each behind what it reads, else as in the file: depth first. */
static ms_err sort(dagfile *f, ms_arena *scratch)
{
    enum { NEW, UNDER_WAY, DONE };
    uint8_t *state = ms_arena_take(scratch, f->n, 1);
    uint32_t *path = ms_arena_take_raw(scratch, f->n, sizeof *path);
    uint32_t *next = ms_arena_take_raw(scratch, f->n, sizeof *next);
    uint32_t n = 0, done = 0;
    if (state == NULL || path == NULL || next == NULL)
        return ms_fail_nomem(f->r->fault);
    memcpy(next, f->dep_at, f->n * sizeof *next);
    for (uint32_t first = 0; first < f->n; first++) {
        if (state[first] == NEW)
            path[n++] = first;
        while (n > 0) {
            uint32_t v = path[n - 1];
            state[v] = UNDER_WAY;
            if (next[v] == f->dep_at[v + 1]) {
                state[v] = DONE;
                f->order[done++] = v;
                n--;
                continue;
            }
            uint32_t i = next[v]++, from = f->dep[i];
            if (state[from] == UNDER_WAY)
                return fail_cycle(f, path, n, i);
            if (state[from] == NEW)
                path[n++] = from;
        }
    }
    return MS_OK;
}

/* ---- the list ------------------------------------------------------------ */

static ms_err take_list(const dagfile *f, ms_nodelist *list)
{
    ms_arena *arena = f->r->arena;
    size_t n = f->n;
    list->n = list->n_storages = f->n;
    list->names = ms_arena_take(arena, n, sizeof *list->names);
    list->kind = ms_arena_take(arena, n, 1);
    list->cost_ns = ms_arena_take(arena, n, sizeof *list->cost_ns);
    list->bytes = ms_arena_take(arena, n, sizeof *list->bytes);
    list->ends = ms_arena_take(arena, n, sizeof *list->ends);
    list->in_at = ms_arena_take(arena, n + 1, sizeof *list->in_at);
    list->out_at = ms_arena_take(arena, n + 1, sizeof *list->out_at);
    list->in = ms_arena_take(arena, f->n_deps + 1u, sizeof *list->in);
    return list->names == NULL || list->kind == NULL || list->cost_ns == NULL ||
                   list->bytes == NULL || list->ends == NULL ||
                   list->in_at == NULL || list->out_at == NULL ||
                   list->in == NULL
               ? ms_fail_nomem(f->r->fault)
               : MS_OK;
}

static ms_err write_list(const dagfile *f, ms_arena *scratch, ms_nodelist *list)
{
    uint32_t *place = ms_arena_take_raw(scratch, f->n, sizeof *place);
    uint32_t n_in = 0;
    if (place == NULL)
        return ms_fail_nomem(f->r->fault);
    MS_TRY(take_list(f, list));
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t v = f->order[i];
        place[v] = i;
        list->names[i] = f->ids[v];
        list->kind[i] = f->is_backward[v] ? MS_NODE_BACKWARD : MS_NODE_FORWARD;
        list->cost_ns[i] = f->cost_ns[v];
        list->bytes[i] = f->bytes[v];
        list->ends[i] = i;
        list->out_at[i + 1] = i + 1;
        for (uint32_t k = f->dep_at[v]; k < f->dep_at[v + 1]; k++) {
            uint32_t from = place[f->dep[k]];
            list->in[n_in++] = from;
            list->ends[from] = i;
        }
        list->in_at[i + 1] = n_in;
    }
    return MS_OK;
}

static ms_err take_columns(dagfile *f, uint32_t nodes, ms_arena *scratch)
{
    const ms_json *json = &f->r->json;
    uint32_t most_deps = 0, v = 0;
    for (uint32_t i = ms_json_first(json, nodes); i != MS_NONE;
         i = json->nodes[i].next) {
        uint32_t list = json->nodes[i].kind == MS_JSON_OBJECT
                            ? ms_json_find(json, i, "deps")
                            : MS_NONE;
        if (list != MS_NONE && json->nodes[list].kind == MS_JSON_ARRAY)
            most_deps += json->nodes[list].value.n;
    }
    size_t n = f->n;
    f->ids = ms_arena_take(scratch, n, sizeof *f->ids);
    f->at = ms_arena_take_raw(scratch, n, sizeof *f->at);
    f->dep_at = ms_arena_take(scratch, n + 1, sizeof *f->dep_at);
    f->dep = ms_arena_take_raw(scratch, most_deps + 1u, sizeof *f->dep);
    f->spot = ms_arena_take_raw(scratch, most_deps + 1u, sizeof *f->spot);
    f->cost_ns = ms_arena_take(scratch, n, sizeof *f->cost_ns);
    f->bytes = ms_arena_take(scratch, n, sizeof *f->bytes);
    f->is_backward = ms_arena_take(scratch, n, 1);
    f->reader = ms_arena_take(scratch, n, sizeof *f->reader);
    f->order = ms_arena_take_raw(scratch, n, sizeof *f->order);
    if (f->ids == NULL || f->at == NULL || f->dep_at == NULL ||
        f->dep == NULL || f->spot == NULL || f->cost_ns == NULL ||
        f->bytes == NULL || f->is_backward == NULL || f->reader == NULL ||
        f->order == NULL)
        return ms_fail_nomem(f->r->fault);
    for (uint32_t i = ms_json_first(json, nodes); i != MS_NONE;
         i = json->nodes[i].next)
        f->at[v++] = i;
    return MS_OK;
}

static ms_err read_list(const ms_reader *r, uint32_t nodes, ms_arena *scratch,
                        ms_nodelist *list)
{
    dagfile f = {.r = r, .n = r->json.nodes[nodes].value.n};
    ms_index index;
    MS_TRY(take_columns(&f, nodes, scratch));
    MS_TRY(ms_index_make(&index, f.n, scratch, r->fault));
    MS_TRY(read_nodes(&f, &index));
    MS_TRY(read_deps(&f, &index));
    MS_TRY(check_values(&f));
    MS_TRY(sort(&f, scratch));
    return write_list(&f, scratch, list);
}

static ms_err find_nodes(const ms_reader *r, uint32_t *nodes)
{
    const ms_fields keys = {.extra = top_keys,
                            .n_extra = sizeof top_keys / sizeof *top_keys,
                            .owner = "a DAG"};
    ms_fields_values none = {0};
    if (r->n_overrides > 0)
        return ms_fail(r->fault, MS_EUSAGE, r->overrides[0].key,
                       "change the file",
                       "a measured DAG has no settings \"model.*\"");
    MS_TRY(
        ms_fields_read_object(&r->json, 0, &keys, r->arena, &none, r->fault));
    *nodes = ms_json_find(&r->json, 0, "nodes");
    if (*nodes != MS_NONE && r->json.nodes[*nodes].kind == MS_JSON_ARRAY &&
        r->json.nodes[*nodes].value.n > 0)
        return MS_OK;
    return ms_json_fail(&r->json, *nodes == MS_NONE ? 0 : *nodes, r->fault,
                        "memsim help files has an example",
                        "a DAG needs \"nodes\", a list of one at least");
}

ms_err ms_dagfile_read(const ms_reader *r)
{
    uint32_t nodes = MS_NONE;
    ms_arena scratch = {.limit_bytes = r->arena->limit_bytes};
    ms_nodelist *list = ms_arena_take(r->arena, 1, sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(r->fault);
    MS_TRY(find_nodes(r, &nodes));
    ms_err err = read_list(r, nodes, &scratch, list);
    ms_arena_free(&scratch);
    r->model->nodes = list;
    r->model->measured = true;
    r->model->fixed_batch = 1;
    r->model->family = MS_DAGFILE_FAMILY;
    return err;
}
