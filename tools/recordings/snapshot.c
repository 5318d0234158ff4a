/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads memory snapshots of torch.cuda.memory._dump_snapshot as recorded
 * histories (sim/pools/README.md 15). A snapshot has the segments as they are
 * at its end and a trace of the events before it: undoing the trace from its
 * last entry to its first gives the segments at its start. */
#include "sim/names.h"
#include "tools/recordings/addresstable.h"
#include "tools/recordings/callstacks.h"
#include "tools/recordings/pickle.h"
#include "tools/recordings/recordings.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_SEGMENT (UINT64_C(2) << 20)
#define QUANTUM UINT64_C(512)
#define LARGE_SLACK (UINT64_C(1) << 20)

typedef struct entry {
    uint64_t address, bytes, stream;
    uint32_t row;  /* in the pickle, for faults */
    uint32_t site; /* MS_NONE where the frames are not recorded */
    ms_torch_action action;
    uint8_t category;
} entry;

typedef struct reader {
    ms_pickle pickle;
    ms_arena *arena;
    ms_fault *fault;
    ms_recording *out;
    uint32_t device;
    entry *entries;
    uint32_t n_entries;
    ms_callstacks frames;
    ms_addresstable segments, blocks;
    /* of expandable segments, at this point of undoing */
    uint64_t mapped_bytes;
    uint32_t blocks_room, answers_room, events_room;
    bool selective; /* the settings let a retry free only some segments */
} reader;

/* ---- values -------------------------------------------------------------- */

static ms_err read_number(const reader *r, uint32_t dict, const char *key,
                          uint64_t *n)
{
    uint32_t row = ms_pickle_find(&r->pickle, dict, key);
    if (row == MS_NONE || r->pickle.nodes[row].kind != MS_PICKLE_INT)
        return ms_pickle_fail(&r->pickle, row == MS_NONE ? dict : row, r->fault,
                              NULL, "\"%s\" must be an integer", key);
    *n = (uint64_t)r->pickle.nodes[row].value.i;
    return MS_OK;
}

static bool is_true(const reader *r, uint32_t dict, const char *key)
{
    uint32_t row = ms_pickle_find(&r->pickle, dict, key);
    return row != MS_NONE && r->pickle.nodes[row].kind == MS_PICKLE_BOOL &&
           r->pickle.nodes[row].value.i != 0;
}

static uint32_t length_of(const reader *r, uint32_t row)
{
    return row == MS_NONE || r->pickle.nodes[row].kind != MS_PICKLE_LIST
               ? 0
               : r->pickle.nodes[row].length;
}

static ms_err read_action(const reader *r, uint32_t dict,
                          ms_torch_action *action)
{
    uint32_t row = ms_pickle_find(&r->pickle, dict, "action");
    for (uint32_t i = 0; row != MS_NONE && i < MS_TORCH_N_ACTIONS; i++)
        if (ms_pickle_is(&r->pickle, row, ms_torch_actions[i])) {
            *action = (ms_torch_action)i;
            return MS_OK;
        }
    return ms_pickle_fail(&r->pickle, row == MS_NONE ? dict : row, r->fault,
                          "memsim reads snapshots of PyTorch 1.13 to 2.11",
                          "a trace entry has an unknown action");
}

/* ---- the end ------------------------------------------------------------- */

static ms_err add_block(reader *r, const ms_recording_block *block)
{
    ms_recording *out = r->out;
    out->blocks = ms_arena_grow(r->arena, out->blocks, &r->blocks_room,
                                out->n_blocks + 1, sizeof *out->blocks);
    if (out->blocks == NULL)
        return ms_fail_nomem(r->fault);
    out->blocks[out->n_blocks++] = *block;
    return MS_OK;
}

/* PyTorch's documentation has another word for the state that its code calls
 * active_pending_free. */
static ms_err read_state(const reader *r, uint32_t dict, uint8_t *state)
{
    uint32_t row = ms_pickle_find(&r->pickle, dict, "state");
    for (*state = 0; row != MS_NONE && *state < 3; ++*state)
        if (ms_pickle_is(&r->pickle, row, ms_torchview_states[*state]))
            return MS_OK;
    *state = MS_TORCH_ACTIVE_PENDING;
    if (row != MS_NONE && ms_pickle_is(&r->pickle, row, "active_awaiting_free"))
        return MS_OK;
    return ms_pickle_fail(&r->pickle, row == MS_NONE ? dict : row, r->fault,
                          "memsim reads snapshots of PyTorch 1.13 to 2.11",
                          "a block has an unknown state");
}

