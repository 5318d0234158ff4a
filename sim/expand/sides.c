/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two turns side by side: where one has handed its tokens to the ranks that
 * divide the experts and would wait for those that come, the host issues what
 * the other one computes.  Streams are in the order in which ops are issued, so
 * that nothing else is needed: the exchange of one goes beside the products of
 * the other. */
#include "sim/expand/rununit.h"
#include "sim/graph.h"
#include "sim/program.h"

typedef struct side {
    uint32_t call, end;
    ms_unitrun run;
    bool open;  /* call has begun, and is not over */
    bool holds; /* of the books, while the other side runs */
} side;

/* A RUN up to an exchange (several in a row are one), or to its end. */
static ms_err run_piece(ms_books *books, const ms_books_at *at,
                        const ms_program *program, side *it, bool *exchanged)
{
    const ms_call *call = &program->calls[it->call];
    if (!it->open)
        MS_TRY(ms_rununit_begin(books, at, program, call, &it->run));
    else
        books->holds = it->holds;
    books->complete &= !it->open;
    uint32_t op = it->run.next, end = it->run.end;
    while (op < end && (!*exchanged || ms_graph_exchanges(books->graph, op)))
        *exchanged = ms_graph_exchanges(books->graph, op++);
    MS_TRY(ms_rununit_go(books, at, &it->run, op));
    it->open = op < end;
    it->holds = books->holds;
    if (it->open)
        books->holds = false;
    else
        ms_rununit_end(books, at, program, call);
    return MS_OK;
}

/* Up to an exchange, or to the end of the turn. */
static ms_err go_on(ms_books *books, const ms_program *program,
                    const uint32_t *next, side *it, ms_messages_call *other)
{
    bool exchanged = false;
    while (it->call != it->end && !exchanged) {
        const ms_call *call = &program->calls[it->call];
        ms_books_at at =
            ms_books_at_of(books, call->rank, call->frame, call->micro_batch);
        ms_books_turn_to(books, call->rank, call->micro_batch);
        if (call->verb == MS_RUN)
            MS_TRY(run_piece(books, &at, program, it, &exchanged));
        else
            MS_TRY(other(books, &at, program, call));
        if (!it->open)
            it->call = next[it->call];
    }
    return MS_OK;
}

/* Does any RUN of the side exchange tokens? */
static bool exchanges_ever(const ms_books *books, const ms_program *program,
                           const uint32_t *next, const side *it)
{
    const ms_graph *graph = books->graph;
    for (uint32_t i = it->call; i != it->end; i = next[i]) {
        const ms_call *call = &program->calls[i];
        bool forward = call->run.pass == MS_FORWARD;
        if (call->verb != MS_RUN)
            continue;
        uint32_t u = call->unit;
        uint32_t op =
            forward ? graph->forward_at[u] : graph->backward_at[u + 1];
        uint32_t end =
            forward ? graph->forward_at[u + 1] : graph->backward_at[u];
        for (; op < end; op++)
            if (ms_graph_exchanges(graph, op))
                return true;
    }
    return false;
}

/* Backward first, if it exchanges any, as in Megatron-LM's
 * TransformerLayerSchedulePlan.run
 * (core/models/common/model_chunk_schedule_plan.py): its first exchange goes
 * beside attention, its last beside the experts of forward. */
ms_err ms_sides_run(ms_books *books, const ms_program *program,
                    const uint32_t *next, const ms_turnpair *pair,
                    ms_messages_call *other)
{
    side sides[2] = {{.call = pair->first[0], .end = pair->end[0]},
                     {.call = pair->first[1], .end = pair->end[1]}};
    bool backward = exchanges_ever(books, program, next, &sides[1]);
    for (int k = backward;
         sides[0].call != sides[0].end || sides[1].call != sides[1].end; k ^= 1)
        MS_TRY(go_on(books, program, next, &sides[k], other));
    return MS_OK;
}
