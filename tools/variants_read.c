/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saved results as variants. */

#include "tools/compare.h"
#include "tools/results.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME 60u /* bytes, of what varies; longer: the file's name */

/* ---- what is told -------------------------------------------------------- */

static const char *setting(const ms_record *record, const char *key)
{
    const char *value = ms_resultwords_setting(record, key);
    return value != NULL ? value : "?";
}

/* As the figure of that run says it, in ASCII. */
static void put_subtitle(const char *subtitle, ms_text *setup)
{
    static const char times[] = "\u00d7";
    size_t length = strcspn(subtitle, ";");
    const char *sign = strstr(subtitle, times);
    if (sign != NULL && (size_t)(sign - subtitle) < length) {
        ms_text_put(setup, subtitle, (size_t)(sign - subtitle));
        ms_text_add(setup, "x");
        length -= (size_t)(sign - subtitle) + strlen(times);
        subtitle = sign + strlen(times);
    }
    ms_text_put(setup, subtitle, length);
}

/* A result without a timeline has no subtitle. */
static void put_setup(const ms_record *record, ms_text *setup)
{
    const char *sequence = setting(record, "training.sequence");
    if (record->subtitle != NULL) {
        put_subtitle(record->subtitle, setup);
        return;
    }
    ms_text_add(setup, "batch %s", setting(record, "training.batch"));
    if (strcmp(sequence, "0") != 0)
        ms_text_add(setup, " x %s tokens", sequence);
    ms_text_add(setup, ", %s, %s", setting(record, "training.precision"),
                setting(record, "training.optimizer"));
}

static ms_err set_words(ms_variant *variant, ms_arena *arena, ms_fault *fault)
{
    const ms_record *record = &variant->record;
    ms_text setup = {.arena = arena}, words = setup;
    ms_device *device = ms_arena_take(arena, 1, sizeof *device);
    if (device == NULL)
        return ms_fail_nomem(fault);
    device->name = record->device;
    variant->job = (ms_job){.device = device};
    put_setup(record, &setup);
    ms_summary_device(&variant->job, &record->report, &words);
    variant->policy = record->policy;
    variant->gpus = (uint32_t)strtoul(setting(record, "gpus"), NULL, 10);
    variant->setup = setup.bytes;
    variant->device = words.bytes;
    variant->json = ms_arena_text(arena, record->json, record->json_length);
    return setup.failed || words.failed || variant->json == NULL
               ? ms_fail_nomem(fault)
               : MS_OK;
}

ms_err ms_variants_read_file(const char *path, ms_arena *arena,
                             ms_comparison *comparison, ms_fault *fault)
{
    ms_record *records;
    uint32_t n;
    MS_TRY(ms_results_read(path, arena, &records, &n, fault));
    MS_TRY(ms_variants_check((uint64_t)comparison->n + n, fault));
    for (uint32_t i = 0; i < n; i++) {
        ms_variant *variant = &comparison->variants[comparison->n++];
        variant->record = records[i];
        variant->file =
            n == 1 ? path
                   : ms_arena_format(arena, "%s, result %u", path, i + 1);
        if (variant->file == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(set_words(variant, arena, fault));
    }
    return MS_OK;
}

/* ---- names by what varies ------------------------------------------------ */

/* What is told of a result under a key; "": the model, "policy". */
static const char *fact(const ms_record *record, const char *key)
{
    if (strcmp(key, "model") == 0)
        return record->model;
    if (strcmp(key, "policy") == 0)
        return record->policy;
    if (strcmp(key, "device") == 0)
        return record->device;
    return setting(record, key);
}

static bool varies(const ms_comparison *c, const char *key)
{
    const char *first = fact(&c->variants[0].record, key);
    for (uint32_t i = 1; i < c->n; i++)
        if (strcmp(fact(&c->variants[i].record, key), first) != 0)
            return true;
    return false;
}

static void put_fact(const ms_comparison *c, uint32_t i, const char *key,
                     ms_text *name)
{
    bool bare = strcmp(key, "model") == 0 || strcmp(key, "policy") == 0;
    const char *value = fact(&c->variants[i].record, key);
    if (!varies(c, key))
        return;
    ms_text_add(name, "%s", name->length > 0 ? ", " : "");
    if (!bare)
        ms_text_add(name,
                    "%s=", strncmp(key, "training.", 9) == 0 ? key + 9 : key);
    ms_text_put(name, value, strlen(value));
}

static void put_facts(const ms_comparison *c, uint32_t i, ms_text *name)
{
    const ms_record *first = &c->variants[0].record;
    put_fact(c, i, "model", name);
    put_fact(c, i, "policy", name);
    put_fact(c, i, "device", name);
    for (uint32_t s = 0; s < first->n_settings; s++)
        if (strcmp(first->settings[s].key, "device") != 0)
            put_fact(c, i, first->settings[s].key, name);
}

static bool tells_apart(const ms_comparison *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        size_t length = strlen(c->variants[i].name);
        if (length == 0 || length > LONGEST_NAME)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(c->variants[i].name, c->variants[j].name) == 0)
                return false;
    }
    return true;
}

static ms_err name_by_facts(ms_arena *arena, ms_comparison *c, ms_fault *fault)
{
    for (uint32_t i = 0; i < c->n; i++) {
        ms_text name = {.arena = arena};
        put_facts(c, i, &name);
        if (name.failed)
            return ms_fail_nomem(fault);
        c->variants[i].name = name.length > 0 ? name.bytes : "";
    }
    return MS_OK;
}

/* ---- names of files ------------------------------------------------------ */

static ms_err name_by_files(ms_comparison *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].file != NULL)
            c->variants[i].name = c->variants[i].file;
    return MS_OK;
}

ms_err ms_variants_read_names(ms_arena *arena, ms_comparison *comparison,
                              ms_fault *fault)
{
    bool all = true;
    for (uint32_t i = 0; i < comparison->n; i++)
        all &= comparison->variants[i].file != NULL;
    if (!all)
        return name_by_files(comparison);
    MS_TRY(name_by_facts(arena, comparison, fault));
    return tells_apart(comparison) ? MS_OK : name_by_files(comparison);
}
