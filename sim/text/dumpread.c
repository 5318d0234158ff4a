/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/check.h"
#include "sim/graph.h"
#include "sim/program.h"
#include "sim/text/dump.h"
#include "sim/text/dumpwords.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static ms_err read_set_name(ms_dumpwords *r, uint32_t *set)
{
    ms_dumpwords_word word = ms_dumpwords_next(r);
    ms_quote at = ms_dumpwords_quote(r, &word);
    if (ms_dumpwords_is(r, &word, "all"))
        *set = MS_ALL;
    else if (ms_dumpwords_is(r, &word, "nothing"))
        *set = MS_NOTHING;
    else if (word.length > 0 && r->program->n_sets == 0)
        return ms_fail_at(r->fault, MS_EINPUT, &at,
                          "sets stand before the calls that name them",
                          "no set is defined before this line");
    else
        return ms_dumpwords_parse_number(r, &word, "set", 0,
                                         r->program->n_sets - 1, set);
    return MS_OK;
}

static ms_err read_range(ms_dumpwords *r, uint32_t *first, uint32_t *end)
{
    uint32_t most = ms_dumpwords_highest(r->graph->n_units);
    ms_dumpwords_word word = ms_dumpwords_next(r), last = word;
    const char *dash = NULL;
    if (word.length > 0)
        dash = memchr(ms_dumpwords_start(r, &word), '-', word.length);
    if (dash == NULL)
        return ms_dumpwords_expected(r, &word, "units FIRST-LAST");
    word.length = (size_t)(dash - ms_dumpwords_start(r, &word));
    last.at += word.length + 1;
    last.length -= word.length + 1;
    MS_TRY(ms_dumpwords_parse_number(r, &word, "unit", 0, most, first));
    return ms_dumpwords_parse_number(r, &last, "unit", *first, most, end);
}

/* ---- lines --------------------------------------------------------------- */

static ms_err read_head(ms_dumpwords *r)
{
    uint32_t version, frames, ranks;
    if (!ms_dumpwords_next_line(r))
        return ms_fail(r->fault, MS_EINPUT, r->text.name,
                       "--dump program prints one", "the program is empty");
    MS_TRY(ms_dumpwords_expect(r, "memsim-program"));
    MS_TRY(ms_dumpwords_number(r, "version", 1, 1, &version));
    MS_TRY(ms_dumpwords_end(r));
    ms_dumpwords_next_line(r);
    MS_TRY(ms_dumpwords_expect(r, "frames"));
    MS_TRY(ms_dumpwords_number(r, "frames", 1, UINT16_MAX, &frames));
    MS_TRY(ms_dumpwords_expect(r, "ranks"));
    MS_TRY(ms_dumpwords_number(r, "ranks", 1, UINT16_MAX, &ranks));
    MS_TRY(ms_dumpwords_expect(r, "micro-batches"));
    MS_TRY(ms_dumpwords_number(r, "micro-batches", 1, UINT32_MAX - 1,
                               &r->program->n_micro_batches));
    r->program->n_frames = (uint16_t)frames;
    r->program->n_ranks = (uint16_t)ranks;
    size_t before = r->text.offset;
    r->program->overlaps = ms_dumpwords_next(r).length > 0;
    r->text.offset = before;
    if (r->program->overlaps)
        MS_TRY(ms_dumpwords_expect(r, "overlap"));
    return ms_dumpwords_end(r);
}

static ms_err read_set(ms_dumpwords *r)
{
    uint32_t id, next = r->program->n_sets, n = 0;
    MS_TRY(ms_dumpwords_number(r, "set", next, next, &id));
    MS_TRY(ms_dumpwords_expect(r, "="));
    for (;;) {
        ms_dumpwords_word word = ms_dumpwords_next(r);
        if (word.length == 0 && n > 0)
            break;
        uint32_t *items = ms_arena_grow(r->arena, r->items, &r->items_capacity,
                                        n + 1, sizeof *items);
        if (items == NULL)
            return ms_fail_nomem(r->fault);
        r->items = items;
        MS_TRY(ms_dumpwords_parse_number(
            r, &word, "storage", 0, ms_dumpwords_highest(r->graph->n_storages),
            &items[n++]));
    }
    return ms_program_add_set(r->program, r->items, n, r->arena, &id, r->fault);
}

