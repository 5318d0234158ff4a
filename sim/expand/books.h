/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_BOOKS_H
#define MS_SIM_BOOKS_H

/* Private to sim/expand and sim/fold: the books of a plan under construction.
 * A cell is a (storage, frame, rank); row[cell] is its live device row or
 * MS_NONE, state[cell] the host references on it. */

#include "sim/expand/views/frames.h"
#include "sim/expand/views/roles.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"

enum {
    MS_REF_LOCAL = 1u,
    MS_REF_SAVED = 2u, /* MS_REF_LOCAL << MS_DROP_SAVED */
    MS_REF_HOLD = 4u,  /* a count in bits 2..6 */
    MS_REF_HOLDS = 0x7cu,
    MS_REF_ANY = 0x7fu,
    MS_REF_MADE = 0x80u /* was made at least once */
};

/* A RERUN, whose PARTs other calls may come between. */
typedef struct ms_books_replay {
    bool open;
    uint32_t unit;   /* its first */
    uint32_t wanted; /* tick of the ops that run again */
    uint32_t tick;   /* of what they make */
    uint32_t state;  /* row of the random state set aside, or MS_NONE */
} ms_books_replay;

typedef struct ms_books {
    const ms_graph *graph;
    const ms_expand_opts *opts;
    ms_arena *arena;
    ms_plan *plan;
    const ms_group *groups; /* n_groups */
    uint32_t n_groups;
    uint32_t ops_capacity, rows_capacity, marks_capacity;
    uint32_t wait_capacity, use_capacity, n_release, n_wait, n_use;
    uint32_t n_cells, n_buffers;
    uint32_t *row;      /* device row of a cell */
    uint32_t *host_row; /* NULL unless storages move or have another home */
    uint32_t *nvme_row; /* NULL unless some are on the disk */
    struct ms_diskbuffers
        *disk_buffers;    /* diskbuffers.c, per rank; NULL: none is used */
    uint32_t *shard_row;  /* this rank's part on the device; NULL unless states
                             are shared, or what a micro-batch makes moves to
                             SHARD */
    uint32_t *packed;     /* buffer that holds the cell, or MS_NONE; NULL unless
                             the program has buffers */
    uint32_t *buffer_row; /* per rank and buffer of the program: its row, or
                             MS_NONE */
    uint32_t *buffer_read; /* and the op that read it last */
    uint32_t *let_go;      /* per rank: last compute ops before the last MOVE to
                              SHARD and the one before; with last_compute */
    uint32_t *asked;       /* shared storages gathered because an op of the unit
                              under way reads them */
    uint32_t n_asked, asked_capacity, transfers_capacity, syncs_capacity;
    uint32_t *last_compute; /* per rank, or MS_NONE; NULL with one stream */
    uint32_t *last_side;    /* the same of copies with SIDE, on either stream */
    uint8_t *state;
    uint32_t *ready_op; /* per row, with several streams: last writer */
    bool streams;       /* more than one stream is in use: record waits */
    bool reads;         /* streams or opts->uses: record what ops read */
    bool complete;      /* what the ops of this RUN read is here, and room */
    bool ran_due;       /* a STEP_SET of a set has come */
    bool strays;        /* a drop is booked behind an op of another rank */
    const ms_program *staged; /* NULL unless ranks have stages (sim/stage.h) */
    ms_frames frames;         /* of ranks, among the cells */
    ms_roles roles;           /* of ranks with stages */
    ms_graph *views;          /* per role: the graph as it sees it; NULL without
                                 stages */
    struct ms_halves *halves; /* NULL: no backward runs in halves */
    bool in_half;             /* one runs: graph is as halves see it */
    const uint8_t *stage_holds; /* ms_program.holds */
    /* bind.c: NULL until something is made again. */
    uint32_t *stamps;           /* per rank: */
    uint32_t *stamp, *op_stamp; /* per storage, op: last tick that touched it */
    uint32_t tick, last_tick;   /* of the rerun under way; the highest so far */
    ms_books_replay *replays;   /* per rank */
    uint32_t *kept; /* per storage: last RUN whose keep set names it; NULL
                       where the program has no sets */
    uint32_t *held; /* the same for its set; MS_NONE: this RUN has made it */
    bool holds;     /* the RUN under way has a set */
    uint32_t run, *work, work_capacity; /* work: stack of bind */
    struct ms_hooked *hooked; /* hooks.h; NULL: the program has no hooks */
    struct ms_evictions *evictions; /* eviction.c; NULL: nothing is online */
    struct ms_meetings *meetings;   /* meetings.c; NULL: no ranks meet */
    uint8_t *weighed; /* (optional) per storage, then per op of the graph: how
                         long a copy or a collective takes follows from its
                         bytes */
    ms_fault *fault;
} ms_books;

