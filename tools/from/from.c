/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/from.h"
#include "tools/from/compose.h"
#include "tools/from/formats.h"
#include "tools/from/modelwidth.h"
#include "tools/from/versions.h"
#include "tools/job/settings.h"

#include <string.h>
#include <unistd.h>

#define MOST_FILES 16u

typedef struct reader {
    ms_facts facts;
    ms_from *from;
    ms_arena *arena;
    ms_fault *fault;
} reader;

/* ---- files --------------------------------------------------------------- */

/* Was it read already? */
static bool is_read(const reader *r, const char *path)
{
    for (uint32_t i = 0; i < r->from->n_files; i++)
        if (strcmp(r->from->files[i].path, path) == 0)
            return true;
    return false;
}

static ms_err read_file(reader *r, const char *path)
{
    const ms_format *format;
    ms_pairs *pairs = ms_arena_take(r->arena, 1, sizeof *pairs);
    if (pairs == NULL)
        return ms_fail_nomem(r->fault);
    if (is_read(r, path))
        return MS_OK;
    if (r->from->n_files == MOST_FILES)
        return ms_fail(r->fault, MS_EUSAGE, path, NULL,
                       "more than %u files of settings", MOST_FILES);
    MS_TRY(ms_formats_open(path, r->arena, pairs, &format, r->fault));
    r->from->files[r->from->n_files++] =
        (ms_from_file){.path = path, .format = format->name};
    return ms_versions_read(&r->facts, format, pairs, r->fault);
}

/* A file that another names: as it is written, or beside that one. */
static const char *find_file(const reader *r, const ms_fact *fact)
{
    const char *name = fact->pairs->source.name;
    const char *slash = strrchr(name, '/');
    const char *file = strrchr(fact->value, '/');
    const char *tries[3] = {fact->value, NULL, NULL};
    int folder = slash != NULL ? (int)(slash + 1 - name) : 0;
    tries[1] = ms_arena_format(r->arena, "%.*s%s", folder, name, fact->value);
    tries[2] = ms_arena_format(r->arena, "%.*s%s", folder, name,
                               file != NULL ? file + 1 : fact->value);
    for (int i = 0; i < 3; i++)
        if (tries[i] != NULL && access(tries[i], R_OK) == 0)
            return tries[i];
    return NULL;
}

static ms_err follow(reader *r, const ms_fact *fact)
{
    const char *place = ms_facts_place(&r->facts, fact);
    const char *path = find_file(r, fact);
    if (path == NULL &&
        r->from->n_files > 1) /* the other one is that, likely */
        return MS_OK;
    if (path == NULL)
        return ms_facts_say(&r->facts, &r->facts.warnings, r->fault,
                            "%s: %s=%.80s is not here: give it with one more "
                            "--from",
                            place, ms_pairs_name(fact->pair), fact->value);
    if (is_read(r, path))
        return MS_OK;
    MS_TRY(ms_facts_say(&r->facts, &r->facts.told, r->fault,
                        "%s names %s, which is read, too", place, path));
    return read_file(r, path);
}

static ms_err read_files(reader *r, const ms_arguments *arguments)
{
    for (uint32_t i = 0; i < arguments->n_given; i++)
        if (arguments->given[i].option->id == MS_OPTION_FROM)
            MS_TRY(read_file(r, arguments->given[i].value));
    for (uint32_t i = 0; i < r->facts.n_files; i++)
        MS_TRY(follow(r, &r->facts.files[i]));
    return MS_OK;
}

/* ---- all ----------------------------------------------------------------- */

static ms_err find_width(reader *r, const ms_arguments *arguments,
                         uint64_t *width)
{
    const char *model = arguments->n_operands > 0
                            ? arguments->operands[0]
                            : ms_facts_value(&r->facts, "model");
    const char *name = model != NULL ? ms_modelwidth_named(model) : NULL;
    *width = 0;
    if (r->facts.n_autos == 0 || model == NULL)
        return MS_OK;
    return ms_modelwidth_find(name != NULL ? name : model, r->arena, width,
                              r->fault);
}

static ms_err describe(const reader *r, const char *name,
                       const ms_arguments *arguments)
{
    ms_text text = {.arena = r->arena};
    ms_settings_again(name, arguments, &text);
    if (text.failed)
        return ms_fail_nomem(r->fault);
    r->from->command = text.bytes;
    r->from->told = r->facts.told.all;
    r->from->n_told = r->facts.told.n;
    r->from->warnings = r->facts.warnings.all;
    r->from->n_warnings = r->facts.warnings.n;
    return MS_OK;
}

ms_err ms_from_expand(const char *name, uint16_t command, ms_arena *arena,
                      ms_arguments *arguments, ms_from *from, ms_fault *fault)
{
    reader r = {.facts = {.arena = arena},
                .from = from,
                .arena = arena,
                .fault = fault};
    ms_arguments out;
    *from = (ms_from){.files = NULL};
    if (ms_options_value(arguments, MS_OPTION_FROM) == NULL)
        return MS_OK;
    from->files = ms_arena_take(arena, MOST_FILES, sizeof *from->files);
    if (from->files == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(read_files(&r, arguments));
    uint64_t width = 0;
    MS_TRY(find_width(&r, arguments, &width));
    MS_TRY(ms_facts_settle(&r.facts, width, fault));
    MS_TRY(
        ms_compose_arguments(&r.facts, command, arguments, arena, &out, fault));
    *arguments = out;
    return describe(&r, name, arguments);
}

/* ---- as data ------------------------------------------------------------- */

static void put_lines(const char *key, const char *const *lines, uint32_t n,
                      ms_text *text)
{
    ms_text_add(text, ", \"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) {
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        ms_text_json(text, lines[i]);
    }
    ms_text_add(text, "]");
}

void ms_from_json(const ms_from *from, ms_text *text)
{
    ms_text_add(text, "{\"files\": [");
    for (uint32_t i = 0; i < from->n_files; i++) {
        ms_text_add(text, "%s{\"path\": ", i > 0 ? ", " : "");
        ms_text_json(text, from->files[i].path);
        ms_text_add(text, ", \"format\": ");
        ms_text_json(text, from->files[i].format);
        ms_text_add(text, "}");
    }
    ms_text_add(text, "], \"command\": ");
    ms_text_json(text, from->command);
    put_lines("told", from->told, from->n_told, text);
    put_lines("warnings", from->warnings, from->n_warnings, text);
    ms_text_add(text, "}");
}
