/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Call stacks in a snapshot. The same stack is written many times, so stacks
 * are one where a 64-bit hash over their frames is equal; a list of frames that
 * the pickle names again by its memo is hashed once. */
#include "tools/recordings/callstacks.h"
#include "sim/names.h"

#include <string.h>

#define LABEL_FRAMES 3u /* a label names the innermost ones */

ms_err ms_callstacks_open(ms_callstacks *frames, const ms_pickle *pickle,
                          ms_arena *arena, ms_recording *out, ms_fault *fault)
{
    uint32_t n = pickle->n_nodes;
    *frames = (ms_callstacks){.pickle = pickle, .arena = arena, .out = out};
    frames->site_of = ms_arena_take(arena, n, sizeof *frames->site_of);
    frames->hash_of = ms_arena_take(arena, n, sizeof *frames->hash_of);
    return frames->site_of == NULL || frames->hash_of == NULL
               ? ms_fail_nomem(fault)
               : MS_OK;
}

/* ---- hashes -------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 29;
}

static uint64_t hash_value(const ms_pickle *pickle, uint32_t row)
{
    if (row == MS_NONE)
        return 1;
    const ms_pickle_node *node = &pickle->nodes[row];
    uint64_t hash = mix(node->kind, node->length);
    if (node->kind == MS_PICKLE_INT)
        return mix(hash, (uint64_t)node->value.i);
    for (uint32_t i = 0; node->kind == MS_PICKLE_TEXT && i < node->length; i++)
        hash = mix(hash, pickle->bytes[(size_t)node->value.i + i]);
    return hash;
}

static uint64_t hash_frame(const ms_callstacks *frames, uint32_t row)
{
    static const char *const keys[] = {"filename", "line", "name"};
    const ms_pickle *pickle = frames->pickle;
    uint64_t *hash = &frames->hash_of[row];
    if (*hash != 0)
        return *hash;
    *hash = 1;
    for (int i = 0; i < 3; i++)
        *hash = mix(*hash,
                    hash_value(pickle, ms_pickle_find(pickle, row, keys[i])));
    *hash |= 1;
    return *hash;
}

/* ---- labels -------------------------------------------------------------- */

static bool is_text(const ms_pickle *pickle, uint32_t row)
{
    return row != MS_NONE && pickle->nodes[row].kind == MS_PICKLE_TEXT;
}

static void put_text(const ms_pickle *pickle, uint32_t row, bool base,
                     ms_text *text)
{
    const ms_pickle_node *node = &pickle->nodes[row];
    const char *bytes = (const char *)pickle->bytes + node->value.i;
    uint32_t at = 0;
    for (uint32_t i = 0; base && i < node->length; i++)
        if (bytes[i] == '/')
            at = i + 1;
    ms_text_put(text, bytes + at, node->length - at);
}

/* "step (train.py:31)". A frame without a file ("??", of C++ code) and those
 * in which modules call forward say nothing to a reader: false. */
static bool put_frame(const ms_pickle *pickle, uint32_t row, const char *before,
                      ms_text *text)
{
    uint32_t file = ms_pickle_find(pickle, row, "filename");
    uint32_t line = ms_pickle_find(pickle, row, "line");
    uint32_t name = ms_pickle_find(pickle, row, "name");
    if (!is_text(pickle, file) || !is_text(pickle, name) ||
        ms_pickle_is(pickle, file, "??") ||
        ms_pickle_is(pickle, name, "_call_impl") ||
        ms_pickle_is(pickle, name, "_wrapped_call_impl"))
        return false;
    ms_text_add(text, "%s", before);
    put_text(pickle, name, false, text);
    ms_text_add(text, " (");
    put_text(pickle, file, true, text);
    if (line != MS_NONE && pickle->nodes[line].kind == MS_PICKLE_INT) {
        ms_text_add(text, ":");
        ms_text_i64(text, pickle->nodes[line].value.i);
    }
    ms_text_add(text, ")");
    return true;
}

/* ---- phases -------------------------------------------------------------- */

/* Is the text of the frame under this key the word, or does it have it? */
static bool frame_is(const ms_pickle *pickle, uint32_t frame, const char *key,
                     const char *word)
{
    uint32_t row = ms_pickle_find(pickle, frame, key);
    return is_text(pickle, row) && ms_pickle_is(pickle, row, word);
}

static bool frame_has(const ms_pickle *pickle, uint32_t frame, const char *key,
                      const char *word)
{
    uint32_t row = ms_pickle_find(pickle, frame, key);
    size_t length = strlen(word);
    if (!is_text(pickle, row))
        return false;
    const ms_pickle_node *node = &pickle->nodes[row];
    const unsigned char *bytes = pickle->bytes + node->value.i;
    for (uint32_t i = 0; i + length <= node->length; i++)
        if (memcmp(bytes + i, word, length) == 0)
            return true;
    return false;
}

static bool is_backward(const ms_pickle *pickle, uint32_t frame)
{
    return frame_is(pickle, frame, "name", "backward") ||
           frame_is(pickle, frame, "name", "recompute_fn") ||
           frame_is(pickle, frame, "name", "unpack_hook") ||
           frame_is(pickle, frame, "name", "_engine_run_backward") ||
           frame_has(pickle, frame, "name", "autograd::Engine");
}

