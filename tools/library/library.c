/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The jobs of libmemsim: settings as words, and what was made of them. */
#include "graphs/device.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/library/memsim.h"
#include "tools/library/runrecord.h"
#include "tools/points/points.h"

#include <string.h>

_Static_assert((int)MEMSIM_CATEGORIES == (int)MS_N_CATEGORIES &&
                   (int)MEMSIM_COMMUNICATION == (int)MS_COMMUNICATION,
               "the categories are those of sim/names.h");

typedef struct pair {
    const char *key, *value;
} pair;

/* Settings in arenas by turns, so that some that are replaced are gone: pairs,
 * and the job that they make, which begins in the arena of the pairs. */
typedef struct words {
    ms_arena arena;
    pair *pairs;
    uint32_t n;
    ms_job job;
} words;

struct memsim_job {
    ms_arena arena; /* holds the job itself and what lasts as long */
    const char *model;
    words words[3], *now, *told; /* told: those of the numbers, or NULL */
    /* A device that is a file is read once, because graphs know it by its
     * address. */
    const char *device_name;
    const ms_device *device;
    ms_job usual; /* a job of which nothing is set */
    ms_points points;
    ms_points_seat seat;
    ms_arena said; /* the text or the points handed out last */
    ms_result result;
    /* There are its plan and its timeline; the numbers alone, from summaries.
     */
    bool has_result, has_numbers;
    ms_fault fault;
};

const char *memsim_version(void)
{
    return MS_VERSION;
}

int memsim_abi(void)
{
    return MEMSIM_ABI;
}

/* ---- faults -------------------------------------------------------------- */

static memsim_status status_of(ms_err err)
{
    return err == MS_ENOMEM ? MEMSIM_NO_MEMORY : (memsim_status)(err / 10);
}

/* A job is used: what it said before is over. */
static void begin(memsim_job *job)
{
    job->fault = (ms_fault){.caret = -1};
    ms_arena_reset(&job->said);
}

memsim_status memsim_fault(const memsim_job *job)
{
    return job == NULL ? MEMSIM_NO_MEMORY : status_of(job->fault.err);
}

const char *memsim_where(const memsim_job *job)
{
    return job == NULL ? "" : job->fault.where;
}

const char *memsim_what(const memsim_job *job)
{
    return job == NULL ? "out of memory" : job->fault.what;
}

const char *memsim_hint(const memsim_job *job)
{
    return job == NULL ? "" : job->fault.hint;
}

/* ---- settings ------------------------------------------------------------ */

static ms_err find_key(const char *key, ms_arena *arena, const char **whole,
                       ms_fault *fault)
{
    char hint[384];
    *whole = key;
    if (ms_settings_table_find(key) != NULL)
        return MS_OK;
    MS_TRY(ms_grid_key(key, arena, whole, fault));
    if (*whole != NULL)
        return MS_OK;
    ms_grid_key_hint(key, hint, sizeof hint);
    return ms_fail(fault, MS_EUSAGE, "memsim_set", hint, "unknown key \"%s\"",
                   key);
}