/* The call in whose name ops are issued. */
typedef struct ms_books_at {
    uint32_t persistent, frame; /* cell = storage + one of these */
    uint32_t buffers;           /* + buffer: its place in buffer_row */
    uint32_t micro_batch;
    uint16_t rank;
} ms_books_at;

static inline uint32_t ms_books_cell(const ms_books *books,
                                     const ms_books_at *at, uint32_t storage)
{
    return storage +
           (storage < books->graph->n_persistent ? at->persistent : at->frame);
}

/* Is the storage one that the rank holds?  Of what its units make nothing is
 * said. */
static inline bool ms_books_holds(const ms_books *books, const ms_books_at *at,
                                  uint32_t storage)
{
    size_t first = (size_t)at->rank * books->graph->n_storages;
    return !books->stage_holds ||
           (books->stage_holds[first + storage] & MS_STAGE_HELD);
}

/* What is booked from now on is the rank's, for a micro-batch: books->graph is
 * as it sees it then. */
static inline void ms_books_turn_to(ms_books *books, uint16_t rank,
                                    uint32_t micro_batch)
{
    if (books->views)
        books->graph =
            &books->views[ms_roles_of(&books->roles, rank, micro_batch)];
}

/* Has the program a call of the verb? */
bool ms_books_has(const ms_program *program, uint8_t verb);
/* Which columns a program of the graph needs besides row. */
typedef struct ms_books_columns {
    bool streams; /* there are several: writers, waits */
    bool host, disk, parts;
} ms_books_columns;
/* graph_streams: has the graph ops on several streams? */
ms_books_columns ms_books_ask(const ms_graph *graph, bool graph_streams,
                              const ms_program *program);
bool ms_books_graph_streams(const ms_graph *graph);
/* Does the call's set have what a micro-batch makes? */
bool ms_books_names_made(const ms_graph *graph, const ms_program *program,
                         const ms_call *call);
ms_err ms_books_open(ms_books *books, const ms_program *program);
ms_err ms_books_close(ms_books *books);
/* Only the plan is needed any more: the columns of cells go. */
void ms_books_drop(ms_books *books);
/* The rank's host waits before its next op: for op until, or for all of the
 * rank's (MS_NONE). */
ms_err ms_books_sync(ms_books *books, const ms_books_at *at, uint32_t until);
ms_books_at ms_books_at_of(const ms_books *books, uint16_t rank, uint16_t frame,
                           uint32_t micro_batch);
ms_err ms_books_grow(ms_books *books, uint32_t ops, uint32_t rows,
                     uint32_t reads);

/* Room for ops more ops, rows more rows (and their releases) and reads. */
static inline ms_err ms_books_reserve(ms_books *books, uint32_t ops,
                                      uint32_t rows, uint32_t reads)
{
    bool noted =
        !books->reads || (books->n_wait + reads <= books->wait_capacity &&
                          (!books->opts->uses ||
                           books->n_use + reads + rows <= books->use_capacity));
    /* One op more than asked: the closing offsets of the CSR columns. */
    if (books->plan->n_ops + ops < books->ops_capacity &&
        books->plan->n_rows + rows <= books->rows_capacity && noted)
        return MS_OK;
    return ms_books_grow(books, ops, rows, reads);
}

