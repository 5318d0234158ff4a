/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/job/settings_table.h"
#include "graphs/device.h"
#include "graphs/models/files/namewords.h"
#include "policies/common/policy.h"
#include "sim/base/files.h"
#include "sim/pools/steps/pooled.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/options/numberfile.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"

#include "sim/base/size.h"
#include "tools/job/lengths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A program in text form; a step of GPT-3 has some 30 kB. */
#define PROGRAM_MAX_BYTES (UINT64_C(64) << 20)

/* ---- by type ------------------------------------------------------------- */

static uint64_t number_of(const ms_setting *row, const ms_job *job)
{
    uint64_t wide;
    uint32_t narrow;
    const char *at = (const char *)job + row->at;
    if (row->is_wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

static void set_number(const ms_setting *row, uint64_t number, ms_job *job)
{
    uint32_t narrow = (uint32_t)number;
    char *at = (char *)job + row->at;
    if (row->is_wide)
        memcpy(at, &number, sizeof number);
    else
        memcpy(at, &narrow, sizeof narrow);
}

static const char *write_number(const ms_setting *row, const ms_job *job,
                                ms_arena *arena)
{
    uint64_t number = number_of(row, job);
    return number == 0 ? NULL : ms_arena_format(arena, "%" PRIu64, number);
}

/* Limits that no user reaches are not printed. */
static ms_err fail_count(const ms_setting *row, const char *hint,
                         const char *value, ms_fault *fault)
{
    if (row->most > UINT32_MAX)
        return ms_fail(fault, MS_EUSAGE, row->flag, hint,
                       "expected a number of %s, not \"%s\"", row->noun, value);
    return ms_fail(fault, MS_EUSAGE, row->flag, hint,
                   "expected a number of %s from 1 to %" PRIu64 ", not \"%s\"",
                   row->noun, row->most, value);
}

static ms_err read_count(const ms_setting *row, const char *value,
                         ms_arena *arena, ms_job *job, ms_fault *fault)
{
    uint64_t number;
    char *end;
    (void)arena;
    bool fits = ms_quantity_whole(value, &number, &end);
    if (end == value || *end != '\0' || !fits || number < 1 ||
        number > row->most)
        return fail_count(row, row->example, value, fault);
    set_number(row, number, job);
    return MS_OK;
}

static ms_err read_bytes(const ms_setting *row, const char *value,
                         ms_arena *arena, ms_job *job, ms_fault *fault)
{
    uint64_t bytes;
    (void)arena;
    MS_TRY(ms_size_bytes(value, row->flag, &bytes, fault));
    if (bytes == 0)
        return ms_fail(fault, MS_EUSAGE, row->flag, row->example,
                       "nothing fits into no memory at all");
    set_number(row, bytes, job);
    return MS_OK;
}

/* ---- single ones --------------------------------------------------------- */

static ms_err read_policy(const ms_setting *row, const char *value,
                          ms_arena *arena, ms_job *job, ms_fault *fault)
{
    (void)row;
    return ms_numberfile_parse(value, arena, &job->spec, fault);
}

static const char *write_policy(const ms_setting *row, const ms_job *job,
                                ms_arena *arena)
{
    (void)row;
    return ms_spec_print(&job->spec, arena);
}

static ms_err read_device(const ms_setting *row, const char *value,
                          ms_arena *arena, ms_job *job, ms_fault *fault)
{
    (void)row;
    job->device_given = true;
    return ms_device_read(value, arena, &job->device, fault);
}

static const char *write_device(const ms_setting *row, const ms_job *job,
                                ms_arena *arena)
{
    (void)row, (void)arena;
    return job->device->name;
}

/* "--gpu h100" names a device. */
static const char *gpus_hint(const ms_setting *row, const char *value)
{
    char unused[384];
    return ms_namewords_device(value, unused, sizeof unused) != MS_NONE
               ? "a device is named by --device"
               : row->example;
}

static ms_err read_gpus(const ms_setting *row, const char *value,
                        ms_arena *arena, ms_job *job, ms_fault *fault)
{
    char *end;
    (void)arena;
    errno = 0;
    long gpus = strtol(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || gpus < 1 ||
        (unsigned long)gpus > row->most)
        return fail_count(row, gpus_hint(row, value), value, fault);
    set_number(row, (uint64_t)gpus, job);
    return MS_OK;
}

static ms_err read_book(const ms_setting *row, const char *value,
                        ms_arena *arena, ms_job *job, ms_fault *fault)
{
    (void)row, (void)arena, (void)fault;
    job->book_device = strcmp(value, "device") == 0;
    return MS_OK;
}

static const char *write_book(const ms_setting *row, const ms_job *job,
                              ms_arena *arena)
{
    (void)row, (void)arena;
    return job->book_device ? "device" : "host";
}

static ms_err read_wall(const ms_setting *row, const char *value,
                        ms_arena *arena, ms_job *job, ms_fault *fault)
{
    (void)row, (void)value, (void)arena, (void)fault;
    job->wall = true;
    return MS_OK;
}

static const char *write_wall(const ms_setting *row, const ms_job *job,
                              ms_arena *arena)
{
    (void)row, (void)arena;
    return job->wall ? "true" : "false";
}

static ms_err read_allocator(const ms_setting *row, const char *value,
                             ms_arena *arena, ms_job *job, ms_fault *fault)
{
    ms_pooled_setup setup;
    ms_allocator *allocator = ms_arena_take(arena, 1, sizeof *allocator);
    (void)row;
    if (allocator == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_allocator_read(value, arena, allocator, fault));
    job->allocator = allocator->exact ? NULL : allocator;
    job->allocator_given = true;
    job->usual = false;
    return allocator->exact
               ? MS_OK
               : ms_allocator_setup(allocator, MS_TORCH_V2_11, &setup, fault);
}

static const char *write_allocator(const ms_setting *row, const ms_job *job,
                                   ms_arena *arena)
{
    (void)row, (void)arena;
    return ms_allocator_name(job->allocator);
}

static ms_err read_lengths(const ms_setting *row, const char *value,
                           ms_arena *arena, ms_job *job, ms_fault *fault)
{
    (void)row;
    return ms_lengths_read(value, arena, job, fault);
}

static const char *write_lengths(const ms_setting *row, const ms_job *job,
                                 ms_arena *arena)
{
    (void)row, (void)arena;
    return job->lengths == NULL ? NULL : job->lengths->words;
}

/* It is read here, once: a job takes several steps, standard input ends. */
static ms_err read_program(const ms_setting *row, const char *value,
                           ms_arena *arena, ms_job *job, ms_fault *fault)
{
    char *text;
    (void)row;
    MS_TRY(ms_files_read(value, PROGRAM_MAX_BYTES, arena, &text,
                         &job->program_length, fault));
    job->program = value;
    job->program_text = text;
    return MS_OK;
}

static const char *write_program(const ms_setting *row, const ms_job *job,
                                 ms_arena *arena)
{
    (void)row, (void)arena;
    return job->program;
}

/* ---- the table ----------------------------------------------------------- */

const ms_setting ms_settings_table[] = {
    {.key = "policy",
     .flag = "--policy",
     .option = MS_OPTION_POLICY,
     .value = "SPEC",
     .help = "memory policies",
     .many = "policies",
     .in_grid = true,
     .is_late = true,
     .joins = true,
     .is_bare = true,
     .read = read_policy,
     .write = write_policy},
    {.key = "device",
     .flag = "--device",
     .option = MS_OPTION_DEVICE,
     .value = "NAME",
     .help = "devices",
     .given_at = offsetof(ms_job, device_given),
     .json = MS_SETTING_ALWAYS,
     .in_grid = true,
     .read = read_device,
     .write = write_device},
    {.key = "gpus",
     .flag = "--gpus",
     .option = MS_OPTION_GPUS,
     .type = MS_SETTING_COUNT,
     .help = "GPUs of the job",
     .noun = "GPUs",
     .example = "e.g. --gpus 8",
     .at = offsetof(ms_job, gpus),
     .most = 1048576,
     .json = MS_SETTING_OR_NULL,
     .in_grid = true,
     .has_ranges = true,
     .read = read_gpus,
     .write = write_number},
    {.key = "global_batch",
     .flag = "--global-batch",
     .option = MS_OPTION_GLOBAL_BATCH,
     .type = MS_SETTING_COUNT,
     .help = "samples per step of the job",
     .noun = "samples",
     .example = "e.g. --global-batch 64",
     .at = offsetof(ms_job, global_batch),
     .most = UINT64_C(1) << 40,
     .json = MS_SETTING_IF_SAID,
     .is_wide = true,
     .in_grid = true,
     .has_ranges = true,
     .read = read_count,
     .write = write_number},
    {.key = "book",
     .flag = "--book",
     .option = MS_OPTION_BOOK,
     .type = MS_SETTING_WORD,
     .words = "host|device",
     .json = MS_SETTING_ALWAYS,
     .read = read_book,
     .write = write_book},
    {.key = "wall",
     .flag = "--wall",
     .option = MS_OPTION_WALL,
     .type = MS_SETTING_BOOL,
     .json = MS_SETTING_ALWAYS,
     .read = read_wall,
     .write = write_wall},
    {.key = "memory",
     .flag = "--memory",
     .option = MS_OPTION_MEMORY,
     .type = MS_SETTING_BYTES,
     .help = "capacity instead of the device's",
     .example = "e.g. --memory 80GiB",
     .at = offsetof(ms_job, memory_bytes),
     .json = MS_SETTING_IF_SAID,
     .is_wide = true,
     .in_grid = true,
     .is_late = true,
     .has_ranges = true,
     .read = read_bytes,
     .write = write_number},
    {.key = "host_memory",
     .flag = "--host-memory",
     .option = MS_OPTION_HOST_MEMORY,
     .type = MS_SETTING_BYTES,
     .help = "host memory of a node",
     .example = "e.g. --host-memory 512GiB",
     .at = offsetof(ms_job, host_memory_bytes),
     .json = MS_SETTING_IF_SAID,
     .is_wide = true,
     .in_grid = true,
     .is_late = true,
     .has_ranges = true,
     .read = read_bytes,
     .write = write_number},
    {.key = "nvme",
     .flag = "--nvme",
     .option = MS_OPTION_NVME,
     .type = MS_SETTING_BYTES,
     .help = "NVMe of a node",
     .example = "e.g. --nvme 4TiB",
     .at = offsetof(ms_job, nvme_bytes),
     .json = MS_SETTING_IF_SAID,
     .is_wide = true,
     .in_grid = true,
     .is_late = true,
     .has_ranges = true,
     .read = read_bytes,
     .write = write_number},
    {.key = "allocator",
     .flag = "--allocator",
     .option = MS_OPTION_ALLOCATOR,
     .value = "ALLOCATOR",
     .help = "memory pools",
     .many = "allocators",
     .given_at = offsetof(ms_job, allocator_given),
     .json = MS_SETTING_ALWAYS,
     .before = "exact",
     .in_grid = true,
     .has_ranges = true,
     .is_bare = true,
     .read = read_allocator,
     .write = write_allocator},
    {.key = "steps",
     .flag = "--steps",
     .option = MS_OPTION_STEPS,
     .type = MS_SETTING_COUNT,
     .help = "steps through the pool",
     .noun = "steps",
     .example = "e.g. --steps 3",
     .at = offsetof(ms_job, steps),
     .most = MS_ALLOCATOR_MOST_STEPS,
     .json = MS_SETTING_IF_SAID,
     .in_grid = true,
     .is_late = true,
     .has_ranges = true,
     .read = read_count,
     .write = write_number},
    {.key = "lengths",
     .flag = "--lengths",
     .option = MS_OPTION_LENGTHS,
     .help = "sequence lengths, one per step",
     .json = MS_SETTING_IF_SAID,
     .in_grid = true,
     .has_lists = true,
     .read = read_lengths,
     .write = write_lengths},
    {.key = "program",
     .flag = "--program",
     .option = MS_OPTION_PROGRAM,
     .read = read_program,
     .write = write_program},
};
const uint32_t ms_settings_table_n =
    sizeof ms_settings_table / sizeof ms_settings_table[0];

const ms_setting *ms_settings_table_find(const char *key)
{
    for (uint32_t i = 0; i < ms_settings_table_n; i++)
        if (strcmp(ms_settings_table[i].key, key) == 0)
            return &ms_settings_table[i];
    return NULL;
}

const ms_setting *ms_settings_table_option(ms_option_id id)
{
    for (uint32_t i = 0; i < ms_settings_table_n; i++)
        if (ms_settings_table[i].option == id)
            return &ms_settings_table[i];
    return NULL;
}
