/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schedules of random sizes, written as PyTorch lowers them (compute_comms):
 * what is read is the order that was written, in either dialect and however a
 * spreadsheet has saved it; and a file in which one message is missing, doubled
 * or on the wrong side of its turn is refused. */
#include "policies/schedule/orders.h"
#include "policies/schedule/schedulefile.h"
#include "sim/schedule/schedule.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_TRIALS 60u
#define MOST_CELLS 512u
#define MOST_ROWS 5u

static ms_arena arena;

/* ---- lowered by hand ----------------------------------------------------- */

typedef struct cell {
    char text[48];
    bool message, send;
} cell;

typedef struct file {
    cell cells[MOST_ROWS][MOST_CELLS];
    uint32_t n[MOST_ROWS];
    uint32_t n_ranks;
    bool old; /* the letters of PyTorch 2.5 */
} file;

static file sheet;

static cell *put(uint32_t row, const char *head, const char *letters,
                 uint32_t stage, uint32_t micro_batch)
{
    cell *it = &sheet.cells[row][sheet.n[row]++];
    ck_assert_uint_lt(sheet.n[row], MOST_CELLS);
    *it = (cell){0};
    int n = snprintf(it->text, sizeof it->text, "%s%u%s", head, stage, letters);
    if (micro_batch != MS_NONE)
        snprintf(it->text + n, sizeof it->text - (size_t)n, "%u", micro_batch);
    return it;
}

static void put_message(const ms_schedule *s, uint32_t row, const char *letters,
                        uint32_t stage, uint32_t other, uint32_t micro_batch)
{
    if (other >= s->n_stages || s->stages[other].rank == row)
        return;
    cell *it = put(row, "", letters, stage, micro_batch);
    it->message = true;
    it->send = letters[0] == 'S';
}

static void put_around(const ms_schedule *s, uint32_t row, const ms_turn *turn,
                       bool behind)
{
    uint32_t k = turn->stage, m = turn->micro_batch;
    if (turn->kind == MS_TURN_FORWARD)
        put_message(s, row, behind ? "SEND_F" : "RECV_F", k,
                    behind ? k + 1 : k - 1, m);
    else if (turn->kind != MS_TURN_GRAD_WEIGHT)
        put_message(s, row, behind ? "SEND_B" : "RECV_B", k,
                    behind ? k - 1 : k + 1, m);
}

static const char *letters_of(const ms_turn *turn)
{
    static const char *const words[2][MS_N_TURNS] = {{"F", "B", "I", "W"},
                                                     {"F", "BW", "B", "W"}};
    return words[sheet.old][turn->kind];
}

static void lower_row(const ms_schedule *s, uint32_t row)
{
    for (uint32_t k = 0; k < s->n_stages; k++)
        if (s->stages[k].rank == row)
            put(row, "", "UNSHARD", k, MS_NONE);
    for (uint32_t i = s->turn_at[row]; i < s->turn_at[row + 1]; i++) {
        const ms_turn *turn = &s->turns[i], *other = turn + turn->pairs;
        put_around(s, row, turn, false);
        if (turn->pairs)
            put_around(s, row, other, false);
        cell *it = put(row, turn->pairs ? "(" : "", letters_of(turn),
                       turn->stage, turn->micro_batch);
        if (turn->pairs)
            snprintf(it->text + strlen(it->text), 32, ";%uB%u)OVERLAP_F_B",
                     other->stage, other->micro_batch);
        put_around(s, row, turn, true);
        if (turn->pairs)
            put_around(s, row, other, true);
        i += turn->pairs;
    }
    for (uint32_t k = 0; k < s->n_stages; k++)
        if (s->stages[k].rank == row) {
            put(row, "", "REDUCE_GRAD", k, MS_NONE);
            put(row, "", "RESHARD", k, MS_NONE);
        }
}

static const char *write_sheet(laws_random *random, char *path)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    const char *end = ends[laws_below(random, 3)];
    bool quoted = laws_chance(random, 30), idle = laws_chance(random, 50);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    if (laws_chance(random, 30))
        fputs("\xef\xbb\xbf", out);
    for (uint32_t r = 0; r < sheet.n_ranks; r++) {
        for (uint32_t i = 0; i < sheet.n[r]; i++)
            fprintf(out, quoted ? "\"%s\"%s" : "%s%s", sheet.cells[r][i].text,
                    idle || i + 1 < sheet.n[r] ? "," : "");
        fputs(end, out);
    }
    fclose(out);
    return path;
}

/* ---- orders -------------------------------------------------------------- */

