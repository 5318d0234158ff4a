/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The addresses of blocks: the recorder, and what a figure keeps of it. */
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include "plots/plots.h"
#include "plots/record/tiles.h"

#include <math.h>

#define MIB (UINT64_C(1) << 20)
#define N_KINDS 3u

static ms_arena arena;
static ms_fault fault;
static ms_addressmap map;
static ms_torch_setup setup;
static ms_torch *pool;

static void open_pool(bool expandable)
{
    ms_arena_free(&arena);
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    map = (ms_addressmap){0};
    ms_torch_setup_init(&setup, UINT64_C(8) << 30);
    setup.options.expandable = expandable;
    setup.log = ms_addressmap_log;
    setup.log_of = &map;
    ck_assert_int_eq(ms_torch_new(&setup, &arena, &pool, &fault), MS_OK);
    ck_assert_int_eq(ms_addressmap_start(&map, NULL, &arena, &fault), MS_OK);
}

static void setup_plain(void)
{
    open_pool(false);
}

static void teardown(void)
{
    ms_arena_free(&arena);
    arena = (ms_arena){0};
}

static uint32_t take(uint64_t bytes, uint32_t of)
{
    uint32_t block;
    ck_assert_int_eq(ms_torch_malloc(pool, bytes, 0, &block, &fault), MS_OK);
    ms_torch_block_view at = ms_torchview_block(pool, block);
    ms_addressmap_take(&map, at.address, at.bytes, of);
    return block;
}

static void close_map(void)
{
    ck_assert_int_eq(ms_addressmap_close(&map, &fault), MS_OK);
}

/* ---- the recorder -------------------------------------------------------- */

/* The worked example of addressmap.h. */
START_TEST(a_block_in_a_segment)
{
    map.now = 5;
    uint32_t block = take(3 * MIB, 7);
    map.now = 9;
    ms_torch_free(pool, block);
    close_map();
    ck_assert_uint_eq(map.n_spans, 1);
    ck_assert_uint_eq(map.spans[0].bytes, 20 * MIB);
    ck_assert_uint_eq(map.spans[0].begin, 5);
    ck_assert_uint_eq(map.spans[0].end, UINT64_MAX);
    ck_assert_uint_eq(map.n_boxes, 1);
    ck_assert_uint_eq(map.boxes[0].bytes, 3 * MIB);
    ck_assert_uint_eq(map.boxes[0].begin, 5);
    ck_assert_uint_eq(map.boxes[0].end, 9);
    ck_assert_uint_eq(map.boxes[0].of, 7);
    ck_assert_uint_eq(map.peak.live_bytes, 3 * MIB);
    ck_assert_uint_eq(map.reserved_peak_bytes, 20 * MIB);
}
END_TEST

START_TEST(a_block_that_waits)
{
    uint32_t block = take(3 * MIB, 0);
    ck_assert_int_eq(ms_torchstreams_record(pool, block, 1, &fault), MS_OK);
    ck_assert_int_eq(ms_torchstreams_queue(pool, 1, 1, &fault), MS_OK);
    map.now = 4;
    ms_torch_free(pool, block);
    ck_assert_int_eq(ms_torchstreams_finish(pool, 1, 1, &fault), MS_OK);
    map.now = 6;
    take(MIB, 1); /* sees that the other stream is past it */
    close_map();
    ck_assert_uint_eq(map.n_boxes, 3);
    ck_assert(!map.boxes[0].waits);
    ck_assert_uint_eq(map.boxes[0].end, 4);
    ck_assert(map.boxes[1].waits);
    ck_assert_uint_eq(map.boxes[1].address, map.boxes[0].address);
    ck_assert_uint_eq(map.boxes[1].begin, 4);
    ck_assert_uint_eq(map.boxes[1].end, 6);
}
END_TEST

/* Pages in the middle go; what is left of their spans stays. */
START_TEST(pages_that_are_given_back)
{
    uint32_t blocks[3];
    open_pool(true);
    for (uint32_t i = 0; i < 3; i++)
        blocks[i] = take(40 * MIB, i);
    map.now = 1;
    ms_torch_free(pool, blocks[1]);
    ck_assert_int_eq(ms_torch_empty_cache(pool, &fault), MS_OK);
    close_map();
    uint64_t ended = 0, held = 0;
    for (uint32_t i = 0; i < map.n_spans; i++)
        *(map.spans[i].end == 1 ? &ended : &held) += map.spans[i].bytes;
    ck_assert_uint_eq(ended, 40 * MIB);
    ck_assert_uint_eq(held,
                      ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES));
}
END_TEST

/* ---- tiles --------------------------------------------------------------- */

static uint32_t kind_of(const void *of, const ms_address_box *box)
{
    (void)of;
    return box->waits ? N_KINDS - 1 : box->of % (N_KINDS - 1);
}

static ms_err make(uint64_t end, ms_arena *in, ms_tiles *tiles)
{
    *tiles = (ms_tiles){.end = end, .n_kinds = N_KINDS};
    return ms_tiles_make(&map, kind_of, NULL, in, tiles, &fault);
}

/* A step's worth of blocks: some stay, many come and go. */
static uint64_t fill(uint32_t n, uint64_t most_bytes)
{
    enum { LIVE = 64 };
    uint32_t live[LIVE], state = 1, n_live = 0;
    for (uint32_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        map.now = i;
        if (n_live == LIVE || (n_live > 0 && state >> 30 == 0)) {
            uint32_t at = (state >> 8) % n_live;
            ms_torch_free(pool, live[at]);
            live[at] = live[--n_live];
        } else {
            live[n_live++] = take(1 + (state >> 4) % most_bytes, i);
        }
    }
    close_map();
    return n;
}

