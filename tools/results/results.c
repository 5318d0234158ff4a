/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/results/results.h"
#include "graphs/json/json.h"
#include "graphs/model.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/base/files.h"
#include "sim/report.h"
#include "tools/results/sheet.h"

#include <string.h>
#include <sys/stat.h>

#define SCHEMA_VERSION 1

/* ---- files that are no results
 * ----------------------------------------------- */

/* What a JSON object is, told by keys that it has, and the command that
 * reads it. */
static const struct {
    /* also: a second key that it must have; NULL: none */
    const char *key, *also;
    const char *what, *next;
} objects[] = {
    {"traceEvents", NULL, "a trace of run --trace",
     "it is for ui.perfetto.dev; figures are drawn from run --json"},
    {"groups", "at", "what explain --json prints",
     "figures are drawn from run --json and compare --json"},
    {"point", NULL, "rows of memsim sweep",
     "draw it with: memsim plot FILE --figure pareto"},
    {"rows", "blocks", "what compare --checkpoint-all --json prints",
     "draw it by itself: memsim plot FILE"},
    {"family", NULL, "a model", "simulate it with: memsim run FILE"},
    {"layers", NULL, "a model", "simulate it with: memsim run FILE"},
    {"format", "nodes", "a model", "simulate it with: memsim run FILE"},
    {"model_type", NULL, "a model's configuration",
     "simulate it with: memsim run FILE"},
};

/* the first rows are of files that memsim writes; the others are models */
#define N_OURS 4u

static bool is_object(const ms_json *json, uint32_t object, size_t which)
{
    return ms_json_find(json, object, objects[which].key) != MS_NONE &&
           (objects[which].also == NULL ||
            ms_json_find(json, object, objects[which].also) != MS_NONE);
}

static ms_err other_object(const ms_values *values, uint32_t object)
{
    const ms_json *json = values->json;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        if (is_object(json, object, i))
            return ms_json_fail(json, object, values->fault, objects[i].next,
                                "this is %s, not a saved result",
                                objects[i].what);
    return ms_json_fail(json, object, values->fault,
                        "save one with: memsim run MODEL --json >FILE",
                        "this is no result of memsim: there is no "
                        "\"schema_version\"");
}

/* What a text that is no JSON object is, told by its first line. */
static const struct {
    const char *begins, *what, *next;
} texts[] = {
    {"point,", "a table of memsim sweep",
     "draw it with: memsim plot FILE --figure pareto"},
    {"event,t_ns,", "a timeline of run --csv",
     "figures are drawn from run --json"},
    {"variant,", "a table of compare --csv",
     "figures are drawn from compare --json"},
};

static bool is_text(const ms_quote *source, size_t which)
{
    return strncmp(source->bytes, texts[which].begins,
                   strlen(texts[which].begins)) == 0;
}

static ms_err other_text(const ms_quote *source, ms_fault *fault)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is_text(source, i))
            return ms_fail_at(fault, MS_EINPUT, source, texts[i].next,
                              "this is %s, not a saved result", texts[i].what);
    return ms_fail_at(fault, MS_EINPUT, source,
                      "save one with: memsim run MODEL --json >FILE",
                      "this is no saved result: those are JSON objects");
}

/* ---- one object ---------------------------------------------------------- */

/* The records that were read, in order. */
struct list {
    ms_record *records;
    uint32_t n, capacity;
};

ms_err ms_results_version(const ms_values *values, uint32_t object)
{
    uint32_t member = ms_json_find(values->json, object, "schema_version");
    uint64_t version;
    if (member == MS_NONE)
        return other_object(values, object);
    MS_TRY(ms_values_u64(values, member, &version));
    if (version == SCHEMA_VERSION)
        return MS_OK;
    return ms_json_fail(values->json, member, values->fault,
                        "make it again with this memsim: memsim run ... --json",
                        "a result of schema version %llu; this memsim reads "
                        "version %d",
                        (unsigned long long)version, SCHEMA_VERSION);
}

/* Says whether a variant was refused; such a variant has no numbers. */
static bool was_refused(const ms_json *json, uint32_t object)
{
    return ms_json_find(json, object, "peak") == MS_NONE &&
           ms_json_find(json, object, "message") != MS_NONE;
}