/* Starts a plan op; needs reserve. */
static inline void ms_books_issue(ms_books *books, const ms_books_at *at,
                                  uint32_t op, uint8_t pass, uint8_t stream,
                                  uint64_t ns)
{
    ms_plan *plan = books->plan;
    uint32_t i = plan->n_ops++;
    plan->op[i] = (ms_plan_op){.ns = ns,
                               .of = op,
                               .micro_batch = at->micro_batch,
                               .alloc_at = plan->n_rows,
                               .release_at = books->n_release,
                               .pass = pass,
                               .stream = stream,
                               .rank = at->rank};
    if (books->streams) {
        plan->wait_at[i] = books->n_wait;
        if (stream == MS_STREAM_COMPUTE)
            books->last_compute[at->rank] = i;
    }
    if (books->opts->uses)
        plan->use_at[i] = books->n_use;
}

/* What the set of a forward RUN names and its ops make gets a HOLD when it is
 * made, or the unit itself could drop it; between open and close. */
void ms_books_open_set(ms_books *books, const ms_program *program,
                       uint32_t set);
void ms_books_close_set(ms_books *books, const ms_books_at *at,
                        const ms_program *program, uint32_t set);

/* A HOLD reference on what exists of the set; what forward made and a
 * checkpoint holds counts as an activation. */
void ms_books_hold_set(ms_books *books, const ms_books_at *at,
                       const ms_program *program, uint32_t set, bool saves);

/* The current op has made a row, or the rows from first on: it is remembered as
 * their writer. */
static inline void ms_books_made_row(ms_books *books, uint32_t row)
{
    ms_plan *plan = books->plan;
    if (books->streams)
        books->ready_op[row] = plan->n_ops - 1;
    if (books->opts->uses)
        plan->use[books->n_use++] = row;
}
void ms_books_made(ms_books *books, uint32_t first);

/* Books a row for storage in the current op; needs reserve. */
static inline uint32_t ms_books_take(ms_books *books, uint32_t storage,
                                     uint8_t category, uint8_t pool, bool saved)
{
    ms_plan *plan = books->plan;
    uint32_t r = plan->n_rows++;
    plan->row[r] = (ms_row){.bytes = books->graph->storage_bytes[storage],
                            .storage = storage,
                            .op = plan->n_ops - 1,
                            .category = category,
                            .pool = pool,
                            .saved = saved};
    if (books->reads)
        ms_books_made_row(books, r);
    return r;
}

/* A row of the groups: the program's where it has some, else the machine's. */
static inline const ms_group *ms_books_group(const ms_books *books,
                                             uint8_t group)
{
    return &books->groups[group < books->n_groups ? group : MS_GROUP_DATA];
}

/* This rank's part of a storage: of what a micro-batch makes an equal one for
 * each rank of the data group, the last one filled up. */
static inline uint64_t ms_books_part_bytes(const ms_books *books,
                                           uint32_t storage)
{
    uint64_t bytes = books->graph->storage_bytes[storage];
    uint64_t ranks = ms_books_group(books, MS_GROUP_DATA)->ranks;
    if (storage < books->graph->n_persistent)
        return books->graph->storage_shard_bytes[storage];
    return ranks > 1 ? bytes / ranks + (bytes % ranks > 0) : bytes;
}

/* Books this rank's part of a storage. */
static inline uint32_t ms_books_take_shard(ms_books *books, uint32_t storage,
                                           uint8_t category, bool saved)
{
    uint32_t r = ms_books_take(books, storage, category, MS_DEVICE_POOL, saved);
    books->plan->row[r].bytes = ms_books_part_bytes(books, storage);
    return r;
}