static ms_err parse_amount(ms_dumpwords *r, const char *what, uint64_t *bytes)
{
    ms_dumpwords_word word = ms_dumpwords_next(r);
    ms_quote at = ms_dumpwords_quote(r, &word);
    *bytes = 0;
    for (size_t i = 0; i < word.length; i++) {
        char c = ms_dumpwords_start(r, &word)[i];
        if (c < '0' || c > '9')
            return ms_dumpwords_expected(r, &word, what);
        if (*bytes > (INT64_MAX - 9) / 10)
            return ms_fail_at(r->fault, MS_EINPUT, &at, NULL,
                              "more than 2^63 are too many %s", what);
        *bytes = 10 * *bytes + (uint64_t)(c - '0');
    }
    return word.length > 0 ? MS_OK : ms_dumpwords_expected(r, &word, what);
}

/* A stream, or a home of its own on the ranks' queue. */
static ms_err read_memory(ms_dumpwords *r, ms_buffer *buffer)
{
    const char *words[MS_N_STREAMS + MS_N_HOMES];
    uint32_t which, n = 0;
    for (; n < MS_N_STREAMS; n++)
        words[n] = ms_names_stream[n];
    for (uint32_t home = MS_HOME_REDUCE; home < MS_N_HOMES; home++)
        words[n++] = ms_names_home[home];
    MS_TRY(ms_dumpwords_one_of(r, "stream", words, n, &which));
    buffer->stream =
        which < MS_N_STREAMS ? (uint8_t)which : (uint8_t)MS_STREAM_COMM;
    if (which >= MS_N_STREAMS)
        buffer->home = (uint8_t)(which - MS_N_STREAMS + MS_HOME_REDUCE);
    return MS_OK;
}

static ms_err read_buffer(ms_dumpwords *r)
{
    uint32_t id, next = r->program->n_buffers, category, pool, waited;
    ms_buffer buffer = {.name = "buffer"};
    MS_TRY(ms_dumpwords_number(r, "buffer", next, next, &id));
    MS_TRY(ms_dumpwords_expect(r, "="));
    MS_TRY(parse_amount(r, "bytes", &buffer.bytes));
    MS_TRY(ms_dumpwords_one_of(r, "category", ms_names_category,
                               MS_N_CATEGORIES, &category));
    MS_TRY(ms_dumpwords_one_of(r, "pool", ms_names_pool, MS_N_POOLS, &pool));
    MS_TRY(read_memory(r, &buffer));
    MS_TRY(ms_dumpwords_one_of(r, "end", ms_dump_frees, 2, &waited));
    buffer.waited = waited;
    buffer.category = (uint8_t)category;
    buffer.pool = (uint8_t)pool;
    MS_TRY(ms_dumpwords_end(r));
    return ms_program_add_buffer(r->program, buffer, r->arena, &id, r->fault);
}

static ms_err read_task(ms_dumpwords *r)
{
    uint32_t id, next = r->program->n_tasks, unit, stream;
    ms_task task = {.name = "task"};
    MS_TRY(ms_dumpwords_number(r, "task", next, next, &id));
    MS_TRY(ms_dumpwords_expect(r, "="));
    MS_TRY(parse_amount(r, "an amount", &task.amount));
    MS_TRY(ms_dumpwords_one_of(r, "unit of a task", ms_names_task_unit,
                               MS_N_TASK_UNITS, &unit));
    MS_TRY(ms_dumpwords_one_of(r, "stream", ms_names_stream, MS_N_STREAMS,
                               &stream));
    task.unit = (uint8_t)unit;
    task.stream = (uint8_t)stream;
    MS_TRY(ms_dumpwords_end(r));
    return ms_program_add_task(r->program, task, r->arena, &id, r->fault);
}

static ms_err read_stage(ms_dumpwords *r)
{
    uint32_t id, next = r->program->n_stages, rank, first, last;
    MS_TRY(ms_dumpwords_number(r, "stage", next, next, &id));
    MS_TRY(ms_dumpwords_expect(r, "="));
    MS_TRY(ms_dumpwords_expect(r, "rank"));
    MS_TRY(ms_dumpwords_number(r, "rank", 0, r->program->n_ranks - 1u, &rank));
    MS_TRY(ms_dumpwords_expect(r, "units"));
    MS_TRY(read_range(r, &first, &last));
    MS_TRY(ms_dumpwords_end(r));
    return ms_stage_add(r->program, (ms_stage){(uint16_t)rank, first, last},
                        r->arena, r->fault);
}

