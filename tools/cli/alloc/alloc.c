/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc: replays traces of allocations through memory pools. */

#include "tools/cli/alloc/alloc.h"
#include "graphs/device.h"
#include "plots/plots.h"
#include "policies/common/policy.h"
#include "sim/base/size.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/alloc/alloc_keys.h"
#include "tools/cli/commands.h"
#include "tools/job/allocator.h"
#include "tools/job/outputs.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHERE "--allocator"
#define CSV_PIECE_BYTES 60000u

/* ---- the start ----------------------------------------------------------- */

/* Says whether a pool takes the addresses that a recording has. They hold
 * only for the allocator that was recorded, so that any option excludes it. */
static bool follows(const ms_alloc_run *run, const ms_alloc_pool *pool)
{
    return run->source.is_recorded && pool->as.heap.kind == MS_POOL_TORCH &&
           pool->as.conf[0] == '\0' && pool->as.policy < 0 &&
           pool->as.fraction <= 0 && run->memory_bytes == 0;
}

static ms_err device_bytes(ms_alloc_run *run, uint64_t *bytes, ms_fault *fault)
{
    const ms_device *device;
    run->device_known = run->memory_bytes > 0 || run->head.total_bytes > 0;
    *bytes = run->memory_bytes > 0 ? run->memory_bytes : run->head.total_bytes;
    if (*bytes > 0)
        return MS_OK;
    MS_TRY(ms_device_find(MS_DEFAULT_DEVICE, &device, fault));
    *bytes = device->memory_bytes;
    return MS_OK;
}

static ms_err set_up(const ms_alloc_run *run, ms_alloc_pool *pool,
                     uint64_t bytes, ms_fault *fault)
{
    const ms_alloctext_head *head = &run->head;
    ms_torch_setup *setup = &pool->setup.torch;
    char where[256];
    int policy = pool->as.policy >= 0 ? pool->as.policy
                 : head->policy >= 0  ? head->policy
                                      : MS_TORCH_BUMP;
    int version = pool->as.version >= 0 ? pool->as.version : head->version;
    ms_torch_setup_init(setup, bytes);
    setup->base_bytes = head->base_bytes;
    setup->policy = (ms_torch_policy)policy;
    if (version >= 0)
        setup->version = (ms_torch_version)version;
    pool->setup.heap = pool->as.heap;
    if (pool->as.heap.kind != MS_POOL_TORCH)
        return MS_OK; /* what follows is for PyTorch's pool */
    if (follows(run, pool))
        setup->policy = MS_TORCH_GIVEN;
    snprintf(where, sizeof where, run->conf_line > 0 ? "%.200s:%u" : "%.200s",
             run->source.name, run->conf_line);
    MS_TRY(ms_torchconf_parse(head->conf, where, MS_EINPUT, setup->version,
                              &setup->options, fault));
    return ms_torchconf_parse(pool->as.conf, WHERE, MS_EUSAGE, setup->version,
                              &setup->options, fault);
}

static ms_err start(ms_alloc_run *run, ms_fault *fault)
{
    uint64_t bytes;
    run->started = true;
    if (run->source.is_recorded)
        run->head.conf = run->source.recording.conf;
    if (run->leaks != NULL)
        MS_TRY(ms_alloc_leaks_begin(
            run->leaks, run->source.is_recorded ? &run->source.recording : NULL,
            fault));
    MS_TRY(device_bytes(run, &bytes, fault));
    for (uint32_t i = 0; i < run->n_pools; i++) {
        ms_alloc_pool *pool = &run->pools[i];
        MS_TRY(set_up(run, pool, bytes, fault));
        ms_alloc_map_listen(run, pool);
        if (run->source.is_recorded)
            MS_TRY(ms_allocfollow_start(&pool->follow, &run->source.recording,
                                        &pool->setup, run->anew, run->keep,
                                        fault));
        else
            MS_TRY(ms_allocplay_start(&pool->follow.play, &pool->setup,
                                      run->keep, fault));
        if (pool->as.fraction > 0)
            ms_pool_set_fraction(pool->follow.play.pool, pool->as.fraction);
        /* On a smaller device than the trace's, that is out of memory. */
        if (run->head.total_bytes > 0)
            pool->follow.play.device_bytes = run->head.total_bytes;
        MS_TRY(ms_alloc_map_start(run, pool, fault));
    }
    return MS_OK;
}

