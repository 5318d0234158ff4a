/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saved results as variants. */

#include "graphs/device.h"
#include "plots/record/record.h"
#include "sim/report.h"
#include "tools/cli/compare/compare.h"
#include "tools/job/job.h"
#include "tools/job/settings_table.h"
#include "tools/results/results.h"
#include "tools/words/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME 60u /* bytes, of what varies; longer: the file's name */

/* ---- what is told -------------------------------------------------------- */

static const char *setting(const ms_record *record, const char *key)
{
    const char *value = ms_resultwords_setting(record, key);
    const ms_setting *row = ms_settings_table_find(key);
    if (value == NULL && row != NULL && row->before != NULL)
        return row->before;
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

/* A result without a timeline does not say it. */
static void put_setup(const ms_record *record, ms_text *setup)
{
    const char *sequence = setting(record, "training.sequence");
    if (record->ranks != NULL) {
        put_subtitle(record->subtitle, setup);
        return;
    }
    ms_text_add(setup, "batch %s", setting(record, "training.batch"));
    if (strcmp(sequence, "0") != 0)
        ms_text_add(setup, " x %s tokens", sequence);
    ms_text_add(setup, ", %s, %s", setting(record, "training.precision"),
                setting(record, "training.optimizer"));
}

/* As it was when it was simulated, but for the hint. */
static ms_err set_refusal(ms_variant *variant)
{
    const ms_record *record = &variant->record;
    bool infeasible = record->report.status == MS_INFEASIBLE;
    ms_fail(&variant->fault, infeasible ? MS_EINFEASIBLE : MS_EINPUT,
            variant->file, NULL, "%s", record->refused);
    variant->refused = record->refused;
    variant->policy = record->policy;
    return MS_OK;
}

/* With the other stages, which take turns. */
static uint32_t gpus_of(const ms_record *record)
{
    bool has_turns = record->ranks != NULL && record->ranks[0].n_turns > 0;
    return record->data_ranks * (has_turns ? record->report.n_ranks : 1);
}

static ms_err set_words(ms_variant *variant, ms_arena *arena, ms_fault *fault)
{
    const ms_record *record = &variant->record;
    ms_text setup = {.arena = arena}, words = setup;
    if (record->refused != NULL)
        return set_refusal(variant);
    ms_device *device = ms_arena_take(arena, 1, sizeof *device);
    if (device == NULL)
        return ms_fail_nomem(fault);
    device->name = record->device;
    variant->job = (ms_job){.device = device};
    put_setup(record, &setup);
    ms_devicewords_device(&variant->job, &record->report, &words);
    variant->policy = record->policy;
    variant->allocator = setting(record, "allocator");
    variant->gpus = gpus_of(record);
    if (record->ranks == NULL) /* which tells no more than what was asked for */
        variant->gpus = (uint32_t)strtoul(setting(record, "gpus"), NULL, 10);
    variant->work = strtod(setting(record, "training.batch"), NULL);
    if (record->ranks != NULL)
        variant->work *= record->data_ranks > 1 ? record->data_ranks : 1.0;
    else
        variant->work *= variant->gpus > 1 ? variant->gpus : 1.0;
    /* Ranks that split layers have the same tokens. */
    if (record->report.tokens_per_second >= 0.0)
        variant->work =
            round(record->report.tokens_per_second *
                  (double)record->report.ranks[0].time.step_ns * 1e-9);
    variant->setup = setup.bytes;
    variant->device = words.bytes;
    variant->json = record->json;
    variant->json_length = record->json_length;
    return setup.failed || words.failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_variants_read_text(const ms_quote *text, ms_arena *arena,
                             ms_comparison *c, ms_fault *fault)
{
    ms_record *records;
    uint32_t n;
    MS_TRY(ms_results_read_text(text, arena, &records, &n, fault));
    ms_variant *room =
        ms_arena_grow(arena, c->variants, &c->capacity, c->n + n, sizeof *room);
    if (room == NULL)
        return ms_fail_nomem(fault);
    c->variants = room;
    c->n_sources++;
    for (uint32_t i = 0; i < n; i++) {
        ms_variant *variant = &c->variants[c->n++];
        *variant = (ms_variant){.record = records[i]};
        variant->file =
            n == 1 ? text->name
                   : ms_arena_format(arena, "%s, result %u", text->name, i + 1);
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
    const char *first = NULL;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->variants[i].refused != NULL)
            continue;
        const char *its = fact(&c->variants[i].record, key);
        if (first != NULL && strcmp(its, first) != 0)
            return true;
        first = its;
    }
    return false;
}

static void put_fact(const ms_comparison *c, uint32_t i, const char *key,
                     ms_text *name)
{
    const ms_setting *row = ms_settings_table_find(key);
    bool bare = strcmp(key, "model") == 0 || (row != NULL && row->is_bare);
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
    const ms_record *its = &c->variants[i].record;
    put_fact(c, i, "model", name);
    put_fact(c, i, "policy", name);
    put_fact(c, i, "device", name);
    for (uint32_t s = 0; s < its->n_settings; s++)
        if (strcmp(its->settings[s].key, "device") != 0)
            put_fact(c, i, its->settings[s].key, name);
}

static bool tells_apart(const ms_comparison *c, size_t longest)
{
    for (uint32_t i = 0; i < c->n; i++) {
        size_t length = strlen(c->variants[i].name);
        if (length == 0 || length > longest)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(c->variants[i].name, c->variants[j].name) == 0)
                return false;
    }
    return true;
}

/* Of a refused variant no more is known than what its comparison calls it. */
static ms_err name_by_facts(ms_arena *arena, ms_comparison *c, ms_fault *fault)
{
    for (uint32_t i = 0; i < c->n; i++) {
        ms_text name = {.arena = arena};
        const ms_record *record = &c->variants[i].record;
        if (record->refused == NULL)
            put_facts(c, i, &name);
        else
            ms_text_add(&name, "%s",
                        record->name != NULL ? record->name : record->policy);
        if (name.failed)
            return ms_fail_nomem(fault);
        c->variants[i].name = name.length > 0 ? name.bytes : "";
    }
    return MS_OK;
}

/* ---- other names --------------------------------------------------------- */

static ms_err name_by_files(ms_comparison *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->variants[i].file != NULL)
            c->variants[i].name = c->variants[i].file;
    return MS_OK;
}

/* The names of that comparison, where all come from one. */
static bool name_as_saved(ms_comparison *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        c->variants[i].name = c->variants[i].record.name;
        if (c->variants[i].name == NULL)
            return false;
    }
    return c->n_sources == 1 && tells_apart(c, SIZE_MAX);
}

ms_err ms_variants_read_names(ms_arena *arena, ms_comparison *comparison,
                              ms_fault *fault)
{
    bool all = true;
    for (uint32_t i = 0; i < comparison->n; i++)
        all &= comparison->variants[i].file != NULL;
    if (!all)
        return name_by_files(comparison);
    if (name_as_saved(comparison))
        return MS_OK;
    MS_TRY(name_by_facts(arena, comparison, fault));
    return tells_apart(comparison, LONGEST_NAME) ? MS_OK
                                                 : name_by_files(comparison);
}
