/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sequences through bfc, buddy and contiguous, each address worked out by hand
 * from the rules (sim/pools/README.md 16 to 19). */
#include "sim/pools/pool.h"
#include "tests/tests.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define UP UINT64_C(0x7f0000000000) /* the first cudaMalloc answers */
#define RANGE UINT64_C(0x300000000) /* the first range of addresses */
#define NEVER UINT64_MAX            /* out of memory */

static ms_arena arena;
static ms_pool *pool;
static ms_torch_entry entries[64];
static uint32_t n_entries;

static void note(void *of, const ms_torch_entry *entry)
{
    (void)of;
    ck_assert_uint_lt(n_entries, 64);
    entries[n_entries++] = *entry;
}

static void open_pool(ms_heap_options heap, uint64_t total, uint64_t base)
{
    ms_fault fault = {0};
    ms_pool_setup setup = {.heap = heap};
    ms_torch_setup_init(&setup.torch, total);
    setup.torch.policy = MS_TORCH_BUMP;
    setup.torch.base_bytes = base;
    setup.torch.log = note;
    n_entries = 0;
    ck_assert_int_eq(ms_pool_new(&setup, &arena, &pool, &fault), MS_OK);
}

/* A request that must be served there, by so many bytes; its row. */
static uint32_t take(uint64_t bytes, uint64_t address, uint64_t block_bytes)
{
    uint32_t row;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_pool_malloc(pool, bytes, 0, &row, &fault), MS_OK);
    ck_assert_ptr_null(ms_torchview_check(pool));
    if (address == NEVER) {
        ck_assert_uint_eq(row, MS_NONE);
        return row;
    }
    ck_assert_uint_ne(row, MS_NONE);
    ms_torch_block_view block = ms_torchview_block(pool, row);
    ck_assert_msg(block.address == address && block.bytes == block_bytes,
                  "%llu bytes at %llx, not %llu at %llx",
                  (unsigned long long)block.bytes,
                  (unsigned long long)block.address,
                  (unsigned long long)block_bytes, (unsigned long long)address);
    return row;
}

static void give(uint32_t row)
{
    ms_pool_free(pool, row);
    ck_assert_ptr_null(ms_torchview_check(pool));
}

static ms_pool_stats told(void)
{
    ms_pool_stats stats;
    ms_pool_tell(pool, &stats);
    return stats;
}

static uint64_t reserved(void)
{
    return ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES);
}

static void finish(void)
{
    ms_arena_free(&arena);
}

/* ---- bfc ----------------------------------------------------------------- */

/* One region of the limit; 256-byte sizes; a block of less than twice the
 * request is not cut. */
START_TEST(bfc_cuts_from_twice_on)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BFC, .limit_bytes = GIB},
              4 * GIB, 0);
    uint32_t a = take(1, UP, 256);
    uint32_t b = take(1000, UP + 256, 1024);
    uint32_t c = take(256, UP + 1280, 256);
    ck_assert_uint_eq(reserved(), GIB);
    give(b);                       /* a hole of 1024 between a and c */
    b = take(513, UP + 256, 1024); /* 768: 1024 is less than twice that */
    give(b);
    b = take(512, UP + 256, 512); /* 512: exactly twice, cut */
    uint32_t d = take(400, UP + 768, 512);
    give(a);
    give(c); /* joins all that lies above */
    ck_assert_uint_eq(told().largest_idle_bytes, GIB - 1280);
    a = take(256, UP, 256); /* best fit: the hole of a, not the rest */
    ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES), 1280);
    ck_assert_uint_eq(told().largest_bytes, 1024);
    ck_assert_uint_eq(told().touched_bytes, 1536);
    give(a);
    give(b);
    give(d);
    ck_assert_uint_eq(told().largest_idle_bytes, GIB);
    finish();
}
END_TEST

/* ... but for 128 MiB of slack and more, which are cut off always. */
START_TEST(bfc_bounds_slack)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BFC, .limit_bytes = GIB},
              4 * GIB, 0);
    uint32_t a = take(400 * MIB, UP, 400 * MIB);
    uint32_t b = take(MIB, UP + 400 * MIB, MIB);
    give(a);
    a = take(272 * MIB + 1, UP, 400 * MIB); /* slack just under 128 MiB */
    give(a);
    a = take(272 * MIB, UP, 272 * MIB);
    give(a);
    give(b);
    finish();
}
END_TEST

/* Regions of 2, 4, 8, ... MiB; a larger request doubles until it fits, and then
 * the next is no larger. */
