/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads --lengths: a list of sequence lengths, one per step. */

#include "tools/job/lengths.h"
#include "graphs/training.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/terminal/quantity.h"

#include <string.h>

#define WHERE "--lengths"
#define MOST_SIZE (UINT64_C(1) << 30)
#define EXAMPLE "e.g. --lengths 512,1024,768 or 8x512,4x1024"

/* Reads the number at words; *end points behind it. */
static bool read_number(const char *words, const char **end, int64_t *number)
{
    uint64_t value;
    char *rest;
    bool fits = ms_quantity_whole(words, &value, &rest);
    *end = rest;
    *number = (int64_t)value;
    return fits && rest > words && value > 0 && value <= MOST_SIZE;
}

/* Reads "512", "8x512" or "8x", which ends at a comma or with the text. */
static bool read_item(const char *words, const char **end, ms_length *item)
{
    *item = (ms_length){0};
    if (!read_number(words, end, &item->sequence))
        return false;
    if (**end != 'x')
        return **end == ',' || **end == '\0';
    item->batch = item->sequence;
    item->sequence = 0;
    words = *end + 1;
    if (*words >= '0' && *words <= '9')
        return read_number(words, end, &item->sequence) &&
               (**end == ',' || **end == '\0');
    *end = words;
    return *words == ',' || *words == '\0';
}

ms_err ms_lengths_read(const char *words, ms_arena *arena, ms_job *job,
                       ms_fault *fault)
{
    const char *at = words;
    uint32_t capacity = 0;
    ms_lengths *all = ms_arena_take(arena, 1, sizeof *all);
    if (all == NULL)
        return ms_fail_nomem(fault);
    all->words = words;
    for (bool more = true; more; at++) {
        const char *end;
        ms_length item;
        if (!read_item(at, &end, &item))
            return ms_fail(fault, MS_EUSAGE, WHERE, EXAMPLE,
                           "\"%.*s\" is no length of a step",
                           (int)strcspn(at, ","), at);
        if (all->n == MS_ALLOCATOR_MOST_STEPS)
            return ms_fail(fault, MS_EUSAGE, WHERE, "leave some out",
                           "more than %u lengths", MS_ALLOCATOR_MOST_STEPS);
        all->items = ms_arena_grow(arena, all->items, &capacity, all->n + 1,
                                   sizeof *all->items);
        if (all->items == NULL)
            return ms_fail_nomem(fault);
        all->items[all->n++] = item;
        more = *end == ',';
        at = end;
    }
    job->lengths = all;
    return MS_OK;
}

static bool is_set(const ms_training *training, const char *field)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (strcmp(ms_training_fields[row].name, field) == 0)
            return (training->was_set >> row & 1) != 0;
    return false;
}

static ms_err fail_twice(const char *field, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, WHERE, "leave one of the two out",
                   "the list says the %s of each step, and training.%s says "
                   "another",
                   field, field);
}

bool ms_lengths_says(const ms_job *job, const char *field)
{
    bool batch = strcmp(field, "batch") == 0;
    if (!batch && strcmp(field, "sequence") != 0)
        return false;
    for (uint32_t i = 0; job->lengths != NULL && i < job->lengths->n; i++) {
        const ms_length *item = &job->lengths->items[i];
        if ((batch ? item->batch : item->sequence) > 0)
            return true;
    }
    return false;
}

ms_err ms_lengths_check(const ms_job *job, ms_fault *fault)
{
    static const char *const fields[] = {"batch", "sequence"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (ms_lengths_says(job, fields[i]) &&
            is_set(&job->training, fields[i]))
            return fail_twice(fields[i], fault);
    if (job->lengths != NULL && job->allocator == NULL)
        return ms_fail(fault, MS_EUSAGE, WHERE,
                       "say --allocator torch, or leave it out",
                       "with the exact pool no step leaves anything to the "
                       "next");
    return MS_OK;
}

uint32_t ms_lengths_steps(const ms_job *job)
{
    if (job->steps > 0 || job->lengths == NULL)
        return job->steps;
    return job->lengths->n;
}

void ms_lengths_set(const ms_job *job, uint32_t k, ms_training *training)
{
    if (job->lengths == NULL)
        return;
    const ms_length *item = &job->lengths->items[k % job->lengths->n];
    if (item->batch > 0)
        training->batch = item->batch;
    if (item->sequence > 0)
        training->sequence = item->sequence;
}

void ms_lengths_set_last(const ms_job *job, ms_training *training)
{
    if (job->lengths != NULL)
        ms_lengths_set(job, ms_lengths_steps(job) - 1, training);
}
