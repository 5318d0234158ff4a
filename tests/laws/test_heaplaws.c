/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pools bfc, buddy and contiguous under random requests: each is compared
 * with a slow version of its rules (sorted lists, searched from end to end)
 * that shares no code with it; and laws that hold for any pool. */
#include "sim/pools/pool.h"
#include "tests/tests.h"

#include <string.h>

#define N_SEEDS 24
#define N_OPS 1200
#define MOST 128u
#define MIB (UINT64_C(1) << 20)
#define UP UINT64_C(0x7f0000000000)
#define ARENA_BYTES (UINT64_C(1) << 22)
#define NEVER UINT64_MAX

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* ---- the slow models ----------------------------------------------------- */

/* A range of addresses: used by live block `id`, or idle (MS_NONE). */
typedef struct stretch {
    uint64_t address, bytes, region;
    uint32_t id;
} stretch;

/* bfc: ranges by address. contiguous: the same, and idle runs in the order in
 * which they came. */
typedef struct model {
    const ms_heap_options *options;
    stretch list[4 * MOST];
    uint32_t n;
    uint64_t runs[4 * MOST]; /* addresses */
    uint32_t n_runs;
    uint64_t reserved, next_region, next_address;
    uint64_t copies, moved;
} model;

static void insert(model *m, uint32_t at, stretch s)
{
    memmove(m->list + at + 1, m->list + at, (m->n - at) * sizeof s);
    m->list[at] = s;
    ck_assert_uint_lt(++m->n, 4 * MOST);
}

static void erase(model *m, uint32_t at)
{
    m->n--;
    memmove(m->list + at, m->list + at + 1, (m->n - at) * sizeof *m->list);
}

static uint32_t find_id(const model *m, uint32_t id)
{
    uint32_t i = 0;
    while (m->list[i].id != id)
        i++;
    return i;
}

static bool joins(const model *m, uint32_t low)
{
    const stretch *a = &m->list[low], *b = a + 1;
    return low + 1 < m->n && a->id == MS_NONE && b->id == MS_NONE &&
           a->region == b->region;
}

static void give_stretch(model *m, uint32_t at)
{
    m->list[at].id = MS_NONE;
    if (joins(m, at)) {
        m->list[at].bytes += m->list[at + 1].bytes;
        erase(m, at + 1);
    }
    if (at > 0 && joins(m, at - 1)) {
        m->list[at - 1].bytes += m->list[at].bytes;
        erase(m, at);
    }
}

/* ---- bfc ----------------------------------------------------------------- */

static uint64_t bfc_find(model *m, uint64_t bytes, uint32_t id)
{
    uint32_t best = MS_NONE;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->list[i].id == MS_NONE && m->list[i].bytes >= bytes &&
            (best == MS_NONE || m->list[i].bytes < m->list[best].bytes))
            best = i;
    if (best == MS_NONE)
        return NEVER;
    stretch *s = &m->list[best];
    s->id = id;
    if (s->bytes >= 2 * bytes || s->bytes - bytes >= 128 * MIB) {
        stretch rest = {s->address + bytes, s->bytes - bytes, s->region,
                        MS_NONE};
        s->bytes = bytes;
        insert(m, best + 1, rest);
    }
    return m->list[best].address;
}