static inline bool ms_books_shared(const ms_books *books, uint32_t storage)
{
    const uint64_t *part = books->graph->storage_shard_bytes;
    return part && storage < books->graph->n_persistent &&
           part[storage] != MS_UNSHARED;
}

/* Is the whole of this .grad on its way to a reduction, as soon as made? */
static inline bool ms_books_reduced(const ms_books *books, uint32_t grad)
{
    return ms_books_shared(books, grad) && !books->graph->grads_whole;
}

/* The memory in which a storage has its home. */
static inline uint8_t ms_books_pool(const ms_books *books, uint32_t storage)
{
    const uint8_t *pool = books->graph->storage_pool;
    return pool ? pool[storage] : MS_DEVICE_POOL;
}

/* The bytes of a storage's copy in the host's or the disk's memory. */
static inline uint64_t ms_books_far_bytes(const ms_books *books,
                                          uint32_t storage)
{
    const ms_graph *graph = books->graph;
    if (storage < graph->n_persistent && graph->storage_far_bytes &&
        graph->storage_far_bytes[storage] > 0)
        return graph->storage_far_bytes[storage];
    return ms_books_shared(books, storage) ? graph->storage_shard_bytes[storage]
                                           : graph->storage_bytes[storage];
}

/* A duration follows from the bytes of a storage; from what an op writes. */
static inline void ms_books_weigh(const ms_books *books, uint32_t storage)
{
    if (books->weighed)
        books->weighed[storage] = 1;
}
static inline void ms_books_weigh_op(const ms_books *books, uint32_t op)
{
    if (books->weighed)
        books->weighed[books->graph->n_storages + op] = 1;
}

/* A column that may not be there. */
static inline uint32_t ms_books_in(const uint32_t *rows, uint32_t cell)
{
    return rows ? rows[cell] : MS_NONE;
}

/* Is there a copy in another memory than the device's? */
static inline bool ms_books_far(const ms_books *books, uint32_t cell)
{
    return ms_books_in(books->host_row, cell) != MS_NONE ||
           ms_books_in(books->nvme_row, cell) != MS_NONE;
}

/* The row of a buffer of the program on the rank, or MS_NONE. */
static inline uint32_t ms_books_buffer(const ms_books *books,
                                       const ms_books_at *at, uint32_t buffer)
{
    return ms_books_in(books->buffer_row, at->buffers + buffer);
}

/* The row that an op reads: the whole, else the part, else a copy in another
 * memory, else MS_NONE. */
static inline uint32_t ms_books_found(const ms_books *books, uint32_t cell)
{
    uint32_t row = books->row[cell];
    if (row == MS_NONE)
        row = ms_books_in(books->shard_row, cell);
    if (row == MS_NONE)
        row = ms_books_in(books->host_row, cell);
    if (row == MS_NONE)
        row = ms_books_in(books->nvme_row, cell);
    return row;
}

/* Is what a step made somewhere else than in a row of its own on the device:
 * in another memory, in a buffer, or in parts? */
static inline bool ms_books_away(const ms_books *books, uint32_t cell)
{
    return ms_books_far(books, cell) ||
           ms_books_in(books->shard_row, cell) != MS_NONE ||
           ms_books_in(books->packed, cell) != MS_NONE;
}

/* Whole copies of the storage on the device come and go: what lasts is this
 * rank's part, or lies in another memory.  Of what a micro-batch makes there is
 * the whole or the part. */
static inline bool ms_books_apart(const ms_books *books, uint32_t storage,
                                  uint32_t cell)
{
    if (ms_books_in(books->shard_row, cell) != MS_NONE)
        return true;
    if (storage >= books->graph->n_persistent)
        return false;
    return ms_books_far(books, cell) &&
           (ms_books_shared(books, storage) ||
            ms_books_pool(books, storage) != MS_DEVICE_POOL);
}

