/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages between ranks, and calls of ranks that wait for each other.
 *
 * A RECV_SET is an op of no length on the receiver's compute stream: from then
 * on there is memory for what comes.  The SEND_SET is an op on the sender's
 * queue that starts behind it and writes that memory.  The plan lists an op
 * behind what it waits for; so a rank whose next call needs what another one
 * has yet to do (one of those that meet in a collective, too: meetings.c)
 * stands still while the others' calls are booked, which changes the order of
 * the plan between ranks and no time.  Ranks that all stand still wait for each
 * other: a deadlock. */
#include "sim/expand/calls/matching.h"
#include "sim/expand/hooks.h"
#include "sim/expand/move.h"
#include "sim/expand/rununit.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/replay/collective.h"

#include <stdio.h>
#include <string.h>

struct ms_messages {
    const ms_program *program;
    uint32_t *next;    /* per call: the next one of its rank, or MS_NONE */
    uint32_t *cursor;  /* per rank: the call that comes next, or MS_NONE */
    uint32_t *open;    /* per rank: receives that nothing was sent for */
    uint32_t *first;   /* of these, the first that is in line, or MS_NONE */
    uint32_t *last;    /* per rank: the op of the last message that was in line
                          there, or MS_NONE */
    uint32_t *awaited; /* per cell: the message that fills it + 1; 0: none */
    uint32_t *filled;  /* the same per rank and buffer */
    ms_matching of;
    uint32_t *post;           /* per message: the op of its receive, or MS_NONE:
                                 it is not booked */
    uint32_t *woken, n_woken; /* ranks that may go on */
};
typedef struct ms_messages messages;

static bool meets(const ms_call *call)
{
    return call->verb == MS_REDUCE && call->reduce.tag > 0;
}

/* ---- the two calls ------------------------------------------------------- */

static uint8_t refs_of(const ms_graph *graph, uint32_t s, bool saves)
{
    uint8_t refs = graph->storage_refs[s] & (MS_REF_LOCAL | MS_REF_SAVED);
    return (uint8_t)((saves ? refs : refs & ~(unsigned)MS_REF_SAVED) |
                     MS_REF_MADE);
}

static uint8_t category_of(const ms_graph *graph, uint32_t s, uint8_t refs)
{
    uint8_t category = graph->storage_category[s];
    if (category == MS_BECOMES_GRAD ||
        (category == MS_ACTIVATIONS && !(refs & MS_REF_SAVED)))
        return MS_TEMPORARIES;
    return category;
}

/* So much of it is one rank's part. */
static uint64_t part_of(const ms_books *books, uint64_t bytes)
{
    uint32_t ranks = ms_books_group(books, MS_GROUP_TENSOR)->ranks;
    return ranks > 1 ? (bytes + ranks - 1) / ranks : bytes;
}

/* What comes is a tensor of its own, or a view of the call's buffer, which code
 * that reads it binds to a variable: without a reader it goes as soon as it has
 * come. */
static ms_err receive(ms_books *books, const ms_books_at *at, messages *m,
                      uint32_t i)
{
    const ms_program *program = m->program;
    const ms_call *call = &program->calls[i];
    uint32_t n = ms_matching_length(program, call);
    uint32_t first = n > 0 ? program->set_at[call->set] : 0;
    if (call->buffer != MS_NONE &&
        ms_books_buffer(books, at, call->buffer) == MS_NONE)
        return ms_pack_not_taken(books, call->buffer);
    MS_TRY(ms_books_reserve(books, 1, n, 0));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
    m->post[m->of.of_call[i]] = books->plan->n_ops - 1;
    m->open[at->rank]++;
    if (call->message.in_line && m->first[at->rank] == MS_NONE)
        m->first[at->rank] = i;
    if (call->set == MS_NOTHING)
        m->filled[at->buffers + call->buffer] = m->of.of_call[i] + 1;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = program->set_item[first + k];
        uint32_t c = ms_books_cell(books, at, s);
        uint8_t refs = refs_of(books->graph, s, call->message.saves);
        if (books->row[c] != MS_NONE) { /* it is written where it is */
            books->state[c] |= refs & MS_REF_LOCAL;
            continue;
        }
        uint32_t r = ms_books_take(books, s, category_of(books->graph, s, refs),
                                   MS_DEVICE_POOL, refs & MS_REF_SAVED);
        if (call->message.parts) {
            books->plan->row[r].bytes =
                part_of(books, books->plan->row[r].bytes);
            books->plan->row[r].category = MS_COMMUNICATION;
        }
        if (call->buffer != MS_NONE)
            books->plan->row[r].bytes = 0;
        ms_books_hold(books, c, r, refs);
        m->awaited[c] = m->of.of_call[i] + 1;
    }
    return MS_OK;
}

