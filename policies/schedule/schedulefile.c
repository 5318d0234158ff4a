/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/schedulefile.h"
#include "sim/base/files.h"

#include <stdio.h>
#include <string.h>

#define MOST_BYTES (UINT64_C(1) << 28)
#define MOST_RANKS 1024u
#define MOST_NUMBER 1048575u
/* Cells may be missing, and are told; but not so many of those that the highest
 * numbers make. */
#define MOST_PER_TURN 64u
#define PAIR ")OVERLAP_F_B"

typedef struct reader {
    const char *path, *bytes;
    size_t length, at; /* at: of the cell */
    uint32_t row, column;
    bool old; /* B is the half of the inputs, BW a whole backward */
    ms_arena *arena;
    ms_schedule *schedule;
    uint32_t turns_capacity, columns_capacity, rows_capacity;
    uint32_t *columns;
    ms_fault *fault;
} reader;

/* ---- the dialect --------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t letters_at(const reader *r, size_t at)
{
    size_t n = 0;
    while (at + n < r->length && is_letter(r->bytes[at + n]))
        n++;
    return n;
}

static bool is_old(const reader *r)
{
    bool inputs = false, weights = false;
    for (size_t i = 1; i < r->length; i++) {
        size_t n = letters_at(r, i);
        if (n == 0 || !is_digit(r->bytes[i - 1]))
            continue;
        if (n == 2 && memcmp(r->bytes + i, "BW", 2) == 0)
            return true;
        inputs |= n == 1 && r->bytes[i] == 'I';
        weights |= n == 1 && r->bytes[i] == 'W';
        i += n;
    }
    return weights && !inputs;
}

/* ---- cells --------------------------------------------------------------- */

static ms_err fail_cell(const reader *r, size_t at, const char *hint,
                        const char *what)
{
    char where[256];
    snprintf(where, sizeof where, "%s:%u:%u", r->path, r->row + 1, r->column);
    ms_fail_quote(r->fault, r->bytes, r->length, at);
    return ms_fail(r->fault, MS_EINPUT, where, hint, "%s", what);
}

static bool read_number(const reader *r, size_t *at, uint32_t *value)
{
    size_t first = *at;
    *value = 0;
    for (; *at < r->length && is_digit(r->bytes[*at]); ++*at) {
        *value = 10 * *value + (uint32_t)(r->bytes[*at] - '0');
        if (*value > MOST_NUMBER)
            return false;
    }
    return *at > first;
}

static bool reads(const reader *r, size_t at, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(r->bytes + at, word, n) == 0;
}

/* The kind that n letters name, or MS_N_TURNS. */
static uint8_t kind_of(const reader *r, size_t at, size_t n)
{
    static const char *const words[2][MS_N_TURNS] = {{"F", "B", "I", "W"},
                                                     {"F", "BW", "B", "W"}};
    for (uint32_t kind = 0; kind < MS_N_TURNS; kind++)
        if (reads(r, at, n, words[r->old][kind]))
            return (uint8_t)kind;
    return MS_N_TURNS;
}

