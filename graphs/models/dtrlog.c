/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log of a run that DTR's prototype writes (uwsampl/dtr-prototype,
 * simrd/parse/parse.py), a line of JSON for each instruction:
 *
 *     {"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
 *     {"INSTRUCTION":"CONSTANT","NAME":"w"}
 *     {"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"400"}
 *     {"INSTRUCTION":"CALL","NAME":"mm","ARGS":["w"],"RESULT":["y"],
 *      "TIME":"900"}
 *     {"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"800"}
 *     {"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
 *     {"INSTRUCTION":"RELEASE","NAME":"w"}
 *
 * Behind a CALL stand MEMORY and ALIAS of each result: -1, or which argument it
 * is a view of.  MUTATE makes the arguments that it names anew; COPY and
 * COPY_FROM are names.  What has names at the end is there at the end. */
#include "graphs/json/index.h"
#include "graphs/json/json.h"
#include "graphs/models/files/reader.h"
#include "graphs/nodelist.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct tensor {
    uint32_t storage, node; /* the node makes the storage, or a view of it */
    uint32_t names;
} tensor;

typedef struct dtrlog {
    const ms_reader *r;
    ms_nodelist *list;
    ms_arena scratch; /* of all names */
    ms_arena rows;    /* of one line */
    ms_quote source;
    uint32_t line, begun; /* begun: where the last instruction does */
    ms_json json;
    uint32_t nodes_capacity, ins_capacity, views_capacity, storages_capacity;
    uint32_t n_in, n_view;
    ms_index index;   /* from names to rows */
    uint32_t n_names; /* in the order in which they came */
    uint32_t *bound;  /* per name: a tensor */
    uint32_t n_tensors, tensors_capacity;
    tensor *tensors;
    uint32_t *names;    /* per storage: of all its tensors */
    uint64_t ns, bytes; /* of all nodes, of all storages */
    bool is_backward;
} dtrlog;

/* The instruction that a line is. */
typedef struct verb {
    const char *name;
    ms_err (*read)(dtrlog *log);
} verb;

bool ms_dtrlog_is(const char *bytes, size_t length)
{
    static const char key[] = "\"INSTRUCTION\"";
    const char *end = length > 0 ? memchr(bytes, '\n', length) : NULL;
    if (length == 0 || bytes[0] != '{')
        return false;
    end = end != NULL ? end : bytes + length;
    for (const char *at = bytes; at + sizeof key <= end; at++)
        if (memcmp(at, key, sizeof key - 1) == 0)
            return true;
    return false;
}

/* ---- lines --------------------------------------------------------------- */

static ms_err cut_off(const dtrlog *log, uint32_t line)
{
    return ms_fail(
        log->r->fault, MS_EINPUT, log->source.name, "was it copied whole?",
        "the log ends within the instruction of line %" PRIu32, line);
}

static void skip_blank(dtrlog *log)
{
    ms_quote *at = &log->source;
    for (; at->offset < at->length && strchr(" \t\r\n", at->bytes[at->offset]);
         at->offset++)
        log->line += at->bytes[at->offset] == '\n';
}

/* A line that has no end and is no JSON is the last one of a part. */
static ms_err next_line(dtrlog *log)
{
    ms_fault own = {0};
    const char *rest = log->source.bytes + log->source.offset;
    size_t left = log->source.length - log->source.offset;
    bool is_last = memchr(rest, '\n', left) == NULL;
    uint32_t line = log->line;
    if (line == log->begun)
        return ms_fail(log->r->fault, MS_EINPUT, log->source.name,
                       "write each on a line of its own",
                       "line %" PRIu32 " has a second instruction", line);
    log->begun = line;
    ms_arena_reset(&log->rows);
    ms_err err =
        ms_json_next(&log->source, &log->line, &log->rows, &log->json, &own);
    if (err == MS_EINPUT && is_last)
        return cut_off(log, line);
    if (err != MS_OK)
        *log->r->fault = own;
    if (err == MS_OK && log->json.nodes[0].kind != MS_JSON_OBJECT)
        return ms_json_fail(&log->json, 0, log->r->fault, NULL,
                            "an instruction must be an object, not %s",
                            ms_json_kind_name(&log->json, 0));
    return err;
}

static ms_err member(const dtrlog *log, const char *key, uint32_t *node)
{
    *node = ms_json_find(&log->json, 0, key);
    return *node != MS_NONE
               ? MS_OK
               : ms_json_fail(&log->json, 0, log->r->fault, NULL,
                              "the instruction needs the key \"%s\"", key);
}

static ms_err text_at(const dtrlog *log, uint32_t node, const char **text)
{
    *text = "";
    if (log->json.nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(&log->json, node, log->r->fault, NULL,
                            "it must be a string, not %s",
                            ms_json_kind_name(&log->json, node));
    *text = log->json.nodes[node].value.s;
    return MS_OK;
}

static ms_err text_of(const dtrlog *log, const char *key, const char **text)
{
    uint32_t node;
    *text = "";
    MS_TRY(member(log, key, &node));
    return text_at(log, node, text);
}

/* A number, or a string of one. */
static ms_err number_of(const dtrlog *log, const char *key, int64_t *value)
{
    uint32_t node;
    char *end = NULL;
    MS_TRY(member(log, key, &node));
    const ms_json_node *at = &log->json.nodes[node];
    if (at->kind == MS_JSON_INT)
        *value = at->value.i;
    else if (at->kind == MS_JSON_STRING)
        *value = strtoll(at->value.s, &end, 10);
    bool is_number = at->kind == MS_JSON_INT ||
                     (end != NULL && end > at->value.s && *end == '\0');
    if (!is_number || *value < -1 || *value > INT64_C(1) << 50)
        return ms_json_fail(&log->json, node, log->r->fault, NULL,
                            "\"%s\" must be a whole number of at most 2^50",
                            key);
    return MS_OK;
}

static ms_err list_of(const dtrlog *log, const char *key, uint32_t *node)
{
    MS_TRY(member(log, key, node));
    if (log->json.nodes[*node].kind != MS_JSON_ARRAY)
        return ms_json_fail(&log->json, *node, log->r->fault, NULL,
                            "\"%s\" must be a list, not %s", key,
                            ms_json_kind_name(&log->json, *node));
    return MS_OK;
}

static const char *keep_text(dtrlog *log, const char *text)
{
    return ms_arena_text(log->r->arena, text, strlen(text));
}

/* ---- tensors and their names --------------------------------------------- */

/* The row of a name that stands at a node. */
static ms_err find_name(const dtrlog *log, uint32_t node, uint32_t *row)
{
    const char *name;
    MS_TRY(text_at(log, node, &name));
    *row = ms_index_find(&log->index, name);
    return *row != MS_NONE ? MS_OK
                           : ms_json_fail(&log->json, node, log->r->fault,
                                          "was its beginning cut off?",
                                          "nothing has made \"%.80s\"", name);
}

static ms_err bind_name(dtrlog *log, const char *name, uint32_t at)
{
    char *kept = ms_arena_text(&log->scratch, name, strlen(name));
    if (kept == NULL)
        return ms_fail_nomem(log->r->fault);
    uint32_t row = ms_index_add(&log->index, kept, log->n_names);
    if (row != log->n_names)
        return ms_json_fail(&log->json, 0, log->r->fault, NULL,
                            "\"%.80s\" is made twice", name);
    log->bound[log->n_names++] = at;
    return MS_OK;
}

static void name_tensor(dtrlog *log, uint32_t at, bool more)
{
    tensor *t = &log->tensors[at];
    uint32_t *names = &log->names[t->storage];
    if (!more && t->names == 0)
        return;
    t->names = more ? t->names + 1 : t->names - 1;
    *names = more ? *names + 1 : *names - 1;
    if (*names == 0) /* its last reference */
        log->list->ends[t->storage] = log->list->n - 1;
}

static ms_err add_tensor(dtrlog *log, uint32_t storage, uint32_t *at)
{
    log->tensors =
        ms_arena_grow(&log->scratch, log->tensors, &log->tensors_capacity,
                      log->n_tensors + 1, sizeof *log->tensors);
    if (log->tensors == NULL)
        return ms_fail_nomem(log->r->fault);
    *at = log->n_tensors++;
    log->tensors[*at] = (tensor){storage, log->list->n - 1, 0};
    name_tensor(log, *at, true);
    return MS_OK;
}

/* ---- nodes --------------------------------------------------------------- */

#define GROW(column, capacity, n)                                              \
    do {                                                                       \
        uint32_t grown_ = (capacity);                                          \
        (column) = ms_arena_grow(log->r->arena, (column), &grown_, (n),        \
                                 sizeof *(column));                            \
        if ((column) == NULL)                                                  \
            return ms_fail_nomem(log->r->fault);                               \
        most = grown_;                                                         \
    } while (0)

static ms_err check_sums(const dtrlog *log, bool can_add, const char *what)
{
    return can_add ? MS_OK
                   : ms_json_fail(&log->json, 0, log->r->fault,
                                  "times are in ns, sizes in bytes",
                                  "all %s up to here add up to more than 2^53",
                                  what);
}

static ms_err add_node(dtrlog *log, const char *name, uint8_t kind,
                       uint64_t cost_ns)
{
    ms_nodelist *list = log->list;
    uint32_t n = list->n, most = 0;
    MS_TRY(check_sums(log, ms_reader_add(&log->ns, cost_ns), "times"));
    GROW(list->names, log->nodes_capacity, n + 2);
    GROW(list->kind, log->nodes_capacity, n + 2);
    GROW(list->cost_ns, log->nodes_capacity, n + 2);
    GROW(list->in_at, log->nodes_capacity, n + 2);
    GROW(list->out_at, log->nodes_capacity, n + 2);
    GROW(list->view_at, log->nodes_capacity, n + 2);
    log->nodes_capacity = most;
    if (n == 0)
        list->in_at[0] = list->out_at[0] = list->view_at[0] = 0;
    list->names[n] = name;
    list->kind[n] = kind;
    list->cost_ns[n] = cost_ns;
    list->in_at[n + 1] = list->in_at[n];
    list->out_at[n + 1] = list->out_at[n];
    list->view_at[n + 1] = list->view_at[n];
    list->n = n + 1;
    return name != NULL ? MS_OK : ms_fail_nomem(log->r->fault);
}

static ms_err add_input(dtrlog *log, uint32_t at)
{
    ms_nodelist *list = log->list;
    uint32_t most = 0;
    GROW(list->in, log->ins_capacity, log->n_in + 1);
    GROW(list->via, log->ins_capacity, log->n_in + 1);
    log->ins_capacity = most;
    list->in[log->n_in] = log->tensors[at].storage;
    list->via[log->n_in++] = log->tensors[at].node;
    list->in_at[list->n] = log->n_in;
    if (list->ends[log->tensors[at].storage] < list->n - 1) /* read late */
        list->ends[log->tensors[at].storage] = list->n - 1;
    return MS_OK;
}

static ms_err add_storage(dtrlog *log, uint64_t bytes, uint32_t *storage)
{
    ms_nodelist *list = log->list;
    uint32_t n = list->n_storages, most = 0;
    MS_TRY(check_sums(log, ms_reader_add(&log->bytes, bytes), "sizes"));
    GROW(list->bytes, log->storages_capacity, n + 1);
    GROW(list->ends, log->storages_capacity, n + 1);
    GROW(log->names, log->storages_capacity, n + 1);
    log->storages_capacity = most;
    list->bytes[n] = bytes;
    list->ends[n] = list->n - 1;
    log->names[n] = 0;
    *storage = list->n_storages++;
    list->out_at[list->n] = list->n_storages;
    return MS_OK;
}

static ms_err add_view(dtrlog *log, uint32_t storage)
{
    ms_nodelist *list = log->list;
    uint32_t most = 0;
    GROW(list->view, log->views_capacity, log->n_view + 1);
    log->views_capacity = most;
    list->view[log->n_view++] = storage;
    list->view_at[list->n] = log->n_view;
    return MS_OK;
}

/* ---- instructions -------------------------------------------------------- */

static uint8_t kind_now(dtrlog *log, const char *name)
{
    log->is_backward |= strstr(name, "backward") != NULL;
    return log->is_backward ? MS_NODE_BACKWARD : MS_NODE_FORWARD;
}

/* The line behind, which says a number of the name. */
static ms_err read_behind(dtrlog *log, const char *instruction, const char *key,
                          const char *name, uint32_t line, int64_t *value)
{
    const char *is, *of;
    skip_blank(log);
    if (log->source.offset == log->source.length)
        return cut_off(log, line);
    MS_TRY(next_line(log));
    MS_TRY(text_of(log, "INSTRUCTION", &is));
    MS_TRY(text_of(log, "NAME", &of));
    if (strcmp(is, instruction) != 0 || strcmp(of, name) != 0)
        return ms_json_fail(&log->json, 0, log->r->fault, NULL,
                            "%s of \"%.80s\", which line %" PRIu32
                            " begins, belongs here",
                            instruction, name, line);
    return number_of(log, key, value);
}

static ms_err read_constant(dtrlog *log)
{
    const char *name;
    uint32_t storage, at, line = log->json.nodes[0].line;
    int64_t bytes;
    MS_TRY(text_of(log, "NAME", &name));
    name = keep_text(log, name);
    MS_TRY(add_node(log, name, MS_NODE_CONSTANT, 0));
    MS_TRY(read_behind(log, "MEMORY", "MEMORY", name, line, &bytes));
    MS_TRY(add_storage(log, bytes > 0 ? (uint64_t)bytes : 0, &storage));
    MS_TRY(add_tensor(log, storage, &at));
    return bind_name(log, name, at);
}

/* *arguments: rows of their names. */
static ms_err read_arguments(dtrlog *log, uint32_t **arguments, uint32_t *n)
{
    uint32_t args, *row;
    MS_TRY(list_of(log, "ARGS", &args));
    *n = log->json.nodes[args].value.n;
    row = ms_arena_take_raw(&log->scratch, *n + 1u, sizeof *row);
    *arguments = row;
    if (row == NULL)
        return ms_fail_nomem(log->r->fault);
    for (uint32_t i = ms_json_first(&log->json, args); i != MS_NONE;
         i = log->json.nodes[i].next, row++) {
        MS_TRY(find_name(log, i, row));
        MS_TRY(add_input(log, log->bound[*row]));
    }
    return MS_OK;
}

static ms_err read_result(dtrlog *log, const char *name, uint32_t line,
                          const uint32_t *arguments, uint32_t n)
{
    int64_t bytes, alias;
    uint32_t storage, at;
    MS_TRY(read_behind(log, "MEMORY", "MEMORY", name, line, &bytes));
    MS_TRY(read_behind(log, "ALIAS", "ALIAS", name, line, &alias));
    if (alias >= n)
        return ms_json_fail(&log->json, 0, log->r->fault, NULL,
                            "\"%.80s\" is a view of argument %" PRId64
                            " of %" PRIu32 ", from 0",
                            name, alias, n);
    if (alias >= 0) {
        storage = log->tensors[log->bound[arguments[alias]]].storage;
        MS_TRY(add_view(log, storage));
    } else {
        MS_TRY(add_storage(log, bytes > 0 ? (uint64_t)bytes : 0, &storage));
    }
    MS_TRY(add_tensor(log, storage, &at));
    return bind_name(log, name, at);
}

static ms_err read_call(dtrlog *log)
{
    const char *name, **results;
    int64_t ns;
    uint32_t list, n, n_results = 0, line = log->json.nodes[0].line;
    uint32_t *arguments;
    MS_TRY(text_of(log, "NAME", &name));
    MS_TRY(number_of(log, "TIME", &ns));
    MS_TRY(list_of(log, "RESULT", &list));
    MS_TRY(add_node(log, keep_text(log, name), kind_now(log, name),
                    ns > 0 ? (uint64_t)ns : 0));
    MS_TRY(read_arguments(log, &arguments, &n));
    results = ms_arena_take(&log->scratch, log->json.nodes[list].value.n + 1u,
                            sizeof *results);
    if (results == NULL)
        return ms_fail_nomem(log->r->fault);
    for (uint32_t i = ms_json_first(&log->json, list); i != MS_NONE;
         i = log->json.nodes[i].next) {
        MS_TRY(text_at(log, i, &name));
        results[n_results] = ms_arena_text(&log->scratch, name, strlen(name));
        if (results[n_results++] == NULL)
            return ms_fail_nomem(log->r->fault);
    }
    for (uint32_t i = 0; i < n_results; i++)
        MS_TRY(read_result(log, results[i], line, arguments, n));
    return MS_OK;
}

/* The arguments that it names are new tensors of as many bytes. */
static ms_err read_mutate(dtrlog *log)
{
    const char *name;
    int64_t ns;
    uint32_t list, n, storage, at;
    uint32_t *arguments;
    MS_TRY(text_of(log, "NAME", &name));
    MS_TRY(number_of(log, "TIME", &ns));
    MS_TRY(list_of(log, "MUTATE", &list));
    MS_TRY(add_node(log, keep_text(log, name), kind_now(log, name),
                    ns > 0 ? (uint64_t)ns : 0));
    MS_TRY(read_arguments(log, &arguments, &n));
    for (uint32_t i = ms_json_first(&log->json, list); i != MS_NONE;
         i = log->json.nodes[i].next) {
        const ms_json_node *which = &log->json.nodes[i];
        if (which->kind != MS_JSON_INT || which->value.i < 0 ||
            which->value.i >= n)
            return ms_json_fail(&log->json, i, log->r->fault, NULL,
                                "\"MUTATE\" numbers arguments from 0, of which "
                                "there are %" PRIu32,
                                n);
        uint32_t row = arguments[which->value.i], old = log->bound[row];
        MS_TRY(add_storage(log, log->list->bytes[log->tensors[old].storage],
                           &storage));
        MS_TRY(add_tensor(log, storage, &at));
        log->bound[row] = at;
        name_tensor(log, old, false);
    }
    return MS_OK;
}

static ms_err read_copy(dtrlog *log)
{
    uint32_t source, row;
    const char *name;
    MS_TRY(member(log, "SRC", &source));
    MS_TRY(find_name(log, source, &row));
    MS_TRY(text_of(log, "DST", &name));
    name_tensor(log, log->bound[row], true);
    return bind_name(log, name, log->bound[row]);
}

static ms_err read_copy_from(dtrlog *log)
{
    uint32_t source, target, from, to;
    MS_TRY(member(log, "SRC", &source));
    MS_TRY(member(log, "DST", &target));
    MS_TRY(find_name(log, source, &from));
    MS_TRY(find_name(log, target, &to));
    uint32_t old = log->bound[to];
    log->bound[to] = log->bound[from];
    name_tensor(log, log->bound[from], true);
    name_tensor(log, old, false);
    return MS_OK;
}

/* Names that nothing has are released, too. */
static ms_err read_release(dtrlog *log)
{
    const char *name;
    MS_TRY(text_of(log, "NAME", &name));
    uint32_t row = ms_index_find(&log->index, name);
    if (row != MS_NONE)
        name_tensor(log, log->bound[row], false);
    return MS_OK;
}

static ms_err read_annotation(dtrlog *log)
{
    const char *text;
    MS_TRY(text_of(log, "ANNOTATION", &text));
    log->is_backward |= strcmp(text, "BACKWARD") == 0;
    return MS_OK;
}

static const verb verbs[] = {
    {"CONSTANT", read_constant},   {"CALL", read_call},
    {"MUTATE", read_mutate},       {"COPY", read_copy},
    {"COPY_FROM", read_copy_from}, {"RELEASE", read_release},
    {"ANNOTATE", read_annotation},
};

static ms_err read_line(dtrlog *log)
{
    const char *name;
    MS_TRY(next_line(log));
    MS_TRY(text_of(log, "INSTRUCTION", &name));
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return verbs[i].read(log);
    return ms_json_fail(&log->json, ms_json_find(&log->json, 0, "INSTRUCTION"),
                        log->r->fault, NULL, "no instruction \"%.60s\" here",
                        name);
}

/* ---- the log ------------------------------------------------------------- */

/* What comes before the annotation START is of no run. */
static ms_err find_start(dtrlog *log)
{
    const char *is, *what = "";
    while (strcmp(what, "START") != 0) {
        skip_blank(log);
        if (log->source.offset == log->source.length)
            return ms_fail(log->r->fault, MS_EINPUT, log->source.name,
                           "was its beginning cut off?",
                           "the log has no line with the annotation START");
        MS_TRY(next_line(log));
        MS_TRY(text_of(log, "INSTRUCTION", &is));
        what = "";
        if (strcmp(is, "ANNOTATE") == 0)
            MS_TRY(text_of(log, "ANNOTATION", &what));
    }
    return MS_OK;
}

/* A last node reads what has names: it is there at the end. */
static ms_err add_outputs(dtrlog *log)
{
    MS_TRY(add_node(log, "outputs", MS_NODE_OUTPUTS, 0));
    for (uint32_t row = 0; row < log->n_names; row++) {
        const tensor *t = &log->tensors[log->bound[row]];
        if (t->names > 0)
            MS_TRY(add_input(log, log->bound[row]));
    }
    return MS_OK;
}

static ms_err read_all(dtrlog *log)
{
    uint32_t lines = 2;
    ms_nodelist *list = log->list;
    for (size_t i = 0; i < log->source.length; i++)
        lines += log->source.bytes[i] == '\n';
    MS_TRY(ms_index_make(&log->index, lines, &log->scratch, log->r->fault));
    log->bound = ms_arena_take_raw(&log->scratch, lines, sizeof *log->bound);
    list->in = ms_arena_take(log->r->arena, 1, sizeof *list->in);
    list->via = ms_arena_take(log->r->arena, 1, sizeof *list->via);
    list->view = ms_arena_take(log->r->arena, 1, sizeof *list->view);
    if (log->bound == NULL || list->in == NULL || list->via == NULL ||
        list->view == NULL)
        return ms_fail_nomem(log->r->fault);
    MS_TRY(find_start(log));
    for (skip_blank(log); log->source.offset < log->source.length;
         skip_blank(log))
        MS_TRY(read_line(log));
    return add_outputs(log);
}

ms_err ms_dtrlog_read(const ms_reader *r)
{
    ms_model *model = r->model;
    dtrlog log = {.r = r,
                  .scratch.limit_bytes = r->arena->limit_bytes,
                  .source = {.name = model->path,
                             .bytes = model->source,
                             .length = model->source_length},
                  .line = 1};
    log.list = ms_arena_take(r->arena, 1, sizeof *log.list);
    if (log.list == NULL)
        return ms_fail_nomem(r->fault);
    if (r->n_overrides > 0)
        return ms_fail(r->fault, MS_EUSAGE, r->overrides[0].key, NULL,
                       "the log of a run has no settings \"model.*\"");
    ms_err err = read_all(&log);
    ms_arena_free(&log.scratch);
    ms_arena_free(&log.rows);
    model->nodes = log.list;
    model->measured = true;
    model->fixed_batch = 1;
    return err;
}
