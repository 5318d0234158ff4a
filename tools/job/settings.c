/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads arguments into a job, and writes a job back as words. */

#include "tools/job/settings.h"
#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/lengths.h"
#include "tools/job/settings_table.h"
#include "tools/options/numberfile.h"
#include "tools/options/options.h"
#include "tools/options/optionwords.h"
#include "tools/terminal/quantity.h"

#include <assert.h>
#include <string.h>

void ms_settings_init(ms_job *job)
{
    ms_fault fault = {0};
    *job = (ms_job){0};
    ms_training_init(&job->training);
    ms_err err = ms_device_find(MS_DEFAULT_DEVICE, &job->device, &fault);
    assert(err == MS_OK || job->device == NULL); /* else memory has run out */
    (void)err;
}

/* ---- reading ------------------------------------------------------------- */

static ms_err set_key(const char *setting, ms_arena *arena, ms_job *job,
                      ms_override *overrides, ms_fault *fault)
{
    const char *equals = strchr(setting, '=');
    if (equals == NULL || equals == setting)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "write it as --set training.batch=4",
                       "\"--set %s\" is not KEY=VALUE", setting);
    char *key = ms_arena_text(arena, setting, (size_t)(equals - setting));
    if (key == NULL)
        return ms_fail_nomem(fault);
    if (strncmp(key, "model.", 6) != 0)
        return ms_training_set(&job->training, key, equals + 1, fault);
    overrides[job->n_overrides++] =
        (ms_override){.key = key + 6, .value = equals + 1};
    return MS_OK;
}

static ms_err read_one(const ms_given *given, ms_arena *arena, ms_job *job,
                       ms_override *overrides, ms_fault *fault)
{
    const ms_setting *row = ms_settings_table_option(given->option->id);
    if (given->option->id == MS_OPTION_SETTING)
        return ms_training_set(&job->training, given->option->setting,
                               given->value, fault);
    if (given->option->id == MS_OPTION_SET)
        return set_key(given->value, arena, job, overrides, fault);
    if (given->option->id == MS_OPTION_PAGE)
        overrides[job->n_overrides++] =
            (ms_override){.key = "page", .value = given->value};
    if (given->option->id == MS_OPTION_PLUGIN)
        job->plugins[job->n_plugins++] = given->value;
    /* options that join their values are read later */
    if (row == NULL || row->joins)
        return MS_OK;
    if (row->type == MS_SETTING_BYTES)
        MS_TRY(ms_quantity_unit(given->value, row->flag, fault));
    return row->read(row, given->value, arena, job, fault);
}

/* The model, the program and a page may each come from standard input, but only
 * one of them: the second would find it at its end. */
static ms_err check_input(const ms_arguments *arguments, ms_fault *fault)
{
    bool is_taken = strcmp(arguments->operands[0], "-") == 0;
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        if ((given->option->id != MS_OPTION_PROGRAM &&
             given->option->id != MS_OPTION_PAGE) ||
            strcmp(given->value, "-") != 0)
            continue;
        if (is_taken)
            return ms_fail(fault, MS_EUSAGE, NULL, "name a file instead",
                           "\"--%s -\": standard input can be read only once",
                           given->option->name);
        is_taken = true;
    }
    return MS_OK;
}

/* A wall delays ops in time, which only a device gives. */
static ms_err check_wall(const ms_arguments *arguments, ms_job *job,
                         ms_fault *fault)
{
    const char *order = ms_options_value(arguments, MS_OPTION_BOOK);
    if (!job->wall)
        return MS_OK;
    if (order != NULL && strcmp(order, "device") != 0)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                       "option \"--wall\" books memory by device time, not "
                       "with \"--book %s\"",
                       order);
    job->book_device = true;
    return MS_OK;
}

/* A real pool takes requests in the order in which the host makes them,
 * which some settings exclude. */
ms_err ms_settings_check(const ms_job *job, ms_fault *fault)
{
    MS_TRY(ms_lengths_check(job, fault));
    if (job->allocator == NULL && job->steps > 1)
        return ms_fail(fault, MS_EUSAGE, "--steps",
                       "say --allocator torch, or leave it out",
                       "with the exact pool every step is as the one before");
    if (job->allocator == NULL || !job->book_device)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--allocator", "leave one of the two out",
                   "an allocator works in host issue order, \"%s\" "
                   "books memory by device time",
                   job->wall ? "--wall" : "--book device");
}

ms_err ms_settings_open(const ms_arguments *arguments, ms_arena *arena,
                        ms_job *job, ms_fault *fault)
{
    ms_override *overrides =
        ms_arena_take(arena, arguments->n_given + 1, sizeof *overrides);
    const char **plugins =
        ms_arena_take(arena, arguments->n_given + 1, sizeof *plugins);
    if (overrides == NULL || plugins == NULL)
        return ms_fail_nomem(fault);
    ms_settings_init(job);
    if (job->device == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_optionwords_twice(arguments, fault));
    MS_TRY(check_input(arguments, fault));
    job->plugins = plugins;
    job->model = arguments->operands[0];
    job->from_json = arguments->from_json;
    job->overrides = overrides;
    for (uint32_t i = 0; i < arguments->n_given; i++)
        MS_TRY(read_one(&arguments->given[i], arena, job, overrides, fault));
    return check_wall(arguments, job, fault);
}