static ms_err read_block(reader *r, uint32_t dict, uint64_t stream,
                         uint64_t *address)
{
    ms_recording_block block = {0};
    MS_TRY(read_number(r, dict, "size", &block.bytes));
    if (block.bytes == 0 || block.bytes > MS_TORCH_MOST_BYTES)
        return ms_pickle_fail(&r->pickle, dict, r->fault, NULL,
                              "a block has an impossible size");
    MS_TRY(read_state(r, dict, &block.state));
    block.requested_bytes = block.bytes;
    if (ms_pickle_find(&r->pickle, dict, "requested_size") != MS_NONE)
        MS_TRY(read_number(r, dict, "requested_size", &block.requested_bytes));
    if (block.state != MS_TORCH_INACTIVE) {
        ms_addresstable_slot *at = ms_addresstable_put(&r->blocks, *address);
        at->bytes = block.bytes;
        at->requested_bytes = block.requested_bytes;
        at->stream = stream;
        at->pending = block.state == MS_TORCH_ACTIVE_PENDING;
    }
    *address += block.bytes;
    return add_block(r, &block);
}

static ms_err read_segment(reader *r, uint32_t dict,
                           ms_recording_segment *segment)
{
    uint32_t type = ms_pickle_find(&r->pickle, dict, "segment_type");
    uint32_t blocks = ms_pickle_find(&r->pickle, dict, "blocks");
    MS_TRY(read_number(r, dict, "address", &segment->address));
    MS_TRY(read_number(r, dict, "total_size", &segment->bytes));
    MS_TRY(read_number(r, dict, "stream", &segment->stream));
    if (type == MS_NONE || length_of(r, blocks) == 0 ||
        segment->address > INT64_MAX || segment->bytes > MS_TORCH_MOST_BYTES)
        return ms_pickle_fail(&r->pickle, dict, r->fault, NULL,
                              "a segment has no type, no blocks or an "
                              "impossible size");
    segment->small = ms_pickle_is(&r->pickle, type, "small");
    segment->blocks_at = r->out->n_blocks;
    segment->n_blocks = length_of(r, blocks);
    uint64_t address = segment->address;
    for (uint32_t c = ms_pickle_first(&r->pickle, blocks); c != MS_NONE;
         c = r->pickle.cells[c].next)
        MS_TRY(
            read_block(r, r->pickle.cells[c].value, segment->stream, &address));
    if (address != segment->address + segment->bytes)
        return ms_pickle_fail(
            &r->pickle, dict, r->fault, NULL,
            "the sizes of the blocks do not sum to the segment's");
    if (is_true(r, dict, "is_expandable")) {
        r->out->expandable = true;
        r->mapped_bytes += segment->bytes;
        return MS_OK;
    }
    ms_addresstable_slot *at =
        ms_addresstable_put(&r->segments, segment->address);
    at->bytes = segment->bytes;
    at->stream = segment->stream;
    at->small = segment->small;
    return MS_OK;
}

static int by_segment(const void *a, const void *b)
{
    uint64_t x = ((const ms_recording_segment *)a)->address;
    uint64_t y = ((const ms_recording_segment *)b)->address;
    return (x > y) - (x < y);
}

static bool of_device(const reader *r, uint32_t dict)
{
    uint32_t row = ms_pickle_find(&r->pickle, dict, "device");
    return row == MS_NONE || r->pickle.nodes[row].kind != MS_PICKLE_INT ||
           r->pickle.nodes[row].value.i == (int64_t)r->device;
}

static ms_err read_final(reader *r, uint32_t list)
{
    ms_recording *out = r->out;
    out->final =
        ms_arena_take(r->arena, length_of(r, list), sizeof *out->final);
    if (out->final == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t c = ms_pickle_first(&r->pickle, list); c != MS_NONE;
         c = r->pickle.cells[c].next)
        if (of_device(r, r->pickle.cells[c].value))
            MS_TRY(read_segment(r, r->pickle.cells[c].value,
                                &out->final[out->n_final++]));
    qsort(out->final, out->n_final, sizeof *out->final, by_segment);
    return MS_OK;
}

