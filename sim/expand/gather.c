/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What ranks share: gathering the whole from the parts, summing over ranks. */
#include "sim/expand/books.h"
#include "sim/expand/move.h"
#include "sim/program.h"
#include "sim/replay/collective.h"

static uint8_t queue_of(const ms_group *group)
{
    return group->queue == MS_STREAM_OUTER ? MS_STREAM_OUTER : MS_STREAM_COMM;
}

/* Of the collective just noted. */
static void note_group(ms_books *books, uint8_t group, uint64_t network_bytes)
{
    struct ms_transfer *it =
        &books->plan->transfers[books->plan->n_transfers - 1];
    it->group = group;
    it->network_bytes = network_bytes;
}

/* One op on the queue of a group over so many bytes, and room for what it
 * makes and reads. */
static ms_err issue_collective(ms_books *books, const ms_books_at *at,
                               ms_transfer_kind kind, const ms_group *ranks,
                               uint8_t group, uint64_t bytes, uint32_t n)
{
    static const ms_collective collectives[MS_N_TRANSFERS] = {
        [MS_TRANSFER_GATHER] = MS_ALL_GATHER,
        [MS_TRANSFER_SCATTER] = MS_REDUCE_SCATTER,
        [MS_TRANSFER_REDUCE] = MS_ALL_REDUCE,
        [MS_TRANSFER_OUTER] = MS_ALL_REDUCE,
        [MS_TRANSFER_EXCHANGE] = MS_ALL_TO_ALL,
        [MS_TRANSFER_MEETING] = MS_ALL_GATHER, /* of parts of a message */
    };
    MS_TRY(
        ms_move_issue(books, at, kind, queue_of(ranks),
                      ms_collective_sent_bytes(ranks, collectives[kind], bytes),
                      ms_collective_ns(ranks, collectives[kind], bytes), n));
    note_group(books, group,
               ms_collective_network_bytes(ranks, collectives[kind], bytes));
    return MS_OK;
}

ms_err ms_gather_parts(ms_books *books, const ms_books_at *at,
                       const ms_group *ranks, uint64_t bytes, uint32_t n)
{
    MS_TRY(issue_collective(books, at, MS_TRANSFER_MEETING, ranks,
                            MS_GROUP_TENSOR, bytes, n));
    ms_move_after_compute(books, at);
    return MS_OK;
}

/* It counts as part of the update, so that a wait for it is a wait for
 * gradients. */
ms_err ms_gather_note_step(ms_books *books, uint32_t op, uint64_t *ns)
{
    const uint8_t *groups = books->graph->op_group;
    uint8_t group = groups ? groups[op] : (uint8_t)MS_GROUP_DATA;
    const ms_group *ranks = ms_books_group(books, group);
    uint64_t bytes = books->graph->op_write_bytes[op];
    ms_books_weigh_op(books, op);
    *ns = ms_collective_ns(ranks, MS_ALL_GATHER, bytes);
    MS_TRY(ms_move_note(books, MS_TRANSFER_REDUCE,
                        ms_collective_sent_bytes(ranks, MS_ALL_GATHER, bytes)));
    note_group(books, group,
               ms_collective_network_bytes(ranks, MS_ALL_GATHER, bytes));
    return MS_OK;
}

/* The graph knows how long it takes: the ranks that split a layer are as many
 * in every program. */
ms_err ms_gather_note_meeting(ms_books *books, uint32_t op)
{
    const ms_graph *graph = books->graph;
    uint8_t meets = graph->op_meets[op], group = MS_MEETS_GROUP(meets);
    const ms_group *ranks = ms_books_group(books, group);
    ms_collective kind = MS_MEETS_COLLECTIVE(meets);
    uint64_t read = graph->op_read_bytes[op];
    uint64_t bytes = graph->op_write_bytes[op];
    if (read > bytes)
        bytes = read;
    ms_books_weigh_op(books, op);
    MS_TRY(ms_move_note(books, MS_TRANSFER_MEETING,
                        ms_collective_sent_bytes(ranks, kind, bytes)));
    note_group(books, group, ms_collective_network_bytes(ranks, kind, bytes));
    return MS_OK;
}

bool ms_gather_meets_in_place(const ms_books *books, uint32_t op)
{
    const ms_graph *graph = books->graph;
    return ms_books_meets(books, op) &&
           graph->out_at[op] == graph->out_at[op + 1];
}

