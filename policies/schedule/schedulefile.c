/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/schedulefile.h"
#include "policies/schedule/messagecells.h"
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
#define CELL_HINT "a cell is 0F0, 0B0, 0I0 or 0W0, or empty"

typedef struct reader {
    const char *path, *bytes;
    size_t length, at; /* at: of the cell */
    uint32_t row, column;
    bool old; /* B is the half of the inputs, BW a whole backward */
    ms_arena *arena;
    ms_schedule *schedule;
    uint32_t turns_capacity, columns_capacity, rows_capacity, cells_capacity;
    uint32_t *columns;
    ms_messagecell *cells; /* what is no turn, in the order of the file */
    uint32_t n_cells;
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

static ms_err read_number(const reader *r, size_t *at, const char *whose,
                          uint32_t *value)
{
    size_t first = *at;
    char what[64];
    *value = 0;
    while (*at < r->length && is_digit(r->bytes[*at]) && *value <= MOST_NUMBER)
        *value = 10 * *value + (uint32_t)(r->bytes[(*at)++] - '0');
    if (*at > first && *value <= MOST_NUMBER)
        return MS_OK;
    if (*at > first)
        snprintf(what, sizeof what, "a %s above %u", whose, MOST_NUMBER);
    else
        snprintf(what, sizeof what, "no number of a %s", whose);
    return fail_cell(r, first, CELL_HINT, what);
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

static ms_err fail_letters(const reader *r, size_t at)
{
    if (r->old)
        return fail_cell(
            r, at, "a cell is 0F0, 0BW0, 0B0 or 0W0 in this file",
            "no turn in the letters of PyTorch 2.5, which BW, or W "
            "without I, say that the file has");
    return fail_cell(r, at, CELL_HINT, "no turn: stage, letter, micro-batch");
}

/* One turn: bytes [*at, what follows it). */
static ms_err read_turn(const reader *r, size_t *at, ms_turn *turn)
{
    *turn = (ms_turn){0};
    MS_TRY(read_number(r, at, "stage", &turn->stage));
    size_t n = letters_at(r, *at);
    turn->kind = kind_of(r, *at, n);
    if (turn->kind == MS_N_TURNS)
        return fail_letters(r, *at);
    *at += n;
    return read_number(r, at, "micro-batch", &turn->micro_batch);
}

/* What is no turn: 0SEND_F0, 0UNSHARD. */
static ms_err read_message(reader *r, size_t *at, ms_messagekind kind)
{
    ms_messagecell cell = {.rank = (uint16_t)r->row,
                           .kind = (uint8_t)kind,
                           .column = r->column,
                           .turn = r->schedule->turn_at[r->row + 1]};
    MS_TRY(read_number(r, at, "stage", &cell.stage));
    *at += letters_at(r, *at);
    if (ms_messagecells_has_number(kind))
        MS_TRY(read_number(r, at, "micro-batch", &cell.micro_batch));
    r->cells = ms_arena_grow(r->arena, r->cells, &r->cells_capacity,
                             r->n_cells + 1, sizeof cell);
    if (r->cells == NULL)
        return ms_fail_nomem(r->fault);
    r->cells[r->n_cells++] = cell;
    return MS_OK;
}

/* The kind of what is no turn, or MS_N_MESSAGECELLS. */
static ms_messagekind message_at(const reader *r, size_t at)
{
    while (at < r->length && is_digit(r->bytes[at]))
        at++;
    return ms_messagecells_kind(r->bytes + at, letters_at(r, at));
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

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_spaces(const reader *r, size_t *at)
{
    while (*at < r->length && is_space(r->bytes[*at]))
        ++*at;
}

static ms_err read_pair(reader *r, size_t *at)
{
    const char *hint = "a pair is (0F7;7B3)OVERLAP_F_B";
    ms_turn one, other;
    size_t n = strlen(PAIR);
    ++*at;
    MS_TRY(read_turn(r, at, &one));
    skip_spaces(r, at);
    if (*at == r->length || r->bytes[*at] != ';')
        return fail_cell(r, *at, hint, "a pair without its second turn");
    ++*at;
    skip_spaces(r, at);
    MS_TRY(read_turn(r, at, &other));
    if (r->length - *at < n || memcmp(r->bytes + *at, PAIR, n) != 0)
        return fail_cell(r, *at, hint, "a pair without its end");
    *at += n;
    one.pairs = true;
    MS_TRY(add_turn(r, one));
    return add_turn(r, other);
}

/* Bytes [at, end), in quotes or without. */
static ms_err read_cell(reader *r, size_t at, size_t end)
{
    ms_turn turn;
    for (int pass = 0; pass < 2; pass++) {
        while (at < end && is_space(r->bytes[at]))
            at++;
        while (end > at && is_space(r->bytes[end - 1]))
            end--;
        if (end - at >= 2 && r->bytes[at] == '"' && r->bytes[end - 1] == '"')
            at++, end--;
    }
    if (at == end)
        return MS_OK;
    ms_messagekind message = message_at(r, at);
    if (r->bytes[at] == '(') {
        MS_TRY(read_pair(r, &at));
    } else if (message < MS_N_MESSAGECELLS) {
        MS_TRY(read_message(r, &at, message));
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

static bool is_end(char c)
{
    return c == '\n' || c == '\r';
}

static void skip_end(const reader *r, size_t *at)
{
    bool two = *at + 1 < r->length && r->bytes[*at] == '\r' &&
               r->bytes[*at + 1] == '\n';
    *at += two ? 2 : 1;
}

static ms_err read_rows(reader *r)
{
    const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as spreadsheets have it */
    size_t end, n = sizeof mark - 1;
    size_t at = r->length >= n && memcmp(r->bytes, mark, n) == 0 ? n : 0;
    while (r->length > at && (is_space(r->bytes[r->length - 1]) ||
                              is_end(r->bytes[r->length - 1])))
        r->length--;
    for (; at < r->length; r->row++) {
        for (end = at; end < r->length && !is_end(r->bytes[end]);)
            end++;
        if (r->row == MOST_RANKS)
            return ms_fail(r->fault, MS_EINPUT, r->path, NULL,
                           "a schedule of more than %u ranks", MOST_RANKS);
        MS_TRY(read_row(r, at, end));
        at = end;
        skip_end(r, &at);
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

/* Where the file first has a turn of a stage behind this one. */
static ms_err fail_gap(const reader *r, uint32_t stage)
{
    const ms_schedule *schedule = r->schedule;
    uint32_t turn = 0, row = 0;
    char where[256];
    while (schedule->turns[turn].stage < stage)
        turn++;
    while (schedule->turn_at[row + 1] <= turn)
        row++;
    snprintf(where, sizeof where, "%s:%u:%u", r->path, row + 1,
             r->columns[turn]);
    return ms_fail(r->fault, MS_EINPUT, where,
                   "stages are numbered through the model, from 0 up",
                   "a turn of stage %u, and none of stage %u in any row",
                   schedule->turns[turn].stage, stage);
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
            return fail_gap(r, k);
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
    MS_TRY(find_ranks(&r));
    return ms_messagecells_check(schedule, r.cells, r.n_cells, arena, fault);
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