/* ---- undoing the trace --------------------------------------------------- */

static ms_err fail_entry(const reader *r, const entry *e, const char *what)
{
    return ms_pickle_fail(&r->pickle, e->row, r->fault,
                          "the trace and the segments do not belong together",
                          "%s", what);
}

static ms_err undo(reader *r, const entry *e)
{
    ms_addresstable_slot *at;
    switch (e->action) {
    case MS_TORCH_ALLOC:
        at = ms_addresstable_find(&r->blocks, e->address);
        if (!at->used || !at->live)
            return fail_entry(r, e, "the block is not there after it");
        at->live = false;
        return MS_OK;
    case MS_TORCH_FREE_COMPLETED:
        at = ms_addresstable_put(&r->blocks, e->address);
        at->requested_bytes = e->bytes;
        at->stream = e->stream;
        at->pending = true;
        return MS_OK;
    case MS_TORCH_FREE_REQUESTED:
        at = ms_addresstable_find(&r->blocks, e->address);
        if (!at->used || !at->live || !at->pending)
            return fail_entry(r, e, "the block is not there after it");
        at->pending = false;
        return MS_OK;
    case MS_TORCH_SEGMENT_ALLOC:
        at = ms_addresstable_find(&r->segments, e->address);
        if (!at->used || !at->live || at->bytes != e->bytes)
            return fail_entry(r, e, "the segment is not there after it");
        at->live = false;
        return MS_OK;
    case MS_TORCH_SEGMENT_FREE:
        at = ms_addresstable_put(&r->segments, e->address);
        at->bytes = e->bytes;
        at->stream = e->stream;
        at->small = e->bytes == SMALL_SEGMENT;
        return MS_OK;
    case MS_TORCH_SEGMENT_MAP:
        r->mapped_bytes -= e->bytes;
        return MS_OK;
    case MS_TORCH_SEGMENT_UNMAP:
        r->mapped_bytes += e->bytes;
        return MS_OK;
    default:
        return MS_OK;
    }
}

/* An allocation that is undone leaves its request, not its size. As the caching
 * allocator does, the size is the request rounded up to 512 bytes, or the whole
 * room where the rest is too small to be split off (sim/pools/README.md). */
static uint64_t bytes_of(const ms_addresstable_slot *block, uint64_t room,
                         bool small)
{
    uint64_t bytes =
        block->requested_bytes < QUANTUM
            ? QUANTUM
            : (block->requested_bytes + QUANTUM - 1) / QUANTUM * QUANTUM;
    if (block->bytes > 0)
        return block->bytes;
    if (bytes > room || room - bytes < (small ? QUANTUM : LARGE_SLACK + 1))
        return room;
    return bytes;
}

static ms_err start_segment(reader *r, const ms_addresstable_slot *segment,
                            uint32_t *next_block, uint32_t n_blocks)
{
    ms_recording_segment *to = &r->out->start[r->out->n_start++];
    uint64_t at = segment->address, end = at + segment->bytes;
    *to = (ms_recording_segment){.address = at,
                                 .bytes = segment->bytes,
                                 .stream = segment->stream,
                                 .blocks_at = r->out->n_blocks,
                                 .small = segment->small};
    while (at < end) {
        const ms_addresstable_slot *block = &r->blocks.slots[*next_block];
        bool more = *next_block < n_blocks && block->address < end;
        ms_recording_block made = {.bytes = (more ? block->address : end) - at,
                                   .state = MS_TORCH_INACTIVE};
        if (made.bytes > 0)
            MS_TRY(add_block(r, &made));
        at += made.bytes;
        if (!more)
            break;
        uint64_t room = end - at;
        if (++*next_block < n_blocks && block[1].address < end)
            room = block[1].address - at;
        made =
            (ms_recording_block){.bytes = bytes_of(block, room, segment->small),
                                 .requested_bytes = block->requested_bytes,
                                 .state = MS_TORCH_ACTIVE_ALLOCATED};
        if (made.bytes == 0 || made.bytes > room)
            return ms_pickle_fail(&r->pickle, MS_NONE, r->fault, NULL,
                                  "blocks overlap at the start of the trace");
        MS_TRY(add_block(r, &made));
        at += made.bytes;
    }
    to->n_blocks = r->out->n_blocks - to->blocks_at;
    return MS_OK;
}