void ms_gather_home(ms_books *books)
{
    ms_plan *plan = books->plan;
    for (uint32_t r = plan->op[plan->n_ops - 1].alloc_at; r < plan->n_rows;
         r++) {
        plan->row[r].home = MS_HOME_COMPUTE;
        plan->row[r].waited = true;
    }
}

void ms_gather_let_go(ms_books *books, const ms_books_at *at)
{
    uint32_t *let_go = books->let_go + 2 * (uint32_t)at->rank;
    let_go[1] = let_go[0];
    let_go[0] = books->last_compute[at->rank];
}

/* FSDP1 has at most two gathered units under way: the host waits until the unit
 * before the last has let go (torch/distributed/fsdp/_limiter_utils.py,
 * _FreeEventQueue). */
static ms_err wait_for_limit(ms_books *books, const ms_books_at *at)
{
    uint32_t before = books->let_go[2 * (uint32_t)at->rank + 1];
    return before == MS_NONE ? MS_OK : ms_books_sync(books, at, before);
}

/* A single rank communicates with no other: the collective takes no time. */
static bool is_alone(const ms_books *books, uint8_t group)
{
    return ms_books_group(books, group)->ranks < 2 &&
           !books->graph->storage_shard_bytes;
}

/* ---- gathering ----------------------------------------------------------- */

static bool is_whole(const ms_books *books, uint32_t cell)
{
    return books->row[cell] != MS_NONE ||
           ms_books_in(books->packed, cell) != MS_NONE;
}

/* Copies the parts that lie in other memories to the device; a storage that the
 * ranks do not share is whole then.  *wanted: how many storages the collective
 * makes or writes; *bytes: how large they are together. */
static ms_err bring_parts(ms_books *books, const ms_books_at *at,
                          const uint32_t *storages, uint32_t n, bool ahead,
                          uint32_t *wanted, uint64_t *bytes)
{
    *wanted = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i], c = ms_books_cell(books, at, s);
        bool apart = ms_books_apart(books, s, c);
        bool made = s >= books->graph->n_persistent; /* by a micro-batch */
        if (apart ? is_whole(books, c) : made)
            continue;
        if (apart && ms_books_in(books->shard_row, c) == MS_NONE)
            MS_TRY(ms_move_storage(
                books, at, s, (ms_move_call){.to = MS_HERE, .ahead = ahead}));
        if (apart && !made && !ms_books_shared(books, s))
            continue;
        *wanted += 1;
        *bytes += books->graph->storage_bytes[s];
        ms_books_weigh(books, s);
    }
    return MS_OK;
}

/* A part that was copied from another memory, or that a micro-batch made, goes
 * once the whole is there; a part that has its home on the device stays. */
static void end_part(ms_books *books, uint32_t storage, uint32_t cell)
{
    if (storage < books->graph->n_persistent &&
        ms_books_pool(books, storage) == MS_DEVICE_POOL)
        return;
    ms_books_give(books, books->shard_row[cell]);
    books->shard_row[cell] = MS_NONE;
}

/* ahead: in a block of the queue's own, else in one that the compute stream has
 * left. */
static void take_whole(ms_books *books, uint32_t storage, uint32_t cell,
                       bool ahead)
{
    const ms_row *part = &books->plan->row[books->shard_row[cell]];
    bool made = storage >= books->graph->n_persistent;
    uint8_t category = made ? part->category : (uint8_t)MS_COMMUNICATION;
    uint32_t row = ms_books_take(books, storage, category, MS_DEVICE_POOL,
                                 made && part->saved);
    books->plan->row[row].home = ahead ? MS_HOME_STREAM : MS_HOME_COMPUTE;
    books->row[cell] = row;
}

/* With a buffer the gathered storages lie in it (PACKED); without one each
 * takes a row of its own.  Either way its part ends here. */
