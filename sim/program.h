/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_PROGRAM_H
#define MS_SIM_PROGRAM_H

/* The program: the step as a list of calls that policies have made of a graph.
 * It says what is run, again or for the first time, what is kept, and where
 * storages go; not what that costs.
 *
 * Nouns.  A call is a verb and what it acts on, in the name of a rank, a frame
 * (a slot for the storages of one micro-batch) and a micro-batch.  A set is a
 * list of storages, a buffer flat memory of the program's own; calls name both
 * by their rows.  A schedule and a keep are what policies choose before there
 * is a program: ms_defaultprogram (schedule/schedule.h) writes the program of
 * them.
 *
 * Whatever an op needs and does not find is made present by expand (brought,
 * gathered, unpacked, run again), so that a program without a single MOVE is as
 * legal as one with the best of prefetches: calls only say it earlier.
 *
 * A worked example: unit 3 is checkpointed, its input is storage 71, set 0.
 * As memsim run --dump program prints it:
 *
 *     run forward unit 3 frame 0 micro 0 keep nothing hold nothing
 *     ...
 *     rerun units 3-3 frame 0 micro 0
 *     run backward unit 3 frame 0 micro 0
 *     drop 0 frame 0 micro 0 */

#include "sim/base/base.h"
#include "sim/group.h"
#include "sim/nouns.h"
#include "sim/saves.h"
#include "sim/stage.h"

typedef enum ms_verb {
    MS_RUN,      /* run a unit's forward or backward ops */
    MS_RERUN,    /* run forward ops of units [unit, last] again (recompute) */
    MS_MOVE,     /* move set to a place: here, to the host or the disk (copy
                    engines, the disk's by way of the host), of what is shared
                    the part; into a buffer (PACKED), or out of it; let whole
                    copies go (SHARD), of gradients make the part that is not
                    there */
    MS_STEP_SET, /* the optimizer step (set: MS_ALL); of a set what is due with
                    its gradients (due_first) */
    MS_HOLD,     /* take a host reference on each storage of set */
    MS_DROP_SET, /* release those references */
    MS_SYNC,     /* the host waits for the last copies of set, for what wrote
                    buffer, or (NOTHING) until the device has caught up */
    MS_MARK,     /* a named instant: levels are read here */
    MS_GATHER, /* all-gather set in a group: one collective makes what is SHARD
                  whole, in storages of its own or PACKED in a buffer; what only
                  lies in another memory is brought; what the ranks do not share
                  is written where it is */
    MS_STATE,  /* set unit's random state aside, or let it go */
    MS_WAIT,   /* the compute stream waits for the copies of set; what a move
                  that is `later` took to the host is dropped here */
    MS_REDUCE, /* sum set over the ranks of a group; of what was not made
                  nothing */
    MS_TAKE,   /* allocate a buffer of the program */
    MS_GIVE,   /* the host lets go of it */
    MS_WORK,   /* do a task of the program on its stream: it reads and writes
                  what is there of set */
    MS_SEND_SET, /* send set to a peer, whose RECV_SET takes it */
    MS_RECV_SET, /* make room for set, which the peer's SEND_SET fills: what
                    reads it waits for that.  A message of NOTHING is the
                    buffer, of both ranks: a SYNC of it waits */
    MS_N_VERBS
} ms_verb;

/* Set ids: MS_ALL and MS_NOTHING, else a row of the program's sets. */
#define MS_ALL (MS_NONE - 1u)
#define MS_NOTHING (MS_NONE - 2u)

/* A flat buffer of the program: what is PACKED in it needs no memory of its
 * own; one of no bytes is an event that a SYNC waits for.  The queue of the
 * ranks takes its own memory without waiting for the compute stream; given
 * back, it waits for the op that read it last. */
typedef struct ms_buffer {
    const char *name;
    uint64_t bytes;
    uint8_t category, pool;
    uint8_t stream; /* on which it is taken: COMPUTE or COMM */
    uint8_t home;   /* ms_block_home: whose memory it is */
    bool waited;    /* ms_row.waited */
} ms_buffer;

/* ---- what a call says besides, by its verb: all zero is the plain form --- */

typedef struct ms_run_call {
    uint8_t pass; /* MS_FORWARD, MS_GRAD_INPUT (= backward) or, of a half,
                     MS_GRAD_WEIGHT */
    bool half;    /* of backward: what the inputs' gradients need, or the rest:
                     the products that are gradients of weights
                     (sim/expand/views/halves.h) */
    bool saves; /* an autograd node holds the set: a reentrant checkpoint saves
                   its inputs, a non-reentrant one's closure only names them */
    bool pairs; /* forward: of a turn that is one with the backward behind it
                   (ms_turn): for who reads the schedule out of the program */
    bool side;  /* forward, with pairs: what the two turns exchange among the
                   ranks that divide the experts goes beside what the other one
                   computes */
    uint32_t keep; /* forward: saved storages that keep their SAVED reference:
                      MS_ALL, MS_NOTHING or a set */
} ms_run_call;

