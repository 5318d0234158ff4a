/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams of the torch pool: how far each is, which frees wait for them
 * (sim/pools/README.md 8).  A stream is a counter of pieces of work; an event
 * recorded on it is done when the counter of finished pieces gets to where the
 * queue ended then.  Events of one stream are seen in order, as PyTorch sees
 * them. */
#include "sim/pools/blocks/ledger.h"

#include <inttypes.h>

/* ---- the table of streams ------------------------------------------------ */

/* How many have a handle below this one. */
static uint32_t count_below(const ms_torch *pool, uint64_t handle)
{
    uint32_t low = 0, high = pool->n_streams;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pool->streams[pool->by_handle[middle]].handle < handle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ms_err add_stream(ms_torch *pool, uint64_t handle, uint32_t at,
                         ms_fault *fault)
{
    uint32_t n = pool->n_streams;
    if (n == MS_TORCH_MOST_STREAMS)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "more than %u streams are named", MS_TORCH_MOST_STREAMS);
    pool->streams =
        ms_arena_grow(pool->arena, pool->streams, &pool->streams_capacity,
                      n + 1, sizeof *pool->streams);
    pool->by_handle =
        ms_arena_grow(pool->arena, pool->by_handle, &pool->by_handle_capacity,
                      n + 1, sizeof *pool->by_handle);
    if (pool->streams == NULL || pool->by_handle == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = n; i > at; i--)
        pool->by_handle[i] = pool->by_handle[i - 1];
    pool->by_handle[at] = n;
    pool->streams[n] = (torch_stream){.handle = handle,
                                      .first = MS_NONE,
                                      .last = MS_NONE,
                                      .unmapped = {MS_NONE, MS_NONE}};
    pool->n_streams++;
    return MS_OK;
}

ms_err ms_torchstreams_search(ms_torch *pool, uint64_t handle, uint32_t *row,
                              ms_fault *fault)
{
    uint32_t at = count_below(pool, handle);
    if (at == pool->n_streams ||
        pool->streams[pool->by_handle[at]].handle != handle)
        MS_TRY(add_stream(pool, handle, at, fault));
    *row = pool->last_stream = pool->by_handle[at];
    return MS_OK;
}

/* ---- nodes of lists ------------------------------------------------------ */

static ms_err take_node(ms_torch *pool, uint32_t *node, ms_fault *fault)
{
    if (pool->spare_node != MS_NONE) {
        *node = pool->spare_node;
        pool->spare_node = pool->nodes[*node].next;
        return MS_OK;
    }
    pool->nodes = ms_arena_grow(pool->arena, pool->nodes, &pool->nodes_capacity,
                                pool->n_nodes + 1, sizeof *pool->nodes);
    if (pool->nodes == NULL)
        return ms_fail_nomem(fault);
    *node = pool->n_nodes++;
    return MS_OK;
}

static void drop_node(ms_torch *pool, uint32_t node)
{
    pool->nodes[node].next = pool->spare_node;
    pool->spare_node = node;
}

void ms_torchstreams_forget(ms_torch *pool, uint32_t block)
{
    uint32_t node = pool->blocks[block].uses;
    while (node != MS_NONE) {
        uint32_t next = pool->nodes[node].next;
        drop_node(pool, node);
        node = next;
    }
    pool->blocks[block].uses = MS_NONE;
}

/* ---- uses and events ----------------------------------------------------- */

ms_err ms_torchstreams_record(ms_torch *pool, uint32_t block, uint64_t stream,
                              ms_fault *fault)
{
    uint32_t row, node;
    MS_TRY(ms_torchstreams_find(pool, stream, &row, fault));
    if (row == pool->blocks[block].stream)
        return MS_OK;
    uint32_t first = pool->blocks[block].uses;
    for (node = first; node != MS_NONE; node = pool->nodes[node].next)
        if (pool->nodes[node].row == row)
            return MS_OK;
    MS_TRY(take_node(pool, &node, fault));
    pool->nodes[node] = (torch_node){.row = row, .next = first};
    pool->blocks[block].uses = node;
    return MS_OK;
}

/* Each use becomes an event at the end of its stream's queue: the node moves
 * from the one list to the other. */
void ms_torchstreams_defer(ms_torch *pool, uint32_t block)
{
    uint32_t node = pool->blocks[block].uses;
    pool->blocks[block].uses = MS_NONE;
    while (node != MS_NONE) {
        torch_node *event = &pool->nodes[node];
        torch_stream *stream = &pool->streams[event->row];
        uint32_t next = event->next;
        *event = (torch_node){
            .position = stream->queued, .row = block, .next = MS_NONE};
        if (stream->last == MS_NONE)
            stream->first = node;
        else
            pool->nodes[stream->last].next = node;
        stream->last = node;
        pool->blocks[block].events++;
        pool->n_events++;
        node = next;
    }
}

/* Sees the events of one stream that are done, oldest first. */
static void see_stream(ms_torch *pool, uint32_t row)
{
    for (;;) {
        torch_stream *stream = &pool->streams[row];
        uint32_t node = stream->first;
        if (node == MS_NONE || pool->nodes[node].position > stream->done)
            return;
        uint32_t block = pool->nodes[node].row;
        stream->first = pool->nodes[node].next;
        if (stream->first == MS_NONE)
            stream->last = MS_NONE;
        drop_node(pool, node);
        pool->n_events--;
        if (--pool->blocks[block].events == 0)
            ms_ledger_complete(pool, block);
    }
}

void ms_torchstreams_process(ms_torch *pool)
{
    for (uint32_t i = 0; i < pool->n_streams && pool->n_events > 0; i++)
        see_stream(pool, pool->by_handle[i]);
}

void ms_torchstreams_wait(ms_torch *pool)
{
    for (uint32_t i = 0; i < pool->n_streams; i++) {
        torch_stream *stream = &pool->streams[pool->by_handle[i]];
        if (stream->last == MS_NONE)
            continue;
        uint64_t position = pool->nodes[stream->last].position;
        if (stream->done < position)
            stream->done = position;
        see_stream(pool, pool->by_handle[i]);
    }
}

void ms_torchstreams_sync(ms_torch *pool, uint32_t stream)
{
    for (uint32_t i = 0; i < pool->n_streams; i++)
        if (stream == MS_NONE || stream == i)
            pool->streams[i].done = pool->streams[i].queued;
}

/* ---- work ---------------------------------------------------------------- */

ms_err ms_torchstreams_queue(ms_torch *pool, uint64_t stream, uint64_t n,
                             ms_fault *fault)
{
    uint32_t row;
    MS_TRY(ms_torchstreams_find(pool, stream, &row, fault));
    if (__builtin_add_overflow(pool->streams[row].queued, n,
                               &pool->streams[row].queued))
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "stream %" PRIu64 " has more than 2^64 pieces of work",
                       stream);
    return MS_OK;
}

ms_err ms_torchstreams_finish(ms_torch *pool, uint64_t stream, uint64_t n,
                              ms_fault *fault)
{
    uint32_t row;
    MS_TRY(ms_torchstreams_find(pool, stream, &row, fault));
    torch_stream *at = &pool->streams[row];
    uint64_t left = at->queued - at->done;
    at->done += n < left ? n : left;
    return MS_OK;
}