ms_err ms_gather_gather(ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n,
                        const ms_call *call)
{
    uint64_t bytes;
    uint32_t buffer = call->buffer, to = MS_NONE, wanted;
    bool ahead = call->gather.ahead;
    uint8_t group = call->gather.group;
    if (buffer != MS_NONE)
        to = ms_books_buffer(books, at, buffer);
    MS_TRY(bring_parts(books, at, storages, n, ahead, &wanted, &bytes));
    if (wanted == 0 || is_alone(books, group))
        return MS_OK;
    if (to != MS_NONE)
        bytes = books->plan->buffers[buffer].bytes;
    if (call->gather.limit)
        MS_TRY(wait_for_limit(books, at));
    MS_TRY(issue_collective(books, at, MS_TRANSFER_GATHER,
                            ms_books_group(books, group), group, bytes, n));
    if (books->shard_row && !ahead)
        ms_move_after_compute(books, at);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i], c = ms_books_cell(books, at, s);
        if (s < books->graph->n_persistent && books->row[c] != MS_NONE &&
            !ms_books_apart(books, s, c))
            ms_books_write(books, books->row[c]);
        if (ms_books_in(books->shard_row, c) == MS_NONE || is_whole(books, c))
            continue;
        ms_books_read(books, books->shard_row[c]);
        if (to != MS_NONE)
            books->packed[c] = buffer;
        else
            take_whole(books, s, c, ahead);
        end_part(books, s, c);
    }
    if (to != MS_NONE)
        ms_books_write(books, to);
    return MS_OK;
}

static ms_err note_asked(ms_books *books, uint32_t storage)
{
    uint32_t *asked =
        ms_arena_grow(books->arena, books->asked, &books->asked_capacity,
                      books->n_asked + 1, sizeof *asked);
    if (!asked)
        return ms_fail_nomem(books->fault);
    books->asked = asked;
    asked[books->n_asked++] = storage;
    return MS_OK;
}

static uint8_t group_of(const ms_books *books, uint32_t storage)
{
    bool made = storage >= books->graph->n_persistent; /* by a micro-batch */
    return made ? (uint8_t)MS_GROUP_DATA
                : ms_graph_group(books->graph, storage);
}

/* The storages of one group; they come to lie behind those asked for. */
static ms_err gather_asked_of(ms_books *books, const ms_books_at *at,
                              uint32_t first, uint8_t group)
{
    ms_call call = ms_program_call(MS_GATHER);
    uint32_t end = books->n_asked;
    for (uint32_t i = first; i < end; i++)
        if (group_of(books, books->asked[i]) == group)
            MS_TRY(note_asked(books, books->asked[i]));
    call.gather.group = group;
    uint32_t n = books->n_asked - end;
    books->n_asked = end;
    return n == 0 ? MS_OK
                  : ms_gather_gather(books, at, books->asked + end, n, &call);
}

/* What was asked for since first: one collective for each group. */
static ms_err gather_asked(ms_books *books, const ms_books_at *at,
                           uint32_t first)
{
    ms_call call = ms_program_call(MS_GATHER);
    if (!books->graph->storage_shard_group)
        return ms_gather_gather(books, at, books->asked + first,
                                books->n_asked - first, &call);
    for (uint32_t group = 0; group < MS_N_GROUP_ROLES; group++)
        MS_TRY(gather_asked_of(books, at, first, (uint8_t)group));
    return MS_OK;
}

ms_err ms_gather_ask(ms_books *books, const ms_books_at *at, uint32_t storage)
{
    ms_call call = ms_program_call(MS_GATHER);
    MS_TRY(note_asked(books, storage));
    call.gather.group = group_of(books, storage);
    return ms_gather_gather(books, at, &storage, 1, &call);
}

/* What is packed comes out of its buffer. */
static ms_err unpack(ms_books *books, const ms_books_at *at, uint32_t first,
                     uint32_t end)
{
    const ms_graph *graph = books->graph;
    if (!books->packed)
        return MS_OK;
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++) {
        uint32_t s = graph->in[i], c = ms_books_cell(books, at, s);
        if (books->row[c] == MS_NONE && books->packed[c] != MS_NONE)
            MS_TRY(ms_pack_out(books, at, &s, 1, false));
    }
    return MS_OK;
}

ms_err ms_gather_open_unit(ms_books *books, const ms_books_at *at,
                           uint32_t first, uint32_t end)
{
    const ms_graph *graph = books->graph;
    uint32_t n = books->n_asked;
    if (!graph->storage_shard_bytes && !graph->storage_pool)
        return MS_OK;
    MS_TRY(unpack(books, at, first, end));
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++) {
        uint32_t s = graph->in[i], c = ms_books_cell(books, at, s);
        if (books->row[c] != MS_NONE || !ms_books_apart(books, s, c) ||
            graph->storage_category[s] == MS_GRADIENTS)
            continue;
        MS_TRY(note_asked(books, s));
    }
    return gather_asked(books, at, n);
}

void ms_gather_close_unit(ms_books *books, const ms_books_at *at)
{
    for (uint32_t i = 0; i < books->n_asked; i++)
        ms_move_let_go(books, books->asked[i],
                       ms_books_cell(books, at, books->asked[i]));
    books->n_asked = 0;
}

