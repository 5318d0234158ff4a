/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/stampspace.h"

#include <stddef.h>
#include <string.h>

#define LONG 64u /* items of a stretch that is worth a loop */

/* ---- numbering ----------------------------------------------------------- */

static bool take(ms_stampspace *s, ms_arena *arena)
{
    s->place = ms_arena_take_raw(arena, s->n + 1, sizeof *s->place);
    s->step = ms_arena_take(arena, s->n + 1, sizeof *s->step);
    s->rank = ms_arena_take_raw(arena, s->n + 1, sizeof *s->rank);
    s->row[0] = ms_arena_take_raw(arena, s->n + 1, sizeof **s->row);
    s->row[1] = ms_arena_take_raw(arena, s->n + 1, sizeof **s->row);
    s->spans = ms_arena_take_raw(arena, s->n + 1, sizeof *s->spans);
    s->name = ms_arena_take_raw(arena, s->n + LONG, sizeof *s->name);
    s->hop = ms_arena_take_raw(arena, s->n + LONG, sizeof *s->hop);
    return s->place && s->step && s->rank && s->row[0] && s->row[1] &&
           s->spans && s->name && s->hop;
}

static void find_spans(ms_stampspace *s)
{
    for (uint32_t i = 0; i < s->n;) {
        ms_stampspan *span = &s->spans[s->n_spans++];
        *span = (ms_stampspan){.first = i, .block = s->block[i]};
        while (i < s->n && s->block[i] == span->block)
            i++;
        span->end = i;
    }
}

static bool find_ranks(ms_stampspace *s)
{
    uint32_t n[MS_STAMP_OUT + 1] = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t block = s->block[i];
        s->rank[i] = n[block]++;
        if (block == 1 || block == 2)
            s->row[block - 1][s->rank[i]] = i;
    }
    s->n_equal = n[1];
    return n[1] == n[2];
}

/* 1: copies rise; -1: they fall; 0: the span's neighbours say neither. */
static int direction(const ms_stampspace *s, uint32_t i)
{
    if (i == 0 || i + 1 == s->n_spans)
        return 0;
    uint8_t before = s->spans[i - 1].block, behind = s->spans[i + 1].block;
    if (before == 1 && behind == 3)
        return 1;
    return before == 3 && behind == 1 ? -1 : 0;
}

static bool number(ms_stampspace *s)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->n_spans; i++) {
        const ms_stampspan *span = &s->spans[i];
        uint32_t length = span->end - span->first;
        uint32_t first = next, copies = span->block == 2 ? s->copies : 1;
        int way = span->block == 2 ? direction(s, i) : 1;
        if (way == 0)
            return false;
        if (way < 0)
            first += (copies - 1) * length;
        for (uint32_t k = 0; k < length; k++) {
            s->place[span->first + k] = first + k;
            if (span->block == 2)
                s->step[span->first + k] = way * (int32_t)length;
        }
        next += copies * length;
    }
    s->n_stamped = next;
    return true;
}

bool ms_stampspace_open(ms_stampspace *space, uint32_t n, uint8_t *block,
                        uint32_t copies, ms_arena *arena)
{
    *space = (ms_stampspace){.n = n, .copies = copies, .block = block};
    if (!take(space, arena))
        return false;
    find_spans(space);
    return find_ranks(space) && number(space);
}

/* ---- columns ------------------------------------------------------------- */

/* The first of so many equal stretches becomes all of them. */
static void repeat(char *to, size_t bytes, uint32_t copies)
{
    size_t all = copies * bytes;
    for (size_t done = bytes, n; done < all; done += n) {
        n = done < all - done ? done : all - done;
        memcpy(to + done, to, n);
    }
}

void ms_stampspace_copy(const ms_stampspace *space, const ms_stampcolumn *it)
{
    const char *from = it->from;
    char *to = it->to;
    for (uint32_t i = 0; i < space->n_spans; i++) {
        const ms_stampspan *span = &space->spans[i];
        uint32_t length = span->end - span->first;
        uint32_t copies = span->block == 2 ? space->copies : 1;
        uint32_t place = space->place[span->first];
        if (space->step[span->first] < 0) /* the last copy comes first */
            place -= (copies - 1) * length;
        memcpy(to + place * it->stride, from + span->first * it->stride,
               length * it->stride);
        repeat(to + place * it->stride, length * it->stride, copies);
    }
}