/* The two ranks as a group of their own, with the links of the call's.  The
 * ranks of a plan are the job's or, of a pipeline, its stages, which are that
 * group's members. */
static ms_group pair_of(const ms_group *group, const ms_call *call)
{
    bool members = call->message.group == MS_GROUP_PIPELINE;
    uint32_t stride = members || group->stride == 0 ? 1 : group->stride;
    uint32_t node = group->node_ranks * stride;
    uint32_t a = call->rank, b = call->message.peer;
    ms_group pair = *group;
    pair.ranks = 2;
    pair.stride = a > b ? a - b : b - a;
    pair.node_ranks = node > 0 && a / node == b / node ? 2 : 1;
    return pair;
}

/* The current op fills what the receiver made room for. */
static void fill(ms_books *books, const ms_books_at *to, messages *m,
                 const ms_call *call)
{
    const ms_program *program = m->program;
    uint32_t n = ms_matching_length(program, call);
    if (call->set == MS_NOTHING) {
        uint32_t row = ms_books_buffer(books, to, call->buffer);
        if (row != MS_NONE)
            books->ready_op[row] = books->plan->n_ops - 1;
        m->filled[to->buffers + call->buffer] = 0;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = program->set_item[program->set_at[call->set] + k];
        uint32_t c = ms_books_cell(books, to, s);
        if (books->row[c] != MS_NONE)
            books->ready_op[books->row[c]] = books->plan->n_ops - 1;
        m->awaited[c] = 0;
    }
    m->open[to->rank]--;
}

/* The receiver's ranks make the whole of the parts that have come. */
static ms_err gather_parts(ms_books *books, const ms_books_at *to,
                           const messages *m, const ms_call *call)
{
    const ms_program *program = m->program;
    const ms_group *ranks = ms_books_group(books, MS_GROUP_TENSOR);
    uint32_t n = ms_matching_length(program, call);
    uint32_t first = n > 0 ? program->set_at[call->set] : 0;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < n; k++)
        bytes += books->graph->storage_bytes[program->set_item[first + k]];
    MS_TRY(ms_gather_parts(books, to, ranks, bytes, 2 * n));
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = program->set_item[first + k];
        uint32_t c = ms_books_cell(books, to, s), part = books->row[c];
        uint8_t refs = refs_of(books->graph, s, call->message.saves);
        if (part == MS_NONE)
            continue;
        if (books->plan->row[part].bytes == books->graph->storage_bytes[s]) {
            ms_books_write(books, part); /* it was there before */
            continue;
        }
        ms_books_read(books, part);
        books->row[c] =
            ms_books_take(books, s, category_of(books->graph, s, refs),
                          MS_DEVICE_POOL, refs & MS_REF_SAVED);
        ms_books_give(books, part);
    }
    return MS_OK;
}

/* ---- queues -------------------------------------------------------------- */

static uint8_t queue_of(const messages *m, const ms_group *group,
                        const ms_call *call)
{
    uint32_t n = m->program->n_ranks, peer = call->message.peer;
    if (call->message.pairs && peer == (call->rank + 1u) % n)
        return MS_STREAM_NEXT;
    if (call->message.pairs && call->rank == (peer + 1) % n)
        return MS_STREAM_BEFORE;
    return group->queue == MS_STREAM_OUTER ? MS_STREAM_OUTER : MS_STREAM_COMM;
}