static ms_err read_hooks(ms_dumpwords *r)
{
    ms_hooks *hooks = &r->program->hooks;
    uint32_t is[4];
    hooks->used = true;
    MS_TRY(ms_dumpwords_expect(r, "before"));
    MS_TRY(ms_dumpwords_number(r, "op", 0, r->graph->n_ops, &hooks->ops));
    MS_TRY(ms_dumpwords_expect(r, "least"));
    MS_TRY(parse_amount(r, "bytes", &hooks->min_bytes));
    MS_TRY(ms_dumpwords_expect(r, "stash"));
    MS_TRY(ms_dumpwords_number(r, "stash", 0, UINT32_MAX - 1, &hooks->stash));
    for (size_t i = 0; i < 4; i++)
        MS_TRY(ms_dumpwords_one_of(r, "hooks", ms_dump_hooks[i], 2, &is[i]));
    hooks->skips_parameters = is[0];
    hooks->pageable = is[1];
    hooks->waits = is[2];
    hooks->once = is[3];
    return ms_dumpwords_end(r);
}

static ms_err parse_name(ms_dumpwords *r, const char **name)
{
    ms_dumpwords_word word = ms_dumpwords_next(r);
    if (word.length == 0)
        return ms_dumpwords_expected(r, &word, "a name");
    *name = ms_arena_text(r->arena, ms_dumpwords_start(r, &word), word.length);
    return *name == NULL ? ms_fail_nomem(r->fault) : MS_OK;
}

static ms_err read_group_row(ms_dumpwords *r, ms_group *row)
{
    static const char *const queues[] = {"comm", "outer"};
    uint32_t queue, algorithm;
    MS_TRY(ms_dumpwords_expect(r, "="));
    MS_TRY(parse_name(r, &row->name));
    MS_TRY(ms_dumpwords_expect(r, "ranks"));
    MS_TRY(ms_dumpwords_number(r, "ranks", 2, UINT32_MAX - 1, &row->ranks));
    MS_TRY(ms_dumpwords_expect(r, "stride"));
    MS_TRY(ms_dumpwords_number(r, "stride", 1, UINT32_MAX - 1, &row->stride));
    MS_TRY(ms_dumpwords_expect(r, "node"));
    MS_TRY(ms_dumpwords_number(r, "node", 1, UINT32_MAX - 1, &row->node_ranks));
    MS_TRY(ms_dumpwords_one_of(r, "queue", queues, 2, &queue));
    MS_TRY(ms_dumpwords_one_of(r, "algorithm", ms_group_algorithms,
                               MS_N_ALGORITHMS, &algorithm));
    row->queue = queue == 0 ? MS_STREAM_COMM : MS_STREAM_OUTER;
    row->algorithm = (uint8_t)algorithm;
    return ms_dumpwords_end(r);
}

/* Rows between those that are told are of one rank. */
static ms_err read_group(ms_dumpwords *r)
{
    uint32_t id, before = r->program->n_groups, n;
    uint32_t next = r->next_group;
    MS_TRY(ms_dumpwords_number(r, "group", next, UINT8_MAX, &id));
    n = id + 1 > MS_N_GROUP_ROLES ? id + 1 : MS_N_GROUP_ROLES;
    ms_group *rows = ms_arena_grow(r->arena, r->groups, &r->groups_capacity, n,
                                   sizeof *rows);
    if (rows == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = before; i < n; i++)
        rows[i] = (ms_group){.ranks = 1, .queue = MS_STREAM_COMM};
    r->groups = rows;
    r->program->groups = rows;
    r->program->n_groups = n;
    r->next_group = id + 1;
    return read_group_row(r, &rows[id]);
}