static ms_err make_start(reader *r)
{
    uint32_t n_segments = ms_addresstable_sort(&r->segments);
    uint32_t n_blocks = ms_addresstable_sort(&r->blocks), next = 0;
    uint64_t end = 0;
    const char *hint = "record from the first allocation on "
                       "(_record_memory_history)";
    if (r->mapped_bytes != 0 || (r->out->expandable && n_blocks > 0))
        return ms_pickle_fail(&r->pickle, MS_NONE, r->fault, hint,
                              "a trace with expandable segments must begin "
                              "with none");
    r->out->start = ms_arena_take(r->arena, n_segments, sizeof *r->out->start);
    if (r->out->start == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = 0; i < n_segments; i++) {
        const ms_addresstable_slot *segment = &r->segments.slots[i];
        bool stray =
            next < n_blocks && r->blocks.slots[next].address < segment->address;
        if (segment->address < end || stray || segment->bytes == 0)
            return ms_pickle_fail(&r->pickle, MS_NONE, r->fault, NULL,
                                  "segments overlap, or a block is in none, at "
                                  "the start of the trace");
        MS_TRY(start_segment(r, segment, &next, n_blocks));
        end = segment->address + segment->bytes;
    }
    return next == n_blocks
               ? MS_OK
               : ms_pickle_fail(&r->pickle, MS_NONE, r->fault, NULL,
                                "a block is in no segment at the start of the "
                                "trace");
}

/* ---- events -------------------------------------------------------------- */

static ms_err add_event(reader *r, uint32_t line, ms_recording_kind kind,
                        const entry *e, uint32_t answers_at)
{
    ms_recording *out = r->out;
    out->events = ms_arena_grow(r->arena, out->events, &r->events_room,
                                out->n_events + 1, sizeof *out->events);
    if (out->events == NULL)
        return ms_fail_nomem(r->fault);
    ms_recording_event *event = &out->events[out->n_events++];
    *event = (ms_recording_event){.line = line,
                                  .kind = (uint8_t)kind,
                                  .answers_at = answers_at,
                                  .site = MS_NONE,
                                  .category = MS_N_CATEGORIES,
                                  .n_answers = out->n_answers - answers_at};
    if (e != NULL && kind != MS_RECORDING_EMPTY) {
        event->address = kind == MS_RECORDING_OOM ? 0 : e->address;
        event->bytes = e->bytes;
        event->stream = e->stream;
        event->site = e->site;
        event->category = e->category;
        out->has_categories |= e->category < MS_N_CATEGORIES;
    }
    return MS_OK;
}

static ms_err add_answer(reader *r, const entry *e)
{
    ms_recording *out = r->out;
    out->answers = ms_arena_grow(r->arena, out->answers, &r->answers_room,
                                 out->n_answers + 1, sizeof *out->answers);
    if (out->answers == NULL)
        return ms_fail_nomem(r->fault);
    out->answers[out->n_answers++] = (ms_torch_entry){
        .action = e->action, .address = e->address, .bytes = e->bytes};
    return MS_OK;
}

static bool gives_back(const entry *e)
{
    return e->action == MS_TORCH_SEGMENT_FREE ||
           e->action == MS_TORCH_SEGMENT_UNMAP;
}

static bool is_segment_event(const entry *e)
{
    return e->action >= MS_TORCH_SEGMENT_ALLOC &&
           e->action <= MS_TORCH_SEGMENT_UNMAP;
}

/* Does an allocation (or its failure) follow the run of segment events that
 * begins at i? */
static bool ends_in_malloc(const reader *r, uint32_t i)
{
    while (i < r->n_entries && is_segment_event(&r->entries[i]))
        i++;
    return i < r->n_entries && (r->entries[i].action == MS_TORCH_ALLOC ||
                                r->entries[i].action == MS_TORCH_OOM);
}