/* ---- reducing ------------------------------------------------------------ */

/* Do the ranks of the call's group hold the same part of it? */
static bool sums_parts(const ms_books *books, uint32_t storage,
                       const ms_reduce_call *how)
{
    return !how->exchange && ms_books_shared(books, storage) &&
           ms_graph_group(books->graph, storage) != how->group;
}

/* The row that holds the storage's values: its own, the buffer's, or its part.
 * What lies whole in a buffer is summed so. */
static uint32_t holder(const ms_books *books, const ms_books_at *at,
                       uint32_t storage, const ms_reduce_call *how)
{
    uint32_t cell = ms_books_cell(books, at, storage);
    uint32_t in = ms_books_in(books->packed, cell);
    if (in == MS_NONE && sums_parts(books, storage, how))
        return ms_books_in(books->shard_row, cell);
    if (books->row[cell] != MS_NONE)
        return books->row[cell];
    return in != MS_NONE ? ms_books_buffer(books, at, in) : MS_NONE;
}

static void make_part(ms_books *books, uint32_t storage, uint32_t cell)
{
    books->shard_row[cell] =
        ms_books_take_shard(books, storage, MS_GRADIENTS, false);
    if (!(books->state[cell] & MS_REF_ANY))
        books->state[cell] = ms_books_grad_refs(books->graph, storage);
}

static bool lacks_part(const ms_books *books, uint32_t storage, uint32_t cell)
{
    return books->graph->storage_category[storage] == MS_GRADIENTS &&
           ms_books_shared(books, storage) &&
           ms_books_pool(books, storage) == MS_DEVICE_POOL &&
           books->shard_row[cell] == MS_NONE;
}

ms_err ms_gather_make_parts(ms_books *books, const ms_books_at *at,
                            const uint32_t *storages, uint32_t n)
{
    uint32_t lacking = 0;
    for (uint32_t i = 0; i < n; i++)
        lacking += lacks_part(books, storages[i],
                              ms_books_cell(books, at, storages[i]));
    if (lacking == 0)
        return MS_OK;
    MS_TRY(ms_books_reserve(books, 1, lacking, lacking));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        if (!lacks_part(books, storages[i], c))
            continue;
        if (books->row[c] != MS_NONE)
            ms_books_read(books, books->row[c]);
        make_part(books, storages[i], c);
    }
    return MS_OK;
}

/* Is it something that a micro-batch has made, which is now divided among the
 * ranks?  With one rank there is nothing to divide. */
static bool is_divided(const ms_books *books, const ms_books_at *at,
                       uint32_t storage)
{
    return storage >= books->graph->n_persistent &&
           ms_books_group(books, MS_GROUP_DATA)->ranks > 1 &&
           books->row[ms_books_cell(books, at, storage)] != MS_NONE;
}

/* A copy of this rank's part; the whole is dropped. */
static void divide(ms_books *books, uint32_t storage, uint32_t cell)
{
    uint32_t whole = books->row[cell];
    const ms_row row = books->plan->row[whole];
    ms_books_read(books, whole);
    books->shard_row[cell] =
        ms_books_take_shard(books, storage, row.category, row.saved);
    ms_books_give(books, whole);
    books->row[cell] = MS_NONE;
}

ms_err ms_gather_divide(ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_divided(books, at, storages[i])) {
            bytes += ms_books_part_bytes(books, storages[i]);
            ms_books_weigh(books, storages[i]);
        }
    if (bytes == 0)
        return MS_OK;
    MS_TRY(ms_pack_kernel(books, at, false, bytes, n));
    for (uint32_t i = 0; i < n; i++)
        if (is_divided(books, at, storages[i]))
            divide(books, storages[i], ms_books_cell(books, at, storages[i]));
    return MS_OK;
}

/* The sum of what every rank has goes to the owners of its parts; the whole
 * is dropped. */
static void scatter(ms_books *books, uint32_t storage, uint32_t cell)
{
    if (books->shard_row[cell] == MS_NONE) {
        make_part(books, storage, cell);
        books->plan->row[books->shard_row[cell]].home = MS_HOME_REDUCE;
    } else {
        ms_books_write(books, books->shard_row[cell]);
    }
    if (books->row[cell] != MS_NONE)
        ms_books_give(books, books->row[cell]);
    books->row[cell] = MS_NONE;
    if (books->packed)
        books->packed[cell] = MS_NONE;
}