static bool write_order(laws_random *random, ms_schedule *s)
{
    ms_order order = (ms_order)laws_below(random, MS_ORDER_DUALPIPE);
    bool loops = order == MS_ORDER_INTERLEAVED || order == MS_ORDER_LOOPED_BFS;
    uint32_t p = 2 + laws_below(random, MOST_ROWS - 2);
    uint32_t chunks = ms_orders_chunks(order, loops ? 2 : 0);
    ms_orders_size size = {p, chunks, p * (1 + laws_below(random, 3)), 0};
    ms_stage *stages =
        ms_arena_take(&arena, (size_t)p * chunks, sizeof *stages);
    ms_fault fault = {0};
    for (uint32_t k = 0; k < p * chunks; k++)
        stages[k].rank = ms_orders_rank(order, &size, k);
    *s = (ms_schedule){
        .n_stages = p * chunks,
        .stages = stages,
        .n_ranks = (uint16_t)p,
        .n_micro_batches = size.micro_batches,
        .turn_at = ms_arena_take(&arena, p + 1, sizeof *s->turn_at),
        .turns =
            ms_arena_take(&arena, ms_orders_room(&size), sizeof *s->turns)};
    if (ms_orders_write(order, &size, &arena, s, &fault) != MS_OK)
        return false;
    memset(sheet.n, 0, sizeof sheet.n);
    sheet.n_ranks = p;
    sheet.old = laws_chance(random, 40);
    for (uint32_t i = 0; i < s->turn_at[p]; i++)
        sheet.old &= !s->turns[i].pairs;
    /* without a whole backward, its letters say the version */
    sheet.old &= ms_schedule_splits(s);
    for (uint32_t r = 0; r < p; r++)
        lower_row(s, r);
    return true;
}

static void check_same(const ms_schedule *s, const ms_schedule *got)
{
    ck_assert_uint_eq(got->n_ranks, s->n_ranks);
    ck_assert_uint_eq(got->n_stages, s->n_stages);
    ck_assert_uint_eq(got->n_micro_batches, s->n_micro_batches);
    for (uint32_t k = 0; k < s->n_stages; k++)
        ck_assert_uint_eq(got->stages[k].rank, s->stages[k].rank);
    for (uint32_t r = 0; r <= s->n_ranks; r++)
        ck_assert_uint_eq(got->turn_at[r], s->turn_at[r]);
    for (uint32_t i = 0; i < s->turn_at[s->n_ranks]; i++) {
        ck_assert_uint_eq(got->turns[i].stage, s->turns[i].stage);
        ck_assert_uint_eq(got->turns[i].micro_batch, s->turns[i].micro_batch);
        ck_assert_uint_eq(got->turns[i].kind, s->turns[i].kind);
        ck_assert_int_eq(got->turns[i].pairs, s->turns[i].pairs);
    }
}

/* ---- one cell wrong ------------------------------------------------------ */

/* A random message's place in the row; the row has one. */
static uint32_t some_message(laws_random *random, uint32_t row)
{
    uint32_t i = laws_below(random, sheet.n[row]);
    while (!sheet.cells[row][i].message)
        i = (i + 1) % sheet.n[row];
    return i;
}

static void move_cells(uint32_t row, uint32_t to, uint32_t from)
{
    memmove(&sheet.cells[row][to], &sheet.cells[row][from],
            (sheet.n[row] - from) * sizeof(cell));
    sheet.n[row] = sheet.n[row] + to - from;
}

static void spoil(laws_random *random)
{
    uint32_t row = laws_below(random, sheet.n_ranks);
    uint32_t i = some_message(random, row);
    cell it = sheet.cells[row][i];
    uint32_t how = laws_below(random, 3);
    if (how == 0) { /* doubled */
        move_cells(row, i + 1, i);
        return;
    }
    move_cells(row, i, i + 1);
    if (how == 1) /* missing */
        return;
    if (it.send) { /* before all turns, or behind them */
        move_cells(row, 1, 0);
        sheet.cells[row][0] = it;
    } else {
        sheet.cells[row][sheet.n[row]++] = it;
    }
}

START_TEST(lowered_schedules_are_read)
{
    char path[] = "/tmp/memsim-loweredXXXXXX";
    int handle = mkstemp(path);
    uint32_t read = 0;
    ck_assert_int_ge(handle, 0);
    close(handle);
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        laws_random random = {laws_seed = trial + 1};
        ms_schedule s, got;
        ms_fault fault = {0};
        if (!write_order(&random, &s))
            continue;
        ck_assert_msg(ms_schedulefile_read(write_sheet(&random, path), &arena,
                                           &got, &fault) == MS_OK,
                      "seed %llu: %s: %s", (unsigned long long)laws_seed,
                      fault.where, fault.what);
        check_same(&s, &got);
        spoil(&random);
        ck_assert_msg(ms_schedulefile_read(write_sheet(&random, path), &arena,
                                           &got, &fault) == MS_EINPUT,
                      "seed %llu", (unsigned long long)laws_seed);
        ck_assert_msg(strchr(fault.where, ':') != strrchr(fault.where, ':'),
                      "no row and cell: %s", fault.where);
        ms_arena_reset(&arena);
        read++;
    }
    unlink(path);
    ms_arena_free(&arena);
    ck_assert_uint_gt(read, N_TRIALS / 2);
}
END_TEST

Suite *suite_loweredfiles(void)
{
    Suite *suite = suite_create("loweredfiles");
    TCase *tcase = tcase_create("loweredfiles");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, lowered_schedules_are_read);
    suite_add_tcase(suite, tcase);
    return suite;
}