/* The rank that has yet to send what is in line in front of a message at one of
 * its ends, or MS_NONE. */
static uint32_t sends_before(const messages *m, const ms_matched *it)
{
    const ms_call *calls = m->program->calls;
    const ms_call *send = &calls[it->send], *receive = &calls[it->receive];
    uint32_t own = m->first[send->rank], other = m->first[receive->rank];
    if (send->message.in_line && own != MS_NONE)
        return calls[own].message.peer;
    if (receive->message.in_line && other != it->receive)
        return calls[other].message.peer;
    return MS_NONE;
}

/* The current op is a message that has come to the front at this end. */
static void stand_in_line(ms_books *books, messages *m, uint32_t rank)
{
    const ms_plan *plan = books->plan;
    uint32_t op = plan->n_ops - 1, last = m->last[rank];
    bool queued = last != MS_NONE && plan->op[last].rank == plan->op[op].rank &&
                  plan->op[last].stream == plan->op[op].stream;
    if (last != MS_NONE && !queued)
        plan->wait[books->n_wait++] = last;
    m->last[rank] = op;
}

/* The first receive of the rank that is in line is over: who sends what is
 * behind it may go on. */
static void leave_line(messages *m, uint32_t rank)
{
    const ms_call *calls = m->program->calls;
    uint32_t i = m->next[m->first[rank]];
    while (i != MS_NONE &&
           (calls[i].verb != MS_RECV_SET || !calls[i].message.in_line))
        i = m->next[i];
    bool posted = i != MS_NONE && m->post[m->of.of_call[i]] != MS_NONE;
    m->first[rank] = posted ? i : MS_NONE;
    if (posted)
        m->woken[m->n_woken++] = calls[i].message.peer;
}

static void pass_queues(ms_books *books, messages *m, const ms_matched *it)
{
    const ms_call *send = &m->program->calls[it->send];
    const ms_call *receive = &m->program->calls[it->receive];
    if (send->message.in_line)
        stand_in_line(books, m, send->rank);
    if (!receive->message.in_line)
        return;
    stand_in_line(books, m, receive->rank);
    leave_line(m, receive->rank);
}

/* Does one of the sends that follow without another call between name it? */
static bool is_sent_again(const messages *m, uint32_t i, uint32_t storage)
{
    const ms_program *program = m->program;
    uint16_t frame = program->calls[i].frame;
    for (i = m->next[i]; i != MS_NONE; i = m->next[i]) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_SEND_SET || call->frame != frame ||
            call->set == MS_NOTHING)
            return false;
        for (uint32_t k = program->set_at[call->set];
             k < program->set_at[call->set + 1]; k++)
            if (program->set_item[k] == storage)
                return true;
    }
    return false;
}

/* The sender's variable ends with the call, unless ops of its own end it. */
static void let_go(ms_books *books, const ms_books_at *at, const messages *m,
                   uint32_t i)
{
    const ms_program *program = m->program;
    const ms_call *call = &program->calls[i];
    uint32_t n = ms_matching_length(program, call);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = program->set_item[program->set_at[call->set] + k];
        bool ends = call->message.again ||
                    books->graph->storage_local_end[s] == MS_NONE;
        if (ends && !is_sent_again(m, i, s))
            ms_books_end(books, ms_books_cell(books, at, s), MS_REF_LOCAL);
    }
}

