/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/callshapes.h"

#include <string.h>

#define FIRST_SLOTS 1024u
#define N_PIECES 4u
#define MOST_NAME 200u /* of a kernel: templates are longer than lines */

typedef struct ms_callshapes_call {
    const char *op;
    ms_kineto_slice dims, types, concrete;
    uint32_t first; /* of its rows, or MS_NONE */
} ms_callshapes_call;

/* Of calls and of kernels' names, told apart by what they are. */
typedef struct ms_callshapes_slot {
    uint64_t hash; /* 0: free */
    uint32_t row;
} ms_callshapes_slot;

/* ---- the table ----------------------------------------------------------- */

/* Eight bytes at once; the order of slots is never seen. */
static uint64_t mixed(uint64_t hash, ms_kineto_slice s)
{
    uint64_t word;
    uint32_t i = 0;
    for (; i + 8 <= s.length; i += 8) {
        memcpy(&word, s.bytes + i, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    word = s.length;
    for (; i < s.length; i++)
        word = word << 8 | (unsigned char)s.bytes[i];
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_of(const ms_kineto_slice pieces[N_PIECES], bool is_kernel)
{
    uint64_t hash = is_kernel ? 7 : 3;
    for (uint32_t i = 0; i < N_PIECES; i++)
        hash = mixed(hash, pieces[i]);
    return hash | 1;
}

static ms_err make_room(ms_callshapes *s, ms_fault *fault)
{
    if (4 * s->used < 3 * s->n_slots)
        return MS_OK;
    uint32_t n = s->n_slots > 0 ? 2 * s->n_slots : FIRST_SLOTS;
    ms_callshapes_slot *slots = ms_arena_take(s->arena, n, sizeof *slots);
    if (slots == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < s->n_slots; i++) {
        uint32_t at = (uint32_t)(s->slots[i].hash >> 1) & (n - 1);
        while (s->slots[i].hash != 0 && slots[at].hash != 0)
            at = (at + 1) & (n - 1);
        if (s->slots[i].hash != 0)
            slots[at] = s->slots[i];
    }
    ms_arena_drop(s->arena, s->slots);
    s->slots = slots;
    s->n_slots = n;
    return MS_OK;
}

static bool is_slice(ms_kineto_slice a, ms_kineto_slice b)
{
    return a.length == b.length &&
           (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static bool is_text(const char *text, ms_kineto_slice s)
{
    return strncmp(text, s.bytes, s.length) == 0 && text[s.length] == '\0';
}

static bool is_row(const ms_callshapes *s, uint32_t row,
                   const ms_kineto_slice pieces[N_PIECES], bool is_kernel)
{
    if (is_kernel)
        return row < s->n_kernels && is_text(s->kernels[row].name, pieces[0]);
    const ms_callshapes_call *call = &s->calls[row];
    return row < s->n_calls && is_text(call->op, pieces[0]) &&
           is_slice(call->dims, pieces[1]) &&
           is_slice(call->types, pieces[2]) &&
           is_slice(call->concrete, pieces[3]);
}

/* The slot of what the pieces are, or the free one for it. */
static ms_callshapes_slot *slot_of(const ms_callshapes *s, uint64_t hash,
                                   const ms_kineto_slice pieces[N_PIECES],
                                   bool is_kernel)
{
    uint32_t at = (uint32_t)(hash >> 1) & (s->n_slots - 1);
    while (s->slots[at].hash != 0 &&
           (s->slots[at].hash != hash ||
            !is_row(s, s->slots[at].row, pieces, is_kernel)))
        at = (at + 1) & (s->n_slots - 1);
    return &s->slots[at];
}

/* ---- rows ---------------------------------------------------------------- */

static ms_err keep(ms_callshapes *s, ms_kineto_slice *slice, ms_fault *fault)
{
    char *copy = ms_arena_text(s->arena, slice->length > 0 ? slice->bytes : "",
                               slice->length);
    if (copy == NULL)
        return ms_fail_nomem(fault);
    slice->bytes = copy;
    return MS_OK;
}

static ms_err add_call(ms_callshapes *s, ms_kineto_slice pieces[N_PIECES],
                       uint32_t *row, ms_fault *fault)
{
    for (uint32_t i = 0; i < N_PIECES; i++)
        MS_TRY(keep(s, &pieces[i], fault));
    s->calls = ms_arena_grow(s->arena, s->calls, &s->calls_capacity,
                             s->n_calls + 1, sizeof *s->calls);
    if (s->calls == NULL)
        return ms_fail_nomem(fault);
    *row = s->n_calls++;
    s->calls[*row] = (ms_callshapes_call){pieces[0].bytes, pieces[1], pieces[2],
                                          pieces[3], MS_NONE};
    return MS_OK;
}

static ms_err add_kernel(ms_callshapes *s, ms_kineto_slice pieces[N_PIECES],
                         uint32_t *row, ms_fault *fault)
{
    ms_traced_hint hint = ms_tracedops_hint(pieces[0]);
    MS_TRY(keep(s, &pieces[0], fault));
    s->kernels = ms_arena_grow(s->arena, s->kernels, &s->kernels_capacity,
                               s->n_kernels + 1, sizeof *s->kernels);
    if (s->kernels == NULL)
        return ms_fail_nomem(fault);
    *row = s->n_kernels++;
    s->kernels[*row].name = pieces[0].bytes;
    s->kernels[*row].hint = hint;
    return MS_OK;
}

static ms_err find(ms_callshapes *s, ms_kineto_slice pieces[N_PIECES],
                   bool is_kernel, uint32_t *row, ms_fault *fault)
{
    MS_TRY(make_room(s, fault));
    uint64_t hash = hash_of(pieces, is_kernel);
    ms_callshapes_slot *slot = slot_of(s, hash, pieces, is_kernel);
    if (slot->hash == 0) {
        MS_TRY(is_kernel ? add_kernel(s, pieces, &slot->row, fault)
                         : add_call(s, pieces, &slot->row, fault));
        slot->hash = hash;
        s->used++;
    }
    *row = slot->row;
    return MS_OK;
}

/* ---- what others call ---------------------------------------------------- */

/* Values matter of attention alone; of other ops they may differ each time. */
static bool has_values(ms_kineto_slice name)
{
    static const char word[] = "ttention", other[] = "lash";
    for (uint32_t i = 0; i + sizeof other <= name.length; i++)
        if (memcmp(name.bytes + i, other, sizeof other - 1) == 0 ||
            (i + sizeof word - 1 <= name.length &&
             memcmp(name.bytes + i, word, sizeof word - 1) == 0))
            return true;
    return false;
}

ms_err ms_callshapes_add(ms_callshapes *s, const ms_kineto_event *op,
                         uint32_t *call, ms_fault *fault)
{
    const ms_kineto_slice none = {"", 0};
    ms_kineto_slice pieces[N_PIECES] = {op->name, op->dims, op->types,
                                        has_values(op->name) ? op->concrete
                                                             : none};
    return find(s, pieces, false, call, fault);
}

ms_err ms_callshapes_kernel(ms_callshapes *s, ms_kineto_slice name,
                            uint32_t *kernel, ms_fault *fault)
{
    const ms_kineto_slice none = {"", 0};
    ms_kineto_slice pieces[N_PIECES] = {name, none, none, none};
    return find(s, pieces, true, kernel, fault);
}

uint32_t ms_callshapes_hint(ms_callshapes *s, uint32_t call,
                            ms_traced_hint hint)
{
    ms_callshapes_call *of = &s->calls[call];
    for (uint32_t i = of->first; i != MS_NONE; i = s->rows[i].next)
        if (s->rows[i].hint.code == hint.code &&
            s->rows[i].hint.width == hint.width)
            return i;
    ms_callshape *rows = ms_arena_grow(s->arena, s->rows, &s->capacity,
                                       s->n + 1, sizeof *s->rows);
    if (rows == NULL)
        return MS_NONE;
    s->rows = rows;
    ms_callshape *row = &s->rows[s->n];
    const ms_kineto_event event = {
        .dims = of->dims, .types = of->types, .concrete = of->concrete};
    *row = (ms_callshape){
        .op = of->op, .hint = hint, .call = call, .next = of->first};
    row->row = ms_tracedops_row(of->op, &event, hint, &row->why, &row->assumed);
    of->first = s->n;
    return s->n++;
}

ms_err ms_callshapes_own(ms_callshapes *s, ms_kineto_slice name,
                         const ms_measured *of, const char *why,
                         uint32_t *shape, ms_fault *fault)
{
    uint32_t call;
    if (name.length > MOST_NAME)
        name.length = MOST_NAME;
    ms_kineto_slice pieces[N_PIECES] = {
        name,
        {(const char *)&of->bytes, sizeof of->bytes},
        {(const char *)&of->ranks, sizeof of->ranks},
        {why != NULL ? why : "", 0}};
    MS_TRY(find(s, pieces, false, &call, fault));
    bool is_new = s->calls[call].first == MS_NONE;
    *shape = ms_callshapes_hint(s, call, (ms_traced_hint){0});
    if (*shape == MS_NONE)
        return ms_fail_nomem(fault);
    ms_callshape *row = &s->rows[*shape];
    if (!is_new)
        return MS_OK;
    row->row = *of;
    row->row.op = row->op;
    row->why = why;
    return MS_OK;
}