static bool bfc_extend(model *m, uint64_t bytes)
{
    uint64_t left = (m->options->limit_bytes - m->reserved) / 256 * 256;
    bool doubled = false;
    if (bytes > left)
        return false;
    while (bytes > m->next_region) {
        m->next_region *= 2;
        doubled = true;
    }
    uint64_t region = m->next_region < left ? m->next_region : left;
    if (!doubled)
        m->next_region *= 2;
    insert(m, m->n,
           (stretch){m->next_address, region, m->next_address, MS_NONE});
    m->next_address += (region + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    m->reserved += region;
    return true;
}

/* Is the range a whole region? A region without a used range is one idle range.
 */
static bool is_region(const model *m, uint32_t i)
{
    const stretch *s = &m->list[i];
    return s->id == MS_NONE && s->address == s->region &&
           (i + 1 == m->n || s[1].region != s->region);
}

static bool bfc_collect(model *m, uint64_t bytes)
{
    uint64_t empty = 0;
    for (uint32_t i = 0; i < m->n; i++)
        empty += is_region(m, i) ? m->list[i].bytes : 0;
    if (empty == 0 || bytes > m->options->limit_bytes - m->reserved + empty)
        return false;
    for (uint32_t i = m->n; i-- > 0;)
        if (is_region(m, i))
            erase(m, i);
    m->reserved -= empty;
    return true;
}

static uint64_t bfc_take(model *m, uint64_t asked, uint32_t id)
{
    uint64_t bytes = (asked + 255) / 256 * 256;
    uint64_t address = bfc_find(m, bytes, id);
    if (address != NEVER)
        return address;
    if (m->next_region == 0) {
        m->next_address = UP;
        m->next_region =
            m->options->allow_growth ? 2 * MIB : m->options->limit_bytes;
    }
    if (bfc_extend(m, bytes))
        return bfc_find(m, bytes, id);
    if (!m->options->no_collection && bfc_collect(m, bytes) &&
        bfc_extend(m, bytes))
        return bfc_find(m, bytes, id);
    return NEVER;
}

static void bfc_give(model *m, uint32_t id)
{
    give_stretch(m, find_id(m, id));
}

/* ---- contiguous ---------------------------------------------------------- */

static void forget_run(model *m, uint64_t address)
{
    uint32_t i = 0;
    while (m->runs[i] != address)
        i++;
    m->n_runs--;
    memmove(m->runs + i, m->runs + i + 1, (m->n_runs - i) * sizeof *m->runs);
}

static uint64_t run_bytes(const model *m, uint64_t address)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->list[i].address == address)
            return m->list[i].bytes;
    return 0;
}

/* All runs but the one that came last leave the table together with their
 * range. */
static void contiguous_free(model *m, uint32_t at)
{
    if (at + 1 < m->n && m->list[at + 1].id == MS_NONE)
        forget_run(m, m->list[at + 1].address);
    if (at > 0 && m->list[at - 1].id == MS_NONE)
        forget_run(m, m->list[at - 1].address);
    uint64_t address = at > 0 && m->list[at - 1].id == MS_NONE
                           ? m->list[at - 1].address
                           : m->list[at].address;
    give_stretch(m, at);
    m->runs[m->n_runs++] = address;
}

static void contiguous_give(model *m, uint32_t id)
{
    contiguous_free(m, find_id(m, id));
}

/* Makes the buffer anew, with the live blocks at its front, in their order. */
static void contiguous_pack(model *m)
{
    stretch packed[4 * MOST];
    uint64_t hole = 0, address = UP;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const stretch *s = &m->list[i];
        if (s->id == MS_NONE) {
            hole += s->bytes;
            continue;
        }
        for (uint64_t at = 0; hole > 0 && at < s->bytes; at += hole)
            m->copies++;
        m->moved += hole > 0 ? s->bytes : 0;
        packed[n++] = (stretch){address, s->bytes, UP, s->id};
        address += s->bytes;
    }
    packed[n++] = (stretch){address, hole, UP, MS_NONE};
    memcpy(m->list, packed, n * sizeof *packed);
    m->n = n;
    m->runs[0] = address;
    m->n_runs = 1;
}