static ms_err send(ms_books *books, const ms_books_at *at, messages *m,
                   uint32_t i)
{
    const ms_program *program = m->program;
    const ms_matched *it = &m->of.all[m->of.of_call[i]];
    const ms_call *call = &program->calls[i];
    const ms_call *other = &program->calls[it->receive];
    const ms_group *group = ms_books_group(books, call->message.group);
    const ms_group pair = pair_of(group, call);
    uint32_t n = ms_matching_length(program, call);
    uint32_t first = n > 0 ? program->set_at[call->set] : 0;
    uint64_t bytes = ms_matching_bytes(program, call);
    bool parts = other->message.parts && n > 0;
    if (bytes > 0 && ms_books_buffer(books, at, call->buffer) == MS_NONE)
        return ms_pack_not_taken(books, call->buffer);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = program->set_item[first + k];
        if (books->row[ms_books_cell(books, at, s)] == MS_NONE)
            MS_TRY(ms_bind_storage(books, at, s, MS_NONE));
        bytes += books->graph->storage_bytes[s];
    }
    bytes = parts ? part_of(books, bytes) : bytes;
    MS_TRY(ms_move_issue(books, at, MS_TRANSFER_SEND, queue_of(m, group, call),
                         bytes, ms_collective_ns(&pair, MS_SEND, bytes),
                         n + 2));
    books->plan->transfers[books->plan->n_transfers - 1].group =
        call->message.group;
    books->plan->transfers[books->plan->n_transfers - 1].network_bytes =
        pair.node_ranks < 2 ? bytes : 0;
    ms_move_after_compute(books, at);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = program->set_item[first + k];
        ms_books_read(books, books->row[ms_books_cell(books, at, s)]);
    }
    if (call->set == MS_NOTHING && bytes > 0)
        ms_books_read(books, ms_books_buffer(books, at, call->buffer));
    books->plan->wait[books->n_wait++] = m->post[m->of.of_call[i]];
    pass_queues(books, m, it);
    let_go(books, at, m, i);
    ms_books_at to =
        ms_books_at_of(books, other->rank, other->frame, other->micro_batch);
    fill(books, &to, m, other);
    if (!parts)
        return MS_OK;
    ms_books_turn_to(books, other->rank, other->micro_batch);
    MS_TRY(gather_parts(books, &to, m, other));
    ms_books_turn_to(books, call->rank, call->micro_batch);
    return MS_OK;
}

/* ---- standing still ------------------------------------------------------ */

/* The message that a list of a call's storages waits for + 1, or 0. */
static uint32_t awaited_of(const ms_books *books, const messages *m,
                           const ms_books_at *at, const uint32_t *list,
                           uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        uint32_t it = m->awaited[ms_books_cell(books, at, list[i])];
        if (it > 0)
            return it;
    }
    return 0;
}

/* Is the message the rank's?  The cells of a frame may be several ranks'. */
static bool comes_to(const messages *m, uint32_t message, uint16_t rank)
{
    return m->program->calls[m->of.all[message].receive].rank == rank;
}

/* Whatever of the frame is awaited: bind may need any of it; where forward runs
 * again, any that forward has made. */
static uint32_t awaited_in_frame(const ms_books *books, const messages *m,
                                 const ms_books_at *at, bool again)
{
    const ms_graph *graph = books->graph;
    uint32_t backward = graph->forward_at[graph->n_units];
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (m->awaited[s + at->frame] > 0 &&
            comes_to(m, m->awaited[s + at->frame] - 1, at->rank) &&
            (!again || graph->storage_maker[s] < backward))
            return m->awaited[s + at->frame];
    return 0;
}

static bool is_complete(const ms_books *books, const ms_books_at *at,
                        uint32_t unit)
{
    const ms_graph *graph = books->graph;
    for (uint32_t i = graph->back_in_at[unit]; i < graph->back_in_at[unit + 1];
         i++)
        if (books->row[graph->back_in[i] + at->frame] == MS_NONE)
            return false;
    return true;
}