/* While a model is made and moved, no phase of a step runs. */
static bool is_making(const ms_pickle *pickle, uint32_t frame)
{
    return frame_is(pickle, frame, "name", "_apply") ||
           frame_is(pickle, frame, "name", "__init__");
}

/* What of the step a stack of Python is of: what runs below backward is
 * backward, even if it is forward again; what runs below an optimizer's step is
 * the optimizer's. */
static uint8_t phase_of(const ms_pickle *pickle, uint32_t list)
{
    uint8_t phase = MS_N_PHASES;
    for (uint32_t c = ms_pickle_first(pickle, list); c != MS_NONE;
         c = pickle->cells[c].next) {
        uint32_t frame = pickle->cells[c].value;
        bool steps = frame_is(pickle, frame, "name", "step") &&
                     frame_has(pickle, frame, "filename", "optim");
        if (is_backward(pickle, frame))
            return MS_PHASE_BACKWARD;
        if (steps)
            phase = MS_PHASE_OPTIMIZER;
        else if (phase == MS_N_PHASES && is_making(pickle, frame))
            return MS_N_PHASES;
        else if (phase == MS_N_PHASES &&
                 frame_is(pickle, frame, "name", "forward"))
            phase = MS_PHASE_FORWARD;
    }
    return phase;
}

static ms_err add_site(ms_callstacks *frames, uint32_t list, ms_fault *fault)
{
    ms_recording *out = frames->out;
    const ms_pickle *pickle = frames->pickle;
    ms_text text = {.arena = frames->arena};
    uint32_t told = 0, phases_room = frames->sites_room;
    ms_text_add(&text, "%s", "");
    for (uint32_t c = ms_pickle_first(pickle, list);
         c != MS_NONE && told < LABEL_FRAMES; c = pickle->cells[c].next)
        told += put_frame(pickle, pickle->cells[c].value, told > 0 ? " < " : "",
                          &text);
    out->sites =
        ms_arena_grow(frames->arena, (void *)out->sites, &frames->sites_room,
                      out->n_sites + 1, sizeof *out->sites);
    out->site_phases =
        ms_arena_grow(frames->arena, out->site_phases, &phases_room,
                      out->n_sites + 1, sizeof *out->site_phases);
    if (out->sites == NULL || out->site_phases == NULL || text.failed)
        return ms_fail_nomem(fault);
    out->site_phases[out->n_sites] = phase_of(pickle, list);
    out->sites[out->n_sites++] = told > 0 ? text.bytes : "unknown frames";
    return MS_OK;
}

/* ---- the table ----------------------------------------------------------- */

static uint32_t slot_of(const ms_callstacks *frames, uint64_t hash)
{
    uint32_t mask = frames->capacity - 1, at = (uint32_t)(hash >> 20) & mask;
    while (frames->slots[at] != 0 && frames->hashes[at] != hash)
        at = (at + 1) & mask;
    return at;
}

static ms_err make_room(ms_callstacks *frames, ms_fault *fault)
{
    ms_callstacks old = *frames;
    if (2 * (uint64_t)(frames->out->n_sites + 1) <= frames->capacity)
        return MS_OK;
    frames->capacity = old.capacity > 0 ? 2 * old.capacity : 64;
    frames->slots =
        ms_arena_take(frames->arena, frames->capacity, sizeof *frames->slots);
    frames->hashes =
        ms_arena_take(frames->arena, frames->capacity, sizeof *frames->hashes);
    if (frames->slots == NULL || frames->hashes == NULL ||
        frames->capacity == 0)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i] == 0)
            continue;
        uint32_t at = slot_of(frames, old.hashes[i]);
        frames->slots[at] = old.slots[i];
        frames->hashes[at] = old.hashes[i];
    }
    return MS_OK;
}

ms_err ms_callstacks_find(ms_callstacks *frames, uint32_t entry, uint32_t *site,
                          ms_fault *fault)
{
    const ms_pickle *pickle = frames->pickle;
    uint32_t list = ms_pickle_find(pickle, entry, "frames");
    uint64_t hash = 3;
    *site = MS_NONE;
    if (list == MS_NONE || pickle->nodes[list].kind != MS_PICKLE_LIST ||
        pickle->nodes[list].length == 0)
        return MS_OK;
    if (frames->site_of[list] == 0) {
        for (uint32_t c = ms_pickle_first(pickle, list); c != MS_NONE;
             c = pickle->cells[c].next)
            hash = mix(hash, hash_frame(frames, pickle->cells[c].value));
        MS_TRY(make_room(frames, fault));
        uint32_t at = slot_of(frames, hash);
        if (frames->slots[at] == 0) {
            MS_TRY(add_site(frames, list, fault));
            frames->slots[at] = frames->out->n_sites;
            frames->hashes[at] = hash;
        }
        frames->site_of[list] = frames->slots[at];
    }
    *site = frames->site_of[list] - 1;
    return MS_OK;
}