/* ---- the stream ---------------------------------------------------------- */

static ms_err take_header(ms_alloc_run *run, const ms_alloctrace_spot *spot,
                          const ms_alloctext_op *op, ms_fault *fault)
{
    ms_alloctext_head before = run->head;
    MS_TRY(ms_alloctext_header(spot, op, run->keep, &run->head, fault));
    if (memcmp(&before, &run->head, sizeof before) == 0)
        return MS_OK; /* it is a comment */
    if (run->started)
        return ms_allocplay_fail(spot, fault, NULL,
                                 "a header comes before the operations");
    if (run->head.conf != before.conf)
        run->conf_line = spot->line;
    return MS_OK;
}

/* Takes note of a comment "# step 3" within the trace. */
static ms_err note_comment(const ms_alloc_run *run, const ms_alloctext_op *op,
                           ms_fault *fault)
{
    if (run->leaks == NULL || strcmp(op->key, "step") != 0)
        return MS_OK;
    return ms_alloc_leaks_mark(run->leaks, MS_ALLOC_STEPS, fault);
}

static ms_err note_text(const ms_alloc_run *run, const ms_alloctext_op *op,
                        ms_fault *fault)
{
    if (run->leaks == NULL || !run->row.ok)
        return MS_OK;
    if (op->kind == 'a')
        return ms_alloc_leaks_alloc(run->leaks, op->id, op->bytes, op->stream,
                                    MS_NONE, fault);
    if (op->kind == 'f')
        ms_alloc_leaks_free(run->leaks, op->id);
    return op->kind == 'P'
               ? ms_alloc_leaks_mark(run->leaks, MS_ALLOC_RESETS, fault)
               : MS_OK;
}

static ms_err note_event(const ms_alloc_run *run,
                         const ms_recording_event *event, ms_fault *fault)
{
    if (run->leaks == NULL || !run->row.ok)
        return MS_OK;
    if (event->kind == MS_RECORDING_ALLOC)
        return ms_alloc_leaks_alloc(run->leaks, event->address, event->bytes,
                                    event->stream, event->site, fault);
    if (event->kind == MS_RECORDING_FREE || event->kind == MS_RECORDING_ASKED)
        ms_alloc_leaks_free(run->leaks, event->address);
    return MS_OK;
}

static ms_err step_text(ms_alloc_run *run, bool *more, ms_fault *fault)
{
    for (;;) {
        char *line;
        size_t length;
        ms_alloctext_op op;
        MS_TRY(
            ms_alloc_read_line(&run->source, run->keep, &line, &length, fault));
        *more = line != NULL;
        if (!*more)
            return run->started ? MS_OK : start(run, fault);
        ms_alloctrace_spot spot = {run->source.name, run->source.line, 0};
        MS_TRY(ms_alloctext_line(&spot, line, length, &op, fault));
        if (op.kind == '#')
            MS_TRY(take_header(run, &spot, &op, fault));
        if (op.kind == '#')
            MS_TRY(note_comment(run, &op, fault));
        if (op.kind == '#' || op.kind == 0)
            continue;
        if (!run->started)
            MS_TRY(start(run, fault));
        for (uint32_t i = run->n_pools; i-- > 0;) {
            ms_alloc_map_tick(&run->pools[i]);
            MS_TRY(ms_allocplay_do(&run->pools[i].follow.play, &spot, &op,
                                   &run->row, fault));
            MS_TRY(
                ms_alloc_map_note(run, &run->pools[i], op.stream, NULL, fault));
        }
        return note_text(run, &op, fault);
    }
}

/* Takes one operation through every pool; *more is false where there was
 * none left. The first pool comes last, so that run->row is its row. */