typedef struct ms_rerun_call {
    bool whole; /* to the end of the last unit, needed or not */
    bool holds; /* what leaves the units stays until a DROP_SET with unit and
                   last of this call */
    bool state; /* the random state is set aside for its time */
    bool part;  /* unit alone; other calls, then the parts of the units behind
                   it to last follow: together they are one RERUN from the first
                   one's unit on */
} ms_rerun_call;

typedef struct ms_move_call {
    uint8_t to;    /* ms_place: HERE, HOST, NVME, SHARD, PACKED */
    bool later;    /* the device's copy stays until a WAIT; to SHARD: the whole
                      copies stay */
    bool in_line;  /* on the compute stream */
    bool side;     /* behind the last copy with side, out or in: one queue */
    bool adds;     /* to what lies in the host's memory already, there; to
                      HERE: to what the device has */
    bool pageable; /* the host's memory is not pinned, the host waits */
    bool straight; /* between device and disk without a copy on the host */
    bool as_is;    /* to the host in the device's format, whatever that of what
                      it has there in the end */
    bool ahead;    /* to PACKED or out of it: on the ranks' queue (to a buffer
                      that is waited for: a WAIT follows) */
} ms_move_call;    /* to SHARD with a buffer: it takes over that of the set's
                      first, which something else still views, until it is
                      given */

typedef struct ms_step_call {
    uint8_t part; /* MS_HERE: all of it; MS_HOST: what the host and its disk do
                     of it; MS_PENDING: the rest */
    bool norms;   /* of ALL: only what finds the norm of its gradients */
    bool behind;  /* only what stands behind that (ms_graph.step_norm) */
} ms_step_call;

typedef struct ms_hold_call {
    bool saves; /* as of a RUN */
    bool again; /* makes first what of the set is nowhere, and keeps nothing
                   else that this makes; with unit and last of the call, these
                   are the units whose ops may run */
} ms_hold_call;

typedef struct ms_sync_call {
    bool compute; /* for the compute stream alone */
} ms_sync_call;

typedef struct ms_mark_call {
    uint8_t mark; /* ms_mark */
} ms_mark_call;

typedef struct ms_gather_call {
    uint8_t group; /* row of the program's groups */
    bool ahead; /* takes memory of the queue's own, not of the compute stream's
                 */
    bool limit; /* the host waits for what used the second last set moved to
                   SHARD */
} ms_gather_call;

typedef struct ms_state_call {
    uint8_t to; /* MS_HERE: aside; MS_GONE: let go */
} ms_state_call;

typedef struct ms_reduce_call {
    uint8_t to;    /* MS_SHARD: reduce-scatter into the shards; MS_HERE:
                      all-reduce */
    uint8_t group; /* row of the program's groups, on whose queue it is.  Of
                      what another group divides, its ranks hold the same part:
                      these are summed, as many bytes as a buffer named has */
    bool whole;  /* every rank gets the sum of all, though it keeps its part */
    bool filled; /* of a buffer what is packed in it, not all of it */
    bool exchange; /* an all-to-all; to HERE it arrives in call's buffer */
    bool in_line;  /* the next owner of the memory waits on an event recorded
                      here, so that it is not held */
    uint32_t tag;  /* 0: the group's other ranks are not of the plan, and do the
                      same at the same time.  Else those that reduce with this
                      tag, as many bytes, once each, are the ranks of this plan
                      that meet: it begins when the last of them has come, over
                      the group's links; a tag is at most the number of calls.
                      Of NOTHING it is about the call's buffer */
} ms_reduce_call;

typedef struct ms_work_call {
    uint32_t task; /* row of the program's tasks */
} ms_work_call;

/* A message goes from the SEND_SET of one rank to the RECV_SET of the other
 * that have the same set and tag, in the order in which both have those.  It
 * begins when both have come to their calls (the receiver's compute stream,
 * too, which hands out the memory), and ends for both at once, as NCCL's
 * kernels do, which wait for each other.
 *
 * The sender sends on its group's queue, one message after the other, or, with
 * pairs, on one for each of its two neighbours (the last rank's is the first
 * one).  With in_line a call has a place among the sends and receives of its
 * rank that are so: none begins before those in front of it have ended. */