static ms_err fail_letters(const reader *r, size_t at, size_t n)
{
    static const char *const others[] = {"SEND_F",     "RECV_F",  "SEND_B",
                                         "RECV_B",     "UNSHARD", "RESHARD",
                                         "REDUCE_GRAD"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (reads(r, at, n, others[i]))
            return fail_cell(r, at,
                             "write it with format=\"compute_only\"; memsim "
                             "puts the messages in itself",
                             "a schedule with communication");
    if (r->old)
        return fail_cell(
            r, at, "a cell is 0F0, 0BW0, 0B0 or 0W0 in this file",
            "no turn in the letters of PyTorch 2.5, which BW, or W "
            "without I, say that the file has");
    return fail_cell(r, at, "a cell is 0F0, 0B0, 0I0 or 0W0, or empty",
                     "no turn: stage, letter, micro-batch");
}

/* One turn: bytes [*at, what follows it). */
static ms_err read_turn(const reader *r, size_t *at, ms_turn *turn)
{
    const char *hint = "a cell is 0F0, 0B0, 0I0 or 0W0, or empty";
    size_t first = *at;
    *turn = (ms_turn){0};
    if (!read_number(r, at, &turn->stage))
        return fail_cell(r, first, hint, "no number of a stage");
    size_t n = letters_at(r, *at), letters = *at;
    turn->kind = kind_of(r, letters, n);
    if (turn->kind == MS_N_TURNS)
        return fail_letters(r, letters, n);
    *at += n;
    if (!read_number(r, at, &turn->micro_batch))
        return fail_cell(r, *at, hint, "no number of a micro-batch");
    return MS_OK;
}

static ms_err add_turn(reader *r, ms_turn turn)
{
    ms_schedule *schedule = r->schedule;
    uint32_t n = schedule->turn_at[r->row + 1]++;
    schedule->turns = ms_arena_grow(r->arena, schedule->turns,
                                    &r->turns_capacity, n + 1, sizeof turn);
    r->columns = ms_arena_grow(r->arena, r->columns, &r->columns_capacity,
                               n + 1, sizeof *r->columns);
    if (schedule->turns == NULL || r->columns == NULL)
        return ms_fail_nomem(r->fault);
    schedule->turns[n] = turn;
    r->columns[n] = r->column;
    if (turn.stage >= schedule->n_stages)
        schedule->n_stages = turn.stage + 1;
    if (turn.micro_batch >= schedule->n_micro_batches)
        schedule->n_micro_batches = turn.micro_batch + 1;
    return MS_OK;
}

static ms_err read_pair(reader *r, size_t *at)
{
    const char *hint = "a pair is (0F7;7B3)OVERLAP_F_B";
    ms_turn one, other;
    size_t n = strlen(PAIR);
    ++*at;
    MS_TRY(read_turn(r, at, &one));
    if (*at == r->length || r->bytes[*at] != ';')
        return fail_cell(r, *at, hint, "a pair without its second turn");
    ++*at;
    MS_TRY(read_turn(r, at, &other));
    if (r->length - *at < n || memcmp(r->bytes + *at, PAIR, n) != 0)
        return fail_cell(r, *at, hint, "a pair without its end");
    *at += n;
    one.pairs = true;
    MS_TRY(add_turn(r, one));
    return add_turn(r, other);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Bytes [at, end). */
static ms_err read_cell(reader *r, size_t at, size_t end)
{
    ms_turn turn;
    while (at < end && is_space(r->bytes[at]))
        at++;
    while (end > at && is_space(r->bytes[end - 1]))
        end--;
    if (at == end)
        return MS_OK;
    if (r->bytes[at] == '(') {
        MS_TRY(read_pair(r, &at));
    } else {
        MS_TRY(read_turn(r, &at, &turn));
        MS_TRY(add_turn(r, turn));
    }
    return at == end ? MS_OK
                     : fail_cell(r, at, "a comma stands between cells",
                                 "something is left over behind a turn");
}

/* ---- rows ---------------------------------------------------------------- */

static size_t find(const reader *r, size_t at, size_t end, char c)
{
    const char *found = memchr(r->bytes + at, c, end - at);
    return found != NULL ? (size_t)(found - r->bytes) : end;
}

static ms_err read_row(reader *r, size_t at, size_t end)
{
    ms_schedule *schedule = r->schedule;
    schedule->turn_at =
        ms_arena_grow(r->arena, schedule->turn_at, &r->rows_capacity,
                      r->row + 2, sizeof *schedule->turn_at);
    if (schedule->turn_at == NULL)
        return ms_fail_nomem(r->fault);
    if (r->row == 0)
        schedule->turn_at[0] = 0;
    schedule->turn_at[r->row + 1] = schedule->turn_at[r->row];
    r->column = 1;
    for (;; r->column++) {
        size_t comma = find(r, at, end, ',');
        MS_TRY(read_cell(r, at, comma));
        if (comma == end)
            break;
        at = comma + 1;
    }
    if (schedule->turn_at[r->row + 1] == schedule->turn_at[r->row])
        return fail_cell(r, at, "write a row for each rank",
                         "a row of no turn");
    return MS_OK;
}

static ms_err read_rows(reader *r)
{
    while (r->length > 0 && (is_space(r->bytes[r->length - 1]) ||
                             r->bytes[r->length - 1] == '\n'))
        r->length--;
    for (size_t at = 0; at < r->length; r->row++) {
        size_t end = find(r, at, r->length, '\n');
        if (r->row == MOST_RANKS)
            return ms_fail(r->fault, MS_EINPUT, r->path, NULL,
                           "a schedule of more than %u ranks", MOST_RANKS);
        MS_TRY(read_row(r, at, end));
        at = end + 1;
    }
    if (r->row == 0)
        return ms_fail(r->fault, MS_EINPUT, r->path,
                       "write a row for each rank, as 0F0,0B0",
                       "the schedule is empty");
    r->schedule->n_ranks = (uint16_t)r->row;
    return MS_OK;
}

/* ---- whose stages are ---------------------------------------------------- */

/* Of a stage and micro-batch the row in which its forward stands; without one,
 * that in which anything of the stage does. */
static void place(const ms_schedule *schedule, uint16_t *rank_of,
                  ms_stage *stages, bool *stands)
{
    uint32_t n = schedule->n_micro_batches;
    for (uint16_t r = 0; r < schedule->n_ranks; r++)
        for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1];
             i++) {
            const ms_turn *turn = &schedule->turns[i];
            size_t at = (size_t)turn->stage * n + turn->micro_batch;
            if (!stands[turn->stage])
                stages[turn->stage].rank = r;
            stands[turn->stage] = true;
            if (turn->kind == MS_TURN_FORWARD && rank_of[at] == UINT16_MAX)
                rank_of[at] = r;
        }
    for (size_t at = 0; at < (size_t)schedule->n_stages * n; at++)
        if (rank_of[at] == UINT16_MAX)
            rank_of[at] = stages[at / n].rank;
}