static ms_err step(ms_alloc_run *run, bool *more, ms_fault *fault)
{
    if (!run->source.is_recorded)
        return step_text(run, more, fault);
    if (!run->started)
        MS_TRY(start(run, fault));
    const ms_recording *recording = &run->source.recording;
    for (uint32_t i = run->n_pools; i-- > 0;) {
        ms_alloc_pool *pool = &run->pools[i];
        const ms_recording_event *event = &recording->events[pool->follow.at];
        ms_alloc_map_tick(pool);
        MS_TRY(ms_allocfollow_do(&pool->follow, &run->row, more, fault));
        if (*more)
            MS_TRY(ms_alloc_map_note(run, pool, event->stream, event, fault));
    }
    if (*more)
        return note_event(run, &recording->events[run->pools[0].follow.at - 1],
                          fault);
    for (uint32_t i = 0; i < run->n_pools; i++)
        MS_TRY(ms_allocfollow_end(&run->pools[i].follow, run->keep, fault));
    return MS_OK;
}

/* ---- CSV ----------------------------------------------------------------- */

typedef struct table {
    ms_alloc_run *run;
    ms_keys_plan plan;
    ms_text text;
    bool more;
    ms_err err;
    ms_fault *fault;
} table;

static bool next_piece(void *of, const char **bytes, size_t *length)
{
    table *t = of;
    ms_allocplay_line line;
    if (t->text.bytes == NULL)
        ms_keys_write_header(&t->plan, &t->text);
    else
        t->text.length = 0;
    while (t->err == MS_OK && t->more && t->text.length < CSV_PIECE_BYTES &&
           !t->text.failed) {
        t->err = step(t->run, &t->more, t->fault);
        if (t->err != MS_OK || !t->more)
            break;
        ms_allocplay_tell(&t->run->pools[0].follow.play, &t->run->row, &line);
        ms_keys_write_line(&t->plan, &line, &t->text);
    }
    if (t->err == MS_OK && t->text.failed)
        t->err = ms_fail_nomem(t->fault);
    *bytes = t->text.bytes;
    *length = t->text.length;
    errno = ECANCELED; /* the fault tells the true reason */
    return t->err == MS_OK || *length > 0;
}

static ms_err stream_csv(ms_alloc_run *run, const char *path, ms_arena *trial,
                         ms_fault *fault)
{
    table t = {
        .run = run, .text = {.arena = trial}, .more = true, .fault = fault};
    if (!ms_keys_write_plan(&ms_alloc_keys_line, NULL, trial, &t.plan))
        return ms_fail_nomem(fault);
    if (ms_outputs_is_stdout(path))
        ms_screen_end_with_reader();
    ms_err err = ms_output_stream(path, next_piece, &t, fault);
    return t.err != MS_OK ? t.err : err;
}

/* ---- what is asked for --------------------------------------------------- */

/* What is asked for: the same of each trace. */
typedef struct asked {
    const ms_hall *hall;
    ms_alloc_run like; /* a run whose trace is not known yet */
    ms_alloc_run *runs;
    uint32_t n;
    ms_arena own; /* of several: what lasts as long as a trace is read */
    const char *csv;
    bool quiet;
} asked;

static ms_err read_pool(ms_alloc_run *run, const char *spec, ms_fault *fault)
{
    ms_alloc_pool *pool = &run->pools[run->n_pools++];
    MS_TRY(ms_allocator_read(spec, run->keep, &pool->as, fault));
    return pool->as.exact ? ms_fail(fault, MS_EUSAGE, WHERE, "give it torch",
                                    "a trace through the exact pool is its own "
                                    "level")
                          : MS_OK;
}

static ms_err read_pools(const ms_arguments *arguments, ms_alloc_run *run,
                         ms_fault *fault)
{
    run->pools =
        ms_arena_take(run->keep, MS_ALLOC_MOST_POOLS, sizeof *run->pools);
    if (run->pools == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        if (arguments->given[i].option->id != MS_OPTION_ALLOCATOR)
            continue;
        if (run->n_pools == MS_ALLOC_MOST_POOLS)
            return ms_fail(fault, MS_EUSAGE, WHERE, NULL,
                           "more than %u allocators", MS_ALLOC_MOST_POOLS);
        MS_TRY(read_pool(run, arguments->given[i].value, fault));
    }
    if (run->n_pools > 0)
        return MS_OK;
    return read_pool(run, "torch", fault);
}