static uint64_t contiguous_take(model *m, uint64_t bytes, uint32_t id)
{
    uint64_t idle = 0, largest = 0, best = 0;
    if (m->n == 0) {
        insert(m, 0, (stretch){UP, m->options->size_bytes, UP, MS_NONE});
        m->reserved = m->options->size_bytes;
        m->runs[m->n_runs++] = UP;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        uint64_t run = m->list[i].id == MS_NONE ? m->list[i].bytes : 0;
        idle += run;
        largest = run > largest ? run : largest;
    }
    if (idle < bytes)
        return NEVER;
    if (largest < bytes)
        contiguous_pack(m);
    for (uint32_t i = 0; i < m->n_runs; i++)
        if (run_bytes(m, m->runs[i]) >= bytes &&
            (best == 0 || run_bytes(m, m->runs[i]) < run_bytes(m, best)))
            best = m->runs[i];
    uint32_t at = 0;
    while (m->list[at].address != best)
        at++;
    forget_run(m, best);
    stretch rest = {best + bytes, m->list[at].bytes - bytes, UP, MS_NONE};
    m->list[at].bytes = bytes;
    m->list[at].id = id;
    if (rest.bytes > 0) {
        insert(m, at + 1, rest);
        m->runs[m->n_runs++] = rest.address;
    }
    return best;
}

/* ---- buddy --------------------------------------------------------------- */

/* In buddy, what is idle follows from what is used: the blocks are the largest
 * aligned powers of two without a used block. */
static bool is_clear(const model *m, uint64_t offset, uint64_t bytes)
{
    for (uint32_t i = 0; i < m->n; i++) {
        uint64_t at = m->list[i].address - UP;
        if (at < offset + bytes && offset < at + m->list[i].bytes)
            return false;
    }
    return true;
}

static uint64_t buddy_take(model *m, uint64_t asked, uint32_t id)
{
    uint64_t bytes = 512;
    while (bytes < asked)
        bytes *= 2;
    m->reserved = ARENA_BYTES;
    for (uint64_t size = bytes; size <= ARENA_BYTES; size *= 2)
        for (uint64_t at = 0; at < ARENA_BYTES; at += size) {
            uint64_t parent = at / (2 * size) * (2 * size);
            if (!is_clear(m, at, size) ||
                (size < ARENA_BYTES && is_clear(m, parent, 2 * size)))
                continue;
            insert(m, m->n, (stretch){UP + at, bytes, UP, id});
            return UP + at;
        }
    return NEVER;
}

static void buddy_give(model *m, uint32_t id)
{
    erase(m, find_id(m, id));
}

/* ---- the pool and its model ---------------------------------------------- */

typedef struct live {
    uint32_t row, id;
    uint64_t asked;
} live;

typedef struct world {
    ms_arena arena, trial;
    ms_pool *pool;
    live lives[MOST];
    uint32_t n, next_id;
} world;

static const ms_heap_options kinds[] = {
    {.kind = MS_POOL_BFC, .limit_bytes = 5 * MIB},
    {.kind = MS_POOL_BFC, .allow_growth = true, .limit_bytes = 9 * MIB},
    {.kind = MS_POOL_BFC,
     .allow_growth = true,
     .no_collection = true,
     .limit_bytes = 7 * MIB + 300},
    {.kind = MS_POOL_CONTIGUOUS, .size_bytes = 3 * MIB + 17},
    {.kind = MS_POOL_BUDDY, .size_bytes = ARENA_BYTES}};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static const struct {
    uint64_t (*take)(model *m, uint64_t bytes, uint32_t id);
    void (*give)(model *m, uint32_t id);
} models[MS_POOL_N_TYPES] = {
    [MS_POOL_BFC] = {bfc_take, bfc_give},
    [MS_POOL_BUDDY] = {buddy_take, buddy_give},
    [MS_POOL_CONTIGUOUS] = {contiguous_take, contiguous_give}};

static void open_world(world *w, const ms_heap_options *heap, uint64_t seed)
{
    ms_pool_setup setup = {.heap = *heap};
    ms_fault fault = {0};
    *w = (world){0};
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    ms_torch_setup_init(&setup.torch, 1024 * MIB);
    setup.torch.policy = MS_TORCH_BUMP;
    ck_assert_int_eq(ms_pool_new(&setup, &w->arena, &w->pool, &fault), MS_OK);
}

static void close_world(world *w)
{
    ms_arena_free(&w->arena);
    ms_arena_free(&w->trial);
}