static ms_err read_object(ms_dumpwords *r, ms_call *call)
{
    static const char *const passes[] = {"forward", "backward", "grad_input",
                                         "grad_weight"};
    static const uint8_t pass_of[] = {MS_FORWARD, MS_GRAD_INPUT, MS_GRAD_INPUT,
                                      MS_GRAD_WEIGHT};
    uint32_t word;
    switch (ms_dump_verbs[call->verb].object) {
    case MS_DUMP_PASS:
        MS_TRY(ms_dumpwords_one_of(r, "pass", passes, 4, &word));
        call->run.pass = pass_of[word];
        call->run.half = word > 1;
        return MS_OK;
    case MS_DUMP_SET:
        return read_set_name(r, &call->set);
    case MS_DUMP_MARK:
        MS_TRY(
            ms_dumpwords_one_of(r, "mark", ms_names_mark, MS_N_MARKS, &word));
        call->mark.mark = (uint8_t)word;
        return MS_OK;
    case MS_DUMP_TASK:
        return ms_dumpwords_number(r, "task", 0,
                                   ms_dumpwords_highest(r->program->n_tasks),
                                   &call->work.task);
    case MS_DUMP_NO_OBJECT:
        break;
    }
    return MS_OK;
}

static uint8_t *group_of(ms_call *call)
{
    if (call->verb == MS_SEND_SET || call->verb == MS_RECV_SET)
        return &call->message.group;
    return call->verb == MS_GATHER ? &call->gather.group : &call->reduce.group;
}

/* Which rows programs named before they had groups. */
static void name_group(uint32_t given, ms_call *call)
{
    bool outer = given & 1u << MS_DUMP_OUTER;
    if (given & 1u << MS_DUMP_GROUP)
        return;
    if (call->verb == MS_GATHER && outer)
        call->gather.group = MS_GROUP_SECONDARY;
    else if (call->verb == MS_REDUCE && call->reduce.exchange)
        call->reduce.group = outer ? MS_GROUP_ACROSS : MS_GROUP_NODE;
    else if (call->verb == MS_REDUCE && outer)
        call->reduce.group = MS_GROUP_REPLICATE;
}

static ms_err read_value(ms_dumpwords *r, ms_dump_key key, ms_call *call)
{
    uint32_t value;
    switch (key) {
    case MS_DUMP_UNIT:
        MS_TRY(ms_dumpwords_number(r, "unit", 0,
                                   ms_dumpwords_highest(r->graph->n_units),
                                   &call->unit));
        call->last = call->unit;
        break;
    case MS_DUMP_UNITS:
        return read_range(r, &call->unit, &call->last);
    case MS_DUMP_FRAME:
        MS_TRY(ms_dumpwords_number(r, "frame", 0, r->program->n_frames - 1u,
                                   &value));
        call->frame = (uint16_t)value;
        break;
    case MS_DUMP_MICRO:
        return ms_dumpwords_number(
            r, "micro", 0, r->program->n_micro_batches - 1, &call->micro_batch);
    case MS_DUMP_RANK:
        MS_TRY(ms_dumpwords_number(r, "rank", 0, r->program->n_ranks - 1u,
                                   &value));
        call->rank = (uint16_t)value;
        break;
    case MS_DUMP_KEEP:
        return read_set_name(r, &call->run.keep);
    case MS_DUMP_HOLD:
    case MS_DUMP_OF:
        return read_set_name(r, &call->set);
    case MS_DUMP_TO:
        MS_TRY(ms_dumpwords_one_of(r, "place", ms_names_place, MS_N_PLACES,
                                   &value));
        ((uint8_t *)call)[ms_dump_places[call->verb]] = (uint8_t)value;
        break;
    case MS_DUMP_BUFFER:
        return ms_dumpwords_number(r, "buffer", 0,
                                   ms_dumpwords_highest(r->program->n_buffers),
                                   &call->buffer);
    case MS_DUMP_GROUP:
        MS_TRY(ms_dumpwords_number(r, "group", 0, UINT8_MAX, &value));
        *group_of(call) = (uint8_t)value;
        break;
    case MS_DUMP_PEER:
        MS_TRY(ms_dumpwords_number(r, "rank", 0, r->program->n_ranks - 1u,
                                   &value));
        call->message.peer = (uint16_t)value;
        break;
    case MS_DUMP_TAG:
        return ms_dumpwords_number(
            r, "tag", 0, UINT32_MAX - 1,
            call->verb == MS_REDUCE ? &call->reduce.tag : &call->message.tag);
    case MS_DUMP_OUTER:
        break;
    default:
        ((bool *)call)[ms_dump_flag(call->verb, key)] = true;
    }
    return MS_OK;
}

