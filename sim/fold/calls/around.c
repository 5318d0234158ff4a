/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/calls/around.h"

#include "sim/graph.h"

ms_err ms_around_put_replay(const ms_around *around, ms_cells *cells,
                            ms_fault *fault)
{
    ms_books *books = &cells->books;
    const ms_graph *graph = cells->graph;
    ms_books_replay *replay = &books->replays[0];
    *replay = (ms_books_replay){.state = MS_NONE};
    if (around->replay == MS_NONE)
        return MS_OK;
    replay->open = true;
    replay->unit = around->replay;
    replay->wanted = ++books->last_tick;
    replay->tick = ++books->last_tick;
    if (!around->replay_state)
        return MS_OK;
    if (ms_books_reserve(books, 0, 1, 0) != MS_OK)
        return ms_fail_nomem(fault);
    replay->state = ms_books_take(books, graph->unit_state[around->replay],
                                  MS_ACTIVATIONS, MS_DEVICE_POOL, false);
    return MS_OK;
}

static ms_err put_buffers(ms_cells *cells, const ms_question *question,
                          const ms_tape *tape, ms_fault *fault)
{
    for (uint32_t i = 0; i < question->n_buffers; i++) {
        uint32_t buffer = question->buffer[i];
        const ms_tape_buffer *now = &tape->buffer[buffer];
        ms_earlier who = {MS_EARLIER_BUFFER, 0, 0, i};
        MS_TRY(ms_cells_put_buffer(cells, buffer, now->kind, who, fault));
        who.kind = MS_EARLIER_READER;
        if (now->kind > 0 && now->read != MS_NONE)
            MS_TRY(ms_cells_put_op(cells, who, MS_STREAM_COMPUTE,
                                   &cells->books.buffer_read[buffer], fault));
    }
    return MS_OK;
}

static void put_packed(ms_cells *cells, const ms_question *question,
                       const ms_question_states *states, const ms_tape *tape)
{
    const ms_classes *classes = cells->classes;
    for (uint32_t i = 0; i < question->n_owners; i++) {
        uint32_t owner = question->owner[i], state = question->state[owner];
        const uint32_t *word = ms_intern_words(&states->words, state);
        if (!states->packs[state])
            continue;
        for (uint32_t k = classes->cell_at[owner];
             k < classes->cell_at[owner + 1]; k++, word += states->width)
            if (*word & MS_CELLS_PACKED)
                cells->books.packed[classes->cell[k]] =
                    tape->packed[classes->cell[k]];
    }
}

static ms_err put_queues(const ms_around *around, ms_cells *cells,
                         ms_fault *fault)
{
    ms_books *books = &cells->books;
    books->last_side[0] = books->let_go[0] = books->let_go[1] = MS_NONE;
    if (around->side)
        MS_TRY(ms_cells_put_op(cells, (ms_earlier){MS_EARLIER_SIDE, 0, 0, 0},
                               around->side_stream, &books->last_side[0],
                               fault));
    if (around->limit)
        MS_TRY(ms_cells_put_op(cells, (ms_earlier){MS_EARLIER_LIMIT, 0, 0, 0},
                               MS_STREAM_COMPUTE, &books->let_go[1], fault));
    return MS_OK;
}

ms_err ms_around_put(const ms_around *around, const ms_question *question,
                     const ms_question_states *states, ms_cells *cells,
                     ms_fault *fault)
{
    put_packed(cells, question, states, around->tape);
    MS_TRY(put_buffers(cells, question, around->tape, fault));
    return put_queues(around, cells, fault);
}
