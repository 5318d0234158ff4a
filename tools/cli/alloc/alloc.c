/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc: replays a trace of allocations through memory pools. */

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

/* ---- the command --------------------------------------------------------- */

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

static ms_err run_all(const ms_hall *hall, ms_alloc_run *run, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    bool quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL;
    ms_text text = {.arena = hall->trial};
    if (csv != NULL)
        MS_TRY(stream_csv(run, csv, hall->trial, fault));
    for (bool more = csv == NULL; more;)
        MS_TRY(step(run, &more, fault));
    if (csv != NULL && !ms_outputs_is_stdout(csv) && !quiet)
        ms_complain_note("wrote", csv);
    if (run->pools[0].follow.play.n_ops == 0)
        return ms_alloc_read_empty(&run->source, fault);
    if (run->leaks != NULL)
        MS_TRY(ms_alloc_leaks_find(run->leaks, &run->source, fault));
    if (ms_options_value(arguments, MS_OPTION_JSON) != NULL)
        MS_TRY(ms_alloc_data_json(run, &text, fault));
    else if (!ms_outputs_is_stdout(csv) && !quiet &&
             !ms_outputs_is_stdout(run->figure.path))
        ms_alloc_text_write(
            run,
            ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR)),
            &text);
    if (text.bytes != NULL || text.failed)
        MS_TRY(ms_screen_print(&text, fault));
    if (ms_outputs_is_stdout(run->figure.path))
        ms_screen_end_with_reader();
    return ms_alloc_map_draw(run, hall->trial, quiet, fault);
}

static ms_err fail_anew(ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, NULL, "leave it out",
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

ms_err ms_alloc_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *memory = ms_options_value(arguments, MS_OPTION_MEMORY);
    ms_alloc_run run = {.keep = hall->keep,
                        .head = {.conf = "", .policy = -1, .version = -1}};
    ms_alloc_leaks leaks = {.arena = hall->trial};
    if (ms_options_value(arguments, MS_OPTION_LEAKS) != NULL)
        run.leaks = &leaks;
    run.anew = ms_options_value(arguments, MS_OPTION_ANEW) != NULL;
    *status = 0;
    if (ms_alloc_arena_asked(arguments))
        return run.anew ? fail_anew(fault)
                        : ms_alloc_arena_command(hall, fault);
    MS_TRY(read_pools(arguments, &run, fault));
    if (memory != NULL)
        MS_TRY(ms_quantity_unit(memory, "--memory", fault));
    if (memory != NULL)
        MS_TRY(ms_size_bytes(memory, "--memory", &run.memory_bytes, fault));
    if (memory != NULL &&
        (run.memory_bytes == 0 || run.memory_bytes > MS_TORCH_MOST_BYTES))
        return ms_fail(fault, MS_EUSAGE, "--memory", NULL,
                       "a device has from 1 to 2^50 bytes");
    MS_TRY(ms_alloc_outputs_check(hall, run.n_pools, &run.figure, fault));
    ms_err err = ms_alloc_read_open(&run.source, arguments->operands[0],
                                    hall->keep, fault);
    if (err == MS_OK && run.source.is_csv)
        err = fail_csv(&run.source, fault);
    if (err == MS_OK && run.anew && !run.source.is_recorded)
        err = fail_anew(fault);
    if (err == MS_OK)
        err = run_all(hall, &run, fault);
    ms_alloc_read_close(&run.source);
    return err;
}
