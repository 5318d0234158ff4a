/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A recorded history through a pool.  Blocks are named by their recorded
 * addresses, which are the player's ids.  Where the device answers as the file
 * says, the pool's addresses are the recorded ones, and every decision of the
 * pool is compared with the record. */
#include "sim/pools/history/alloctrace.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- differences --------------------------------------------------------- */

static void differ(ms_allocfollow *follow, const char *what, uint64_t recorded,
                   uint64_t ours)
{
    ms_allocfollow_result *result = &follow->result;
    if (result->n_different++ > 0)
        return;
    result->first = follow->at;
    snprintf(result->what, sizeof result->what,
             "%s: recorded %" PRIu64 ", memsim %" PRIu64, what, recorded, ours);
}

/* The pool's next action on the device must be the next one that was recorded.
 */
static void log_entry(void *of, const ms_torch_entry *entry)
{
    ms_allocfollow *follow = of;
    if (follow->log != NULL)
        follow->log(follow->log_of, entry);
    if (entry->action < MS_TORCH_SEGMENT_ALLOC ||
        entry->action > MS_TORCH_SEGMENT_UNMAP)
        return;
    if (follow->at_expected == follow->n_expected) {
        differ(follow, "a further segment event at", 0, entry->address);
        return;
    }
    const ms_torch_entry *expected = &follow->expected[follow->at_expected++];
    follow->result.n_answers++;
    if (expected->action != entry->action)
        differ(follow, "kind of segment event", expected->action,
               entry->action);
    else if (expected->address != entry->address)
        differ(follow, ms_torch_actions[entry->action], expected->address,
               entry->address);
    else if (expected->bytes != entry->bytes)
        differ(follow, ms_torch_actions[entry->action], expected->bytes,
               entry->bytes);
}

/* ---- the start ----------------------------------------------------------- */

/* A heap cannot take over blocks that exist at the start: they are requested
 * from it anew, as they are from torch where the caller asks for it (anew). */
static ms_err ask_for(ms_allocfollow *follow,
                      const ms_recording_segment *segment, ms_fault *fault)
{
    const ms_recording_block *blocks =
        follow->recording->blocks + segment->blocks_at;
    uint64_t address = segment->address;
    for (uint32_t i = 0; i < segment->n_blocks; i++) {
        uint64_t bytes = blocks[i].requested_bytes;
        uint32_t row = MS_NONE;
        if (bytes == 0 || bytes > blocks[i].bytes)
            bytes = blocks[i].bytes;
        if (blocks[i].state != MS_TORCH_INACTIVE && bytes > 0) {
            MS_TRY(ms_pool_malloc(follow->play.pool, bytes, segment->stream,
                                  &row, fault));
            MS_TRY(ms_allocplay_name_block(&follow->play, address, row, fault));
        }
        address += blocks[i].bytes;
    }
    return MS_OK;
}

static ms_err seed(ms_allocfollow *follow, const ms_recording_segment *segment,
                   ms_arena *arena, ms_fault *fault)
{
    const ms_recording_block *blocks =
        follow->recording->blocks + segment->blocks_at;
    uint32_t n = segment->n_blocks;
    ms_torch_origin origin = {segment->address, segment->stream,
                              segment->small};
    ms_torch_piece *pieces = ms_arena_take_raw(arena, n, sizeof *pieces);
    uint32_t *rows = ms_arena_take_raw(arena, n, sizeof *rows);
    if (pieces == NULL || rows == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        bool idle = blocks[i].state == MS_TORCH_INACTIVE;
        pieces[i] = (ms_torch_piece){
            blocks[i].bytes, idle ? UINT64_MAX : blocks[i].requested_bytes};
    }
    MS_TRY(ms_torchseed_segment(follow->play.pool, &origin, pieces, n, rows,
                                fault));
    for (uint32_t i = 0; i < n; i++)
        if (pieces[i].requested_bytes != UINT64_MAX)
            MS_TRY(ms_allocplay_name_block(
                &follow->play,
                ms_torchview_block(follow->play.pool, rows[i]).address, rows[i],
                fault));
    return MS_OK;
}