ms_err ms_settings_shared(const ms_arguments *arguments, ms_arena *arena,
                          ms_job *job, ms_fault *fault)
{
    MS_TRY(ms_settings_open(arguments, arena, job, fault));
    /* Where options make variants, each variant is checked when it is
     * lowered. */
    if (ms_options_value(arguments, MS_OPTION_GRID) != NULL ||
        ms_options_value(arguments, MS_OPTION_ALLOCATORS) != NULL)
        return MS_OK;
    return ms_settings_check(job, fault);
}

static ms_err read_policies(const ms_arguments *arguments, ms_arena *arena,
                            ms_job *job, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++)
        if (arguments->given[i].option->id == MS_OPTION_POLICY)
            MS_TRY(ms_numberfile_parse(arguments->given[i].value, arena,
                                       &job->spec, fault));
    return MS_OK;
}

ms_err ms_settings_read(const ms_arguments *arguments, ms_arena *arena,
                        ms_job *job, ms_fault *fault)
{
    MS_TRY(ms_settings_shared(arguments, arena, job, fault));
    return read_policies(arguments, arena, job, fault);
}

ms_err ms_settings_usual(const ms_arguments *arguments, ms_arena *arena,
                         ms_job *job, ms_fault *fault)
{
    MS_TRY(ms_settings_open(arguments, arena, job, fault));
    MS_TRY(read_policies(arguments, arena, job, fault));
    ms_defaultpool_pool(job);
    return ms_settings_check(job, fault);
}

/* Copies the overrides so far, which other jobs may share, and adds one. */
static ms_err add_override(const char *key, const char *value, ms_arena *arena,
                           ms_job *job, ms_fault *fault)
{
    uint32_t n = job->n_overrides;
    ms_override *all = ms_arena_take_raw(arena, n + 1, sizeof *all);
    if (all == NULL)
        return ms_fail_nomem(fault);
    if (n > 0)
        memcpy(all, job->overrides, n * sizeof *all);
    all[n] = (ms_override){.key = key, .value = value};
    job->overrides = all;
    job->n_overrides = n + 1;
    return MS_OK;
}

ms_err ms_settings_put(ms_job *job, const char *key, const char *value,
                       ms_arena *arena, ms_fault *fault)
{
    const ms_setting *row = ms_settings_table_find(key);
    if (row != NULL && row->in_grid)
        return row->read(row, value, arena, job, fault);
    if (strncmp(key, "model.", 6) == 0)
        return add_override(key + 6, value, arena, job, fault);
    const ms_policy *policy = NULL;
    if (strchr(key, '.') == NULL && ms_training_row(key) == MS_NONE)
        MS_TRY(ms_spec_key_find(key, arena, &policy, fault));
    if (policy == NULL)
        return ms_training_set(&job->training, key, value, fault);
    MS_TRY(ms_numberfile_expand(value, arena, &value, fault));
    return ms_spec_key_put(policy, value, arena, &job->spec, fault);
}

/* ---- in words ------------------------------------------------------------ */

const char *ms_settings_policy(const ms_job *job, ms_arena *arena)
{
    return job->program == NULL
               ? ms_spec_print(&job->spec, arena)
               : ms_arena_format(arena, "program:%s", job->program);
}

static bool is_field(uint32_t row, const char *name)
{
    return strcmp(ms_training_fields[row].name, name) == 0;
}

static ms_label value_of(const ms_training *training, uint32_t row)
{
    ms_label value = {""};
    ms_training_value(training, row, value.s, sizeof value.s);
    return value;
}

ms_label ms_settings_value(const ms_training *training, const char *field)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (is_field(row, field))
            return value_of(training, row);
    return (ms_label){""};
}

bool ms_settings_is_default(const ms_job *job, uint32_t row)
{
    return (job->training.was_set >> row & 1) == 0 &&
           !ms_lengths_says(job, ms_training_fields[row].name) &&
           !(job->global_batch > 0 && is_field(row, "batch"));
}

void ms_settings_defaults(const ms_job *job, const ms_training *training,
                          ms_text *text)
{
    const char *between = "";
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        ms_label value = value_of(training, row);
        bool unused = (training->sequence == 0 && is_field(row, "sequence")) ||
                      ms_training_fields[row].group != NULL ||
                      ms_training_fields[row].is_extra;
        if (!ms_settings_is_default(job, row) || unused)
            continue;
        ms_text_add(text, "%s%s=%s", between, ms_training_fields[row].name,
                    value.s);
        between = " ";
    }
    if (!job->device_given) {
        ms_text_add(text, "%s--device=%s", between, job->device->name);
        between = " ";
    }
    if (job->usual)
        ms_text_add(text, "%s--allocator=%s", between,
                    ms_allocator_name(job->allocator));
}