START_TEST(bfc_grows)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BFC, .allow_growth = true}, GIB,
              0);
    take(MIB, UP, MIB); /* 2 MiB, cut: 2 is twice 1 */
    ck_assert_uint_eq(reserved(), 2 * MIB);
    take(MIB, UP + MIB, MIB);
    take(MIB, UP + 2 * MIB, MIB); /* the second region: 4 MiB */
    ck_assert_uint_eq(reserved(), 6 * MIB);
    take(20 * MIB, UP + 6 * MIB, 32 * MIB); /* 8, 16, 32: not cut */
    ck_assert_uint_eq(reserved(), 38 * MIB);
    take(4 * MIB, UP + 38 * MIB, 4 * MIB); /* 32 again, then 64 */
    ck_assert_uint_eq(reserved(), 70 * MIB);
    take(29 * MIB, UP + 70 * MIB, 64 * MIB - 35 * MIB);
    ck_assert_uint_eq(reserved(), 134 * MIB);
    ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_SEGMENT), 5);
    finish();
}
END_TEST

/* The limit cuts a region short; what is over it fails. */
START_TEST(bfc_keeps_to_its_limit)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BFC,
                                .allow_growth = true,
                                .limit_bytes = 7 * MIB},
              GIB, 0);
    uint32_t a = take(2 * MIB, UP, 2 * MIB);
    uint32_t b = take(4 * MIB, UP + 2 * MIB, 4 * MIB);
    take(MIB, UP + 6 * MIB, MIB); /* 8 MiB were due, 1 is left */
    take(256, NEVER, 0);
    ck_assert_uint_eq(ms_torchview_ooms(pool), 1);
    give(b);
    /* 5 MiB: no region has them, but the empty one of 4 and nothing else to
     * give back are not enough, so it stays. */
    take(5 * MIB, NEVER, 0);
    ck_assert_uint_eq(reserved(), 7 * MIB);
    give(a);
    /* Together they are: both go back, one of 6 comes at the lowest address
     * that was never given. */
    take(5 * MIB, UP + 8 * MIB, 6 * MIB);
    ck_assert_uint_eq(reserved(), 7 * MIB);
    finish();
}
END_TEST

START_TEST(bfc_without_collection)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BFC,
                                .allow_growth = true,
                                .no_collection = true,
                                .limit_bytes = 6 * MIB},
              GIB, 0);
    uint32_t a = take(2 * MIB, UP, 2 * MIB);
    uint32_t b = take(4 * MIB, UP + 2 * MIB, 4 * MIB);
    give(a);
    give(b);
    take(5 * MIB, NEVER, 0);
    ck_assert_uint_eq(reserved(), 6 * MIB);
    finish();
}
END_TEST

/* 100 MiB of which others hold 20.  The limit is refused, and so are 90 and 81
 * MiB; 0.9 of that, in single precision 76441192, is granted as a multiple of
 * 256: 76441344.  From then on what is refused is refused. */
START_TEST(bfc_backs_off_once)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BFC, .limit_bytes = 100 * MIB},
              100 * MIB, 20 * MIB);
    take(MIB, UP, MIB);
    ck_assert_uint_eq(reserved(), 76441344);
    take(71 * MIB, UP + MIB, 76441344 - MIB);
    take(5 * MIB, NEVER, 0); /* the device has 6, 27 were due */
    ck_assert_uint_eq(reserved(), 76441344);
    finish();
}
END_TEST

/* ---- buddy --------------------------------------------------------------- */

START_TEST(buddy_halves_and_joins)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BUDDY}, GIB, 0);
    uint32_t a = take(700, RANGE, 1024);
    uint32_t b = take(300, RANGE + 1024, 512);
    uint32_t c = take(512, RANGE + 1536, 512);
    uint32_t d = take(513, RANGE + 2048, 1024);
    ck_assert_uint_eq(reserved(), 2 * MIB);
    give(b);
    give(a); /* its buddy is half used: 1024 stay at 0, 512 at 1024 */
    b = take(1, RANGE + 1024, 512);
    give(c);
    give(b); /* 512 + 512, + 1024: 2048 at 0 */
    a = take(2048, RANGE, 2048);
    give(a);
    give(d);
    ck_assert_uint_eq(told().largest_idle_bytes, 2 * MIB);
    finish();
}
END_TEST