/* PyTorch does not record empty_cache. A run of segment frees is taken for one:
 * for a retry before an allocation, too, since that frees the same segments.
 * But with max_split_size_mb or garbage_collection_threshold a retry frees only
 * some segments; then the frees belong to the allocation that follows. */
static ms_err take_segments(reader *r, uint32_t *i, uint32_t *answers_at)
{
    bool selective = r->selective && ends_in_malloc(r, *i);
    *answers_at = r->out->n_answers;
    while (*i < r->n_entries && is_segment_event(&r->entries[*i])) {
        const entry *e = &r->entries[*i];
        MS_TRY(add_answer(r, e));
        ++*i;
        bool last = *i == r->n_entries || !gives_back(&r->entries[*i]);
        if (!gives_back(e) || !last || selective)
            continue;
        MS_TRY(add_event(r, *i, MS_RECORDING_EMPTY, NULL, *answers_at));
        *answers_at = r->out->n_answers;
    }
    return MS_OK;
}

/* A request to free and its completion become one event when they are adjacent:
 * no other stream had to be waited for. */
static ms_err take_free(reader *r, uint32_t *i, uint64_t *pending)
{
    const entry *e = &r->entries[*i];
    uint32_t answers_at = r->out->n_answers;
    bool asked = e->action == MS_TORCH_FREE_REQUESTED;
    bool at_once = asked && *i + 1 < r->n_entries &&
                   e[1].action == MS_TORCH_FREE_COMPLETED &&
                   e[1].address == e->address;
    ms_recording_kind kind = MS_RECORDING_FREE;
    if (asked && !at_once) {
        kind = MS_RECORDING_ASKED;
        ++*pending;
    } else if (!asked && *pending > 0) {
        kind = MS_RECORDING_COMPLETED;
        --*pending;
    }
    *i += at_once ? 2 : 1;
    return add_event(r, *i, kind, e, answers_at);
}

static ms_err make_events(reader *r)
{
    uint64_t pending = 0; /* frees that are requested and not completed */
    for (uint32_t i = 0; i < r->n_entries;) {
        uint32_t answers_at = r->out->n_answers;
        MS_TRY(take_segments(r, &i, &answers_at));
        if (i == r->n_entries)
            return MS_OK;
        const entry *e = &r->entries[i];
        if (e->action == MS_TORCH_ALLOC || e->action == MS_TORCH_OOM) {
            bool oom = e->action == MS_TORCH_OOM;
            i++;
            MS_TRY(add_event(r, i, oom ? MS_RECORDING_OOM : MS_RECORDING_ALLOC,
                             e, answers_at));
        } else if (e->action == MS_TORCH_SNAPSHOT) {
            i++;
        } else {
            MS_TRY(take_free(r, &i, &pending));
        }
    }
    return MS_OK;
}

/* ---- the file ------------------------------------------------------------ */

/* The category is one of our names (in recordings that memsim wrote); any other
 * text counts as none. */
static uint8_t read_category(const reader *r, uint32_t dict)
{
    uint32_t row = ms_pickle_find(&r->pickle, dict, "category");
    uint8_t c = 0;
    if (row == MS_NONE)
        return MS_N_CATEGORIES;
    while (c < MS_N_CATEGORIES &&
           !ms_pickle_is(&r->pickle, row, ms_names_category[c]))
        c++;
    return c;
}

static ms_err read_entry(reader *r, uint32_t dict, entry *e)
{
    e->row = dict;
    e->site = MS_NONE;
    e->category = MS_N_CATEGORIES;
    MS_TRY(read_action(r, dict, &e->action));
    if (e->action == MS_TORCH_ALLOC)
        MS_TRY(ms_callstacks_find(&r->frames, dict, &e->site, r->fault));
    if (e->action == MS_TORCH_ALLOC)
        e->category = read_category(r, dict);
    if (e->action != MS_TORCH_OOM)
        MS_TRY(read_number(r, dict, "addr", &e->address));
    MS_TRY(read_number(r, dict, "size", &e->bytes));
    MS_TRY(read_number(r, dict, "stream", &e->stream));
    bool none = e->bytes == 0 && e->action != MS_TORCH_SNAPSHOT;
    if (e->address > INT64_MAX || e->bytes > MS_TORCH_MOST_BYTES || none)
        return ms_pickle_fail(
            &r->pickle, dict, r->fault, NULL,
            "a trace entry has an impossible address or size");
    return MS_OK;
}