void ms_settings_node_defaults(const ms_job *job, unsigned pools, ms_text *text)
{
    const struct {
        ms_pool_kind pool;
        const char *option;
        uint64_t given, bytes;
    } rows[] = {
        {MS_HOST_POOL, "--host-memory", job->host_memory_bytes,
         job->device->host_memory_bytes},
        {MS_NVME_POOL, "--nvme", job->nvme_bytes, job->device->nvme_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((pools >> rows[i].pool & 1u) == 0 || rows[i].given > 0 ||
            rows[i].bytes == 0)
            continue;
        ms_text_add(text, "%s%s=", text->length > 0 ? " " : "", rows[i].option);
        bool whole = rows[i].bytes % (UINT64_C(1) << 30) == 0;
        ms_text_u64(text, whole ? rows[i].bytes >> 30 : rows[i].bytes);
        ms_text_add(text, whole ? "GiB" : "");
    }
}

/* ---- the command line again ---------------------------------------------- */

static void quote(const char *word, ms_text *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%";
    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        ms_text_add(text, " %s", word);
        return;
    }
    ms_text_add(text, " '");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            ms_text_add(text, "'\\'");
        ms_text_put(text, word, 1);
    }
    ms_text_add(text, "'");
}

bool ms_settings_shapes(ms_option_id id)
{
    return ms_settings_table_option(id) != NULL || id == MS_OPTION_SET ||
           id == MS_OPTION_SETTING || id == MS_OPTION_PLUGIN ||
           id == MS_OPTION_PAGE || id == MS_OPTION_ALLOCATORS;
}

static void put_option(const ms_option *option, const char *value,
                       ms_text *text)
{
    if (option->letter != 0)
        ms_text_add(text, " -%c", option->letter);
    else
        ms_text_add(text, " --%s", option->name);
    if (option->takes == MS_TAKES_VALUE)
        quote(ms_optionwords_own(option, value, text->arena), text);
}

void ms_settings_command(const ms_arguments *arguments, const char *extra,
                         ms_text *text)
{
    ms_text_add(text, "memsim run");
    quote(arguments->operands[0], text);
    for (uint32_t i = 0; i < arguments->n_given; i++)
        if (ms_settings_shapes(arguments->given[i].option->id))
            put_option(arguments->given[i].option, arguments->given[i].value,
                       text);
    ms_text_add(text, " %s", extra);
}

void ms_settings_again(const char *command, const ms_arguments *arguments,
                       ms_text *text)
{
    ms_text_add(text, "memsim %s", command);
    for (uint32_t i = 0; i < arguments->n_operands; i++)
        quote(arguments->operands[i], text);
    for (uint32_t i = 0; i < arguments->n_given; i++)
        put_option(arguments->given[i].option, arguments->given[i].value, text);
}

/* Writes the model and all options that shape the result, but for the
 * policies and one more option. */
static void put_others(const ms_arguments *arguments, ms_option_id but,
                       ms_text *text)
{
    quote(arguments->operands[0], text);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_option *option = arguments->given[i].option;
        if (ms_settings_shapes(option->id) && option->id != MS_OPTION_POLICY &&
            option->id != but)
            put_option(option, arguments->given[i].value, text);
    }
}

void ms_settings_instead(const ms_arguments *arguments, const char *policy,
                         ms_text *text)
{
    ms_text_add(text, "memsim run");
    put_others(arguments, MS_OPTION_POLICY, text);
    ms_text_add(text, " -p");
    quote(policy, text);
}

void ms_settings_setup(const ms_arguments *arguments, const char *policy,
                       uint32_t gpus, ms_text *text)
{
    ms_text_add(text, "memsim run");
    put_others(arguments, MS_OPTION_GPUS, text);
    ms_text_add(text, " -p");
    quote(policy, text);
    if (gpus > 1)
        ms_text_add(text, " --gpus %u", gpus);
}

void ms_settings_compare(const ms_arguments *arguments, const char *policy,
                         const char *allocator, ms_text *text)
{
    ms_text pools = {.arena = text->arena};
    ms_text_add(text, "memsim compare");
    put_others(arguments, MS_OPTION_ALLOCATOR, text);
    if (strcmp(policy, "none") != 0) {
        ms_text_add(text, " -p");
        quote(policy, text);
    }
    ms_text_add(text, " --allocators");
    ms_text_add(&pools, "%s;%s,expandable_segments:True", allocator, allocator);
    text->failed |= pools.failed;
    quote(pools.failed ? "" : pools.bytes, text);
}

void ms_settings_fit(const ms_arguments *arguments, uint32_t gpus,
                     ms_text *text)
{
    ms_text_add(text, "memsim fit");
    quote(arguments->operands[0], text);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_option *option = arguments->given[i].option;
        if (ms_settings_shapes(option->id) &&
            ms_optionuses_of(option, MS_FOR_FIT) != NULL &&
            option->id != MS_OPTION_POLICY && option->id != MS_OPTION_GPUS)
            put_option(option, arguments->given[i].value, text);
    }
    if (gpus > 1)
        ms_text_add(text, " --gpus %u", gpus);
}
