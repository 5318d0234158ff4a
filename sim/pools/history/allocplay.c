/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operations of a trace through a pool: ids to blocks, and after each
 * operation what the table of the reference cases has. */
#include "sim/pools/history/alloctrace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define FREED (MS_NONE)
#define FAILED (MS_NONE - 1) /* its malloc ran out of memory */

#define WHERE_BYTES sizeof((ms_fault *)NULL)->where

static void put_where(const ms_alloctrace_spot *spot, char *where)
{
    if (spot->column > 0)
        snprintf(where, WHERE_BYTES, "%.200s:%" PRIu32 ":%" PRIu32, spot->name,
                 spot->line, spot->column);
    else
        snprintf(where, WHERE_BYTES, "%.200s:%" PRIu32, spot->name, spot->line);
}

ms_err ms_allocplay_fail(const ms_alloctrace_spot *spot, ms_fault *fault,
                         const char *hint, const char *format, ...)
{
    char where[WHERE_BYTES], what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    put_where(spot, where);
    return ms_fail(fault, MS_EINPUT, where, hint, "%s", what);
}

/* ---- ids ----------------------------------------------------------------- */

/* Sixteen ids in a row share a neighbourhood: traces count them up. */
static uint32_t slot_of(uint64_t id, uint32_t capacity)
{
    uint64_t group = (id >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(((group >> 32) << 4 | (id & 15)) & (capacity - 1));
}

/* The slot of the id, or the empty one where it would stand. */
static ms_allocplay_name *find(const ms_allocplay *play, uint64_t id)
{
    uint32_t mask = play->names_capacity - 1;
    uint32_t at = slot_of(id, play->names_capacity);
    while (play->names[at].line != 0 && play->names[at].id != id)
        at = (at + 1) & mask;
    return &play->names[at];
}

static ms_err make_room(ms_allocplay *play, ms_fault *fault)
{
    if (2 * (uint64_t)(play->n_names + 1) <= play->names_capacity)
        return MS_OK;
    ms_allocplay before = *play;
    uint32_t capacity =
        play->names_capacity > 0 ? 2 * play->names_capacity : 1024;
    play->names = ms_arena_take(play->arena, capacity, sizeof *play->names);
    if (capacity == 0 || play->names == NULL)
        return ms_fail_nomem(fault);
    play->names_capacity = capacity;
    for (uint32_t i = 0; i < before.names_capacity; i++)
        if (before.names[i].line != 0)
            *find(play, before.names[i].id) = before.names[i];
    return MS_OK;
}

static bool is_live(const ms_allocplay_name *name)
{
    return name->line != 0 && name->block < FAILED;
}

ms_err ms_allocplay_name_block(ms_allocplay *play, uint64_t id, uint32_t block,
                               ms_fault *fault)
{
    MS_TRY(make_room(play, fault));
    ms_allocplay_name *name = find(play, id);
    play->n_names += name->line == 0 ? 1 : 0;
    *name =
        (ms_allocplay_name){id, block != MS_NONE ? block : FAILED, play->line};
    return MS_OK;
}

void ms_allocplay_forget(const ms_allocplay *play, ms_allocplay_name *name)
{
    name->block = FREED;
    name->line = play->line;
}

ms_err ms_allocplay_block(const ms_allocplay *play,
                          const ms_alloctrace_spot *spot, uint64_t id,
                          ms_allocplay_name **found, ms_fault *fault)
{
    ms_allocplay_name *name = play->names_capacity > 0 ? find(play, id) : NULL;
    *found = NULL;
    if (name == NULL || name->line == 0)
        return ms_allocplay_fail(spot, fault, NULL,
                                 "id %" PRIu64 " was never allocated", id);
    if (name->block == FREED)
        return ms_allocplay_fail(spot, fault, NULL,
                                 "id %" PRIu64
                                 " was freed before, in line %" PRIu32,
                                 id, name->line);
    if (name->block != FAILED)
        *found = name;
    return MS_OK;
}

/* ---- operations ---------------------------------------------------------- */

ms_err ms_allocplay_start(ms_allocplay *play, const ms_pool_setup *setup,
                          ms_arena *arena, ms_fault *fault)
{
    *play = (ms_allocplay){.arena = arena, .device_bytes = UINT64_MAX};
    return ms_pool_new(setup, arena, &play->pool, fault);
}

static ms_err check_size(const ms_allocplay *play,
                         const ms_alloctrace_spot *spot, uint64_t bytes,
                         ms_fault *fault)
{
    if (bytes == 0)
        return ms_allocplay_fail(spot, fault,
                                 "leave it out: PyTorch never asks for none",
                                 "a request of 0 bytes");
    if (bytes > play->device_bytes)
        return ms_allocplay_fail(spot, fault, NULL,
                                 "a request of %" PRIu64
                                 " bytes: the device has %" PRIu64,
                                 bytes, play->device_bytes);
    return MS_OK;
}

static ms_err do_malloc(ms_allocplay *play, const ms_alloctrace_spot *spot,
                        const ms_alloctext_op *op, ms_allocplay_row *row,
                        ms_fault *fault)
{
    uint32_t block;
    MS_TRY(check_size(play, spot, op->bytes, fault));
    MS_TRY(make_room(play, fault));
    ms_allocplay_name *name = find(play, op->id);
    if (is_live(name))
        return ms_allocplay_fail(spot, fault, NULL,
                                 "id %" PRIu64
                                 " is alive, allocated in line %" PRIu32,
                                 op->id, name->line);
    MS_TRY(ms_pool_malloc(play->pool, op->bytes, op->stream, &block, fault));
    play->n_names += name->line == 0 ? 1 : 0;
    *name = (ms_allocplay_name){op->id, block != MS_NONE ? block : FAILED,
                                play->line};
    play->n_allocs++;
    row->ok = block != MS_NONE;
    if (row->ok) {
        row->address = ms_torchview_block(play->pool, block).address;
    } else if (play->n_oom++ == 0) {
        play->first_oom = play->line;
        play->first_oom_bytes = op->bytes;
    }
    return MS_OK;
}

static ms_err do_free(ms_allocplay *play, const ms_alloctrace_spot *spot,
                      const ms_alloctext_op *op, ms_allocplay_row *row,
                      ms_fault *fault)
{
    ms_allocplay_name *name;
    MS_TRY(ms_allocplay_block(play, spot, op->id, &name, fault));
    row->ok = name != NULL;
    if (name == NULL)
        return MS_OK;
    ms_torch_block_view block = ms_torchview_block(play->pool, name->block);
    row->address = block.address;
    if (block.state != MS_TORCH_ACTIVE_ALLOCATED)
        return ms_allocplay_fail(spot, fault, NULL,
                                 "id %" PRIu64 " was freed before", op->id);
    ms_pool_free(play->pool, name->block);
    ms_allocplay_forget(play, name);
    return MS_OK;
}

static ms_err do_record(ms_allocplay *play, const ms_alloctrace_spot *spot,
                        const ms_alloctext_op *op, ms_allocplay_row *row,
                        ms_fault *fault)
{
    ms_allocplay_name *name;
    MS_TRY(ms_allocplay_block(play, spot, op->id, &name, fault));
    row->ok = name != NULL;
    if (name == NULL)
        return MS_OK;
    row->address = ms_torchview_block(play->pool, name->block).address;
    return ms_torchstreams_record(play->pool, name->block, op->stream, fault);
}

static ms_err change_conf(ms_allocplay *play, const ms_alloctrace_spot *spot,
                          const char *conf, ms_fault *fault)
{
    char where[WHERE_BYTES];
    put_where(spot, where);
    return ms_pool_set_conf(play->pool, conf, where, fault);
}

/* What names no id. */
static ms_err do_other(ms_allocplay *play, const ms_alloctrace_spot *spot,
                       const ms_alloctext_op *op, ms_fault *fault)
{
    ms_pool *pool = play->pool;
    switch (op->kind) {
    case 'w':
        return ms_torchstreams_queue(pool, op->stream, op->n, fault);
    case 'c':
        return ms_torchstreams_finish(pool, op->stream, op->n, fault);
    case 'e':
        return ms_pool_empty_cache(pool, fault);
    case 'm':
        ms_pool_set_fraction(pool, op->fraction);
        return MS_OK;
    case 'x':
        return change_conf(play, spot, op->value, fault);
    case 'b':
        ms_torch_set_base(pool, op->bytes);
        return MS_OK;
    case 'P':
        ms_torch_reset_peaks(pool);
        return MS_OK;
    default:
        assert(op->kind == 's');
        ms_torchview_log_snapshot(pool);
        return MS_OK;
    }
}

/* A fault of the pool itself does not know where it is. */
static ms_err at_spot(ms_err err, const ms_alloctrace_spot *spot,
                      ms_fault *fault)
{
    if (err != MS_OK && err != MS_ENOMEM && fault->where[0] == '\0')
        put_where(spot, fault->where);
    return err;
}

ms_err ms_allocplay_do(ms_allocplay *play, const ms_alloctrace_spot *spot,
                       const ms_alloctext_op *op, ms_allocplay_row *row,
                       ms_fault *fault)
{
    *row = (ms_allocplay_row){.kind = op->kind, .ok = true};
    play->line = spot->line;
    play->n_ops++;
    switch (op->kind) {
    case 'a':
    case 'f':
    case 'r':
        row->has_id = true;
        row->id = op->id;
        if (op->kind == 'a')
            return at_spot(do_malloc(play, spot, op, row, fault), spot, fault);
        if (op->kind == 'f')
            return do_free(play, spot, op, row, fault);
        return at_spot(do_record(play, spot, op, row, fault), spot, fault);
    case 'w':
    case 'c': /* the column shows the stream */
        row->has_id = true;
        row->id = op->stream;
        break;
    default:
        break;
    }
    return at_spot(do_other(play, spot, op, fault), spot, fault);
}

/* ---- lines --------------------------------------------------------------- */

void ms_allocplay_tell(const ms_allocplay *play, const ms_allocplay_row *row,
                       ms_allocplay_line *line)
{
    const ms_pool *pool = play->pool;
    *line = (ms_allocplay_line){
        .i = play->n_ops - 1,
        .op = {row->kind},
        .has_id = row->has_id,
        .id = row->id,
        .ok = row->ok,
        .address = row->address,
        .allocated_bytes = ms_torchview_current(pool, MS_TORCH_ALLOCATED_BYTES),
        .active_bytes = ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES),
        .reserved_bytes = ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES),
        .requested_bytes = ms_torchview_current(pool, MS_TORCH_REQUESTED_BYTES),
        .inactive_split_bytes =
            ms_torchview_current(pool, MS_TORCH_INACTIVE_SPLIT_BYTES),
        .allocations = ms_torchview_current(pool, MS_TORCH_ALLOCATION),
        .active = ms_torchview_current(pool, MS_TORCH_ACTIVE),
        .inactive_splits = ms_torchview_current(pool, MS_TORCH_INACTIVE_SPLIT),
        .segments = ms_torchview_current(pool, MS_TORCH_SEGMENT),
        .retries = ms_torchview_retries(pool),
        .ooms = ms_torchview_ooms(pool),
        .device_used_bytes = ms_torchview_device_used(pool)};
}