static ms_err read_memory(const ms_arguments *arguments, ms_alloc_run *run,
                          ms_fault *fault)
{
    const char *memory = ms_options_value(arguments, MS_OPTION_MEMORY);
    if (memory == NULL)
        return MS_OK;
    MS_TRY(ms_quantity_unit(memory, "--memory", fault));
    MS_TRY(ms_size_bytes(memory, "--memory", &run->memory_bytes, fault));
    return run->memory_bytes == 0 || run->memory_bytes > MS_TORCH_MOST_BYTES
               ? ms_fail(fault, MS_EUSAGE, "--memory", NULL,
                         "a device has from 1 to 2^50 bytes")
               : MS_OK;
}

static ms_err fail_anew(const char *where, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, where, "leave it out",
                   "option \"--anew\" needs a recording, and a pool that it "
                   "goes through");
}

static ms_err fail_csv(const ms_alloc_source *source, ms_fault *fault)
{
    char hint[160];
    snprintf(hint, sizeof hint, "memsim alloc %.100s --allocator arena",
             source->path);
    return ms_fail(fault, MS_EINPUT, source->name, hint,
                   "buffers with their lives (CSV), for the arena alone: "
                   "other pools need the calls in their order");
}

/* ---- the traces ---------------------------------------------------------- */

static ms_err go_through(const asked *a, ms_alloc_run *run, ms_fault *fault)
{
    if (run->source.is_csv)
        return fail_csv(&run->source, fault);
    if (run->anew && !run->source.is_recorded)
        return fail_anew(a->n > 1 ? run->source.name : NULL, fault);
    if (a->csv != NULL)
        MS_TRY(stream_csv(run, a->csv, a->hall->trial, fault));
    for (bool more = a->csv == NULL; more;)
        MS_TRY(step(run, &more, fault));
    if (a->csv != NULL && !ms_outputs_is_stdout(a->csv) && !a->quiet)
        ms_complain_note("wrote", a->csv);
    if (run->pools[0].follow.play.n_ops == 0)
        return ms_alloc_read_empty(&run->source, fault);
    for (uint32_t i = 0; i < run->n_pools; i++) {
        ms_alloc_pool *pool = &run->pools[i];
        ms_torchview_stats(pool->follow.play.pool, &pool->stats);
        ms_pool_tell(pool->follow.play.pool, &pool->told);
        pool->device_used_bytes =
            ms_torchview_device_used(pool->follow.play.pool);
    }
    run->held = ms_alloc_data_held(run);
    return MS_OK;
}