/* What the call would read and nobody has sent: a message + 1, or 0. */
static uint32_t awaited_by(const ms_books *books, const messages *m,
                           const ms_books_at *at, const ms_call *call)
{
    const ms_graph *graph = books->graph;
    const ms_program *program = m->program;
    uint32_t unit = call->unit;
    if (m->open[call->rank] == 0 || call->verb == MS_MARK ||
        call->verb == MS_TAKE || call->verb == MS_GIVE)
        return 0;
    if (call->verb == MS_RUN && call->run.pass == MS_FORWARD)
        return awaited_of(books, m, at, graph->unit_in, graph->unit_in_at[unit],
                          graph->unit_in_at[unit + 1]);
    if (call->verb == MS_RUN) {
        uint32_t it =
            awaited_of(books, m, at, graph->back_in, graph->back_in_at[unit],
                       graph->back_in_at[unit + 1]);
        if (it > 0 || call->run.half || is_complete(books, at, unit))
            return it;
        return awaited_in_frame(books, m, at, true);
    }
    if (call->verb == MS_RERUN)
        return awaited_in_frame(books, m, at, true);
    if (call->buffer != MS_NONE && m->filled[at->buffers + call->buffer] > 0)
        return m->filled[at->buffers + call->buffer];
    if (call->set < program->n_sets && call->verb != MS_STEP_SET)
        return awaited_of(books, m, at, program->set_item,
                          program->set_at[call->set],
                          program->set_at[call->set + 1]);
    return awaited_in_frame(books, m, at, false);
}

/* The rank for which the next call of a rank waits, or MS_NONE. */
static uint32_t held_by(const ms_books *books, const messages *m, uint32_t rank)
{
    uint32_t i = m->cursor[rank];
    const ms_call *call = &m->program->calls[i];
    ms_books_at at =
        ms_books_at_of(books, call->rank, call->frame, call->micro_batch);
    if (call->verb == MS_SEND_SET) {
        uint32_t sent = m->of.of_call[i];
        uint32_t before = m->post[sent] == MS_NONE
                              ? call->message.peer
                              : sends_before(m, &m->of.all[sent]);
        if (before != MS_NONE)
            return before;
    }
    if (call->verb == MS_RECV_SET)
        return MS_NONE;
    if (meets(call) && ms_meetings_has_come(books, call))
        return ms_meetings_awaited(books, call);
    uint32_t it = awaited_by(books, m, &at, call);
    return it > 0 ? m->program->calls[m->of.all[it - 1].send].rank : MS_NONE;
}

static void tell(const ms_program *program, uint32_t i, char *words,
                 size_t size)
{
    const ms_call *call = &program->calls[i];
    const char *what = call->verb == MS_SEND_SET   ? "a send"
                       : call->verb == MS_RECV_SET ? "a receive"
                       : call->verb == MS_RUN      ? "a run"
                       : meets(call)               ? "a reduction"
                                                   : "a call";
    snprintf(words, size, "rank %u at call %u, %s of micro-batch %u",
             (unsigned)call->rank, i, what, call->micro_batch);
}

/* From any rank that is left the way leads into a circle. */
static ms_err fail_deadlock(ms_books *books, const messages *m)
{
    uint32_t rank = 0;
    char one[96], other[96];
    while (m->cursor[rank] == MS_NONE)
        rank++;
    for (uint32_t i = 0; i < books->plan->n_ranks; i++)
        rank = held_by(books, m, rank);
    tell(m->program, m->cursor[rank], one, sizeof one);
    tell(m->program, m->cursor[held_by(books, m, rank)], other, sizeof other);
    return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                   "let one of the two receive before it sends, or compute "
                   "what the other waits for first",
                   "a deadlock: %s, waits for %s, which waits for it in turn",
                   one, other);
}

/* ---- the calls of all ranks ---------------------------------------------- */

static ms_err take_tables(ms_books *books, messages *m)
{
    const ms_program *program = m->program;
    ms_arena *arena = books->arena;
    uint32_t n = program->n_calls, ranks = program->n_ranks;
    m->next = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    m->cursor = ms_arena_take_raw(arena, ranks, sizeof(uint32_t));
    m->open = ms_arena_take(arena, ranks, sizeof(uint32_t));
    m->first = ms_arena_take_raw(arena, ranks, sizeof(uint32_t));
    m->last = ms_arena_take_raw(arena, ranks, sizeof(uint32_t));
    m->woken =
        ms_arena_take_raw(arena, 2 * (size_t)n + ranks, sizeof(uint32_t));
    m->awaited = ms_arena_take(arena, books->n_cells, sizeof(uint32_t));
    m->filled = ms_arena_take(arena, (size_t)ranks * program->n_buffers + 1u,
                              sizeof(uint32_t));
    m->post = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    if (!m->next || !m->cursor || !m->open || !m->woken || !m->awaited ||
        !m->filled || !m->post || !m->first || !m->last)
        return ms_fail_nomem(books->fault);
    memset(m->post, 0xff, n * sizeof(uint32_t));
    for (uint32_t r = 0; r < ranks; r++)
        m->cursor[r] = m->first[r] = m->last[r] = MS_NONE;
    for (uint32_t i = n; i-- > 0;) {
        m->next[i] = m->cursor[program->calls[i].rank];
        m->cursor[program->calls[i].rank] = i;
    }
    return MS_OK;
}