ms_err ms_allocfollow_start(ms_allocfollow *follow,
                            const ms_recording *recording,
                            const ms_pool_setup *setup, bool anew,
                            ms_arena *arena, ms_fault *fault)
{
    ms_pool_setup own = *setup;
    *follow = (ms_allocfollow){.recording = recording,
                               .log = setup->torch.log,
                               .log_of = setup->torch.log_of,
                               .given = setup->torch.policy == MS_TORCH_GIVEN,
                               .result = {.first = MS_NONE}};
    if (follow->given) {
        own.torch.log = log_entry;
        own.torch.log_of = follow;
    }
    MS_TRY(ms_allocplay_start(&follow->play, &own, arena, fault));
    follow->play.line = 1;
    for (uint32_t i = 0; i < recording->n_start; i++)
        MS_TRY(setup->heap.kind == MS_POOL_TORCH && (follow->given || !anew)
                   ? seed(follow, &recording->start[i], arena, fault)
                   : ask_for(follow, &recording->start[i], fault));
    return MS_OK;
}

/* ---- events -------------------------------------------------------------- */

/* "free asked" and "free completed" apart. */
static ms_err do_half(ms_allocfollow *follow, const ms_alloctrace_spot *spot,
                      const ms_recording_event *event, ms_allocplay_row *row,
                      ms_fault *fault)
{
    ms_allocplay_name *name;
    ms_pool *pool = follow->play.pool;
    bool asked = event->kind == MS_RECORDING_ASKED;
    MS_TRY(
        ms_allocplay_block(&follow->play, spot, event->address, &name, fault));
    row->has_id = true;
    row->id = event->address;
    row->ok = name != NULL;
    if (name == NULL)
        return MS_OK;
    ms_torch_block_view block = ms_torchview_block(pool, name->block);
    row->address = block.address;
    if ((block.state == MS_TORCH_ACTIVE_PENDING) == asked)
        return ms_allocplay_fail(
            spot, fault, NULL,
            asked ? "the block at %" PRIu64 " was freed before"
                  : "nobody asked to free the block at %" PRIu64,
            event->address);
    if (asked) {
        ms_torch_free_later(pool, name->block);
        return MS_OK;
    }
    ms_torch_free_now(pool, name->block);
    ms_allocplay_forget(&follow->play, name);
    return MS_OK;
}

/* The request ran out of memory in the record and is served here: its life is
 * not known, so it is freed at once. */
static ms_err let_go(ms_allocfollow *follow, const ms_alloctrace_spot *spot,
                     uint64_t id, ms_fault *fault)
{
    ms_allocplay_name *name;
    MS_TRY(ms_allocplay_block(&follow->play, spot, id, &name, fault));
    ms_pool_free(follow->play.pool, name->block);
    ms_allocplay_forget(&follow->play, name);
    return MS_OK;
}

static ms_err do_event(ms_allocfollow *follow, const ms_alloctrace_spot *spot,
                       const ms_recording_event *event, ms_allocplay_row *row,
                       ms_fault *fault)
{
    ms_alloctext_op op = {
        .id = event->address, .bytes = event->bytes, .stream = event->stream};
    *row = (ms_allocplay_row){.ok = true, .kind = 'f'};
    switch (event->kind) {
    case MS_RECORDING_OOM: /* an id that no address can be */
        op.id = UINT64_MAX - follow->at;
        op.kind = 'a';
        break;
    case MS_RECORDING_ALLOC:
        op.kind = 'a';
        break;
    case MS_RECORDING_FREE:
        op.kind = 'f';
        break;
    case MS_RECORDING_EMPTY:
        op.kind = 'e';
        break;
    default:
        follow->play.n_ops++;
        return do_half(follow, spot, event, row, fault);
    }
    MS_TRY(ms_allocplay_do(&follow->play, spot, &op, row, fault));
    if (event->kind != MS_RECORDING_OOM)
        return MS_OK;
    row->has_id = false;
    return row->ok && !follow->given ? let_go(follow, spot, op.id, fault)
                                     : MS_OK;
}