static double area_of_boxes(uint32_t kind, uint64_t end)
{
    double area = 0.0;
    for (uint32_t i = 0; i < map.n_boxes; i++) {
        const ms_address_box *box = &map.boxes[i];
        uint64_t to = box->end < end ? box->end : end;
        if (kind_of(NULL, box) == kind && box->begin < to)
            area += (double)box->bytes * (double)(to - box->begin);
    }
    return area;
}

static double area_of_tiles(const ms_tiles *tiles, const ms_tiles_layer *layer)
{
    double area = 0.0;
    for (uint32_t i = 0; i < layer->n; i++) {
        const ms_tile *tile = &layer->tiles[i];
        ck_assert_uint_gt(tile->bytes, 0);
        ck_assert_uint_lt(tile->from, tile->to);
        ck_assert_uint_le(tile->to, tiles->end);
        ck_assert_uint_le(tile->at_bytes + tile->bytes, tiles->height_bytes);
        area += (double)tile->bytes * (double)(tile->to - tile->from);
    }
    return area;
}

static const struct {
    uint32_t n;
    uint64_t most_bytes;
    bool expandable;
} fills[] = {
    {50, 64 * MIB, false},     {3000, 64 * MIB, false}, {3000, 64 * MIB, true},
    {200000, 16 * MIB, false}, {200000, 4096, false},
};

/* Tiles lie in the plane, are few, and have the area of their boxes. */
START_TEST(tiles_have_the_area_of_boxes)
{
    ms_tiles tiles;
    uint32_t n = 0;
    open_pool(fills[_i].expandable);
    uint64_t end = fill(fills[_i].n, fills[_i].most_bytes);
    ck_assert_int_eq(make(end, &arena, &tiles), MS_OK);
    for (uint32_t k = 0; k < N_KINDS; k++) {
        double boxes = area_of_boxes(k, end);
        double found = area_of_tiles(&tiles, &tiles.kinds[k].of);
        ck_assert_double_le(fabs(found - boxes), 0.002 * boxes);
        n += tiles.kinds[k].of.n;
    }
    ck_assert_uint_le(n, MS_TILES_MOST + 1);
    ck_assert_uint_eq(tiles.n_boxes, map.n_boxes);
    if (tiles.n_merged == 0)
        ck_assert_uint_eq(n, map.n_boxes);
    ck_assert_double_ge(area_of_tiles(&tiles, &tiles.segments) +
                            area_of_tiles(&tiles, &tiles.pages),
                        area_of_boxes(0, end) + area_of_boxes(1, end));
    ck_assert_uint_ge(tiles.height_bytes, tiles.reserved_bytes);
    ck_assert_uint_ge(tiles.reserved_bytes, tiles.live_bytes);
}
END_TEST

/* At the peak kinds sum to what is live. */
START_TEST(kinds_sum_to_the_peak)
{
    ms_tiles tiles;
    uint64_t sum = 0, end = fill(3000, 64 * MIB);
    ck_assert_int_eq(make(end, &arena, &tiles), MS_OK);
    for (uint32_t k = 0; k + 1 < N_KINDS; k++)
        sum += tiles.kinds[k].peak_bytes;
    ck_assert_uint_eq(sum, tiles.live_bytes);
    ck_assert_uint_eq(tiles.live_bytes,
                      ms_torchview_peak(pool, MS_TORCH_ALLOCATED_BYTES));
    ck_assert_uint_eq(tiles.reserved_bytes,
                      ms_torchview_peak(pool, MS_TORCH_RESERVED_BYTES));
}
END_TEST

/* A segment that comes when another has gone takes its place in the plane. */
START_TEST(freed_places_are_taken)
{
    ms_tiles tiles;
    for (uint32_t i = 0; i < 4; i++) {
        map.now = 10 * i;
        ms_torch_free(pool, take((100 + i) * MIB, i));
        map.now = 10 * i + 5;
        ck_assert_int_eq(ms_torch_empty_cache(pool, &fault), MS_OK);
    }
    close_map();
    ck_assert_int_eq(make(40, &arena, &tiles), MS_OK);
    ck_assert_uint_eq(tiles.segments.n, 4);
    ck_assert_uint_eq(tiles.height_bytes, tiles.reserved_bytes);
}
END_TEST

START_TEST(without_memory)
{
    ms_arena small = {0};
    ms_tiles tiles;
    uint64_t end = fill(3000, 64 * MIB), limit = 1;
    for (;; limit += limit / 8 + 64) {
        small.limit_bytes = limit;
        fault = (ms_fault){0};
        ms_err err = make(end, &small, &tiles);
        ms_arena_free(&small);
        if (err == MS_OK)
            break;
        ck_assert_int_eq(err, MS_ENOMEM);
        ck_assert_int_eq(fault.err, MS_ENOMEM);
    }
    ck_assert_uint_gt(limit, 1);
}
END_TEST

Suite *suite_addresses(void)
{
    Suite *suite = suite_create("addresses");
    TCase *tcase = tcase_create("addresses");
    tcase_add_checked_fixture(tcase, setup_plain, teardown);
    tcase_add_test(tcase, a_block_in_a_segment);
    tcase_add_test(tcase, a_block_that_waits);
    tcase_add_test(tcase, pages_that_are_given_back);
    tcase_add_loop_test(tcase, tiles_have_the_area_of_boxes, 0,
                        (int)(sizeof fills / sizeof fills[0]));
    tcase_add_test(tcase, kinds_sum_to_the_peak);
    tcase_add_test(tcase, freed_places_are_taken);
    tcase_add_test(tcase, without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