static uint64_t draw_bytes(void)
{
    return draw(3) == 0 ? UINT64_C(256) << draw(12)
                        : 1 + draw(UINT64_C(1) << draw(21));
}

static uint64_t current(const world *w, ms_torch_measure measure)
{
    return ms_torchview_current(w->pool, measure);
}

/* Laws that hold for any pool. */
static void check_world(world *w)
{
    uint64_t asked = 0, bytes = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        asked += w->lives[i].asked;
        bytes += ms_torchview_block(w->pool, w->lives[i].row).bytes;
    }
    const char *broken = ms_torchview_check(w->pool);
    ck_assert_msg(broken == NULL, "%s", broken);
    ck_assert_uint_eq(bytes, current(w, MS_TORCH_ALLOCATED_BYTES));
    ck_assert_uint_ge(current(w, MS_TORCH_REQUESTED_BYTES), asked);
    ck_assert_uint_ge(current(w, MS_TORCH_ACTIVE_BYTES), bytes);
    ck_assert_uint_ge(current(w, MS_TORCH_RESERVED_BYTES),
                      current(w, MS_TORCH_ACTIVE_BYTES));
    ck_assert_uint_ge(ms_torchview_peak(w->pool, MS_TORCH_RESERVED_BYTES),
                      ms_torchview_peak(w->pool, MS_TORCH_REQUESTED_BYTES));
    ck_assert_uint_ge(ms_torchview_device_used(w->pool),
                      current(w, MS_TORCH_RESERVED_BYTES));
}

/* When everything is freed, each segment is one idle block. */
static void check_empty(world *w)
{
    ms_torch_snapshot shot;
    ms_fault fault = {0};
    ck_assert_uint_eq(current(w, MS_TORCH_ACTIVE_BYTES), 0);
    ck_assert_uint_eq(current(w, MS_TORCH_REQUESTED_BYTES), 0);
    ck_assert_int_eq(ms_torchview_snapshot(w->pool, &w->trial, &shot, &fault),
                     MS_OK);
    for (uint32_t i = 0; i < shot.n_segments; i++)
        ck_assert_uint_eq(shot.segments[i].n_blocks, 1);
}

static void compare_all(const world *w, const model *m)
{
    ms_pool_stats told;
    for (uint32_t i = 0; i < w->n; i++) {
        const stretch *s = &m->list[find_id(m, w->lives[i].id)];
        ms_torch_block_view block =
            ms_torchview_block(w->pool, w->lives[i].row);
        ck_assert_uint_eq(block.address, s->address);
        ck_assert_uint_eq(block.bytes, s->bytes);
    }
    ms_pool_tell(w->pool, &told);
    ck_assert_uint_eq(told.copies, m->copies);
    ck_assert_uint_eq(told.moved_bytes, m->moved);
    ck_assert_uint_eq(current(w, MS_TORCH_RESERVED_BYTES), m->reserved);
}

static void do_one(world *w, model *m)
{
    ms_fault fault = {0};
    live mine = {.id = w->next_id, .asked = draw_bytes()};
    if (w->n == MOST || (w->n > 0 && draw(100) < 45)) {
        uint32_t i = (uint32_t)draw(w->n);
        ms_pool_free(w->pool, w->lives[i].row);
        models[m->options->kind].give(m, w->lives[i].id);
        w->lives[i] = w->lives[--w->n];
        return;
    }
    uint64_t address =
        models[m->options->kind].take(m, mine.asked, w->next_id++);
    ck_assert_int_eq(
        ms_pool_malloc(w->pool, mine.asked, draw(3), &mine.row, &fault), MS_OK);
    ck_assert_int_eq(mine.row == MS_NONE, address == NEVER);
    if (mine.row == MS_NONE)
        return;
    ck_assert_uint_eq(ms_torchview_block(w->pool, mine.row).address, address);
    w->lives[w->n++] = mine;
}