static ms_err read_refusal(const ms_values *values, uint32_t object,
                           ms_record *record)
{
    ms_sheet_refused refused = {.memsim = NULL};
    MS_TRY(ms_keys_read(values, object, &ms_keys_run_refused, &refused));
    if (refused.is_infeasible)
        record->report.status = MS_INFEASIBLE;
    record->refused = refused.message;
    record->policy = refused.policy;
    return MS_OK;
}

static ms_err add_record(const ms_values *values, struct list *list,
                         ms_record **record)
{
    if (list->n == list->capacity)
        list->records =
            ms_arena_grow(values->arena, list->records, &list->capacity,
                          list->n + 1, sizeof *list->records);
    if (list->records == NULL)
        return ms_fail_nomem(values->fault);
    *record = &list->records[list->n++];
    **record = (ms_record){0};
    return MS_OK;
}

static ms_err read_run(const ms_values *values, uint32_t object,
                       ms_record *record)
{
    MS_TRY(ms_sheet_read(values, object, record));
    return ms_resultwords_read(values, object, record);
}

/* Finds the names that stand beside the variants, one for each; *name is the
 * first, or MS_NONE where there are none. */
static ms_err find_names(const ms_values *values, uint32_t variants,
                         uint32_t *name)
{
    const ms_json_node *nodes = values->json->nodes;
    uint32_t list;
    MS_TRY(ms_values_optional(values, 0, "names", MS_JSON_ARRAY, &list));
    *name = list != MS_NONE ? ms_json_first(values->json, list) : MS_NONE;
    if (list == MS_NONE || nodes[list].value.n == nodes[variants].value.n)
        return MS_OK;
    return ms_json_fail(values->json, list, values->fault,
                        "was the file edited?",
                        "\"names\" and \"variants\" have %u and %u elements",
                        nodes[list].value.n, nodes[variants].value.n);
}

static ms_err read_variants(const ms_values *values, uint32_t variants,
                            struct list *list)
{
    const ms_json *json = values->json;
    uint32_t name;
    MS_TRY(find_names(values, variants, &name));
    for (uint32_t row = ms_json_first(json, variants); row != MS_NONE;
         row = json->nodes[row].next) {
        ms_record *record = NULL;
        MS_TRY(add_record(values, list, &record));
        MS_TRY(ms_results_version(values, row));
        MS_TRY((was_refused(json, row) ? read_refusal : read_run)(values, row,
                                                                  record));
        if (name == MS_NONE)
            continue;
        MS_TRY(ms_values_name(values, name, &record->name));
        name = json->nodes[name].next;
    }
    return MS_OK;
}

static ms_err read_object(const ms_values *values, struct list *list)
{
    const ms_json *json = values->json;
    ms_record *record = NULL;
    MS_TRY(ms_results_version(values, 0));
    uint32_t variants = ms_json_find(json, 0, "variants");
    if (variants != MS_NONE && json->nodes[variants].kind == MS_JSON_ARRAY)
        return read_variants(values, variants, list);
    if (ms_json_find(json, 0, "peak") == MS_NONE)
        return other_object(values, 0);
    MS_TRY(add_record(values, list, &record));
    return read_run(values, 0, record);
}

/* ---- files --------------------------------------------------------------- */

static bool begins_object(const ms_quote *source)
{
    const char *at = source->bytes + source->offset;
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
        at++;
    return *at == '{';
}

/* Reads one object after the other; the JSON of each is freed before the
 * next is read, so that memory does not grow with the file. */
static ms_err read_all(ms_quote *source, ms_arena *arena, struct list *list,
                       ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    uint32_t line = 1;
    ms_err err = MS_OK;
    while (err == MS_OK && source->offset < source->length) {
        ms_json json;
        ms_values values = {&json, arena, fault};
        ms_arena_reset(&scratch);
        if (!begins_object(source))
            err = other_text(source, fault);
        if (err == MS_OK)
            err = ms_json_next(source, &line, &scratch, &json, fault);
        if (err == MS_OK)
            err = read_object(&values, list);
    }
    ms_arena_free(&scratch);
    return err;
}

