/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "graphs/json/json.h"
#include "plots/plots.h"
#include "sim/base/files.h"
#include "sim/base/size.h"
#include "tools/cli/check/gate.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TOLERANCE 3.0 /* percent */

typedef struct reader {
    ms_gate *check;
    ms_json json;
    ms_arena *arena;
    ms_fault *fault;
    double tolerance, time_tolerance; /* of cases that do not say theirs */
} reader;

/* ---- values -------------------------------------------------------------- */

static const ms_json_node *node(const reader *r, uint32_t row)
{
    return &r->json.nodes[row];
}

static ms_err need(const reader *r, uint32_t row, ms_json_kind kind,
                   const char *what)
{
    if (node(r, row)->kind == kind)
        return MS_OK;
    return ms_json_fail(&r->json, row, r->fault, NULL, "must be %s, is %s",
                        what, ms_json_kind_name(&r->json, row));
}

static ms_err read_text(const reader *r, uint32_t row, const char **text)
{
    MS_TRY(need(r, row, MS_JSON_STRING, "a string"));
    *text = node(r, row)->value.s;
    return MS_OK;
}

/* null: there is none, negative. */
static ms_err read_percent(const reader *r, uint32_t row, double *percent)
{
    const ms_json_node *it = node(r, row);
    *percent = it->kind == MS_JSON_INT ? (double)it->value.i : it->value.f;
    if (it->kind == MS_JSON_NULL) {
        *percent = -1.0;
        return MS_OK;
    }
    if ((it->kind != MS_JSON_INT && it->kind != MS_JSON_FLOAT) || *percent < 0)
        return ms_json_fail(&r->json, row, r->fault, NULL,
                            "must be a number of percent, 0 or more, or null");
    return MS_OK;
}

static ms_err fail_unknown(const reader *r, uint32_t row, const char *keys)
{
    return ms_json_fail_key(&r->json, row, r->fault, keys, "unknown key \"%s\"",
                            node(r, row)->key);
}

/* ---- settings ------------------------------------------------------------ */

/* The value as the command line spells it; NULL: out of memory. */
static const char *spell(const reader *r, uint32_t row)
{
    const ms_json_node *it = node(r, row);
    switch (it->kind) {
    case MS_JSON_STRING:
        return it->value.s;
    case MS_JSON_INT:
        return ms_arena_format(r->arena, "%lld", (long long)it->value.i);
    case MS_JSON_FLOAT:
        return ms_arena_format(r->arena, "%.17g", it->value.f);
    default:
        return it->value.b ? "yes" : "no";
    }
}

static ms_err read_setting(const reader *r, uint32_t row, ms_job *job)
{
    ms_fault own = {.caret = -1};
    uint8_t kind = node(r, row)->kind;
    if (kind != MS_JSON_STRING && kind != MS_JSON_INT &&
        kind != MS_JSON_FLOAT && kind != MS_JSON_BOOL)
        return ms_json_fail(&r->json, row, r->fault, NULL,
                            "must be a string, a number, true or false");
    const char *value = spell(r, row);
    if (value == NULL)
        return ms_fail_nomem(r->fault);
    ms_err err = ms_settings_put(job, node(r, row)->key, value, r->arena, &own);
    if (err != MS_EUSAGE && err != MS_EINPUT) {
        if (err != MS_OK)
            *r->fault = own;
        return err;
    }
    return ms_json_fail(&r->json, row, r->fault,
                        own.hint[0] != '\0' ? own.hint : NULL, "%s", own.what);
}

static ms_err read_settings(const reader *r, uint32_t row, ms_job *job)
{
    MS_TRY(need(r, row, MS_JSON_OBJECT, "an object"));
    for (uint32_t i = ms_json_first(&r->json, row); i != MS_NONE;
         i = node(r, i)->next)
        MS_TRY(read_setting(r, i, job));
    return ms_settings_check(job, r->fault);
}

/* ---- cases --------------------------------------------------------------- */

/* A path is one from the folder of the file; a bare word is a built-in
 * model. */
