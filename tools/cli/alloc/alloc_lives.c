/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the lifetimes of buffers: from CSV, or from a trace, where the time
 * of an operation is its number, counted from 1. What is alive when the
 * trace starts has the time 0. */

#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc_arena.h"

#include <stdlib.h>
#include <string.h>

typedef struct event {
    uint64_t id, bytes; /* bytes 0: the event is a free */
    uint32_t t, line;
} event;

typedef struct events {
    event *of;
    uint32_t n, capacity, t;
    ms_arena *arena;
    ms_fault *fault;
} events;

static ms_err add(events *all, uint64_t id, uint64_t bytes, uint32_t line)
{
    all->of = ms_arena_grow(all->arena, all->of, &all->capacity, all->n + 1,
                            sizeof *all->of);
    if (all->of == NULL)
        return ms_fail_nomem(all->fault);
    uint64_t over = bytes % MS_ALLOC_BYTES;
    all->of[all->n++] = (event){
        id, over > 0 ? bytes + MS_ALLOC_BYTES - over : bytes, all->t, line};
    return MS_OK;
}

static int by_id(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->t > b->t) - (a->t < b->t);
}

static int by_start(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if ((a->line == 0) != (b->line == 0))
        return a->line == 0 ? 1 : -1;
    return (a->t > b->t) - (a->t < b->t);
}

/* ---- events to lives ----------------------------------------------------- */

/* Reports the first line of the file that is wrong, whichever id it is of. */
static ms_err check_pairs(const events *all, const char *name)
{
    uint32_t worst = MS_NONE;
    for (uint32_t i = 0; i < all->n; i++) {
        const event *e = &all->of[i];
        bool live = i > 0 && e[-1].id == e->id && e[-1].bytes > 0;
        if (live == (e->bytes > 0) &&
            (worst == MS_NONE || e->t < all->of[worst].t))
            worst = i;
    }
    if (worst == MS_NONE)
        return MS_OK;
    return ms_allocplay_fail(
        &(ms_alloctrace_spot){name, all->of[worst].line, 0}, all->fault, NULL,
        all->of[worst].bytes > 0 ? "id %llu is alive already"
                                 : "id %llu is not alive",
        (unsigned long long)all->of[worst].id);
}

/* Pairs each allocation with its free. Sorted by id and time, a free follows
 * its allocation; afterwards the allocations are sorted by time. */
static ms_err pair(events *all, const char *name, ms_placement_list *list)
{
    uint32_t n = 0, end = all->t + 1;
    if (all->n == 0)
        return MS_OK;
    qsort(all->of, all->n, sizeof *all->of, by_id);
    MS_TRY(check_pairs(all, name));
    for (uint32_t i = 0; i < all->n; i++) {
        event *e = &all->of[i];
        bool freed = e->bytes > 0 && i + 1 < all->n && e[1].id == e->id;
        e->line = e->bytes == 0 ? 0 : freed ? e[1].t : end;
        n += e->bytes > 0;
    }
    qsort(all->of, all->n, sizeof *all->of, by_start);
    list->buffers = ms_arena_take(all->arena, n + 1, sizeof *list->buffers);
    list->ids = ms_arena_take(all->arena, n + 1, sizeof *list->ids);
    if (list->buffers == NULL || list->ids == NULL)
        return ms_fail_nomem(all->fault);
    for (list->n = 0; list->n < n; list->n++) {
        const event *e = &all->of[list->n];
        list->buffers[list->n] =
            (ms_placement_buffer){e->t, e->line, e->bytes, 1};
        list->ids[list->n] =
            ms_arena_format(all->arena, "%llu", (unsigned long long)e->id);
        if (list->ids[list->n] == NULL)
            return ms_fail_nomem(all->fault);
    }
    return MS_OK;
}

/* ---- files --------------------------------------------------------------- */

static ms_err read_text(ms_alloc_source *source, events *all)
{
    ms_alloctext_op op;
    for (;;) {
        char *line;
        size_t length;
        MS_TRY(
            ms_alloc_read_line(source, all->arena, &line, &length, all->fault));
        if (line == NULL)
            return MS_OK;
        ms_alloctrace_spot spot = {source->name, source->line, 0};
        MS_TRY(ms_alloctext_line(&spot, line, length, &op, all->fault));
        if (op.kind == 0 || op.kind == '#')
            continue;
        all->t++;
        if (op.kind == 'a' && (op.bytes == 0 || op.bytes > MS_TORCH_MOST_BYTES))
            return ms_allocplay_fail(&spot, all->fault, NULL,
                                     "a request has from 1 to 2^50 bytes");
        if (op.kind == 'a' || op.kind == 'f')
            MS_TRY(
                add(all, op.id, op.kind == 'a' ? op.bytes : 0, source->line));
    }
}

static ms_err read_start(const ms_recording *recording, events *all)
{
    for (uint32_t i = 0; i < recording->n_start; i++) {
        const ms_recording_segment *segment = &recording->start[i];
        uint64_t address = segment->address;
        for (uint32_t b = 0; b < segment->n_blocks; b++) {
            const ms_recording_block *block =
                &recording->blocks[segment->blocks_at + b];
            uint64_t bytes = block->requested_bytes;
            if (block->state != MS_TORCH_INACTIVE)
                MS_TRY(add(all, address,
                           bytes > 0 && bytes <= block->bytes ? bytes
                                                              : block->bytes,
                           0));
            address += block->bytes;
        }
    }
    return MS_OK;
}

/* A free that is requested and completed apart counts from its request. */
static ms_err read_recorded(const ms_recording *recording, events *all)
{
    MS_TRY(read_start(recording, all));
    for (uint32_t i = 0; i < recording->n_events; i++) {
        const ms_recording_event *e = &recording->events[i];
        all->t++;
        if (e->kind == MS_RECORDING_ALLOC)
            MS_TRY(add(all, e->address, e->bytes, e->line));
        else if (e->kind == MS_RECORDING_FREE || e->kind == MS_RECORDING_ASKED)
            MS_TRY(add(all, e->address, 0, e->line));
    }
    return MS_OK;
}

static ms_err read_source(ms_alloc_source *source, ms_arena *arena,
                          ms_placement_list *list, ms_fault *fault)
{
    events all = {.arena = arena, .fault = fault};
    if (source->is_recorded)
        MS_TRY(read_recorded(&source->recording, &all));
    else if (source->is_csv) {
        MS_TRY(ms_alloc_read_all(source, arena, fault));
        return ms_placecsv_read(source->name, source->bytes + source->at,
                                source->end - source->at, arena, list, fault);
    } else
        MS_TRY(read_text(source, &all));
    return pair(&all, source->name, list);
}

ms_err ms_alloc_lives_read(const char *path, ms_arena *arena, const char **name,
                           ms_placement_list *list, ms_fault *fault)
{
    ms_alloc_source source;
    *list = (ms_placement_list){0};
    ms_err err = ms_alloc_read_open(&source, path, arena, fault);
    *name = source.name;
    if (err == MS_OK)
        err = read_source(&source, arena, list, fault);
    if (err == MS_OK && list->n == 0)
        err = ms_alloc_read_empty(&source, fault);
    ms_alloc_read_close(&source);
    return err;
}