/* The host drops a row after the current op. */
static inline void ms_books_give(ms_books *books, uint32_t row)
{
    ms_plan *plan = books->plan;
    plan->release[books->n_release++] = row;
    if (plan->n_ranks > 1)
        books->strays |=
            plan->op[plan->n_ops - 1].rank != plan->op[plan->row[row].op].rank;
}

/* The cell now holds row r with these references; none: dropped at once. */
static inline void ms_books_hold(ms_books *books, uint32_t cell, uint32_t r,
                                 uint8_t refs)
{
    books->state[cell] = refs;
    books->row[cell] = refs & MS_REF_ANY ? r : MS_NONE;
    if (!(refs & MS_REF_ANY))
        ms_books_give(books, r);
}

/* No reference is left: the row goes. */
void ms_books_lose(ms_books *books, uint32_t cell);

/* Ends the LOCAL or SAVED reference; releases the row when none is left. */
static inline void ms_books_end(ms_books *books, uint32_t cell, uint8_t bits)
{
    unsigned state = books->state[cell];
    if (!(state & bits))
        return;
    books->state[cell] = (uint8_t)(state & ~(unsigned)bits);
    if (!(state & ~(unsigned)bits & MS_REF_ANY))
        ms_books_lose(books, cell);
}

/* Ends one HOLD reference. */
static inline void ms_books_unhold(ms_books *books, uint32_t cell)
{
    unsigned state = books->state[cell];
    if (!(state & MS_REF_HOLDS))
        return;
    books->state[cell] = (uint8_t)(state - MS_REF_HOLD);
    if (!((state - MS_REF_HOLD) & MS_REF_ANY))
        ms_books_lose(books, cell);
}

/* The current op reads row: remember the use and wait for its writer. */
void ms_books_read(ms_books *books, uint32_t row);

/* step.c: the optimizer step, booked once per graph.  append needs a graph
 * whose step is there, one stream and no uses. */
ms_err ms_step_prepare(ms_graph *graph, ms_arena *arena, ms_arena *scratch,
                       ms_fault *fault);
ms_err ms_step_append(ms_books *books, const ms_books_at *at);
/* place: of a STEP_SET. */
ms_err ms_step_run(ms_books *books, const ms_books_at *at,
                   const ms_step_call *how);
/* What of it is due with these gradients. */
ms_err ms_step_run_due(ms_books *books, const ms_books_at *at,
                       const uint32_t *storages, uint32_t n);

/* eviction.c: all of these do nothing where no pass is online.  room: for what
 * op makes, before it is issued; the pins are on what it reads, from before
 * that is bound until the op was issued, or of ops that will run again until
 * they have.  ran: the op has been issued, its results booked. */
ms_err ms_eviction_open(ms_books *books, const ms_program *program);
ms_err ms_eviction_room(ms_books *books, const ms_books_at *at, uint32_t op);
void ms_eviction_pin(ms_books *books, uint32_t op, bool pins);
void ms_eviction_ran(ms_books *books, const ms_books_at *at, uint32_t op);

/* cutstep.c: one op of the step, or of it the rank's share. */
ms_err ms_cutstep_op(ms_books *books, const ms_books_at *at, uint32_t op);

/* The reference on a .grad that was just made: until the step's drop lists end
 * it, or for good. */
static inline uint8_t ms_books_grad_refs(const ms_graph *graph, uint32_t grad)
{
    return graph->storage_local_end[grad] == MS_NONE
               ? MS_REF_HOLD | MS_REF_MADE
               : MS_REF_LOCAL | MS_REF_MADE;
}

/* What the current op wrote in place is ready when it ends. */
static inline void ms_books_write(ms_books *books, uint32_t row)
{
    ms_books_read(books, row);
    if (books->streams)
        books->ready_op[row] = books->plan->n_ops - 1;
}