static const char *model_of(const reader *r, const char *model)
{
    const char *slash = strrchr(r->check->path, '/');
    size_t length = strlen(model);
    bool is_path = strchr(model, '/') != NULL ||
                   (length > 5 && strcmp(model + length - 5, ".json") == 0);
    if (!is_path || model[0] == '/' || slash == NULL)
        return model;
    return ms_arena_format(r->arena, "%.*s/%s", (int)(slash - r->check->path),
                           r->check->path, model);
}

static ms_err read_limit(const reader *r, uint32_t row, uint64_t *bytes)
{
    ms_fault own = {.caret = -1};
    const char *text;
    MS_TRY(read_text(r, row, &text));
    if (ms_size_bytes(text, "limit", bytes, &own) == MS_OK && *bytes > 0)
        return MS_OK;
    return ms_json_fail(&r->json, row, r->fault,
                        own.hint[0] != '\0' ? own.hint : "e.g. \"75GiB\"",
                        "is no size of memory");
}

static ms_err read_key(const reader *r, uint32_t row, ms_gate_case *of)
{
    const char *key = node(r, row)->key;
    if (strcmp(key, "name") == 0)
        return read_text(r, row, &of->name);
    if (strcmp(key, "model") == 0)
        return read_text(r, row, &of->model);
    if (strcmp(key, "settings") == 0)
        return read_settings(r, row, &of->job);
    if (strcmp(key, "limit") == 0)
        return read_limit(r, row, &of->limit_bytes);
    if (strcmp(key, "tolerance_percent") == 0)
        return read_percent(r, row, &of->tolerance);
    if (strcmp(key, "time_tolerance_percent") == 0)
        return read_percent(r, row, &of->time_tolerance);
    return fail_unknown(r, row,
                        "a case has: name, model, settings, limit, "
                        "tolerance_percent, time_tolerance_percent");
}

static ms_err read_case(reader *r, uint32_t row)
{
    ms_gate *check = r->check;
    ms_gate_case *of = &check->cases[check->n];
    MS_TRY(need(r, row, MS_JSON_OBJECT, "an object"));
    *of = (ms_gate_case){.tolerance = r->tolerance,
                         .time_tolerance = r->time_tolerance};
    ms_settings_init(&of->job);
    for (uint32_t i = ms_json_first(&r->json, row); i != MS_NONE;
         i = node(r, i)->next)
        MS_TRY(read_key(r, i, of));
    if (of->name == NULL || of->model == NULL)
        return ms_json_fail(&r->json, row, r->fault, NULL,
                            "a case needs a name and a model");
    for (uint32_t i = 0; i < check->n; i++)
        if (strcmp(check->cases[i].name, of->name) == 0)
            return ms_json_fail(&r->json, row, r->fault,
                                "give each a name of its own",
                                "two cases are called \"%s\"", of->name);
    if (of->tolerance < 0)
        of->tolerance = DEFAULT_TOLERANCE;
    of->job.model = model_of(r, of->model);
    of->policy = ms_settings_policy(&of->job, r->arena);
    if (of->job.model == NULL || of->policy == NULL)
        return ms_fail_nomem(r->fault);
    check->n++;
    return MS_OK;
}

static ms_err read_cases(reader *r, uint32_t row)
{
    MS_TRY(need(r, row, MS_JSON_ARRAY, "an array"));
    r->check->cases = ms_arena_take(r->arena, node(r, row)->value.n + 1,
                                    sizeof *r->check->cases);
    if (r->check->cases == NULL)
        return ms_fail_nomem(r->fault);
    if (node(r, row)->value.n == 0)
        return ms_json_fail(&r->json, row, r->fault, NULL, "has no case");
    for (uint32_t i = ms_json_first(&r->json, row); i != MS_NONE;
         i = node(r, i)->next)
        MS_TRY(read_case(r, i));
    return MS_OK;
}

/* ---- files --------------------------------------------------------------- */

static ms_err open_json(reader *r, const char *path, const char *version,
                        const char *form)
{
    char *bytes;
    size_t length;
    MS_TRY(ms_files_read(path, MS_JSON_MAX_BYTES, r->arena, &bytes, &length,
                         r->fault));
    MS_TRY(ms_json_read(path, bytes, length, r->arena, &r->json, r->fault));
    MS_TRY(need(r, 0, MS_JSON_OBJECT, "an object"));
    uint32_t row = ms_json_find(&r->json, 0, version);
    if (row != MS_NONE && node(r, row)->kind == MS_JSON_INT &&
        node(r, row)->value.i == 1)
        return MS_OK;
    return ms_json_fail(&r->json, row == MS_NONE ? 0 : row, r->fault, form,
                        "a file of this kind says \"%s\": 1", version);
}

