/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/dualpipe.h"

ms_err ms_dualpipe_check(ms_order order, const ms_orders_size *size,
                         ms_fault *fault)
{
    uint32_t p = size->ranks, m = size->micro_batches;
    bool both = order == MS_ORDER_DUALPIPE;
    if (both && (p % 2 != 0 || m % 2 != 0))
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "take even numbers, or schedule=dualpipev",
                       "dualpipe goes both ways: %u ranks and %u micro-batches "
                       "do not halve",
                       p, m);
    if (m >= 2 * p)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "pipeline",
                   "take twice as many micro-batches as ranks, or more",
                   "%s of %u ranks has no order for %u micro-batches",
                   both ? "dualpipe" : "dualpipev", p, m);
}

/* A row of DualPipeV of p ranks; of DualPipe the chunks are directions. */
typedef struct writer {
    ms_orderrow *row;
    uint32_t p, r, m;
    bool swaps;        /* the first chunk is what goes the other way */
    uint32_t first[2]; /* per chunk: micro-batches of the other direction */
    uint32_t stage[2];
    uint32_t done[2][2]; /* forward and back, per chunk */
    uint32_t halved;     /* the turn behind the last inputs' half whose
                            weights' half has run */
} writer;

static void put(writer *w, ms_turn_kind kind, uint32_t chunk,
                uint32_t micro_batch, bool pairs)
{
    ms_schedule *schedule = w->row->schedule;
    uint32_t *n = &schedule->turn_at[w->row->rank + 1];
    schedule->turns[(*n)++] =
        (ms_turn){.stage = w->stage[chunk],
                  .micro_batch = w->first[chunk] + micro_batch,
                  .kind = (uint8_t)kind,
                  .pairs = pairs};
}

static void forward(writer *w, uint32_t chunk)
{
    put(w, MS_TURN_FORWARD, chunk, w->done[0][chunk]++, false);
}

static void backward(writer *w, uint32_t chunk, bool halves)
{
    put(w, halves ? MS_TURN_GRAD_INPUT : MS_TURN_BACKWARD, chunk,
        w->done[1][chunk]++, false);
}

static void pair(writer *w, uint32_t chunk)
{
    put(w, MS_TURN_FORWARD, chunk, w->done[0][chunk]++, true);
    backward(w, 1 - chunk, false);
}

/* The oldest half that waits, of either chunk. */
static void weight(writer *w)
{
    ms_schedule *schedule = w->row->schedule;
    while (schedule->turns[w->halved].kind != MS_TURN_GRAD_INPUT)
        w->halved++;
    ms_turn turn = schedule->turns[w->halved++];
    turn.kind = MS_TURN_GRAD_WEIGHT;
    schedule->turns[schedule->turn_at[w->row->rank + 1]++] = turn;
}

/* Until every forward has begun. */
static void write_first(writer *w)
{
    uint32_t behind = w->p - 1 - w->r;
    for (uint32_t i = 0; i < 2 * behind; i++)
        forward(w, 0);
    for (uint32_t i = 0; i <= w->r; i++) {
        forward(w, 0);
        forward(w, 1);
    }
    for (uint32_t i = 0; i < behind; i++) {
        backward(w, 1, true);
        weight(w);
        forward(w, 1);
    }
    for (uint32_t i = 0; i < w->m - 2 * w->p + w->r + 1; i++) {
        if (i == 0 && behind == 0) {
            forward(w, 0); /* its own loss: nothing to overlap with yet */
            backward(w, 1, false);
        } else {
            pair(w, 0);
        }
        pair(w, 1);
    }
    for (uint32_t i = 0; i < behind; i++) {
        backward(w, 1, false);
        pair(w, 1);
    }
}

/* From the middle of this on, backward is halved. */
static void write_last(writer *w)
{
    uint32_t behind = w->p - 1 - w->r, middle = (w->r + 1) / 2;
    bool halves = false;
    for (uint32_t i = 0; i <= w->r; i++) {
        halves |= i == middle && w->r % 2 == 1;
        backward(w, 1, halves);
        halves |= i == middle && w->r % 2 == 0;
        backward(w, 0, halves);
    }
    for (uint32_t i = 0; i < behind; i++) {
        weight(w);
        backward(w, 0, true);
    }
    for (uint32_t i = 0; i <= w->r; i++)
        weight(w);
}

void ms_dualpipe_write(ms_orderrow *row)
{
    const ms_orders_size *size = row->size;
    uint32_t p = size->ranks, r = row->rank;
    writer w = {.row = row,
                .p = p,
                .r = r,
                .m = size->micro_batches,
                .stage = {r, 2 * p - 1 - r},
                .halved = row->schedule->turn_at[r + 1]};
    if (row->order == MS_ORDER_DUALPIPE) {
        bool upper = r >= p / 2;
        w.p = p / 2;
        w.m /= 2;
        w.r = upper ? p - 1 - r : r;
        w.stage[0] = w.r;
        w.stage[1] = p - 1 - w.r;
        w.first[upper ? 0 : 1] = w.m;
    }
    write_first(&w);
    write_last(&w);
}