static void compare(ms_allocfollow *follow, const ms_recording_event *event,
                    const ms_allocplay_row *row)
{
    follow->result.n_addresses++;
    if (event->kind == MS_RECORDING_OOM && row->ok)
        differ(follow, "out of memory", 1, 0);
    else if (event->kind == MS_RECORDING_ALLOC &&
             row->address != event->address)
        differ(follow, "address", event->address, row->address);
    if (follow->at_expected < follow->n_expected)
        differ(follow, "segment events", follow->n_expected,
               follow->at_expected);
}

ms_err ms_allocfollow_do(ms_allocfollow *follow, ms_allocplay_row *row,
                         bool *more, ms_fault *fault)
{
    const ms_recording *recording = follow->recording;
    *more = follow->at < recording->n_events;
    if (!*more)
        return MS_OK;
    const ms_recording_event *event = &recording->events[follow->at];
    ms_alloctrace_spot spot = {recording->name, event->line, event->column};
    follow->play.line = event->line;
    follow->expected = recording->answers + event->answers_at;
    follow->n_expected = event->n_answers;
    follow->at_expected = 0;
    ms_torch_answer(follow->play.pool, follow->expected, event->n_answers);
    MS_TRY(do_event(follow, &spot, event, row, fault));
    if (follow->given)
        compare(follow, event, row);
    follow->at++;
    return MS_OK;
}

/* ---- the end ------------------------------------------------------------- */

static void compare_block(ms_allocfollow *follow,
                          const ms_recording_block *recorded,
                          const ms_torch_block_view *ours)
{
    follow->result.n_blocks++;
    if (recorded->bytes != ours->bytes)
        differ(follow, "bytes of a block at the end", recorded->bytes,
               ours->bytes);
    else if (recorded->state != ours->state)
        differ(follow, "state of a block at the end", recorded->state,
               ours->state);
    else if (recorded->state != MS_TORCH_INACTIVE &&
             recorded->requested_bytes != ours->requested_bytes)
        differ(follow, "requested bytes of a block at the end",
               recorded->requested_bytes, ours->requested_bytes);
}

static void compare_segment(ms_allocfollow *follow,
                            const ms_recording_segment *recorded,
                            const ms_torch_segment_view *ours)
{
    const ms_recording_block *blocks =
        follow->recording->blocks + recorded->blocks_at;
    if (recorded->address != ours->address)
        differ(follow, "address of a segment at the end", recorded->address,
               ours->address);
    else if (recorded->bytes != ours->bytes)
        differ(follow, "bytes of a segment at the end", recorded->bytes,
               ours->bytes);
    else if (recorded->n_blocks != ours->n_blocks)
        differ(follow, "blocks of a segment at the end", recorded->n_blocks,
               ours->n_blocks);
    else if (recorded->stream != ours->stream || recorded->small != ours->small)
        differ(follow, "stream or pool of a segment at the end",
               recorded->stream, ours->stream);
    else
        for (uint32_t i = 0; i < ours->n_blocks; i++)
            compare_block(follow, &blocks[i], &ours->blocks[i]);
}

ms_err ms_allocfollow_end(ms_allocfollow *follow, ms_arena *arena,
                          ms_fault *fault)
{
    const ms_recording *recording = follow->recording;
    ms_torch_snapshot ours;
    if (!follow->given)
        return MS_OK;
    follow->at = MS_NONE;
    MS_TRY(ms_torchview_snapshot(follow->play.pool, arena, &ours, fault));
    if (recording->n_final != ours.n_segments)
        differ(follow, "segments at the end", recording->n_final,
               ours.n_segments);
    else
        for (uint32_t i = 0; i < ours.n_segments; i++)
            compare_segment(follow, &recording->final[i], &ours.segments[i]);
    return MS_OK;
}
