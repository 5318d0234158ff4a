/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/messagecells.h"

#include <stdio.h>
#include <string.h>

static const char *const names[MS_N_MESSAGECELLS] = {
    "SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
    "UNSHARD", "RESHARD", "REDUCE_GRAD"};

ms_messagekind ms_messagecells_kind(const char *letters, size_t n)
{
    uint32_t kind = 0;
    while (kind < MS_N_MESSAGECELLS &&
           (strlen(names[kind]) != n || memcmp(names[kind], letters, n) != 0))
        kind++;
    return (ms_messagekind)kind;
}

bool ms_messagecells_has_number(ms_messagekind kind)
{
    return kind < MS_CELL_UNSHARD;
}

/* ---- where turns stand --------------------------------------------------- */

/* Of a stage and micro-batch. */
typedef struct slot {
    uint32_t forward;  /* the turn, or MS_NONE */
    uint32_t backward; /* whole, or the half of the inputs */
    uint8_t cells;     /* bits of ms_messagekind that have been met */
} slot;

typedef struct checker {
    const ms_schedule *schedule;
    slot *slots;
    uint32_t *last_turn; /* of a stage in the row that is read, or MS_NONE */
    uint8_t *states;     /* of a stage: bits of ms_messagekind */
    ms_fault *fault;
} checker;

static slot *slot_of(const checker *c, uint32_t stage, uint32_t micro_batch)
{
    size_t n = c->schedule->n_micro_batches;
    return &c->slots[stage * n + micro_batch];
}

static void find_turns(const checker *c)
{
    const ms_schedule *schedule = c->schedule;
    size_t n = (size_t)schedule->n_stages * schedule->n_micro_batches;
    for (size_t i = 0; i < n; i++)
        c->slots[i] = (slot){MS_NONE, MS_NONE, 0};
    for (uint32_t i = schedule->turn_at[schedule->n_ranks]; i-- > 0;) {
        const ms_turn *turn = &schedule->turns[i];
        slot *it = slot_of(c, turn->stage, turn->micro_batch);
        if (turn->kind == MS_TURN_FORWARD)
            it->forward = i;
        else if (turn->kind != MS_TURN_GRAD_WEIGHT)
            it->backward = i;
    }
}

static ms_err fail_at(const checker *c, uint32_t rank, uint32_t column,
                      const char *hint, const char *what)
{
    char where[256];
    snprintf(where, sizeof where, "%s:%u:%u", c->schedule->name, rank + 1,
             column);
    return ms_fail(c->fault, MS_EINPUT, where, hint, "%s", what);
}

static const char lower[] =
    "let PyTorch lower the turns (it dumps compute_comms), or write the turns "
    "alone";

static ms_err fail_cell(const checker *c, const ms_messagecell *cell,
                        const char *what)
{
    char number[16] = "", text[128];
    if (ms_messagecells_has_number(cell->kind))
        snprintf(number, sizeof number, "%u", cell->micro_batch);
    snprintf(text, sizeof text, "%u%s%s %s", cell->stage, names[cell->kind],
             number, what);
    return fail_at(c, cell->rank, cell->column, lower, text);
}

/* ---- messages ------------------------------------------------------------ */

/* The stage at the other end, or MS_NONE. */
static uint32_t other_stage(const ms_schedule *schedule, ms_messagekind kind,
                            uint32_t stage)
{
    bool next = kind == MS_CELL_SEND_F || kind == MS_CELL_RECV_B;
    if (next ? stage + 1 == schedule->n_stages : stage == 0)
        return MS_NONE;
    return next ? stage + 1 : stage - 1;
}

static bool goes(const ms_schedule *schedule, ms_messagekind kind,
                 uint32_t stage, uint32_t micro_batch)
{
    uint32_t other = other_stage(schedule, kind, stage);
    return other != MS_NONE &&
           ms_schedule_rank(schedule, stage, micro_batch) !=
               ms_schedule_rank(schedule, other, micro_batch);
}

static const char *wrong_with_message(const checker *c,
                                      const ms_messagecell *cell)
{
    const ms_schedule *schedule = c->schedule;
    bool forward = cell->kind == MS_CELL_SEND_F || cell->kind == MS_CELL_RECV_F;
    bool sends = cell->kind == MS_CELL_SEND_F || cell->kind == MS_CELL_SEND_B;
    if (cell->stage >= schedule->n_stages ||
        cell->micro_batch >= schedule->n_micro_batches)
        return "is of no turn";
    slot *it = slot_of(c, cell->stage, cell->micro_batch);
    uint32_t turn = forward ? it->forward : it->backward;
    if (turn == MS_NONE || ms_schedule_rank(schedule, cell->stage,
                                            cell->micro_batch) != cell->rank)
        return "is of no turn of this row";
    if (!goes(schedule, cell->kind, cell->stage, cell->micro_batch))
        return "has no other rank at its other end";
    if (it->cells & 1u << cell->kind)
        return "comes twice";
    if (sends ? turn >= cell->turn : turn < cell->turn)
        return sends ? "comes before the turn that makes it"
                     : "comes behind the turn that reads it";
    it->cells |= (uint8_t)(1u << cell->kind);
    return NULL;
}

