/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of optimizers and how it is read. */
#include "graphs/formats/dtypes.h"
#include "graphs/optimizer/optimtable.h"
#include "tests/tests.h"

#include <string.h>

static ms_arena arena;

static void set_up(void)
{
    arena = (ms_arena){0};
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

START_TEST(the_setting_has_its_names)
{
    ms_training training;
    char value[64];
    ms_training_init(&training);
    uint32_t row = 0;
    while (strcmp(ms_training_fields[row].name, "optimizer") != 0)
        row++;
    ck_assert_uint_eq(ms_optimtable_n, MS_NO_OPTIMIZER);
    for (uint32_t i = 0; i < ms_optimtable_n; i++) {
        training.optimizer = i;
        ms_training_value(&training, row, value, sizeof value);
        ck_assert_str_eq(value, ms_optimtable[i].name);
        ck_assert_ptr_eq(ms_updates_of(&training), &ms_optimtable[i]);
    }
    training.optimizer = MS_NO_OPTIMIZER;
    ck_assert_ptr_null(ms_updates_of(&training));
}
END_TEST

static void read_all(const ms_optimizer_row *row, const ms_update *update)
{
    for (int64_t impl = MS_IMPL_LOOP; impl <= MS_IMPL_FUSED; impl++)
        for (uint32_t f = 0; f < MS_N_FRAMEWORKS; f++) {
            ms_read_update read;
            if (!ms_updates_has(row, impl))
                continue;
            ck_assert_msg(
                ms_updates_read(update, impl, (uint8_t)f, &arena, &read),
                "%s, implementation %d", row->name, (int)impl);
            ck_assert(read.n_ops > 0 || impl == MS_IMPL_FUSED);
        }
}

START_TEST(all_rows_are_well_formed)
{
    for (uint32_t i = 0; i < ms_optimtable_n; i++) {
        const ms_optimizer_row *row = &ms_optimtable[i];
        read_all(row, row->update);
        if (row->others)
            read_all(row, row->others);
        ck_assert(row->impl == MS_IMPL_AUTO || ms_updates_has(row, row->impl));
        ck_assert((row->others != NULL) == (row->chosen != MS_CHOSEN_ALL));
    }
}
END_TEST

static bool has_decay(const ms_update *update, int64_t impl, uint8_t framework)
{
    ms_read_update read;
    ck_assert(ms_updates_read(update, impl, framework, &arena, &read));
    for (uint32_t i = 0; i < read.n_ops; i++)
        if (read.ops[i].when == MS_WHEN_DECAYS)
            return true;
    return false;
}

/* training.weight_decay changes ops of each update of which it is not refused.
 */
START_TEST(weights_decay)
{
    for (uint32_t i = 0; i < ms_optimtable_n; i++) {
        const ms_optimizer_row *row = &ms_optimtable[i];
        ck_assert(!row->decays || !row->no_decay);
        for (int64_t impl = MS_IMPL_LOOP; impl < MS_IMPL_FUSED; impl++)
            for (uint8_t f = 0;
                 ms_updates_has(row, impl) && f < MS_N_FRAMEWORKS; f++) {
                ck_assert_msg(has_decay(row->update, impl, f) != row->no_decay,
                              "%s", row->name);
                ck_assert(!row->others || has_decay(row->others, impl, f));
            }
    }
}
END_TEST

START_TEST(reads_words)
{
    ms_update update = {.states = "a b.rows c.blocks.fp32 d.whole.byte!",
                        .foreach =
                            "lerp_ G >S0; decay mul# W =A:x.columns.fp32 -B; "
                            "narrow copy_ W >P C=D"};
    ms_read_update r;
    ck_assert(
        ms_updates_read(&update, MS_IMPL_FOREACH, MS_TORCH_2, &arena, &r));
    ck_assert_uint_eq(r.n_states, 4);
    ck_assert_str_eq(r.states[0].role, "a");
    ck_assert_uint_eq(r.states[0].dtype, MS_AS_STATE);
    ck_assert_uint_eq(r.states[1].extent, MS_EXTENT_ROWS);
    ck_assert_uint_eq(r.states[2].dtype, MS_FLOAT32);
    ck_assert(r.states[3].at_construction && !r.states[2].at_construction);
    ck_assert_uint_eq(r.n_ops, 3);
    ck_assert_str_eq(r.ops[0].op, "aten::_foreach_lerp_");
    ck_assert_uint_eq(r.ops[0].writes, MS_ON_STATE);
    ck_assert_uint_eq(r.ops[0].reads, 1u << MS_ON_GRAD);
    ck_assert(r.ops[1].scalar && r.ops[1].when == MS_WHEN_DECAYS);
    ck_assert_uint_eq(r.ops[1].makes, MS_ON_TEMPORARY);
    ck_assert_uint_eq(r.ops[1].made.extent, MS_EXTENT_COLUMNS);
    ck_assert_uint_eq(r.ops[1].drops, 1u << (MS_ON_TEMPORARY + 1));
    ck_assert_uint_eq(r.ops[2].when, MS_WHEN_NARROW);
    ck_assert_uint_eq(r.ops[2].writes, MS_ON_PARAMETER);
    ck_assert_uint_eq(r.ops[2].becomes, MS_ON_TEMPORARY + 2);
}
END_TEST

static const char *const unsound[] = {
    "",
    "lerp_ L",
    "lerp_ S6",
    "lerp_ >",
    "sqrt =A",
    "sqrt =S0:x",
    "sqrt =A:x.y",
    "sqrt =A:x.rows.fp8",
    "sqrt -W",
    "mul A=W",
    "averyveryveryveryveryveryverylongname G",
};

START_TEST(refuses)
{
    ms_update update = {.states = "", .loop = unsound[_i]};
    ms_read_update r;
    bool sound = ms_updates_read(&update, MS_IMPL_LOOP, MS_TORCH_2, &arena, &r);
    ck_assert(sound == (*unsound[_i] == '\0'));
    update = (ms_update){.states = "a.b", .loop = ""};
    ck_assert(!ms_updates_read(&update, MS_IMPL_LOOP, MS_TORCH_2, &arena, &r));
    update = (ms_update){.states = "a b c d e f g", .loop = ""};
    ck_assert(!ms_updates_read(&update, MS_IMPL_LOOP, MS_TORCH_2, &arena, &r));
}
END_TEST

static uint64_t extent(ms_extent which, const ms_tensor *tensor, uint64_t part)
{
    ms_training training;
    ms_training_init(&training);
    training.optimizer = MS_SHAMPOO;
    training.optimizer_rank = 2;
    training.optimizer_block = 4;
    return ms_updates_extent(&training, (uint8_t)which, tensor, part);
}

START_TEST(extents)
{
    ms_tensor t = {.n_dims = 3, .size = {3, 5, 7}};
    ck_assert_uint_eq(extent(MS_EXTENT_WHOLE, &t, 50), 50);
    ck_assert_uint_eq(extent(MS_EXTENT_ROWS, &t, 105), 15);
    ck_assert_uint_eq(extent(MS_EXTENT_COLUMNS, &t, 105), 21);
    ck_assert_uint_eq(extent(MS_EXTENT_BLOCKS, &t, 256), 1);
    ck_assert_uint_eq(extent(MS_EXTENT_BLOCKS, &t, 257), 2);
    ck_assert_uint_eq(extent(MS_EXTENT_SCALAR, &t, 105), 1);
    ck_assert_uint_eq(extent(MS_EXTENT_SQUARE, &t, 105), 3 * 25);
    ck_assert_uint_eq(extent(MS_EXTENT_PROJECTOR, &t, 105), 3 * 2 * 5);
    ck_assert_uint_eq(extent(MS_EXTENT_LOW, &t, 105), 3 * 2 * 7);
    /* 5 = 4 + 1, 7 = 4 + 3: two blocks across each */
    ck_assert_uint_eq(extent(MS_EXTENT_LEFT, &t, 105), 3 * 2 * (16 + 1));
    ck_assert_uint_eq(extent(MS_EXTENT_RIGHT, &t, 105), 3 * 2 * (16 + 9));
    ck_assert_uint_eq(extent(MS_EXTENT_ALL_LEFT, &t, 105), 0);
    t = (ms_tensor){.n_dims = 4, .size = {3, 2, 1, 2}};
    ck_assert_uint_eq(extent(MS_EXTENT_ALL_LEFT, &t, 12), 9);
    ck_assert_uint_eq(extent(MS_EXTENT_ALL_RIGHT, &t, 12), 16);
    t = (ms_tensor){.n_dims = 1, .size = {9}};
    ck_assert_uint_eq(extent(MS_EXTENT_LEFT, &t, 9), 16 + 16 + 1);
    t.size[0] = 0;
    ck_assert_uint_eq(extent(MS_EXTENT_LEFT, &t, 0), 0);
}
END_TEST

Suite *suite_updates(void)
{
    Suite *suite = suite_create("updates");
    TCase *tcase = tcase_create("updates");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_setting_has_its_names);
    tcase_add_test(tcase, all_rows_are_well_formed);
    tcase_add_test(tcase, weights_decay);
    tcase_add_test(tcase, reads_words);
    tcase_add_loop_test(tcase, refuses, 0,
                        (int)(sizeof unsound / sizeof *unsound));
    tcase_add_test(tcase, extents);
    suite_add_tcase(suite, tcase);
    return suite;
}