START_TEST(as_the_rules_say)
{
    static world w;
    static model m;
    uint64_t failed = 0, copies = 0;
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        m = (model){.options = &kinds[_i]};
        open_world(&w, m.options, seed);
        for (uint32_t i = 0; i < N_OPS; i++) {
            do_one(&w, &m);
            check_world(&w);
            if (i % 16 == 0)
                compare_all(&w, &m);
        }
        failed += ms_torchview_ooms(w.pool);
        copies += m.copies;
        while (w.n > 0)
            ms_pool_free(w.pool, w.lives[--w.n].row);
        check_empty(&w);
        close_world(&w);
    }
    ck_assert_uint_gt(failed, 0); /* memory was short enough to try all rules */
    ck_assert(kinds[_i].kind != MS_POOL_CONTIGUOUS || copies > 0);
}
END_TEST

/* ---- streams, growth ----------------------------------------------------- */

static const ms_heap_options free_kinds[] = {
    {.kind = MS_POOL_BFC, .allow_growth = true},
    {.kind = MS_POOL_BUDDY},
    {.kind = MS_POOL_CONTIGUOUS},
    {.kind = MS_POOL_TORCH}};
#define N_FREE_KINDS (sizeof free_kinds / sizeof free_kinds[0])

static void use_elsewhere(world *w, uint32_t row)
{
    ms_fault fault = {0};
    uint64_t stream = 1 + draw(3);
    ck_assert_int_eq(ms_torchstreams_record(w->pool, row, stream, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_torchstreams_queue(w->pool, stream, 1, &fault), MS_OK);
    if (draw(2) == 0)
        ck_assert_int_eq(ms_torchstreams_finish(w->pool, stream, 1, &fault),
                         MS_OK);
}

/* A hash of all addresses that were returned. */
static uint64_t live_through(world *w, const ms_heap_options *heap,
                             uint64_t seed)
{
    uint64_t digest = 0;
    ms_fault fault = {0};
    open_world(w, heap, seed);
    for (uint32_t i = 0; i < N_OPS; i++) {
        live mine = {.asked = draw_bytes()};
        if (w->n == MOST || (w->n > 0 && draw(100) < 45)) {
            uint32_t at = (uint32_t)draw(w->n);
            if (draw(4) == 0)
                use_elsewhere(w, w->lives[at].row);
            ms_pool_free(w->pool, w->lives[at].row);
            w->lives[at] = w->lives[--w->n];
        } else {
            ck_assert_int_eq(
                ms_pool_malloc(w->pool, mine.asked, 0, &mine.row, &fault),
                MS_OK);
            ck_assert_uint_ne(mine.row, MS_NONE);
            w->lives[w->n++] = mine;
            digest =
                digest * 31 + ms_torchview_block(w->pool, mine.row).address;
        }
        check_world(w);
    }
    return digest;
}

START_TEST(streams_and_growth)
{
    static world w;
    for (uint64_t seed = 0; seed < N_SEEDS / 4; seed++) {
        uint64_t digest = live_through(&w, &free_kinds[_i], seed);
        close_world(&w);
        ck_assert_uint_eq(live_through(&w, &free_kinds[_i], seed), digest);
        while (w.n > 0)
            ms_pool_free(w.pool, w.lives[--w.n].row);
        for (uint64_t stream = 1; stream <= 3; stream++)
            ck_assert_int_eq(ms_torchstreams_finish(w.pool, stream, UINT64_MAX,
                                                    &(ms_fault){0}),
                             MS_OK);
        uint32_t row; /* pending frees complete when memory is requested */
        ck_assert_int_eq(ms_pool_malloc(w.pool, 1, 0, &row, &(ms_fault){0}),
                         MS_OK);
        ms_pool_free(w.pool, row);
        check_empty(&w);
        close_world(&w);
    }
}
END_TEST

Suite *suite_heaplaws(void)
{
    Suite *suite = suite_create("heaplaws");
    TCase *tcase = tcase_create("heaplaws");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, as_the_rules_say, 0, N_KINDS);
    tcase_add_loop_test(tcase, streams_and_growth, 0, N_FREE_KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