static bool has_copies(const ms_schedule *schedule, const uint16_t *rank_of)
{
    uint32_t n = schedule->n_micro_batches;
    for (size_t at = 0; at < (size_t)schedule->n_stages * n; at++)
        if (rank_of[at] != rank_of[at - at % n])
            return true;
    return false;
}

static ms_err find_ranks(reader *r)
{
    ms_schedule *schedule = r->schedule;
    size_t n = (size_t)schedule->n_stages * schedule->n_micro_batches;
    uint32_t turns = schedule->turn_at[schedule->n_ranks];
    if (n > (size_t)MOST_PER_TURN * turns)
        return ms_fail(r->fault, MS_EINPUT, r->path,
                       "each stage runs each micro-batch",
                       "%u stages and %u micro-batches are named, and there "
                       "are %u turns in all",
                       schedule->n_stages, schedule->n_micro_batches, turns);
    ms_stage *stages =
        ms_arena_take(r->arena, schedule->n_stages, sizeof *stages);
    uint16_t *rank_of = ms_arena_take_raw(r->arena, n, sizeof *rank_of);
    bool *stands = ms_arena_take(r->arena, schedule->n_stages, sizeof *stands);
    if (!stages || !rank_of || !stands)
        return ms_fail_nomem(r->fault);
    memset(rank_of, 0xff, n * sizeof *rank_of);
    place(schedule, rank_of, stages, stands);
    for (uint32_t k = 0; k < schedule->n_stages; k++) {
        if (!stands[k])
            return ms_fail(r->fault, MS_EINPUT, r->path,
                           "stages are numbered through the model, from 0 up",
                           "no row has a turn of stage %u of %u", k,
                           schedule->n_stages);
        stages[k].rank = rank_of[(size_t)k * schedule->n_micro_batches];
    }
    schedule->stages = stages;
    schedule->rank_of = has_copies(schedule, rank_of) ? rank_of : NULL;
    return MS_OK;
}

ms_err ms_schedulefile_read(const char *path, ms_arena *arena,
                            ms_schedule *schedule, ms_fault *fault)
{
    reader r = {
        .path = path, .arena = arena, .schedule = schedule, .fault = fault};
    char *bytes;
    *schedule = (ms_schedule){.name = path};
    MS_TRY(ms_files_read(path, MOST_BYTES, arena, &bytes, &r.length, fault));
    r.bytes = bytes;
    r.old = is_old(&r);
    MS_TRY(read_rows(&r));
    schedule->column = r.columns;
    return find_ranks(&r);
}

ms_err ms_schedulefile_splits(const char *path, bool *splits, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_schedule schedule;
    ms_err err = ms_schedulefile_read(path, &scratch, &schedule, fault);
    *splits = err == MS_OK && ms_schedule_splits(&schedule);
    ms_arena_free(&scratch);
    return err;
}
