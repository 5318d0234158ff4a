/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc: a trace of allocations through memory pools. */

#include "tools/alloc.h"
#include "tools/alloc_arena.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHERE "--allocator"
#define CSV_PIECE_BYTES 60000u

/* ---- "torch,version=2.4,max_split_size_mb=64" ---------------------------- */

static ms_err fail_word(const char *what, const char *word, size_t length,
                        const char *hint, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, WHERE, hint, "%s \"%.*s\"", what,
                   (int)(length < 80 ? length : 80), word);
}

static int find_word(const char *const *words, int n, const char *word,
                     size_t length)
{
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return i;
    return -1;
}

static ms_err read_fraction(ms_alloc_pool *pool, const char *value,
                            size_t length, ms_fault *fault)
{
    char word[32], *end = word;
    if (length > 0 && length < sizeof word) {
        memcpy(word, value, length);
        word[length] = '\0';
        if (strspn(word, "0123456789.e-") == length)
            pool->fraction = strtod(word, &end);
    }
    if (end != word + length || !(pool->fraction > 0 && pool->fraction <= 1))
        return fail_word("fraction: expected a number over 0, at most 1, not",
                         value, length, NULL, fault);
    return MS_OK;
}

/* One "key=value"; what is not memsim's goes to PyTorch's options. */
static ms_err read_part(ms_alloc_pool *pool, ms_text *conf, const char *part,
                        size_t length, ms_fault *fault)
{
    size_t key = strcspn(part, "=:,");
    const char *value = part + key + 1;
    if (key >= length)
        return fail_word("expected option=value, not", part, length, NULL,
                         fault);
    size_t rest = length - key - 1;
    if (key == 7 && memcmp(part, "version", 7) == 0) {
        pool->version =
            find_word(ms_torch_versions, MS_TORCH_N_VERSIONS, value, rest);
        return pool->version >= 0
                   ? MS_OK
                   : fail_word("version: expected 1.13, 2.1, 2.4 or 2.11, not",
                               value, rest, NULL, fault);
    }
    if (key == 2 && memcmp(part, "va", 2) == 0) {
        pool->policy =
            find_word(ms_torch_policies, MS_TORCH_N_POLICIES, value, rest);
        return pool->policy >= 0
                   ? MS_OK
                   : fail_word("va: expected down, bump or firstfit, not",
                               value, rest, NULL, fault);
    }
    if (key == 8 && memcmp(part, "fraction", 8) == 0)
        return read_fraction(pool, value, rest, fault);
    ms_text_add(conf, "%s%.*s:%.*s", conf->length > 0 ? "," : "", (int)key,
                part, (int)rest, value);
    return MS_OK;
}

/* Parts end at commas, but not inside [ ]. */
static ms_err read_spec(ms_alloc_pool *pool, const char *spec, ms_arena *arena,
                        ms_fault *fault)
{
    size_t at = strcspn(spec, ",");
    ms_text conf = {.arena = arena};
    *pool =
        (ms_alloc_pool){.spec = spec, .conf = "", .version = -1, .policy = -1};
    if (find_word((const char *const[]){"torch"}, 1, spec, at) != 0)
        return fail_word("unknown allocator", spec, at,
                         "torch and arena are there: \"memsim help alloc\"",
                         fault);
    while (spec[at] == ',') {
        size_t begin = ++at;
        for (int depth = 0; spec[at] != '\0'; at++) {
            if (spec[at] == ',' && depth == 0)
                break;
            depth += (spec[at] == '[') - (spec[at] == ']');
        }
        MS_TRY(read_part(pool, &conf, spec + begin, at - begin, fault));
    }
    if (conf.failed)
        return ms_fail_nomem(fault);
    if (conf.length > 0)
        pool->conf = conf.bytes;
    return MS_OK;
}

/* ---- the start ----------------------------------------------------------- */

/* The recorded answers hold only for the allocator that was recorded. */
static bool follows(const ms_alloc_run *run, const ms_alloc_pool *pool)
{
    return run->source.is_recorded && pool->conf[0] == '\0' &&
           pool->policy < 0 && pool->fraction <= 0 && run->memory_bytes == 0;
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
    ms_torch_setup *setup = &pool->setup;
    char where[256];
    int policy = pool->policy >= 0   ? pool->policy
                 : head->policy >= 0 ? head->policy
                                     : MS_TORCH_BUMP;
    int version = pool->version >= 0 ? pool->version : head->version;
    ms_torch_setup_init(setup, bytes);
    setup->base_bytes = head->base_bytes;
    setup->policy = (ms_torch_policy)policy;
    if (version >= 0)
        setup->version = (ms_torch_version)version;
    if (follows(run, pool))
        setup->policy = MS_TORCH_GIVEN;
    snprintf(where, sizeof where, run->conf_line > 0 ? "%.200s:%u" : "%.200s",
             run->source.name, run->conf_line);
    MS_TRY(ms_torchconf_parse(head->conf, where, MS_EINPUT, setup->version,
                              &setup->options, fault));
    return ms_torchconf_parse(pool->conf, WHERE, MS_EUSAGE, setup->version,
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
        if (run->source.is_recorded)
            MS_TRY(ms_allocfollow_start(&pool->follow, &run->source.recording,
                                        &pool->setup, run->keep, fault));
        else
            MS_TRY(ms_allocplay_start(&pool->follow.play, &pool->setup,
                                      run->keep, fault));
        if (pool->fraction > 0)
            ms_torch_set_fraction(pool->follow.play.pool, pool->fraction);
        /* On a smaller device than the trace's, that is out of memory. */
        if (run->head.total_bytes > 0)
            pool->follow.play.device_bytes = run->head.total_bytes;
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
        return MS_OK; /* a comment */
    if (run->started)
        return ms_allocplay_fail(spot, fault, NULL,
                                 "a header comes before the operations");
    if (run->head.conf != before.conf)
        run->conf_line = spot->line;
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
        if (op.kind == '#' || op.kind == 0)
            continue;
        if (!run->started)
            MS_TRY(start(run, fault));
        for (uint32_t i = run->n_pools; i-- > 0;)
            MS_TRY(ms_allocplay_do(&run->pools[i].follow.play, &spot, &op,
                                   &run->row, fault));
        return MS_OK;
    }
}