/* Reads keys until the line ends, in any order, each at most once. */
static ms_err read_keys(ms_dumpwords *r, ms_call *call)
{
    const ms_dump_verb *verb = &ms_dump_verbs[call->verb];
    uint32_t given = 0, key;
    for (;;) {
        size_t before = r->text.offset;
        ms_dumpwords_word word = ms_dumpwords_next(r);
        if (word.length == 0) {
            name_group(given, call);
            return MS_OK;
        }
        r->text.offset = before;
        MS_TRY(
            ms_dumpwords_one_of(r, "key", ms_dump_keys, MS_DUMP_N_KEYS, &key));
        ms_quote at = ms_dumpwords_quote(r, &word);
        if (!(verb->keys & 1u << key))
            return ms_fail_at(r->fault, MS_EINPUT, &at, NULL,
                              "\"%s\" has no \"%s\"", verb->name,
                              ms_dump_keys[key]);
        if (given & 1u << key)
            return ms_fail_at(r->fault, MS_EINPUT, &at, NULL,
                              "\"%s\" is given twice", ms_dump_keys[key]);
        given |= 1u << key;
        MS_TRY(read_value(r, (ms_dump_key)key, call));
    }
}

static ms_err note_call(ms_dumpwords *r, size_t at)
{
    uint32_t n = r->program->n_calls;
    uint32_t *call_at = ms_arena_grow(
        r->arena, r->call_at, &r->call_at_capacity, n + 1, sizeof *call_at);
    if (call_at == NULL)
        return ms_fail_nomem(r->fault);
    r->call_at = call_at;
    call_at[n] = (uint32_t)at;
    return MS_OK;
}

static ms_err read_line(ms_dumpwords *r)
{
    static ms_err (*const tables[])(ms_dumpwords * r) = {
        read_set, read_buffer, read_task, read_hooks, read_group, read_stage};
    static const char *const words[] = {"set",   "buffer", "task",
                                        "hooks", "group",  "stage"};
    const char *verbs[MS_N_VERBS + 6];
    for (uint32_t i = 0; i < MS_N_VERBS; i++)
        verbs[i] = ms_dump_verbs[i].name;
    memcpy(verbs + MS_N_VERBS, words, sizeof words);
    size_t before = r->text.offset;
    ms_dumpwords_word word = ms_dumpwords_next(r);
    r->text.offset = before;
    uint32_t verb;
    MS_TRY(ms_dumpwords_one_of(r, "call", verbs, MS_N_VERBS + 6, &verb));
    if (verb >= MS_N_VERBS)
        return tables[verb - MS_N_VERBS](r);
    ms_call call = ms_program_call((ms_verb)verb);
    MS_TRY(read_object(r, &call));
    MS_TRY(read_keys(r, &call));
    MS_TRY(note_call(r, word.at));
    return ms_program_add(r->program, call, r->arena, r->fault);
}

static ms_err check(ms_dumpwords *r)
{
    uint32_t wrong;
    ms_fault found = {0};
    ms_err err = ms_check_calls(r->graph, r->program, &wrong, &found);
    if (err == MS_OK)
        return MS_OK;
    if (wrong == MS_NONE)
        return ms_fail(r->fault, err, r->text.name, found.hint, "%s",
                       found.what);
    ms_quote at = r->text;
    at.offset = r->call_at[wrong];
    return ms_fail_at(r->fault, err, &at, found.hint, "%s", found.what);
}

ms_err ms_dumpread_program(const ms_graph *graph, const char *name,
                           const char *bytes, size_t length, ms_arena *arena,
                           ms_program *program, ms_fault *fault)
{
    *program = (ms_program){0};
    if (length > INT32_MAX)
        return ms_fail(fault, MS_EINPUT, name, NULL,
                       "a program of more than 2 GiB");
    ms_dumpwords r = {.graph = graph,
                      .text = {name, bytes, length, 0},
                      .arena = arena,
                      .program = program,
                      .fault = fault};
    MS_TRY(read_head(&r));
    while (ms_dumpwords_next_line(&r))
        MS_TRY(read_line(&r));
    return check(&r);
}