/* Keeps of one of several traces what is told, and lets go of the rest. */
static ms_err keep_totals(asked *a, ms_alloc_run *run, ms_fault *fault)
{
    const char *conf = run->head.conf;
    if (run->leaks != NULL)
        MS_TRY(ms_alloc_leaks_mark(run->leaks, MS_ALLOC_TRACES, fault));
    run->head.conf = ms_arena_text(a->hall->keep, conf, strlen(conf));
    ms_arena_reset(&a->own);
    return run->head.conf == NULL ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err follow_trace(asked *a, const char *path, ms_alloc_run *run,
                           ms_fault *fault)
{
    *run = a->like;
    run->keep = a->n > 1 ? &a->own : a->hall->keep;
    run->pools = ms_arena_take(a->hall->keep, run->n_pools, sizeof *run->pools);
    if (run->pools == NULL)
        return ms_fail_nomem(fault);
    memcpy(run->pools, a->like.pools, run->n_pools * sizeof *run->pools);
    ms_err err = ms_alloc_read_open(&run->source, path, run->keep, fault);
    if (err == MS_OK)
        err = go_through(a, run, fault);
    ms_alloc_read_close(&run->source);
    return err == MS_OK && a->n > 1 ? keep_totals(a, run, fault) : err;
}

/* ---- what is told -------------------------------------------------------- */

static ms_err tell_one(const asked *a, bool json, const ms_style *style,
                       ms_text *text, ms_fault *fault)
{
    const ms_alloc_run *run = &a->runs[0];
    if (json)
        return ms_alloc_data_json(run, text, fault);
    if (!ms_outputs_is_stdout(a->csv) && !a->quiet &&
        !ms_outputs_is_stdout(run->figure.path))
        ms_alloc_text_write(run, style, text);
    return MS_OK;
}

static ms_err tell_several(const asked *a, bool json, const ms_style *style,
                           ms_text *text, ms_fault *fault)
{
    ms_alloc_traces traces = {
        .runs = a->runs, .n = a->n, .leaks = a->like.leaks};
    MS_TRY(ms_alloc_traces_compare(&traces, a->hall->keep, fault));
    if (json)
        return ms_alloc_data_traces(&traces, text, fault);
    if (!a->quiet)
        ms_alloc_table_write(&traces, style, text);
    return MS_OK;
}

static ms_err run_all(asked *a, ms_fault *fault)
{
    const ms_arguments *arguments = a->hall->arguments;
    bool json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    const ms_style *style =
        ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR));
    ms_text text = {.arena = a->hall->trial};
    a->runs = ms_arena_take(a->hall->keep, a->n, sizeof *a->runs);
    if (a->runs == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < a->n; i++)
        MS_TRY(follow_trace(a, arguments->operands[i], &a->runs[i], fault));
    if (a->like.leaks != NULL)
        MS_TRY(ms_alloc_leaks_find(a->like.leaks, &a->runs[0].source, fault));
    MS_TRY((a->n > 1 ? tell_several : tell_one)(a, json, style, &text, fault));
    if (text.bytes != NULL || text.failed)
        MS_TRY(ms_screen_print(&text, fault));
    if (ms_outputs_is_stdout(a->like.figure.path))
        ms_screen_end_with_reader();
    return ms_alloc_map_draw(&a->runs[0], a->hall->trial, a->quiet, fault);
}

/* ---- the command --------------------------------------------------------- */

/* Refuses what several traces do not have. */
static ms_err check_number(const asked *a, ms_fault *fault)
{
    if (a->n == 2 && a->like.leaks != NULL)
        return ms_fail(fault, MS_EUSAGE, NULL, "memsim diff A B",
                       "--leaks compares at least three traces, each a step "
                       "of one run, or the steps of one trace; there are 2");
    if (a->n > 1 && ms_alloc_arena_asked(a->hall->arguments))
        return ms_fail(fault, MS_EUSAGE, WHERE, "run it once for each",
                       "an arena is planned of one trace; there are %u", a->n);
    return MS_OK;
}

static ms_err alloc_all(asked *a, ms_fault *fault)
{
    const ms_arguments *arguments = a->hall->arguments;
    MS_TRY(check_number(a, fault));
    if (ms_alloc_arena_asked(arguments))
        return a->like.anew ? fail_anew(NULL, fault)
                            : ms_alloc_arena_command(a->hall, fault);
    MS_TRY(read_pools(arguments, &a->like, fault));
    MS_TRY(read_memory(arguments, &a->like, fault));
    MS_TRY(ms_alloc_outputs_check(a->hall, a->like.n_pools, &a->like.figure,
                                  fault));
    return run_all(a, fault);
}

ms_err ms_alloc_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_alloc_leaks leaks = {.arena = hall->trial,
                            .of_traces = arguments->n_operands > 1};
    asked a = {.hall = hall,
               .like = {.keep = hall->keep,
                        .head = {.conf = "", .policy = -1, .version = -1}},
               .n = arguments->n_operands,
               .csv = ms_options_value(arguments, MS_OPTION_CSV),
               .quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL};
    if (ms_options_value(arguments, MS_OPTION_LEAKS) != NULL)
        a.like.leaks = &leaks;
    a.like.anew = ms_options_value(arguments, MS_OPTION_ANEW) != NULL;
    *status = 0;
    ms_err err = alloc_all(&a, fault);
    ms_arena_free(&a.own);
    return err;
}
