/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads recorded histories of PyTorch's caching allocator on a GPU, as JSON:
 *
 *     {"conf": "expandable_segments:True", "expandable": true,
 *      "start": [[address, bytes, stream, "small"|"large",
 *                 [[offset, bytes, requested or null], ...]], ...],
 *      "events": [["a", address, bytes, stream], ["f", address], ["e"],
 *                 ["fr", address], ["fc", address], ["a!", 0, bytes, stream]],
 *      "final": [[address, bytes, stream, pool,
 *                 [[bytes, state, requested], ...]], ...]}
 *
 * Events: a allocates, f frees, e empties the cache, fr and fc are a free that
 * is requested and completed later, a! is an allocation that failed. An event
 * may end with a list of what the device did for it:
 * ["alloc"|"free"|"map"|"unmap", address, bytes]. */
#include "graphs/json/json.h"
#include "sim/pools/history/alloctrace.h"
#include "sim/pools/torch/torch.h"
#include "tools/recordings/recordings.h"

#include <stdio.h>
#include <string.h>

#define FORMAT_HINT "\"memsim help traces\" describes the file"

typedef struct reader {
    ms_json json;
    ms_arena *arena;
    ms_fault *fault;
    ms_recording *out;
    uint32_t blocks_capacity, answers_capacity;
} reader;

/* ---- values -------------------------------------------------------------- */

static ms_err read_number(const reader *r, uint32_t node, uint64_t *n)
{
    if (node == MS_NONE || r->json.nodes[node].kind != MS_JSON_INT ||
        r->json.nodes[node].value.i < 0)
        return ms_json_fail(&r->json, node, r->fault, FORMAT_HINT,
                            "expected bytes, an address or a stream, which is "
                            "an integer of 0 or more");
    *n = (uint64_t)r->json.nodes[node].value.i;
    return MS_OK;
}

/* Fails unless node is a list of low to high elements; *first is its first one.
 */
static ms_err open_list(const reader *r, uint32_t node, uint32_t low,
                        uint32_t high, uint32_t *first)
{
    const ms_json_node *at = &r->json.nodes[node];
    if (at->kind != MS_JSON_ARRAY)
        return ms_json_fail(&r->json, node, r->fault, FORMAT_HINT,
                            "expected a list, not %s",
                            ms_json_kind_name(&r->json, node));
    if (at->value.n < low || at->value.n > high)
        return ms_json_fail(&r->json, node, r->fault, FORMAT_HINT,
                            "expected a list of %u elements, this has %u",
                            at->value.n < low ? low : high, at->value.n);
    *first = ms_json_first(&r->json, node);
    return MS_OK;
}

static ms_err read_word(const reader *r, uint32_t node,
                        const char *const *words, uint32_t n, uint32_t *which)
{
    const ms_json_node *at = &r->json.nodes[node];
    char all[96] = "";
    if (at->kind == MS_JSON_STRING)
        for (*which = 0; *which < n; ++*which)
            if (strcmp(words[*which], at->value.s) == 0)
                return MS_OK;
    for (uint32_t i = 0, length = 0; i < n && length < sizeof all; i++)
        length += (uint32_t)snprintf(all + length, sizeof all - length,
                                     "%s\"%s\"", i > 0 ? ", " : "", words[i]);
    return ms_json_fail(&r->json, node, r->fault, FORMAT_HINT,
                        "expected one of %s", all);
}

static uint32_t next_of(const reader *r, uint32_t node)
{
    return r->json.nodes[node].next;
}

/* ---- segments ------------------------------------------------------------ */

static ms_err add_block(reader *r, const ms_recording_block *block)
{
    ms_recording *out = r->out;
    out->blocks = ms_arena_grow(r->arena, out->blocks, &r->blocks_capacity,
                                out->n_blocks + 1, sizeof *out->blocks);
    if (out->blocks == NULL)
        return ms_fail_nomem(r->fault);
    out->blocks[out->n_blocks++] = *block;
    return MS_OK;
}

/* Reads [offset, bytes, requested or null]; offset must be the end of the block
 * before. Null marks a block that is free. */
