/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The torch pool under random operations, against a naive reading of its
 * rules: the block that serves is found by a look at all blocks, and live
 * blocks never overlap. */
#include "sim/pools/torch/torch.h"
#include "tests/tests.h"

#include <string.h>

#define N_SEEDS 24
#define N_OPS 1500
#define MOST_LIVE 64
#define MIB (UINT64_C(1) << 20)
#define DEVICE_BYTES (300 * MIB)

typedef struct live {
    uint32_t row;
    uint64_t address, bytes, asked;
} live;

typedef struct world {
    ms_arena arena, trial;
    ms_torch *pool;
    uint64_t random;
    bool ranges;   /* expandable segments, where best fit has further rules */
    uint64_t most; /* max_split_size */
    live lives[MOST_LIVE];
    uint32_t n;
} world;

static uint64_t draw(world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

static ms_torch_snapshot look(world *w)
{
    ms_torch_snapshot snapshot;
    ms_fault fault = {0};
    ms_arena_reset(&w->trial);
    ck_assert_int_eq(
        ms_torchview_snapshot(w->pool, &w->trial, &snapshot, &fault), MS_OK);
    return snapshot;
}

/* ---- the naive rules ----------------------------------------------------- */

typedef struct choice {
    /* of the idle block that serves; bytes 0: there is none */
    uint64_t address, bytes;
    uint64_t handed; /* of the block that is cut from it */
} choice;

static uint64_t rounded(uint64_t bytes)
{
    return bytes < 512 ? 512 : (bytes + 511) / 512 * 512;
}

static choice best_fit(world *w, uint64_t asked, uint64_t stream)
{
    ms_torch_snapshot all = look(w);
    uint64_t bytes = rounded(asked);
    choice best = {0};
    for (uint32_t s = 0; s < all.n_segments; s++) {
        const ms_torch_segment_view *segment = &all.segments[s];
        if (segment->stream != stream || segment->small != (bytes <= MIB))
            continue;
        for (uint32_t b = 0; b < segment->n_blocks; b++) {
            const ms_torch_block_view *block = &segment->blocks[b];
            if (block->state == MS_TORCH_INACTIVE && block->bytes >= bytes &&
                (best.bytes == 0 || block->bytes < best.bytes))
                best = (choice){block->address, block->bytes, 0};
        }
    }
    uint64_t rest = best.bytes - bytes;
    bool split = bytes <= MIB ? rest >= 512 : bytes < w->most && rest > MIB;
    best.handed = split ? bytes : best.bytes;
    if ((bytes < w->most && best.bytes >= w->most) ||
        (bytes >= w->most && best.bytes >= bytes + 20 * MIB))
        best.bytes = 0;
    return best;
}

static void never_overlaps(const world *w, const live *mine)
{
    for (uint32_t i = 0; i < w->n; i++)
        ck_assert(w->lives[i].address + w->lives[i].bytes <= mine->address ||
                  mine->address + mine->bytes <= w->lives[i].address);
}

/* ---- operations ---------------------------------------------------------- */

static uint64_t draw_bytes(world *w)
{
    static const uint64_t likely[] = {512,      4096,     MIB,
                                      MIB + 1,  2 * MIB,  9 * MIB,
                                      10 * MIB, 24 * MIB, 33 * MIB};
    return draw(w, 2) == 0 ? likely[draw(w, 9)]
                           : 1 + draw(w, (uint64_t)1 << draw(w, 25));
}

static void take(world *w)
{
    uint64_t asked = draw_bytes(w), stream = draw(w, 3);
    ms_fault fault = {0};
    live mine = {.asked = asked};
    if (w->n == MOST_LIVE)
        return;
    choice expected = best_fit(w, asked, stream);
    ck_assert_int_eq(ms_torch_malloc(w->pool, asked, stream, &mine.row, &fault),
                     MS_OK);
    if (mine.row == MS_NONE) {
        ck_assert(expected.bytes == 0 || w->ranges);
        return;
    }
    ms_torch_block_view block = ms_torchview_block(w->pool, mine.row);
    mine.address = block.address;
    mine.bytes = block.bytes;
    ck_assert_uint_ge(block.bytes, rounded(asked));
    ck_assert_uint_eq(block.requested_bytes, asked);
    if (expected.bytes > 0 && !w->ranges) {
        ck_assert_uint_eq(block.address, expected.address);
        ck_assert_uint_eq(block.bytes, expected.handed);
    }
    never_overlaps(w, &mine);
    w->lives[w->n++] = mine;
}

static void give(world *w)
{
    if (w->n == 0)
        return;
    uint32_t i = (uint32_t)draw(w, w->n);
    ms_fault fault = {0};
    /* A block that no other stream uses may serve at once. The naive rule
     * sees blocks that wait for a stream only after they completed. */
    if (draw(w, 8) == 0) {
        ck_assert_int_eq(
            ms_torchstreams_record(w->pool, w->lives[i].row, 1, &fault), MS_OK);
        ck_assert_int_eq(ms_torchstreams_queue(w->pool, 1, 1, &fault), MS_OK);
    }
    ms_torch_free(w->pool, w->lives[i].row);
    w->lives[i] = w->lives[--w->n];
}

static void add_up(world *w)
{
    uint64_t bytes = 0, asked = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        bytes += w->lives[i].bytes;
        asked += w->lives[i].asked;
    }
    ck_assert_uint_eq(bytes,
                      ms_torchview_current(w->pool, MS_TORCH_ALLOCATED_BYTES));
    ck_assert_uint_le(asked,
                      ms_torchview_current(w->pool, MS_TORCH_REQUESTED_BYTES));
    ck_assert_uint_le(bytes,
                      ms_torchview_current(w->pool, MS_TORCH_ACTIVE_BYTES));
    ck_assert_uint_le(ms_torchview_current(w->pool, MS_TORCH_ACTIVE_BYTES),
                      ms_torchview_current(w->pool, MS_TORCH_RESERVED_BYTES));
    ck_assert_uint_le(ms_torchview_device_used(w->pool), DEVICE_BYTES);
    const char *broken = ms_torchview_check(w->pool);
    ck_assert_msg(broken == NULL, "%s", broken);
}