static ms_err book(ms_books *books, messages *m, uint32_t i,
                   ms_messages_call *other)
{
    const ms_call *call = &m->program->calls[i];
    ms_books_at at =
        ms_books_at_of(books, call->rank, call->frame, call->micro_batch);
    if (!ms_matching_has(call))
        return other(books, &at, m->program, call);
    m->woken[m->n_woken++] = call->message.peer;
    return call->verb == MS_SEND_SET ? send(books, &at, m, i)
                                     : receive(books, &at, m, i);
}

/* The last one to come wakes the others. */
static ms_err come(ms_books *books, messages *m, const ms_call *call)
{
    const ms_program *program = m->program;
    bool has_set = call->set < program->n_sets;
    uint32_t first = has_set ? program->set_at[call->set] : 0;
    uint32_t n = has_set ? program->set_at[call->set + 1] - first : 0;
    ms_books_at at =
        ms_books_at_of(books, call->rank, call->frame, call->micro_batch);
    MS_TRY(ms_gather_come(books, &at, program->set_item + first, n, call));
    ms_meetings_come(books, call);
    if (ms_meetings_awaited(books, call) != MS_NONE)
        return MS_OK;
    const uint32_t *calls = ms_meetings_calls(books, call, &n);
    for (uint32_t i = 0; i < n; i++)
        m->woken[m->n_woken++] = m->program->calls[calls[i]].rank;
    return MS_OK;
}

/* Books the rank's calls up to call `last`, as far as they can be. */
static ms_err go_on(ms_books *books, messages *m, uint32_t rank, uint32_t last,
                    ms_messages_call *other)
{
    while (m->cursor[rank] != MS_NONE && m->cursor[rank] <= last) {
        uint32_t i = m->cursor[rank];
        const ms_call *call = &m->program->calls[i];
        ms_books_turn_to(books, (uint16_t)rank, call->micro_batch);
        if (held_by(books, m, rank) != MS_NONE)
            return MS_OK;
        if (meets(call) && !ms_meetings_has_come(books, call)) {
            MS_TRY(come(books, m, call));
            continue;
        }
        ms_turnpair pair;
        if (books->hooked == NULL && books->evictions == NULL &&
            ms_turnpairs_at(m->program, m->next, i, &pair)) {
            MS_TRY(ms_sides_run(books, m->program, m->next, &pair, other));
            m->cursor[rank] = pair.end[1];
            continue;
        }
        m->cursor[rank] = m->next[i];
        MS_TRY(book(books, m, i, other));
    }
    return MS_OK;
}

ms_err ms_messages_walk(ms_books *books, const ms_program *program,
                        ms_messages_call *other)
{
    messages m = {.program = program};
    MS_TRY(take_tables(books, &m));
    MS_TRY(ms_matching_find(books->graph, program, books->arena, &m.of,
                            books->fault));
    for (uint32_t i = 0; i < program->n_calls; i++) {
        MS_TRY(go_on(books, &m, program->calls[i].rank, i, other));
        while (m.n_woken > 0)
            MS_TRY(go_on(books, &m, m.woken[--m.n_woken], i, other));
    }
    for (uint32_t r = 0; r < program->n_ranks; r++)
        if (m.cursor[r] != MS_NONE)
            return fail_deadlock(books, &m);
    return MS_OK;
}