static ms_err read_start_block(reader *r, uint32_t node, uint64_t *offset)
{
    ms_recording_block block = {.state = MS_TORCH_ACTIVE_ALLOCATED};
    uint32_t at = MS_NONE;
    uint64_t stands = 0;
    MS_TRY(open_list(r, node, 3, 3, &at));
    MS_TRY(read_number(r, at, &stands));
    if (stands != *offset)
        return ms_json_fail(
            &r->json, at, r->fault, FORMAT_HINT,
            "the block does not begin where the one before ends");
    at = next_of(r, at);
    MS_TRY(read_number(r, at, &block.bytes));
    at = next_of(r, at);
    if (r->json.nodes[at].kind == MS_JSON_NULL)
        block.state = MS_TORCH_INACTIVE;
    else
        MS_TRY(read_number(r, at, &block.requested_bytes));
    *offset += block.bytes;
    return block.bytes > 0 ? add_block(r, &block)
                           : ms_json_fail(&r->json, node, r->fault, FORMAT_HINT,
                                          "a block has no bytes");
}

/* Reads [bytes, state, requested]. */
static ms_err read_final_block(reader *r, uint32_t node, uint64_t *offset)
{
    ms_recording_block block;
    uint32_t at = MS_NONE, state = 0;
    MS_TRY(open_list(r, node, 3, 3, &at));
    MS_TRY(read_number(r, at, &block.bytes));
    at = next_of(r, at);
    MS_TRY(read_word(r, at, ms_torchview_states, 3, &state));
    at = next_of(r, at);
    block.requested_bytes = 0;
    if (r->json.nodes[at].kind != MS_JSON_NULL)
        MS_TRY(read_number(r, at, &block.requested_bytes));
    block.state = (uint8_t)state;
    *offset += block.bytes;
    return add_block(r, &block);
}

static ms_err read_segment(reader *r, uint32_t node, bool start,
                           ms_recording_segment *segment)
{
    static const char *const pools[] = {"large", "small"};
    uint32_t at = MS_NONE, pool = 0;
    uint64_t offset = 0;
    MS_TRY(open_list(r, node, 5, 5, &at));
    MS_TRY(read_number(r, at, &segment->address));
    at = next_of(r, at);
    MS_TRY(read_number(r, at, &segment->bytes));
    if (segment->bytes > MS_TORCH_MOST_BYTES)
        return ms_json_fail(&r->json, at, r->fault, FORMAT_HINT,
                            "a segment has more than 2^50 bytes");
    at = next_of(r, at);
    MS_TRY(read_number(r, at, &segment->stream));
    at = next_of(r, at);
    MS_TRY(read_word(r, at, pools, 2, &pool));
    segment->small = pool == 1;
    segment->blocks_at = r->out->n_blocks;
    uint32_t list = next_of(r, at), block;
    MS_TRY(open_list(r, list, 1, UINT32_MAX, &block));
    for (; block != MS_NONE; block = next_of(r, block)) {
        MS_TRY(start ? read_start_block(r, block, &offset)
                     : read_final_block(r, block, &offset));
        if (offset > segment->bytes)
            return ms_json_fail(&r->json, block, r->fault, FORMAT_HINT,
                                "the blocks go beyond the end of the segment");
    }
    segment->n_blocks = r->out->n_blocks - segment->blocks_at;
    if (offset != segment->bytes)
        return ms_json_fail(
            &r->json, list, r->fault, FORMAT_HINT,
            "the sizes of the blocks do not sum to the segment's");
    return MS_OK;
}

static ms_err read_segments(reader *r, const char *key,
                            ms_recording_segment **segments, uint32_t *n)
{
    uint32_t list = ms_json_find(&r->json, 0, key), at;
    if (list == MS_NONE)
        return ms_json_fail(&r->json, 0, r->fault, FORMAT_HINT,
                            "\"%s\" is missing", key);
    MS_TRY(open_list(r, list, 0, UINT32_MAX, &at));
    *segments =
        ms_arena_take(r->arena, r->json.nodes[list].value.n, sizeof **segments);
    if (*segments == NULL)
        return ms_fail_nomem(r->fault);
    uint64_t end = 0;
    for (*n = 0; at != MS_NONE; at = next_of(r, at)) {
        ms_recording_segment *segment = &(*segments)[(*n)++];
        MS_TRY(read_segment(r, at, key[0] == 's', segment));
        if (segment->address < end)
            return ms_json_fail(&r->json, at, r->fault, FORMAT_HINT,
                                "segments are not in order of their addresses");
        end = segment->address + segment->bytes;
    }
    return MS_OK;
}

/* ---- events -------------------------------------------------------------- */