bool ms_stampspace_equal(const ms_stampspace *space, const ms_stampcolumn *it,
                         size_t size)
{
    const char *from = (const char *)it->from + it->at;
    for (uint32_t r = 0; r < space->n_equal; r++)
        if (memcmp(from + space->row[0][r] * it->stride,
                   from + space->row[1][r] * it->stride, size) != 0)
            return false;
    return true;
}

static uint32_t item_at(const ms_stampcolumn *it, uint32_t row)
{
    uint32_t item;
    memcpy(&item, (const char *)it->from + it->at + row * it->stride,
           sizeof item);
    return item;
}

static void put(const ms_stampcolumn *it, uint32_t row, uint32_t item)
{
    memcpy((char *)it->to + it->at + row * it->stride, &item, sizeof item);
}

/* What the copies of a row name: first and last, and between them base and
 * multiples of step. */
typedef struct names {
    uint32_t first, last, base;
    int32_t step;
} names;

/* b is what a row of block 2 names, a what that of block 1 does. */
static bool find_names(const ms_stampspace *to, uint32_t a, uint32_t b,
                       names *found)
{
    uint8_t block = to->block[b], before = to->block[a];
    int32_t last = (int32_t)to->copies - 1;
    uint32_t row = b;
    if (a == b && block != 1 && block != 2) {
        *found = (names){to->place[b], to->place[b], to->place[b], 0};
        return true;
    }
    if (block == MS_STAMP_OUT || before + 1 != block)
        return false;
    if (block == 2 && to->rank[a] != to->rank[b])
        return false;
    if (block == 3)
        row = a;
    if (block == 1)
        row = to->row[1][to->rank[b]];
    found->step = to->step[row];
    found->base = to->place[row];
    if (block == 1)
        found->base -= (uint32_t)found->step;
    if (block == 3)
        found->base += (uint32_t)found->step;
    found->first = block == 1 ? to->place[b] : found->base;
    found->last = block == 3 ? to->place[b]
                             : found->base + (uint32_t)(last * found->step);
    return true;
}

/* Renames the first and the last copy, which lies so far behind it, of row, the
 * i-th of its span, and leaves in name and hop what those between take. */
static inline bool rename_ends(const ms_stampspace *space,
                               const ms_stampspace *to,
                               const ms_stampcolumn *it, uint32_t row,
                               unsigned shift, uint32_t i, uint32_t behind)
{
    uint32_t low = (1u << shift) - 1, b = item_at(it, row);
    uint32_t a = item_at(it, space->row[0][space->rank[row]]);
    uint32_t first = space->place[row], last = first + behind;
    names found = {0};
    if ((a == MS_NONE) != (b == MS_NONE))
        return false;
    if (b != MS_NONE && ((a & low) != (b & low) ||
                         !find_names(to, a >> shift, b >> shift, &found)))
        return false;
    low &= b;
    space->name[i] = b == MS_NONE ? b : found.base << shift | low;
    space->hop[i] = (uint32_t)found.step << shift;
    put(it, first, b == MS_NONE ? b : found.first << shift | low);
    put(it, last, b == MS_NONE ? b : found.last << shift | low);
    return true;
}

/* n items of a copy: what those of the copy before name, and a hop more. */
static void put_copy(uint32_t *restrict to, uint32_t *restrict name,
                     const uint32_t *restrict hop, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = name[i] += hop[i];
}

/* The same of four copies, so that name and hop are read once for them. */
static void put_four(uint32_t *restrict a, uint32_t *restrict b,
                     uint32_t *restrict c, uint32_t *restrict d,
                     const ms_stampspace *space, uint32_t n)
{
    uint32_t *restrict name = space->name;
    const uint32_t *restrict hop = space->hop;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t by = hop[i], item = name[i];
        a[i] = item + by;
        b[i] = item + 2 * by;
        c[i] = item + 3 * by;
        d[i] = name[i] = item + 4 * by;
    }
}

/* The same where items are fields of rows. */
static void put_fields(char *restrict to, size_t stride,
                       uint32_t *restrict name, const uint32_t *restrict hop,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, to += stride) {
        name[i] += hop[i];
        memcpy(to, &name[i], sizeof *name);
    }
}

/* What copies from `from` on name, but for the last one. */
static void put_rest(const ms_stampspace *space, const ms_stampcolumn *it,
                     uint32_t place, int32_t step, uint32_t length,
                     uint32_t from)
{
    for (uint32_t c = from; c + 1 < space->copies; c++)
        for (uint32_t i = 0; i < length; i++)
            put(it, place + c * (uint32_t)step + i,
                space->name[i] + c * space->hop[i]);
}

/* The items of n copies that lie behind each other become one stretch, those of
 * the copies before it in name. */