/* One operation through every pool; false: there was none. */
static ms_err step(ms_alloc_run *run, bool *more, ms_fault *fault)
{
    if (!run->source.is_recorded)
        return step_text(run, more, fault);
    if (!run->started)
        MS_TRY(start(run, fault));
    for (uint32_t i = run->n_pools; i-- > 0;)
        MS_TRY(
            ms_allocfollow_do(&run->pools[i].follow, &run->row, more, fault));
    if (*more)
        return MS_OK;
    for (uint32_t i = 0; i < run->n_pools; i++)
        MS_TRY(ms_allocfollow_end(&run->pools[i].follow, run->keep, fault));
    return MS_OK;
}

/* ---- CSV ----------------------------------------------------------------- */

typedef struct table {
    ms_alloc_run *run;
    ms_text text;
    bool more;
    ms_err err;
    ms_fault *fault;
} table;

static void put_heading(ms_text *text)
{
    for (uint32_t i = 0; i < ms_allocplay_n_columns; i++)
        ms_text_add(text, "%s%s", i > 0 ? "," : "", ms_allocplay_columns[i]);
    ms_text_put(text, "\n", 1);
}

static bool next_piece(void *of, const char **bytes, size_t *length)
{
    table *t = of;
    if (t->text.bytes == NULL)
        put_heading(&t->text);
    else
        t->text.length = 0;
    while (t->err == MS_OK && t->more && t->text.length < CSV_PIECE_BYTES &&
           !t->text.failed) {
        t->err = step(t->run, &t->more, t->fault);
        if (t->err == MS_OK && t->more)
            ms_allocplay_csv(&t->run->pools[0].follow.play, &t->run->row,
                             &t->text);
    }
    if (t->err == MS_OK && t->text.failed)
        t->err = ms_fail_nomem(t->fault);
    *bytes = t->text.bytes;
    *length = t->text.length;
    errno = ECANCELED; /* the fault says more */
    return t->err == MS_OK || *length > 0;
}

static ms_err stream_csv(ms_alloc_run *run, const char *path, ms_arena *trial,
                         ms_fault *fault)
{
    table t = {
        .run = run, .text = {.arena = trial}, .more = true, .fault = fault};
    ms_err err = ms_output_stream(path, next_piece, &t, fault);
    return t.err != MS_OK ? t.err : err;
}

/* ---- the command --------------------------------------------------------- */

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
        MS_TRY(read_spec(&run->pools[run->n_pools++], arguments->given[i].value,
                         run->keep, fault));
    }
    if (run->n_pools > 0)
        return MS_OK;
    return read_spec(&run->pools[run->n_pools++], "torch", run->keep, fault);
}

static ms_err check_outputs(const ms_arguments *arguments,
                            const ms_alloc_run *run, ms_fault *fault)
{
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    bool json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    ms_job job = {.model = arguments->operands[0]};
    if (csv != NULL && run->n_pools > 1)
        return ms_fail(fault, MS_EUSAGE, NULL, "run it once for each",
                       "--csv has the rows of one --allocator");
    if (json && ms_outputs_is_stdout(csv))
        return ms_fail(fault, MS_EUSAGE, NULL, "name a file for --csv",
                       "standard output can carry one result only");
    return ms_outputs_check(&job, &csv, 1, fault);
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
    if (ms_options_value(arguments, MS_OPTION_JSON) != NULL)
        MS_TRY(ms_alloc_data_json(run, &text, fault));
    else if (!ms_outputs_is_stdout(csv) && !quiet)
        ms_alloc_text_write(
            run,
            ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR)),
            &text);
    return text.bytes != NULL || text.failed ? ms_screen_print(&text, fault)
                                             : MS_OK;
}

ms_err ms_alloc_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *memory = ms_options_value(arguments, MS_OPTION_MEMORY);
    ms_alloc_run run = {.keep = hall->keep,
                        .head = {.conf = "", .policy = -1, .version = -1}};
    *status = 0;
    if (ms_alloc_arena_asked(arguments))
        return ms_alloc_arena_command(hall, fault);
    MS_TRY(read_pools(arguments, &run, fault));
    if (memory != NULL)
        MS_TRY(ms_size_bytes(memory, "--memory", &run.memory_bytes, fault));
    if (memory != NULL &&
        (run.memory_bytes == 0 || run.memory_bytes > MS_TORCH_MOST_BYTES))
        return ms_fail(fault, MS_EUSAGE, "--memory", NULL,
                       "a device has from 1 to 2^50 bytes");
    MS_TRY(check_outputs(arguments, &run, fault));
    ms_err err = ms_alloc_read_open(&run.source, arguments->operands[0],
                                    hall->keep, fault);
    if (err == MS_OK)
        err = run_all(hall, &run, fault);
    ms_alloc_read_close(&run.source);
    return err;
}