/* How many of the set are there, and the bytes of the collective over them:
 * where they are packed, of their buffer, or (FILLED) of what it holds. */
static uint32_t measure(const ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n,
                        const ms_reduce_call *how, uint64_t *bytes)
{
    uint32_t made = 0, last = MS_NONE;
    *bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        uint32_t row = holder(books, at, storages[i], how);
        if (row == MS_NONE)
            continue;
        made++;
        ms_books_weigh(books, storages[i]);
        if (how->filled && books->row[c] == MS_NONE)
            *bytes += books->graph->storage_bytes[storages[i]];
        else if (row != last)
            *bytes += books->plan->row[row].bytes;
        last = row;
    }
    return made;
}

/* The result of an exchange lies in another buffer. */
static void arrive(ms_books *books, const ms_books_at *at, uint32_t cell,
                   uint32_t buffer)
{
    uint32_t row =
        buffer == MS_NONE ? MS_NONE : ms_books_buffer(books, at, buffer);
    if (row == MS_NONE || books->packed[cell] == MS_NONE)
        return;
    ms_books_write(books, row);
    books->packed[cell] = buffer;
}

static const ms_group *ranks_of(const ms_books *books, const ms_call *call)
{
    return call->reduce.tag > 0 ? ms_meetings_group(books, call)
                                : ms_books_group(books, call->reduce.group);
}

static ms_transfer_kind kind_of(const ms_reduce_call *how,
                                const ms_group *ranks)
{
    if (how->exchange)
        return MS_TRANSFER_EXCHANGE;
    if (queue_of(ranks) == MS_STREAM_OUTER)
        return MS_TRANSFER_OUTER;
    return how->to == MS_SHARD && !how->whole ? MS_TRANSFER_SCATTER
                                              : MS_TRANSFER_REDUCE;
}

/* Do ranks meet about a buffer, whatever is in it? */
static bool is_buffer(const ms_call *call)
{
    return call->reduce.tag > 0 && call->set == MS_NOTHING &&
           call->buffer != MS_NONE;
}

ms_err ms_gather_come(ms_books *books, const ms_books_at *at,
                      const uint32_t *storages, uint32_t n, const ms_call *call)
{
    if (is_buffer(call) && ms_books_buffer(books, at, call->buffer) == MS_NONE)
        return ms_pack_not_taken(books, call->buffer);
    MS_TRY(ms_books_reserve(books, 1, 0, n + 1));
    ms_books_issue(books, at, MS_NONE, MS_COPY, queue_of(ranks_of(books, call)),
                   0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = holder(books, at, storages[i], &call->reduce);
        if (row != MS_NONE)
            ms_books_read(books, row);
    }
    if (is_buffer(call))
        ms_move_after_compute(books, at);
    return MS_OK;
}

ms_err ms_gather_reduce(ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n,
                        const ms_call *call)
{
    const ms_reduce_call *how = &call->reduce;
    const ms_group *ranks = ranks_of(books, call);
    ms_transfer_kind kind = kind_of(how, ranks);
    uint32_t met = how->tag > 0 ? ranks->ranks : 0;
    uint64_t bytes;
    bool some = measure(books, at, storages, n, how, &bytes) > 0;
    if (is_buffer(call))
        bytes = books->plan->buffers[call->buffer].bytes;
    if ((!some && !is_buffer(call)) ||
        (met == 0 && is_alone(books, how->group)))
        return MS_OK;
    if (kind == MS_TRANSFER_OUTER && call->buffer != MS_NONE)
        bytes = books->plan->buffers[call->buffer].bytes;
    MS_TRY(issue_collective(books, at, kind, ranks, how->group, bytes,
                            n + met + 1));
    if (met > 0)
        ms_meetings_wait(books, call);
    if (is_buffer(call))
        ms_books_write(books, ms_books_buffer(books, at, call->buffer));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i], c = ms_books_cell(books, at, s);
        uint32_t row = holder(books, at, s, how);
        if (row == MS_NONE)
            continue;
        ms_books_write(books, row);
        if (how->to == MS_SHARD && ms_books_shared(books, s)) {
            if (how->in_line && row == books->row[c])
                books->plan->row[row].waited = true;
            scatter(books, s, c);
        }
        if (kind == MS_TRANSFER_EXCHANGE && how->to == MS_HERE)
            arrive(books, at, c, call->buffer);
    }
    return MS_OK;
}