static ms_err read_trace(reader *r, uint32_t list)
{
    r->entries =
        ms_arena_take(r->arena, length_of(r, list), sizeof *r->entries);
    if (r->entries == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t c = ms_pickle_first(&r->pickle, list); c != MS_NONE;
         c = r->pickle.cells[c].next)
        MS_TRY(read_entry(r, r->pickle.cells[c].value,
                          &r->entries[r->n_entries++]));
    return MS_OK;
}

/* A snapshot has a trace per device; the longest is that of the device in use.
 */
static uint32_t find_trace(reader *r)
{
    uint32_t traces =
        ms_pickle_find(&r->pickle, r->pickle.root, "device_traces");
    uint32_t best = MS_NONE, i = 0;
    for (uint32_t c = ms_pickle_first(&r->pickle, traces); c != MS_NONE;
         c = r->pickle.cells[c].next, i++) {
        uint32_t list = r->pickle.cells[c].value;
        if (length_of(r, list) > length_of(r, best)) {
            best = list;
            r->device = i;
        }
    }
    return best;
}

static ms_err read_settings(reader *r)
{
    uint32_t settings =
        ms_pickle_find(&r->pickle, r->pickle.root, "allocator_settings");
    uint32_t conf =
        ms_pickle_find(&r->pickle, settings, "PYTORCH_CUDA_ALLOC_CONF");
    if (conf == MS_NONE || r->pickle.nodes[conf].kind != MS_PICKLE_TEXT)
        return MS_OK;
    const ms_pickle_node *node = &r->pickle.nodes[conf];
    char *text = ms_arena_text(
        r->arena, (const char *)r->pickle.bytes + node->value.i, node->length);
    if (text == NULL)
        return ms_fail_nomem(r->fault);
    r->out->conf = text;
    r->selective = strstr(text, "max_split_size_mb") != NULL ||
                   strstr(text, "garbage_collection_threshold") != NULL;
    return MS_OK;
}

ms_err ms_snapshot_read(const char *name, const char *bytes, size_t length,
                        ms_arena *arena, ms_recording *recording,
                        ms_fault *fault)
{
    reader r = {.arena = arena, .fault = fault, .out = recording};
    *recording = (ms_recording){.name = name, .conf = ""};
    MS_TRY(ms_pickle_read(name, bytes, length, arena, &r.pickle, fault));
    uint32_t trace = find_trace(&r);
    uint32_t segments = ms_pickle_find(&r.pickle, r.pickle.root, "segments");
    if (trace == MS_NONE || segments == MS_NONE)
        return ms_pickle_fail(
            &r.pickle, MS_NONE, fault,
            "torch.cuda.memory._record_memory_history() before the run, "
            "_dump_snapshot() after it",
            "this pickle has no trace of allocations");
    MS_TRY(read_settings(&r));
    MS_TRY(ms_callstacks_open(&r.frames, &r.pickle, arena, recording, fault));
    MS_TRY(read_trace(&r, trace));
    uint64_t most = r.n_entries;
    for (uint32_t c = ms_pickle_first(&r.pickle, segments); c != MS_NONE;
         c = r.pickle.cells[c].next)
        most +=
            1 + length_of(&r, ms_pickle_find(&r.pickle, r.pickle.cells[c].value,
                                             "blocks"));
    if (most > length) /* a memo can name one list again and again */
        return ms_pickle_fail(&r.pickle, segments, fault, NULL,
                              "more blocks than the file has room for");
    MS_TRY(ms_addresstable_make(&r.segments, most, arena, fault));
    MS_TRY(ms_addresstable_make(&r.blocks, most, arena, fault));
    MS_TRY(read_final(&r, segments));
    for (uint32_t i = r.n_entries; i-- > 0;)
        MS_TRY(undo(&r, &r.entries[i]));
    MS_TRY(make_start(&r));
    recording->device = r.device;
    return make_events(&r);
}