typedef struct ms_message_call {
    uint16_t peer;
    uint8_t group; /* row of the program's groups, whose links carry it */
    bool again;    /* SEND_SET: the rank receives it anew before it touches it
                      again: its variable ends with the call */
    bool saves;    /* RECV_SET: nodes of the units that read it save it, as far
                      as they do (a RUN's keep) */
    bool pairs;    /* SEND_SET */
    bool in_line;
    bool parts; /* RECV_SET: each of the ranks that split layers sends its part,
                   which those of the receiver gather among them: a part of the
                   set comes, and is there until the whole is */
    uint32_t tag;
} ms_message_call;

/* What a WORK does on a stream. */
typedef struct ms_task {
    const char *name;
    uint64_t amount;
    uint8_t unit, stream; /* ms_task_unit, ms_stream_kind */
} ms_task;

typedef struct ms_call {
    uint8_t verb; /* ms_verb */
    uint16_t rank;
    uint16_t frame; /* micro-batch slot */
    uint32_t micro_batch;
    uint32_t unit, last; /* RUN, STATE: unit; RERUN, DROP_SET: [unit, last] */
    uint32_t set; /* RUN forward: storages that get a HOLD reference and count
                     as activations; HOLD, DROP_SET, MOVE...: what */
    uint32_t buffer; /* TAKE, GIVE, WAIT, SYNC, GATHER, REDUCE and MOVE to
                        PACKED or SHARD; RECV_SET: what comes lies in it, and
                        needs no memory of its own; or NONE */
    union {          /* of WAIT, DROP_SET, TAKE and GIVE there is none */
        ms_run_call run;
        ms_rerun_call rerun;
        ms_move_call move;
        ms_step_call step;
        ms_hold_call hold;
        ms_sync_call sync;
        ms_mark_call mark;
        ms_gather_call gather;
        ms_state_call state;
        ms_reduce_call reduce;
        ms_work_call work;
        ms_message_call message;
    };
} ms_call;

/* Of which plans one takes the least time in its budget, in that model. */
typedef enum ms_optimum_class {
    MS_BEST_NONE,       /* nothing is claimed */
    MS_BEST_ALL_ORDERS, /* of all orders, with anything made again (pebbling) */
    MS_BEST_CUT_POINTS, /* of persistent ones over the cut points of a DAG, with
                           all orders inside the blocks */
    MS_BEST_PERSISTENT, /* of persistent ones of a chain (rotor) */
    MS_BEST_TRIED       /* of those of a chain that were tried */
} ms_optimum_class;

/* What the policy that chose a plan by a model of its own says of the step: the
 * final program is what runs, and measured; 0: there is no such policy. */
typedef struct ms_foreseen {
    uint64_t peak_bytes, step_ns;
    ms_optimum_class best; /* among which plans it takes least */
    uint64_t unit_bytes;   /* sizes were rounded up to it; 0: they were not */
} ms_foreseen;

typedef struct ms_program {
    uint32_t n_calls, calls_capacity;
    ms_call *calls;
    uint32_t n_sets, sets_capacity;
    uint32_t *set_at; /* n_sets + 1 */
    uint32_t set_items, items_capacity;
    uint32_t *set_item; /* storages */
    uint32_t n_buffers, buffers_capacity;
    ms_buffer *buffers;
    uint32_t n_tasks, tasks_capacity;
    ms_task *tasks;
    uint32_t n_stages, stages_capacity; /* 0: each rank has the whole model */
    ms_stage *stages;
    uint8_t *holds; /* ms_stage_find; NULL: not found yet, or no table */
    const ms_group *groups; /* n_groups: the roles, and rows of its own */
    uint32_t n_groups;      /* 0: those of the machine (ms_expand_opts) */
    ms_hooks hooks;
    const struct ms_online *online; /* sim/online.h; NULL: none */
    uint8_t *saved_in; /* (optional) per storage: ms_host_memory of its copy on
                          the host, where swaps differ; NULL: ms_machine's */
    const char *told;  /* (optional) what a policy says of its plan to who reads
                          the summary; no part of the text form */
    ms_foreseen foreseen;
    uint16_t n_frames;
    uint16_t n_ranks;
    uint32_t n_micro_batches;
    bool overlaps; /* a rank begins its next step when it has ended this one,
                      whatever the others do: steps follow each other at the
                      longest of their own spans, not at that of all together */
} ms_program;