/* What the turns of a stage and micro-batch send and receive is all there. */
static ms_err check_complete(const checker *c, uint32_t stage,
                             uint32_t micro_batch)
{
    const ms_schedule *schedule = c->schedule;
    const slot *it = slot_of(c, stage, micro_batch);
    for (uint32_t kind = 0; kind < MS_CELL_UNSHARD; kind++) {
        bool forward = kind == MS_CELL_SEND_F || kind == MS_CELL_RECV_F;
        uint32_t turn = forward ? it->forward : it->backward;
        char what[80];
        if (turn == MS_NONE || it->cells & 1u << kind ||
            !goes(schedule, (ms_messagekind)kind, stage, micro_batch))
            continue;
        snprintf(what, sizeof what, "%u%s%u is missing beside %u%c%u", stage,
                 names[kind], micro_batch, stage,
                 ms_schedule_letters[schedule->turns[turn].kind], micro_batch);
        return fail_at(c, ms_schedule_rank(schedule, stage, micro_batch),
                       schedule->column[turn],
                       "a message has a SEND and a RECV, or write the turns "
                       "alone",
                       what);
    }
    return MS_OK;
}

/* ---- weights and gradients ----------------------------------------------- */

static const char *wrong_with_weights(const checker *c,
                                      const ms_messagecell *cell)
{
    unsigned gathered = 1u << MS_CELL_UNSHARD;
    unsigned summed = 1u << MS_CELL_REDUCE_GRAD;
    if (cell->stage >= c->schedule->n_stages ||
        c->last_turn[cell->stage] == MS_NONE)
        return "is of no stage of this row";
    uint8_t *state = &c->states[cell->stage];
    if (cell->kind == MS_CELL_UNSHARD && *state & gathered)
        return "comes twice without RESHARD";
    if (cell->kind == MS_CELL_RESHARD && !(*state & gathered))
        return "comes without UNSHARD";
    if (cell->kind == MS_CELL_REDUCE_GRAD && *state & summed)
        return "comes twice";
    if (cell->kind == MS_CELL_REDUCE_GRAD &&
        c->last_turn[cell->stage] >= cell->turn)
        return "comes before the last turn of its stage";
    *state |= (uint8_t)(1u << cell->kind);
    if (cell->kind == MS_CELL_RESHARD)
        *state &= (uint8_t)~gathered;
    return NULL;
}

/* Where a file has RESHARD or UNSHARD of a stage, all its turns run between. */
static ms_err check_turn(const checker *c, const bool *gathers, uint32_t rank,
                         uint32_t turn)
{
    const ms_turn *it = &c->schedule->turns[turn];
    if (!gathers[it->stage] || c->states[it->stage] & 1u << MS_CELL_UNSHARD)
        return MS_OK;
    char what[80];
    snprintf(what, sizeof what, "%u%c%u runs when its weights are not gathered",
             it->stage, ms_schedule_letters[it->kind], it->micro_batch);
    return fail_at(c, rank, c->schedule->column[turn], lower, what);
}

static void begin_row(const checker *c, uint32_t rank)
{
    const ms_schedule *schedule = c->schedule;
    for (uint32_t k = 0; k < schedule->n_stages; k++)
        c->last_turn[k] = MS_NONE;
    memset(c->states, 0, schedule->n_stages);
    for (uint32_t i = schedule->turn_at[rank]; i < schedule->turn_at[rank + 1];
         i++)
        c->last_turn[schedule->turns[i].stage] = i;
}

/* ---- all ----------------------------------------------------------------- */

static ms_err check_row(const checker *c, const ms_messagecell *cells,
                        uint32_t n_cells, const bool *gathers, uint32_t rank)
{
    const ms_schedule *schedule = c->schedule;
    uint32_t turn = schedule->turn_at[rank];
    begin_row(c, rank);
    for (uint32_t i = 0; i <= n_cells; i++) {
        uint32_t end =
            i < n_cells ? cells[i].turn : schedule->turn_at[rank + 1];
        for (; turn < end; turn++)
            MS_TRY(check_turn(c, gathers, rank, turn));
        if (i == n_cells)
            break;
        const char *wrong = ms_messagecells_has_number(cells[i].kind)
                                ? wrong_with_message(c, &cells[i])
                                : wrong_with_weights(c, &cells[i]);
        if (wrong != NULL)
            return fail_cell(c, &cells[i], wrong);
    }
    return MS_OK;
}

static ms_err check(const checker *c, const ms_messagecell *cells,
                    uint32_t n_cells, bool *gathers)
{
    const ms_schedule *schedule = c->schedule;
    bool messages = false;
    for (uint32_t i = 0; i < n_cells; i++) {
        bool message = ms_messagecells_has_number(cells[i].kind);
        messages |= message;
        if (!message && cells[i].kind != MS_CELL_REDUCE_GRAD &&
            cells[i].stage < schedule->n_stages)
            gathers[cells[i].stage] = true;
    }
    for (uint32_t r = 0, i = 0; r < schedule->n_ranks; r++) {
        uint32_t first = i;
        while (i < n_cells && cells[i].rank == r)
            i++;
        MS_TRY(check_row(c, cells + first, i - first, gathers, r));
    }
    for (uint32_t k = 0; messages && k < schedule->n_stages; k++)
        for (uint32_t m = 0; m < schedule->n_micro_batches; m++)
            MS_TRY(check_complete(c, k, m));
    return MS_OK;
}

ms_err ms_messagecells_check(const ms_schedule *schedule,
                             const ms_messagecell *cells, uint32_t n_cells,
                             ms_arena *arena, ms_fault *fault)
{
    uint32_t n = schedule->n_stages;
    checker c = {.schedule = schedule, .fault = fault};
    if (n_cells == 0)
        return MS_OK;
    c.slots = ms_arena_take_raw(arena, (size_t)n * schedule->n_micro_batches,
                                sizeof *c.slots);
    c.last_turn = ms_arena_take_raw(arena, n, sizeof *c.last_turn);
    c.states = ms_arena_take(arena, n, sizeof *c.states);
    bool *gathers = ms_arena_take(arena, n, sizeof *gathers);
    if (!c.slots || !c.last_turn || !c.states || !gathers)
        return ms_fail_nomem(fault);
    find_turns(&c);
    return check(&c, cells, n_cells, gathers);
}