ms_err ms_results_read(const char *path, ms_arena *arena, ms_record **records,
                       uint32_t *n, ms_fault *fault)
{
    char *bytes;
    size_t length;
    MS_TRY(
        ms_files_read(path, MS_JSON_MAX_BYTES, arena, &bytes, &length, fault));
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    ms_quote source = {name, bytes, length, 0};
    return ms_results_read_text(&source, arena, records, n, fault);
}

ms_err ms_results_read_text(const ms_quote *text, ms_arena *arena,
                            ms_record **records, uint32_t *n, ms_fault *fault)
{
    struct list list = {0};
    ms_quote source = *text;
    if (source.length == 0)
        return ms_fail(fault, MS_EINPUT, source.name,
                       "save a result with: memsim run MODEL --json >FILE",
                       "the file is empty");
    MS_TRY(read_all(&source, arena, &list, fault));
    if (list.n == 0)
        return ms_fail(fault, MS_EINPUT, source.name, NULL,
                       "there is no variant in this comparison");
    *records = list.records;
    *n = list.n;
    return MS_OK;
}

typedef enum look { FOREIGN, OURS, RESULT } look;

static look look_at_object(const ms_json *json)
{
    bool version = ms_json_find(json, 0, "schema_version") != MS_NONE;
    if (version && (ms_json_find(json, 0, "peak") != MS_NONE ||
                    ms_json_find(json, 0, "variants") != MS_NONE))
        return RESULT;
    for (size_t i = 0; i < N_OURS; i++)
        if (is_object(json, 0, i))
            return OURS;
    return version ? OURS : FOREIGN;
}

static look look_at_text(const ms_quote *source)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is_text(source, i))
            return OURS;
    return FOREIGN;
}

/* Tells by its first object what a file is. A file that ends within that
 * object is recognized by its first key, which memsim always writes first. */
static ms_err look_at(const ms_quote *text, ms_arena *scratch, look *found,
                      ms_fault *fault)
{
    static const char begins[] = "{\"schema_version\":";
    ms_quote source = *text;
    ms_json json;
    uint32_t line = 1;
    *found = FOREIGN;
    if (source.length == 0)
        return MS_OK;
    if (!begins_object(&source)) {
        *found = look_at_text(&source);
        return MS_OK;
    }
    if (strncmp(source.bytes, begins, sizeof begins - 1) == 0)
        *found = RESULT;
    MS_TRY(ms_json_next(&source, &line, scratch, &json, fault));
    *found = look_at_object(&json);
    return MS_OK;
}

static ms_err look_at_file(const char *path, ms_arena *scratch, look *found,
                           ms_fault *fault)
{
    ms_quote source = {.name = path};
    char *bytes;
    MS_TRY(ms_files_read(path, MS_JSON_MAX_BYTES, scratch, &bytes,
                         &source.length, fault));
    source.bytes = bytes;
    return look_at(&source, scratch, found, fault);
}

/* A text that cannot be read counts as foreign: the reader of models, which
 * tries it next, says what is wrong. */
static ms_err look_of(const char *path, look *found, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_fault own = {0};
    struct stat status;
    *found = FOREIGN;
    if (strcmp(path, "-") == 0 || stat(path, &status) != 0 ||
        !S_ISREG(status.st_mode))
        return MS_OK;
    ms_err err = look_at_file(path, &scratch, found, &own);
    ms_arena_free(&scratch);
    return err == MS_ENOMEM ? ms_fail_nomem(fault) : MS_OK;
}

bool ms_results_is(const char *path)
{
    ms_fault fault = {0};
    look found;
    return look_of(path, &found, &fault) == MS_OK && found == RESULT;
}

ms_err ms_results_ours_text(const ms_quote *text, bool *ours, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_fault own = {0};
    look found;
    ms_err err = look_at(text, &scratch, &found, &own);
    ms_arena_free(&scratch);
    *ours = found != FOREIGN;
    return err == MS_ENOMEM ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_results_ours(const char *path, bool *ours, ms_fault *fault)
{
    look found;
    MS_TRY(look_of(path, &found, fault));
    *ours = found != FOREIGN;
    return MS_OK;
}