/* diskbuffers.c: host buffers between device and disk, two of them.  The next
 * copy out: where both are in use, the older is let go and the op is told
 * behind which it starts (else MS_NONE). */
uint32_t ms_diskbuffers_free(ms_books *books, const ms_books_at *at);
/* The current op writes the cell's copy in row to the disk, then it goes. */
ms_err ms_diskbuffers_hold(ms_books *books, const ms_books_at *at, uint32_t row,
                           uint32_t cell);
/* The cell's copy, as far as it is held, or MS_NONE. */
uint32_t ms_diskbuffers_row(const ms_books *books, const ms_books_at *at,
                            uint32_t cell);
void ms_diskbuffers_end(ms_books *books, uint16_t rank);

/* pack.c: buffers of the program */
/* The fault of a buffer that is used and was not taken. */
ms_err ms_pack_not_taken(ms_books *books, uint32_t buffer);
ms_err ms_pack_take(ms_books *books, const ms_books_at *at, uint32_t buffer);
ms_err ms_pack_give(ms_books *books, const ms_books_at *at, uint32_t buffer);
/* The whole copy of a shared storage becomes the buffer's, where it lies. */
ms_err ms_pack_keep(ms_books *books, const ms_books_at *at, uint32_t storage,
                    uint32_t buffer);
/* A kernel that reads and writes so many bytes, on the compute stream or
 * (ahead) the ranks' queue; room for n rows. */
ms_err ms_pack_kernel(ms_books *books, const ms_books_at *at, bool ahead,
                      uint64_t bytes, uint32_t n);
ms_err ms_pack_into(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n, const ms_call *call);
ms_err ms_pack_out(ms_books *books, const ms_books_at *at,
                   const uint32_t *storages, uint32_t n, bool ahead);

/* work.c: a task on its stream. */
ms_err ms_work_run(ms_books *books, const ms_books_at *at, const ms_task *task,
                   const uint32_t *storages, uint32_t n);

/* gather.c: what ranks share.  Ops [first, end) of one unit are about to run,
 * and have run: what they read of shared storages is gathered before, unless a
 * call has done so, and what was gathered for them goes after. */
ms_err ms_gather_open_unit(ms_books *books, const ms_books_at *at,
                           uint32_t first, uint32_t end);
void ms_gather_close_unit(ms_books *books, const ms_books_at *at);
/* One storage that ops of the unit under way read. */
ms_err ms_gather_ask(ms_books *books, const ms_books_at *at, uint32_t storage);
/* call's buffer MS_NONE: in storages of their own. */
ms_err ms_gather_gather(ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n,
                        const ms_call *call);
/* A MOVE to SHARD was called: see ms_gather_call.limit. */
void ms_gather_let_go(ms_books *books, const ms_books_at *at);
ms_err ms_gather_reduce(ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n,
                        const ms_call *call);

/* An op of the step that gathers: how long it takes. */
ms_err ms_gather_note_step(ms_books *books, uint32_t op, uint64_t *ns);
/* An op of forward or backward that is a collective. */
ms_err ms_gather_note_meeting(ms_books *books, uint32_t op);
static inline bool ms_books_meets(const ms_books *books, uint32_t op)
{
    return books->graph->op_meets != NULL && books->graph->op_meets[op] != 0;
}
/* Does it make what backward alone needs only where a node saves it? */
static inline bool ms_books_spares(const ms_books *books, uint32_t op)
{
    return (books->graph->op_flags[op] & MS_OP_SPARES) != 0;
}
/* Does it make nothing, but write what it reads? */
bool ms_gather_meets_in_place(const ms_books *books, uint32_t op);
/* What the last op made lies in blocks of the compute stream's, which waits for
 * it before anything else does. */
void ms_gather_home(ms_books *books);
/* What a micro-batch has made stays as this rank's part. */
ms_err ms_gather_divide(ms_books *books, const ms_books_at *at,
                        const uint32_t *storages, uint32_t n);