/* The choices of keep policies (sim/README.md 4), consumed by
 * ms_defaultprogram.  place[s] of a saved storage is MS_HERE (keep) or
 * MS_GONE (drop after its last forward use; bind makes it again); it alone
 * decides, in segments too.  Neighbouring units with the same segment are
 * replayed together by one RERUN just before the first of their backwards;
 * MS_NONE means not checkpointed.
 *
 * A second choice may stand beside the first: turns says which runs of which
 * stage on which micro-batch take it; stages of a rank that hand to each other
 * take the same. */
typedef struct ms_keep {
    uint8_t *place;    /* n_storages */
    uint32_t *segment; /* n_units */
    bool reentrant;    /* torch.utils.checkpoint use_reentrant=True */
    bool early_stop;
    const struct ms_keep *other; /* (optional) without one of its own */
    uint8_t *turns; /* with other: per stage and micro-batch, 1: it is that */
} ms_keep;

ms_err ms_program_keep_all(const ms_graph *graph, ms_arena *arena,
                           ms_keep *keep, ms_fault *fault);
/* Appends a buffer; *buffer gets its id.  It is taken by a TAKE, any number of
 * times, one after the other. */
ms_err ms_program_add_buffer(ms_program *program, ms_buffer value,
                             ms_arena *arena, uint32_t *buffer,
                             ms_fault *fault);
/* Appends a task; *row gets its id.  A WORK does it, any number of
 * times. */
ms_err ms_program_add_task(ms_program *program, ms_task task, ms_arena *arena,
                           uint32_t *row, ms_fault *fault);
/* Gives the program a copy of the machine's groups or, where it has rows of its
 * own, the links of the first one to these: its text tells none. */
ms_err ms_program_add_groups(ms_program *program, const ms_group *groups,
                             uint32_t n, ms_arena *arena, ms_fault *fault);
/* A call with nothing set: unit, last and buffer MS_NONE, set (and of a RUN
 * keep) MS_NOTHING, the rest zero. */
ms_call ms_program_call(ms_verb verb);
/* The same in the name of `like`: its rank, frame and micro-batch. */
ms_call ms_program_call_like(ms_verb verb, const ms_call *like);
/* Calls in the name of `like` with what they say:
 *
 *     ms_program_move(run, set, (ms_move_call){.to = MS_HOST, .later = true})
 */
ms_call ms_program_move(const ms_call *like, uint32_t set, ms_move_call how);
ms_call ms_program_gather(const ms_call *like, uint32_t set,
                          ms_gather_call how);
ms_call ms_program_reduce(const ms_call *like, uint32_t set,
                          ms_reduce_call how);
ms_call ms_program_wait(const ms_call *like, uint32_t set);
/* Does the call run ops of its unit, for the first time or again? */
bool ms_program_runs(const ms_call *call);
/* Does the call end a unit's backward, be it whole or the second half? */
bool ms_program_ends_backward(const ms_call *call);
/* The row of the groups that the call names; 0: it names none. */
uint8_t ms_program_group(const ms_call *call);
/* from's sets, buffers, tasks and stages, in tables of its own, and no calls: a
 * program to be written anew.  Each of the two may grow, neither knows what the
 * other adds.
 */
ms_err ms_program_fork(const ms_program *from, ms_arena *arena,
                       ms_program *program, ms_fault *fault);
/* Writes the replays of several units in PARTs, and a HOLD that runs units
 * again as one for each unit of what those behind it read, so that calls that
 * serve them can stand between their units. */
ms_err ms_program_part_replays(const ms_graph *graph, ms_program *program,
                               ms_arena *arena, ms_fault *fault);
/* Room for so many calls more. */
ms_err ms_program_reserve(ms_program *program, uint64_t more, ms_arena *arena,
                          ms_fault *fault);
ms_err ms_program_add(ms_program *program, ms_call call, ms_arena *arena,
                      ms_fault *fault);
/* Appends a set; *set gets its id (MS_NOTHING for n = 0). */
ms_err ms_program_add_set(ms_program *program, const uint32_t *storages,
                          uint32_t n, ms_arena *arena, uint32_t *set,
                          ms_fault *fault);
/* Is every id in range, every unit run forward before backward? */
ms_err ms_check_program(const ms_graph *graph, const ms_program *program,
                        ms_fault *fault);

/* ---- text/dump.c, text/dumpread.c: the program as text, and back --------- */

void ms_dump_program(const ms_graph *graph, const ms_program *program,
                     ms_text *text);
/* text/dumpread.c: reads the text form back, into an identical program that
 * ms_check_program accepts; errors carry name:line:column. */
ms_err ms_dumpread_program(const ms_graph *graph, const char *name,
                           const char *bytes, size_t length, ms_arena *arena,
                           ms_program *program, ms_fault *fault);

#endif