static void join_copies(const ms_stampspace *space, uint32_t length, uint32_t n,
                        bool falls)
{
    uint32_t *name = space->name, *hop = space->hop;
    for (uint32_t i = n * length; i-- > 0;) {
        uint32_t of = i % length, copy = i / length;
        copy = falls ? n - 1 - copy : copy;
        name[i] = name[of] - (n - 1 - copy) * hop[of];
        hop[i] = n * hop[of];
    }
}

static void put_copies(const ms_stampspace *space, const ms_stampcolumn *it,
                       const ms_stampspan *span)
{
    uint32_t length = span->end - span->first, left = space->copies - 2;
    uint32_t place = space->place[span->first];
    int32_t step = space->step[span->first];
    uint32_t n = LONG / length; /* copies of a stretch */
    if (n < 2 || left / 4 < n) {
        n = 1;
    } else {
        put_rest(space, it, place, step, length, 1 + left / n * n);
        join_copies(space, length, n, step < 0);
    }
    place += (uint32_t)(step < 0 ? (int32_t)n * step : step);
    uint32_t c = 0, hop = n * (uint32_t)step;
    uint32_t *to = it->to;
    for (; it->stride == sizeof *to && c + 4 <= left / n; c += 4) {
        uint32_t second = place + hop, third = second + hop; /* may fall */
        put_four(to + place, to + second, to + third, to + (third + hop), space,
                 n * length);
        place += 4 * hop;
    }
    for (; c < left / n; c++) {
        if (it->stride == sizeof *space->name)
            put_copy(to + place, space->name, space->hop, n * length);
        else
            put_fields((char *)it->to + it->at + place * it->stride, it->stride,
                       space->name, space->hop, n * length);
        place += hop;
    }
}

static bool rename_copies(const ms_stampspace *space, const ms_stampspace *to,
                          const ms_stampcolumn *it, const ms_stampspan *span,
                          unsigned shift)
{
    uint32_t behind = (space->copies - 1) * (uint32_t)space->step[span->first];
    for (uint32_t row = span->first; row < span->end; row++)
        if (!rename_ends(space, to, it, row, shift, row - span->first, behind))
            return false;
    put_copies(space, it, span);
    return true;
}

/* What a row of another block than 2 names. */
static bool rename_one(const ms_stampspace *to, uint8_t from, uint32_t *row)
{
    uint8_t block = to->block[*row];
    uint32_t place = to->place[*row];
    if (block == 2 && from == 3)
        place += (to->copies - 1) * (uint32_t)to->step[*row];
    if ((block == 2 && from != 1 && from != 3) || (block == 1 && from > 1))
        return false;
    *row = place;
    return true;
}

static bool rename_once(const ms_stampspace *space, const ms_stampspace *to,
                        const ms_stampcolumn *it, const ms_stampspan *span,
                        unsigned shift)
{
    uint32_t low = (1u << shift) - 1, place = space->place[span->first];
    const char *from =
        (const char *)it->from + it->at + span->first * it->stride;
    char *target = (char *)it->to + it->at + place * it->stride;
    for (uint32_t n = span->end - span->first; n > 0; n--) {
        uint32_t item;
        memcpy(&item, from, sizeof item);
        uint32_t name = item >> shift;
        if (item != MS_NONE && !rename_one(to, span->block, &name))
            return false;
        if (item != MS_NONE)
            item = name << shift | (item & low);
        memcpy(target, &item, sizeof item);
        from += it->stride;
        target += it->stride;
    }
    return true;
}

bool ms_stampspace_rename(const ms_stampspace *space,
                          const ms_stampspace *named, const ms_stampcolumn *it,
                          unsigned shift)
{
    for (uint32_t i = 0; i < space->n_spans; i++) {
        const ms_stampspan *span = &space->spans[i];
        if (!(span->block == 2 ? rename_copies : rename_once)(space, named, it,
                                                              span, shift))
            return false;
    }
    return true;
}

void ms_stampspace_add(const ms_stampspace *space, const ms_stampcolumn *it,
                       uint32_t amount)
{
    for (uint32_t r = 0; r < space->n_equal; r++) {
        uint32_t row = space->row[1][r], item = item_at(it, row);
        uint32_t place = space->place[row];
        for (uint32_t c = 0; c < space->copies; c++) {
            put(it, place, item + c * amount);
            place += (uint32_t)space->step[row];
        }
    }
}

bool ms_stampspace_outside(const ms_stampspace *named, uint32_t *row)
{
    return rename_one(named, MS_STAMP_OUT, row);
}