/* The device of the job, read when it is first named. */
static ms_err put_device(memsim_job *job, words *to, const char *name,
                         ms_fault *fault)
{
    if (job->device_name == NULL || strcmp(job->device_name, name) != 0) {
        const ms_device *device;
        char *copy = ms_arena_text(&job->arena, name, strlen(name));
        if (copy == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(ms_device_read(copy, &job->arena, &device, fault));
        job->device_name = copy;
        job->device = device;
    }
    to->job.device = job->device;
    to->job.device_given = true;
    return MS_OK;
}

static ms_err put(memsim_job *job, words *to, const pair *it, ms_fault *fault)
{
    const ms_setting *row = ms_settings_table_find(it->key);
    if (strcmp(it->key, "device") == 0)
        return put_device(job, to, it->value, fault);
    if (row == NULL)
        return ms_settings_put(&to->job, it->key, it->value, &to->arena, fault);
    if (row->type == MS_SETTING_BYTES)
        MS_TRY(ms_quantity_unit(it->value, row->key, fault));
    return row->read(row, it->value, &to->arena, &to->job, fault);
}

/* The job that the pairs make. */
static ms_err make_job(memsim_job *job, words *to, ms_fault *fault)
{
    to->job = job->usual;
    for (uint32_t i = 0; i < to->n; i++)
        MS_TRY(put(job, to, &to->pairs[i], fault));
    to->job.book_device |= to->job.wall;
    ms_defaultpool_pool(&to->job);
    return MS_OK;
}

/* A model that was read may know its overrides for as long as there is it. */
static ms_err copy_pair(memsim_job *job, words *to, const pair *from,
                        ms_fault *fault)
{
    bool lasts = strncmp(from->key, "model.", 6) == 0;
    ms_arena *arena = lasts ? &job->arena : &to->arena;
    pair *it = &to->pairs[to->n++];
    it->key = ms_arena_text(arena, from->key, strlen(from->key));
    it->value = ms_arena_text(arena, from->value, strlen(from->value));
    return it->key && it->value ? MS_OK : ms_fail_nomem(fault);
}

/* The pairs of `from` but for that of the key of `more`, and then this, unless
 * it has no value. */
static ms_err copy_pairs(memsim_job *job, const words *from, const pair *more,
                         words *to, ms_fault *fault)
{
    ms_arena_reset(&to->arena);
    to->n = 0;
    to->pairs = ms_arena_take(&to->arena, (size_t)from->n + 1, sizeof(pair));
    if (to->pairs == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < from->n; i++)
        if (more == NULL || strcmp(from->pairs[i].key, more->key) != 0)
            MS_TRY(copy_pair(job, to, &from->pairs[i], fault));
    bool has_more = more != NULL && more->value != NULL;
    return has_more ? copy_pair(job, to, more, fault) : MS_OK;
}

static ms_err set(memsim_job *job, const char *key, const char *value,
                  ms_fault *fault)
{
    words *to = job->words;
    while (to == job->now || to == job->told)
        to++;
    pair more = {.value = value};
    if (key == NULL)
        return ms_fail(fault, MS_EUSAGE, "memsim_set", NULL, "no key");
    MS_TRY(find_key(key, &job->said, &more.key, fault));
    MS_TRY(copy_pairs(job, job->now, &more, to, fault));
    MS_TRY(make_job(job, to, fault));
    job->now = to;
    return MS_OK;
}

memsim_status memsim_set(memsim_job *job, const char *key, const char *value)
{
    if (job == NULL)
        return MEMSIM_NO_MEMORY;
    begin(job);
    return status_of(set(job, key, value, &job->fault));
}

/* ---- jobs ---------------------------------------------------------------- */

memsim_job *memsim_open(const char *model)
{
    ms_arena arena = {0};
    memsim_job *job = ms_arena_take(&arena, 1, sizeof *job);
    const char *name = model == NULL ? "" : model;
    char *copy = job ? ms_arena_text(&arena, name, strlen(name)) : NULL;
    if (copy == NULL) {
        ms_arena_free(&arena);
        return NULL;
    }
    job->arena = arena;
    job->model = copy;
    job->now = &job->words[0];
    begin(job);
    ms_settings_init(&job->usual);
    job->usual.model = copy;
    if (job->usual.device == NULL)
        ms_fail_nomem(&job->fault);
    else if (ms_points_open(&job->points, &job->fault) == MS_OK &&
             make_job(job, job->now, &job->fault) == MS_OK)
        return job;
    memsim_free(job);
    return NULL;
}

memsim_job *memsim_copy(const memsim_job *job)
{
    memsim_job *copy = job == NULL ? NULL : memsim_open(job->model);
    if (copy == NULL)
        return NULL;
    if (copy_pairs(copy, job->now, NULL, copy->now, &copy->fault) == MS_OK &&
        make_job(copy, copy->now, &copy->fault) == MS_OK)
        return copy;
    memsim_free(copy);
    return NULL;
}

void memsim_free(memsim_job *job)
{
    if (job == NULL)
        return;
    if (job->points.cache != NULL) {
        ms_points_leave(&job->points, &job->seat);
        ms_points_close(&job->points);
    }
    for (size_t i = 0; i < sizeof job->words / sizeof job->words[0]; i++)
        ms_arena_free(&job->words[i].arena);
    ms_arena_free(&job->said);
    ms_arena arena = job->arena;
    ms_arena_free(&arena);
}

/* ---- the step ------------------------------------------------------------ */

/* whole: with all that the text of a result tells; numbers: those of
 * memsim_numbers are enough. */
static ms_err simulate(memsim_job *job, words *settings, bool whole,
                       bool numbers, ms_job *of)
{
    bool folded = false;
    *of = settings->job;
    of->addresses = whole && !of->usual;
    of->brief = !whole;
    job->has_result = job->has_numbers = false;
    job->seat.fold.by_category = true;
    if (numbers)
        MS_TRY(ms_points_fold(&job->points, &job->seat, of, &job->result,
                              &folded, &job->fault));
    else
        MS_TRY(ms_points_step(&job->points, &job->seat, of, &job->result,
                              &job->fault));
    ms_defaultpool_settle(&job->result, of);
    job->has_result = !folded;
    job->has_numbers = folded;
    job->told = settings;
    return MS_OK;
}

static void read_numbers(const ms_report *report, memsim_numbers *numbers)
{
    const ms_rank_report *rank = &report->ranks[report->worst];
    double tokens = report->tokens_per_second;
    size_t size = numbers->size;
    memsim_numbers all = {
        .size = size,
        .fits = report->fits,
        .ranks = report->n_ranks,
        .peak_allocated_bytes = rank->peak.allocated_bytes,
        .peak_reserved_bytes = rank->peak.reserved_bytes,
        .capacity_bytes = report->capacity_bytes,
        .context_bytes = report->context_bytes,
        .host_peak_bytes = report->host_peak_bytes,
        .step_ns = rank->time.step_ns,
        .recompute_ns = rank->time.recompute_ns,
        .stall_ns = rank->time.stall_ns,
        .exposed_comm_ns = rank->time.exposed_comm_ns,
        .tokens_per_second = tokens > 0 ? tokens : 0,
    };
    memcpy(all.by_category, rank->peak.by_category, sizeof all.by_category);
    memcpy(numbers, &all, size < sizeof all ? size : sizeof all);
}

memsim_status memsim_evaluate(memsim_job *job, memsim_numbers *numbers)
{
    ms_job of;
    if (job == NULL)
        return MEMSIM_NO_MEMORY;
    begin(job);
    ms_err err = simulate(job, job->now, false, true, &of);
    if (err == MS_OK && numbers != NULL)
        read_numbers(job->result.report, numbers);
    return status_of(err);
}

memsim_status memsim_peak(memsim_job *job, memsim_brief *brief)
{
    bool folded;
    if (job == NULL)
        return MEMSIM_NO_MEMORY;
    begin(job);
    ms_job of = job->now->job;
    of.allocator = NULL;
    of.usual = false;
    of.brief = of.unmerged = true;
    job->has_result = job->has_numbers = false;
    job->seat.fold.by_category = false;
    ms_err err = ms_points_fold(&job->points, &job->seat, &of, &job->result,
                                &folded, &job->fault);
    if (err != MS_OK || brief == NULL)
        return status_of(err);
    const ms_report *report = job->result.report;
    const ms_rank_report *rank = &report->ranks[report->worst];
    double tokens = report->tokens_per_second;
    size_t size = brief->size;
    memsim_brief all = {.size = size,
                        .fits = report->fits,
                        .peak_allocated_bytes = rank->peak.allocated_bytes,
                        .step_ns = rank->time.step_ns,
                        .recompute_ns = rank->time.recompute_ns,
                        .tokens_per_second = tokens > 0 ? tokens : 0};
    memcpy(brief, &all, size < sizeof all ? size : sizeof all);
    return MEMSIM_OK;
}

static ms_err write_json(memsim_job *job, ms_text *text)
{
    ms_job of;
    MS_TRY(simulate(job, job->now, true, false, &of));
    const char *policy = ms_settings_policy(&of, &job->said);
    if (policy == NULL)
        return ms_fail_nomem(&job->fault);
    MS_TRY(ms_runrecord_json(&of, &job->result, policy, text, &job->fault));
    return text->failed ? ms_fail_nomem(&job->fault) : MS_OK;
}

const char *memsim_run(memsim_job *job)
{
    if (job == NULL)
        return NULL;
    begin(job);
    ms_text text = {.arena = &job->said};
    return write_json(job, &text) == MS_OK ? text.bytes : NULL;
}

/* Is there a timeline, or can it be made? */
static bool has_timeline(memsim_job *job)
{
    ms_job of;
    return job->has_result ||
           (job->has_numbers &&
            simulate(job, job->told, false, false, &of) == MS_OK);
}

const memsim_point *memsim_points(memsim_job *job, uint32_t rank, size_t *n)
{
    size_t none;
    n = n == NULL ? &none : n;
    *n = 0;
    if (job == NULL || !has_timeline(job) || rank >= job->result.plan->n_ranks)
        return NULL;
    const ms_timeline *line = job->result.line;
    const ms_plan *plan = job->result.plan;
    uint64_t bytes = 0;
    ms_eventwalk walk;
    memsim_point *points =
        ms_arena_take_raw(&job->said, line->n_events, sizeof *points);
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t i = 0; points != NULL && i < line->n_events; i++) {
        const ms_event *event = ms_timeline_next(&walk);
        const ms_row *row = &plan->row[event->row];
        if (row->pool != MS_DEVICE_POOL || plan->op[row->op].rank != rank)
            continue;
        bytes += event->op_act & 1 ? row->bytes : -row->bytes;
        points[(*n)++] = (memsim_point){event->t_ns, bytes};
    }
    return points;
}