/* 2 MiB, doubled: an empty lower half becomes one with the upper. */
START_TEST(buddy_doubles)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BUDDY}, 64 * MIB, 0);
    uint32_t a = take(MIB, RANGE, MIB);
    uint32_t b = take(2 * MIB, RANGE + 2 * MIB, 2 * MIB);
    ck_assert_uint_eq(reserved(), 4 * MIB);
    give(a);
    give(b);
    a = take(9 * MIB, RANGE, 16 * MIB);
    ck_assert_uint_eq(reserved(), 16 * MIB);
    b = take(16 * MIB, RANGE + 16 * MIB, 16 * MIB);
    take(17 * MIB, RANGE + 32 * MIB, 32 * MIB);
    ck_assert_uint_eq(reserved(), 64 * MIB);
    take(1, NEVER, 0);
    give(a);
    take(33 * MIB, NEVER, 0);
    ck_assert_uint_eq(ms_torchview_ooms(pool), 2);
    ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_SEGMENT), 1);
    finish();
}
END_TEST

START_TEST(buddy_of_a_size)
{
    open_pool((ms_heap_options){.kind = MS_POOL_BUDDY,
                                .size_bytes = 8 * MIB,
                                .least_bytes = 2 * MIB},
              GIB, 0);
    take(1, UP, 2 * MIB);
    ck_assert_uint_eq(reserved(), 8 * MIB);
    take(3 * MIB, UP + 4 * MIB, 4 * MIB);
    take(2 * MIB + 1, NEVER, 0);
    take(2 * MIB, UP + 2 * MIB, 2 * MIB);
    open_pool((ms_heap_options){.kind = MS_POOL_BUDDY, .size_bytes = 2 * GIB},
              GIB, 0);
    take(1, NEVER, 0); /* the device has no such arena */
    finish();
}
END_TEST

/* ---- contiguous ---------------------------------------------------------- */

/* 1000 bytes: 100, 200, 300, 50, 350 fill them. */
START_TEST(contiguous_fits_best)
{
    open_pool((ms_heap_options){.kind = MS_POOL_CONTIGUOUS, .size_bytes = 1000},
              GIB, 0);
    uint32_t a = take(100, UP, 100);
    uint32_t b = take(200, UP + 100, 200);
    uint32_t c = take(300, UP + 300, 300);
    uint32_t d = take(50, UP + 600, 50);
    take(350, UP + 650, 350);
    take(1, NEVER, 0);
    give(b);
    give(d);
    take(40, UP + 600, 40); /* 50 is nearer than 200 */
    give(a);                /* 0 to 300 is one run now */
    take(300, UP, 300);
    give(c);
    take(100, UP + 300, 100);
    ck_assert_uint_eq(told().moves, 0);
    finish();
}
END_TEST

/* Two runs of 100: the one that was freed first serves, wherever it lies. */
START_TEST(contiguous_takes_the_oldest_run)
{
    uint32_t row[10];
    open_pool((ms_heap_options){.kind = MS_POOL_CONTIGUOUS, .size_bytes = 1000},
              GIB, 0);
    for (uint32_t i = 0; i < 10; i++)
        row[i] = take(100, UP + 100 * i, 100);
    give(row[7]);
    give(row[2]);
    give(row[4]);
    row[7] = take(100, UP + 700, 100);
    row[2] = take(60, UP + 200, 60); /* its rest goes to the end */
    give(row[2]);                    /* and the whole of it again */
    row[4] = take(100, UP + 400, 100);
    row[2] = take(100, UP + 200, 100);
    finish();
}
END_TEST

/* Holes of 100 at 100 and at 300: 150 bytes need both.  Block 2 (100 bytes)
 * moves by 100 in one piece; 4 to 9 by 200 in one piece each. */
START_TEST(contiguous_defragments)
{
    uint32_t row[10];
    open_pool((ms_heap_options){.kind = MS_POOL_CONTIGUOUS, .size_bytes = 1000},
              GIB, 0);
    for (uint32_t i = 0; i < 9; i++)
        row[i] = take(100, UP + 100 * i, 100);
    row[9] = take(100, UP + 900, 100);
    give(row[1]);
    give(row[3]);
    n_entries = 0;
    uint32_t a = take(150, UP + 800, 150);
    ck_assert_uint_eq(ms_torchview_block(pool, row[0]).address, UP);
    ck_assert_uint_eq(ms_torchview_block(pool, row[2]).address, UP + 100);
    for (uint32_t i = 4; i < 10; i++)
        ck_assert_uint_eq(ms_torchview_block(pool, row[i]).address,
                          UP + 100 * i - 200);
    ck_assert_uint_eq(told().moves, 7);
    ck_assert_uint_eq(told().copies, 7);
    ck_assert_uint_eq(told().moved_bytes, 700);
    ck_assert_uint_eq(n_entries, 8);
    ck_assert_int_eq(entries[0].action, MS_TORCH_MOVE);
    ck_assert_uint_eq(entries[0].from, UP + 200);
    ck_assert_uint_eq(entries[0].address, UP + 100);
    ck_assert_int_eq(entries[7].action, MS_TORCH_ALLOC);
    give(a);
    finish();
}
END_TEST

