/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/recordings/recordedlives.h"
#include "sim/names.h"
#include "sim/pools/torch/torch.h"
#include "tools/recordings/addresstable.h"

typedef struct ledger {
    const ms_recording *recording;
    ms_addresstable table; /* of what is alive: requested_bytes is its life */
    ms_pagelife *lives;
    uint32_t n, state;
} ledger;

static void begin(ledger *l, uint64_t address, ms_pagelife life)
{
    ms_addresstable_slot *slot = ms_addresstable_put(&l->table, address);
    slot->requested_bytes = l->n;
    life.from = ++l->state;
    life.to = MS_NONE;
    l->lives[l->n++] = life;
}

static void end(ledger *l, uint64_t address)
{
    ms_addresstable_slot *slot = ms_addresstable_find(&l->table, address);
    if (!slot->used || !slot->live)
        return;
    slot->live = false;
    l->lives[slot->requested_bytes].to = ++l->state;
}

bool ms_recordedlives_next(const ms_recording *recording,
                           ms_recordedlives_held *held)
{
    while (held->segment < recording->n_start) {
        const ms_recording_segment *segment = &recording->start[held->segment];
        if (held->block == segment->n_blocks) {
            held->segment++;
            held->block = 0;
            held->at = 0;
            continue;
        }
        const ms_recording_block *block =
            &recording->blocks[segment->blocks_at + held->block++];
        held->address = segment->address + held->at;
        held->stream = segment->stream;
        held->bytes = block->requested_bytes == UINT64_MAX
                          ? block->bytes
                          : block->requested_bytes;
        held->at += block->bytes;
        if (block->state == MS_TORCH_ACTIVE_ALLOCATED && held->bytes > 0)
            return true;
    }
    return false;
}

static void begin_held(ledger *l)
{
    ms_recordedlives_held held = {.segment = 0};
    while (ms_recordedlives_next(l->recording, &held))
        begin(l, held.address,
              (ms_pagelife){.bytes = held.bytes,
                            .site = MS_NONE,
                            .category = MS_N_CATEGORIES,
                            .held = true});
}

static void follow(ledger *l, const ms_recording_event *event)
{
    bool knows =
        l->recording->has_categories && event->category < MS_N_CATEGORIES;
    if (event->kind == MS_RECORDING_FREE || event->kind == MS_RECORDING_ASKED)
        end(l, event->address);
    if (event->kind == MS_RECORDING_ALLOC && event->bytes > 0)
        begin(l, event->address,
              (ms_pagelife){.bytes = event->bytes,
                            .site = event->site,
                            .category =
                                knows ? event->category : MS_N_CATEGORIES});
}

ms_err ms_recordedlives_find(const ms_recording *recording, ms_arena *arena,
                             ms_pagelife **lives, uint32_t *n,
                             uint32_t *n_states, ms_fault *fault)
{
    ledger l = {.recording = recording};
    uint64_t most = (uint64_t)recording->n_blocks + recording->n_events + 1;
    MS_TRY(ms_addresstable_make(&l.table, most, arena, fault));
    l.lives = ms_arena_take(arena, most, sizeof *l.lives);
    if (l.lives == NULL)
        return ms_fail_nomem(fault);
    begin_held(&l);
    for (uint32_t e = 0; e < recording->n_events; e++)
        follow(&l, &recording->events[e]);
    *lives = l.lives;
    *n = l.n;
    *n_states = l.state;
    return MS_OK;
}