static ms_err read_root(reader *r)
{
    uint32_t cases = ms_json_find(&r->json, 0, "cases");
    for (uint32_t i = ms_json_first(&r->json, 0); i != MS_NONE;
         i = node(r, i)->next) {
        const char *key = node(r, i)->key;
        if (strcmp(key, "tolerance_percent") == 0)
            MS_TRY(read_percent(r, i, &r->tolerance));
        else if (strcmp(key, "time_tolerance_percent") == 0)
            MS_TRY(read_percent(r, i, &r->time_tolerance));
        else if (strcmp(key, "cases") != 0 && strcmp(key, "memsim_checks") != 0)
            return fail_unknown(r, i,
                                "the file has: memsim_checks, cases, "
                                "tolerance_percent, time_tolerance_percent");
    }
    if (cases == MS_NONE)
        return ms_json_fail(&r->json, 0, r->fault, "see memsim help checks",
                            "has no \"cases\"");
    return read_cases(r, cases);
}

static ms_err read_number(const reader *r, uint32_t row, const char *key,
                          uint64_t *number)
{
    uint32_t i = ms_json_find(&r->json, row, key);
    if (i == MS_NONE)
        return MS_OK;
    MS_TRY(need(r, i, MS_JSON_INT, "a whole number"));
    if (node(r, i)->value.i < 0)
        return ms_json_fail(&r->json, i, r->fault, NULL, "is negative");
    *number = (uint64_t)node(r, i)->value.i;
    return MS_OK;
}

static ms_err read_baseline(reader *r)
{
    ms_gate *check = r->check;
    if (access(check->baseline, F_OK) != 0)
        return MS_OK;
    MS_TRY(open_json(r, check->baseline, "memsim_baseline",
                     "memsim check FILE --update writes it"));
    uint32_t cases = ms_json_find(&r->json, 0, "cases");
    for (uint32_t i = 0; cases != MS_NONE && i < check->n; i++) {
        ms_gate_case *of = &check->cases[i];
        uint32_t row = ms_json_find(&r->json, cases, of->name);
        if (row == MS_NONE)
            continue;
        MS_TRY(need(r, row, MS_JSON_OBJECT, "an object"));
        MS_TRY(read_number(r, row, "used_bytes", &of->before.used_bytes));
        MS_TRY(read_number(r, row, "step_ns", &of->before.step_ns));
    }
    return MS_OK;
}

ms_err ms_gate_file_read(ms_gate *check, ms_arena *arena, ms_fault *fault)
{
    reader r = {.check = check,
                .arena = arena,
                .fault = fault,
                .tolerance = DEFAULT_TOLERANCE,
                .time_tolerance = -1.0};
    MS_TRY(
        open_json(&r, check->path, "memsim_checks", "see memsim help checks"));
    MS_TRY(read_root(&r));
    return read_baseline(&r);
}

ms_err ms_gate_file_update(const ms_gate *check, ms_arena *arena,
                           ms_fault *fault)
{
    ms_text text = {.arena = arena};
    uint32_t n = 0;
    ms_text_add(&text, "{\"memsim_baseline\": 1,\n \"cases\": {");
    for (uint32_t i = 0; i < check->n; i++) {
        const ms_gate_case *of = &check->cases[i];
        const ms_gate_numbers *numbers =
            of->refused != NULL ? &of->before : &of->now;
        if (numbers->used_bytes == 0)
            continue;
        ms_text_add(&text, "%s\n  ", n++ > 0 ? "," : "");
        ms_text_json(&text, of->name);
        ms_text_add(&text, ": {\"used_bytes\": ");
        ms_text_u64(&text, numbers->used_bytes);
        ms_text_add(&text, ", \"step_ns\": ");
        ms_text_u64(&text, numbers->step_ns);
        ms_text_add(&text, "}");
    }
    ms_text_add(&text, "\n }}\n");
    if (text.failed)
        return ms_fail_nomem(fault);
    return ms_output_write(check->baseline, text.bytes, text.length, fault);
}