/* A block of 500 over a hole of 120: four pieces of 120 and one of 20. */
START_TEST(contiguous_copies_in_pieces)
{
    open_pool((ms_heap_options){.kind = MS_POOL_CONTIGUOUS, .size_bytes = 1000},
              GIB, 0);
    uint32_t a = take(120, UP, 120);
    uint32_t b = take(500, UP + 120, 500);
    give(a);
    take(450, UP + 500, 450);
    ck_assert_uint_eq(ms_torchview_block(pool, b).address, UP);
    ck_assert_uint_eq(told().copies, 5);
    ck_assert_uint_eq(told().moved_bytes, 500);
    finish();
}
END_TEST

/* Without a size: 2 MiB, and 2 MiB more as they are missing. */
START_TEST(contiguous_gets_longer)
{
    open_pool((ms_heap_options){.kind = MS_POOL_CONTIGUOUS}, 8 * MIB, 0);
    uint32_t a = take(MIB, RANGE, MIB);
    uint32_t b = take(MIB, RANGE + MIB, MIB);
    uint32_t c = take(MIB, RANGE + 2 * MIB, MIB);
    ck_assert_uint_eq(reserved(), 4 * MIB);
    give(a);
    give(b); /* 2 MiB at the front, 1 MiB at the end */
    a = take(3 * MIB, RANGE + MIB, 3 * MIB);
    ck_assert_uint_eq(ms_torchview_block(pool, c).address, RANGE);
    ck_assert_uint_eq(reserved(), 4 * MIB);
    b = take(4 * MIB, RANGE + 4 * MIB, 4 * MIB);
    take(1, NEVER, 0);
    give(a);
    give(c);
    give(b);
    ck_assert_uint_eq(told().largest_idle_bytes, 8 * MIB);
    finish();
}
END_TEST

/* ---- streams ------------------------------------------------------------- */

/* What another stream uses is active until that is past; before a heap is out
 * of memory it waits. */
START_TEST(uses_hold_blocks)
{
    ms_fault fault = {0};
    for (uint32_t kind = MS_POOL_BFC; kind < MS_POOL_N_TYPES; kind++) {
        open_pool((ms_heap_options){.kind = (uint8_t)kind,
                                    .limit_bytes = 4 * MIB,
                                    .size_bytes = 4 * MIB},
                  GIB, 0);
        uint32_t a = take(2 * MIB, UP, 2 * MIB);
        ck_assert_int_eq(ms_torchstreams_record(pool, a, 7, &fault), MS_OK);
        ck_assert_int_eq(ms_torchstreams_queue(pool, 7, 1, &fault), MS_OK);
        give(a);
        ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_ALLOCATED_BYTES),
                          0);
        ck_assert_uint_eq(ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES),
                          2 * MIB);
        take(2 * MIB, UP + 2 * MIB, 2 * MIB);
        ck_assert_uint_eq(ms_torchview_retries(pool), 0);
        take(MIB, UP, MIB);
        ck_assert_uint_eq(ms_torchview_retries(pool), 1);
        finish();
    }
}
END_TEST

Suite *suite_heaps(void)
{
    Suite *suite = suite_create("heaps");
    TCase *tcase = tcase_create("heaps");
    tcase_add_test(tcase, bfc_cuts_from_twice_on);
    tcase_add_test(tcase, bfc_bounds_slack);
    tcase_add_test(tcase, bfc_grows);
    tcase_add_test(tcase, bfc_keeps_to_its_limit);
    tcase_add_test(tcase, bfc_without_collection);
    tcase_add_test(tcase, bfc_backs_off_once);
    tcase_add_test(tcase, buddy_halves_and_joins);
    tcase_add_test(tcase, buddy_doubles);
    tcase_add_test(tcase, buddy_of_a_size);
    tcase_add_test(tcase, contiguous_fits_best);
    tcase_add_test(tcase, contiguous_takes_the_oldest_run);
    tcase_add_test(tcase, contiguous_defragments);
    tcase_add_test(tcase, contiguous_copies_in_pieces);
    tcase_add_test(tcase, contiguous_gets_longer);
    tcase_add_test(tcase, uses_hold_blocks);
    suite_add_tcase(suite, tcase);
    return suite;
}