/* Completes all pending frees, as the pool does at the next malloc, before
 * the naive rule looks. */
static void settle(world *w)
{
    uint32_t row;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_torchstreams_finish(w->pool, 1, UINT64_MAX, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_torch_malloc(w->pool, 1, 2, &row, &fault), MS_OK);
    if (row != MS_NONE)
        ms_torch_free(w->pool, row);
}

static void live_through(const char *conf, uint64_t seed,
                         ms_torch_policy policy)
{
    static world w;
    ms_torch_setup setup;
    ms_fault fault = {0};
    w = (world){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    ms_torch_setup_init(&setup, DEVICE_BYTES);
    setup.policy = policy;
    ck_assert_msg(ms_torchconf_parse(conf, "conf", MS_EUSAGE, setup.version,
                                     &setup.options, &fault) == MS_OK,
                  "%s", fault.what);
    w.ranges = setup.options.expandable;
    w.most = setup.options.max_split_bytes;
    ck_assert_int_eq(ms_torch_new(&setup, &w.arena, &w.pool, &fault), MS_OK);
    for (uint32_t i = 0; i < N_OPS; i++) {
        uint64_t what = draw(&w, 100);
        settle(&w);
        if (what < 52)
            take(&w);
        else if (what < 98)
            give(&w);
        else
            ck_assert_int_eq(ms_torch_empty_cache(w.pool, &fault), MS_OK);
        add_up(&w);
    }
    while (w.n > 0)
        give(&w);
    settle(&w);
    ck_assert_int_eq(ms_torch_empty_cache(w.pool, &fault), MS_OK);
    ck_assert_uint_eq(ms_torchview_current(w.pool, MS_TORCH_RESERVED_BYTES), 0);
    ck_assert_uint_eq(ms_torchview_device_used(w.pool), 0);
    ms_arena_free(&w.arena);
    ms_arena_free(&w.trial);
}

START_TEST(plain)
{
    live_through("", (uint64_t)_i, (ms_torch_policy)(_i % 3));
}
END_TEST

START_TEST(max_split_size)
{
    live_through("max_split_size_mb:24", (uint64_t)_i,
                 (ms_torch_policy)(_i % 3));
}
END_TEST

START_TEST(expandable)
{
    live_through("expandable_segments:True", (uint64_t)_i, MS_TORCH_BUMP);
}
END_TEST

/* ---- ordered sets -------------------------------------------------------- */

/* The whole device in 512-byte blocks, freed in an order that leaves as many
 * idle blocks as there can be, all of one size: no operation gets slow. */
START_TEST(equal_sizes)
{
    enum { N = 40000 };
    static uint32_t rows[N];
    ms_arena arena = {0};
    ms_torch_setup setup;
    ms_torch *pool;
    ms_fault fault = {0};
    uint32_t row;
    ms_torch_setup_init(&setup, UINT64_C(1) << 30);
    setup.policy = MS_TORCH_BUMP;
    ck_assert_int_eq(ms_torch_new(&setup, &arena, &pool, &fault), MS_OK);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_int_eq(ms_torch_malloc(pool, 512, 0, &rows[i], &fault),
                         MS_OK);
    for (uint32_t i = 0; i < N; i += 2)
        ms_torch_free(pool, rows[i]);
    ck_assert_ptr_null(ms_torchview_check(pool));
    for (uint32_t i = 0; i < N; i += 2) { /* the lowest address comes first */
        ck_assert_int_eq(ms_torch_malloc(pool, 512, 0, &row, &fault), MS_OK);
        if (i > 0)
            ck_assert_uint_gt(ms_torchview_block(pool, row).address,
                              ms_torchview_block(pool, rows[i - 2]).address);
        rows[i] = row;
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_pools(void)
{
    Suite *suite = suite_create("pools");
    TCase *tcase = tcase_create("pools");
    tcase_add_loop_test(tcase, plain, 0, N_SEEDS);
    tcase_add_loop_test(tcase, max_split_size, 0, N_SEEDS);
    tcase_add_loop_test(tcase, expandable, 0, N_SEEDS);
    tcase_add_test(tcase, equal_sizes);
    suite_add_tcase(suite, tcase);
    return suite;
}