static ms_err read_answer(reader *r, uint32_t node)
{
    static const char *const words[] = {"alloc", "free", "map", "unmap"};
    ms_recording *out = r->out;
    uint32_t at = MS_NONE, which = 0;
    out->answers = ms_arena_grow(r->arena, out->answers, &r->answers_capacity,
                                 out->n_answers + 1, sizeof *out->answers);
    if (out->answers == NULL)
        return ms_fail_nomem(r->fault);
    ms_torch_entry *answer = &out->answers[out->n_answers++];
    *answer = (ms_torch_entry){0};
    MS_TRY(open_list(r, node, 3, 3, &at));
    MS_TRY(read_word(r, at, words, 4, &which));
    answer->action = (ms_torch_action)(MS_TORCH_SEGMENT_ALLOC + which);
    at = next_of(r, at);
    MS_TRY(read_number(r, at, &answer->address));
    return read_number(r, next_of(r, at), &answer->bytes);
}

/* Behind an event's kind come as many of address, bytes and stream as that kind
 * has, then perhaps the list of what the device did. */
static ms_err read_event(reader *r, uint32_t node, ms_recording_event *event)
{
    static const char *const words[] = {"a", "f", "e", "fr", "fc", "a!"};
    static const uint8_t n_numbers[] = {3, 1, 0, 1, 1, 3};
    uint64_t *const numbers[] = {&event->address, &event->bytes,
                                 &event->stream};
    uint32_t at = MS_NONE, which = 0;
    MS_TRY(open_list(r, node, 1, 5, &at));
    MS_TRY(read_word(r, at, words, 6, &which));
    event->kind = (uint8_t)which;
    event->line = r->json.nodes[node].line;
    event->column = r->json.nodes[node].column;
    event->answers_at = r->out->n_answers;
    event->site = MS_NONE;
    uint32_t n = r->json.nodes[node].value.n - 1;
    if (n != n_numbers[which] && n != n_numbers[which] + 1u)
        return ms_json_fail(&r->json, node, r->fault, FORMAT_HINT,
                            "event \"%s\" takes %u numbers", words[which],
                            n_numbers[which]);
    for (uint32_t i = 0; i < n_numbers[which]; i++) {
        at = next_of(r, at);
        MS_TRY(read_number(r, at, numbers[i]));
    }
    if (n == n_numbers[which])
        return MS_OK;
    MS_TRY(open_list(r, next_of(r, at), 0, UINT32_MAX, &at));
    for (; at != MS_NONE; at = next_of(r, at))
        MS_TRY(read_answer(r, at));
    event->n_answers = r->out->n_answers - event->answers_at;
    return MS_OK;
}

static ms_err read_events(reader *r)
{
    uint32_t list = ms_json_find(&r->json, 0, "events"), at;
    if (list == MS_NONE)
        return ms_json_fail(&r->json, 0, r->fault, FORMAT_HINT,
                            "\"events\" is missing");
    MS_TRY(open_list(r, list, 0, UINT32_MAX, &at));
    r->out->events = ms_arena_take(r->arena, r->json.nodes[list].value.n,
                                   sizeof *r->out->events);
    if (r->out->events == NULL)
        return ms_fail_nomem(r->fault);
    for (; at != MS_NONE; at = next_of(r, at))
        MS_TRY(read_event(r, at, &r->out->events[r->out->n_events++]));
    return MS_OK;
}

/* ---- the file ------------------------------------------------------------ */

ms_err ms_recording_read(const char *name, const char *bytes, size_t length,
                         ms_arena *arena, ms_recording *recording,
                         ms_fault *fault)
{
    reader r = {.arena = arena, .fault = fault, .out = recording};
    *recording = (ms_recording){.name = name, .conf = ""};
    MS_TRY(ms_json_read(name, bytes, length, arena, &r.json, fault));
    if (r.json.nodes[0].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r.json, 0, fault, FORMAT_HINT,
                            "expected an object with \"start\", \"events\" "
                            "and \"final\"");
    uint32_t conf = ms_json_find(&r.json, 0, "conf");
    uint32_t expandable = ms_json_find(&r.json, 0, "expandable");
    if (conf != MS_NONE && r.json.nodes[conf].kind == MS_JSON_STRING)
        recording->conf = r.json.nodes[conf].value.s;
    if (expandable != MS_NONE && r.json.nodes[expandable].kind == MS_JSON_BOOL)
        recording->expandable = r.json.nodes[expandable].value.b;
    MS_TRY(read_segments(&r, "start", &recording->start, &recording->n_start));
    MS_TRY(read_events(&r));
    MS_TRY(read_segments(&r, "final", &recording->final, &recording->n_final));
    if (recording->expandable && recording->n_start > 0)
        return ms_json_fail(&r.json, ms_json_find(&r.json, 0, "start"), fault,
                            FORMAT_HINT,
                            "a history with expandable segments must begin "
                            "with none");
    return MS_OK;
}