/* The parts of a set of gradients that are not there are made. */
ms_err ms_gather_make_parts(ms_books *books, const ms_books_at *at,
                            const uint32_t *storages, uint32_t n);

/* rankdrops.c: with several ranks, each host's drops (and the marks) are booked
 * behind that rank's own ops. */
ms_err ms_rankdrops_settle(ms_books *books);

/* views/stageview.c: the graph as a rank of the program's stages sees it in a
 * role; columns that are the same are shared. */
ms_err ms_stageview_make(const ms_graph *graph, const ms_roles *roles,
                         uint32_t role, ms_arena *arena, ms_graph *view,
                         ms_fault *fault);

/* meetings.c: REDUCEs in which ranks of the plan meet (their tag).  A rank
 * comes to one with an op of no length on the group's queue, behind what it
 * sums; when all have come, each books its collective, which waits for these
 * ops.  calls: those of all that meet.  Faults of open, MS_EINPUT: tags that do
 * not fit. */
ms_err ms_meetings_open(ms_books *books, const ms_program *program);
/* The current op is that with which the rank of the call comes. */
void ms_meetings_come(ms_books *books, const ms_call *call);
bool ms_meetings_has_come(const ms_books *books, const ms_call *call);
/* The first rank that has not, or MS_NONE. */
uint32_t ms_meetings_awaited(const ms_books *books, const ms_call *call);
const uint32_t *ms_meetings_calls(const ms_books *books, const ms_call *call,
                                  uint32_t *n);
const ms_group *ms_meetings_group(const ms_books *books, const ms_call *call);
/* The current op waits for all that have come; needs room for as many reads. */
void ms_meetings_wait(ms_books *books, const ms_call *call);
/* gather.c: the op with which a rank comes. */
ms_err ms_gather_come(ms_books *books, const ms_books_at *at,
                      const uint32_t *storages, uint32_t n,
                      const ms_call *call);

/* messages.c: walks the calls of ranks that send to each other; `other` books a
 * call that is no message.  Faults, MS_EINPUT: a message without its other
 * half, sets that differ, and a deadlock, which names two of its ranks. */
typedef ms_err ms_messages_call(ms_books *books, const ms_books_at *at,
                                const ms_program *program, const ms_call *call);
ms_err ms_messages_walk(ms_books *books, const ms_program *program,
                        ms_messages_call *other);

/* start.c: what exists before the step. */
ms_err ms_start_rank(ms_books *books, uint16_t rank);

/* bind.c */
ms_err ms_bind_storage(ms_books *books, const ms_books_at *at, uint32_t storage,
                       uint32_t reader);
/* A HOLD call: with AGAIN makes what of its set is nowhere, then holds. */
ms_err ms_bind_hold(ms_books *books, const ms_books_at *at,
                    const ms_program *program, const ms_call *call);
/* Makes an input of an op of the step present where the op works: the host's
 * cores read the host's memory, copies read whatever there is.  Whether the
 * step's .grads exist is run_step's affair. */
ms_err ms_bind_for_step(ms_books *books, const ms_books_at *at, uint32_t op,
                        uint32_t storage);
ms_err ms_bind_units(ms_books *books, const ms_books_at *at,
                     const ms_call *call);
/* The random state of call's unit: made, or dropped. */
ms_err ms_bind_state(ms_books *books, const ms_books_at *at,
                     const ms_call *call);
/* expand.c: one call, which is no MARK. */
ms_err ms_expand_call(ms_books *books, const ms_books_at *at,
                      const ms_program *program, const ms_call *call);
/* rununit.c: a RUN; one op of the graph with its inputs made present. */
ms_err ms_rununit_call(ms_books *books, const ms_books_at *at,
                       const ms_program *program, const ms_call *call);
ms_err ms_rununit_op(ms_books *books, const ms_books_at *at, uint32_t op);

#endif
