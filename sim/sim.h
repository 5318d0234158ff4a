/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_H
#define MS_SIM_H

/* sim/ is the ground: the types that the whole house speaks, in the order of
 * the way through it, and the discrete-event simulation itself.
 *
 *   graph --(policy)--> program --expand--> plan --replay--> timeline
 *                                                  --measure--> report
 *
 * A worked example, one tensor by hand.  The activation x of layer 3 is
 * storage 71 of the graph: 8 MiB, made by op 40 (forward), read by op 41 and,
 * in backward, by op 97.  In the graph, op 41's drop list ends the local
 * reference of 71 (the Python variable was rebound), op 97's drop list ends
 * its saved reference.  The default program says "run unit 3 forward, keep
 * all": expand books one row for 71 with both references, so it lives from
 * op 40 to op 97.  A checkpointing program says "run unit 3 forward, keep
 * nothing" and later "run unit 3 again": expand books two rows for 71, the
 * first living from op 40 to op 41, the second from op 40 run again to op 97.
 * Replay turns each row into two events and the running sum into the level.
 *
 *     ms_arena trial = {0};
 *     ms_plan plan;
 *     ms_timeline line;
 *     MS_TRY(ms_expand(&graph, &program, &opts, &trial, &plan, fault));
 *     MS_TRY(ms_replay(&plan, &machine, &trial, &line, fault));
 *     use(line.ranks[0].pool[MS_DEVICE_POOL].peak_bytes);
 *     ms_arena_free(&trial);
 *
 * Units: bytes are uint64_t, times integer nanoseconds (uint64_t), FLOPs
 * double.  Ids are uint32_t rows of tables; MS_NONE is "no row".  CSR pairs
 * are named X_at (n + 1 offsets) and X (values).  Nothing prints, exits or
 * reads a clock; same input, same bytes out. */

#include "sim/base/base.h"
#include "sim/base/size.h"
#include "sim/base/words.h"
#include "sim/expand/hostplace.h"
#include "sim/kinds.h"
#include "sim/names.h"
#include "sim/outside.h"
#include "sim/replay/collective.h"
#include "sim/saves.h"
#include "sim/shape.h"

/* ---- graph.c: the template of one micro-batch and the optimizer step ----- */

/* A reference that ends after an op.  A storage has at most one LOCAL
 * reference (the last Python variable, kept output or gradient buffer that
 * names it) and one SAVED reference (the last autograd node that saved it);
 * lowering folds the many into these two by taking the later end. */
#define MS_DROP_SAVED 1u
#define MS_DROP(storage, saved) ((uint32_t)(storage) << 1 | (uint32_t)(saved))
#define MS_DROP_STORAGE(drop) ((drop) >> 1)

/* Category of a storage that ends as .grad: gradients when .grad does not
 * exist yet, temporaries otherwise.  Only in ms_graph.storage_category. */
#define MS_BECOMES_GRAD ((uint8_t)MS_N_CATEGORIES)

enum {                    /* ms_graph.op_flags */
       MS_OP_CORE = 1u,   /* attention core: what checkpoint:selective redoes */
       MS_OP_CLONES = 2u, /* accumulate: .grad is a clone, not the buffer */
       MS_OP_HOST = 4u,   /* no kernel: takes no time and no launch */
       MS_OP_SHARES = 8u, /* accumulate: .grad views what later ops read */
       MS_OP_MATRIX = 16u,  /* multiply-adds: a product or a convolution */
       MS_OP_EMPTIES = 32u, /* a pool's cache is emptied before it allocates */
       MS_OP_GATHERS = 64u  /* of the step, on the ranks' queue: all-gathers
                               what it makes from the ranks' parts */
};

/* Read-only after ms_graph_finish.  Storages [0, n_persistent) outlive the
 * micro-batch (parameters, buffers, optimizer state, .grad, inputs); the rest
 * exist once per frame.  Ops are in host order: forward units ascending,
 * loss, backward units descending, optimizer step.
 *
 * Invariants: unit u's forward ops are [forward_at[u], forward_at[u + 1]),
 * its backward ops [backward_at[u + 1], backward_at[u]) (so backward_at is
 * descending in u); a forward op reads only storages made before it; each
 * storage is in the out list of exactly one op (its maker), none for those
 * that exist at the start. */
#define MS_UNSHARED UINT64_MAX

typedef struct ms_graph {
    const char *name;

    uint32_t n_storages, n_persistent;
    uint64_t *storage_bytes;
    uint8_t *storage_category;
    uint8_t *storage_at_start;   /* 1: exists when a steady step starts */
    uint32_t *storage_maker;     /* op, or MS_NONE */
    uint32_t *storage_local_end; /* op whose drop list ends LOCAL, or NONE */
    uint32_t *storage_saved_end; /* op whose drop list ends SAVED, or NONE */
    uint32_t *storage_grad;      /* BECOMES_GRAD: the .grad storage it ends as;
                                    parameters: their .grad; else NONE */
    uint8_t *storage_buffer;     /* no parameter: ms_graph_buffer; else 0 */
    uint64_t *storage_shard_bytes; /* (optional) of persistent storages: this
                                      rank's part where the ranks share it;
                                      MS_UNSHARED: each holds all of it */
    uint64_t *storage_asked_bytes; /* (optional) of persistent storages that lie
                                      in one block with others: what a real
                                      pool is asked for, all of it or 0 */
    bool grads_whole; /* .grad is whole until it is reduced for the step, though
                         the ranks share it then (DeepSpeed's stage 1) */
    uint8_t *storage_pool; /* (optional) ms_pool_kind in which a storage has its
                              home: a persistent one lies there at the start,
                              whole copies on the device come and go; what the
                              step makes is made there.  NULL: the device */
    uint64_t *storage_far_bytes; /* (optional) what a persistent storage takes
                                    in another memory than the device's, where
                                    its format differs there; 0: the same */
    ms_hostplace hosted;         /* whose memory that is, of the host's */
    uint8_t *storage_whole;      /* (optional) 1: shared, and at the start whole
                                    besides the part */
    uint32_t *storage_width;     /* (optional) of shared weights: the longer of
                                    the first two dimensions; 0: it has one */
    /* Bytes of an element of a shared weight, whole and of a part; ranks with a
     * part each; groups of these.  0: nothing is shared. */
    uint8_t weight_bytes, part_bytes;
    uint32_t part_ranks, part_groups;
    uint32_t *storage_layer;   /* row of layer_name, or MS_NONE; (optional) */
    const char **storage_name; /* in its layer: "weight", "grad" */

    uint32_t n_ops;
    const char **op_name; /* e.g. "aten::addmm" */
    uint8_t *op_kind;     /* ms_op_kind: what policies ask instead */
    uint8_t *op_pass;
    uint8_t *op_flags;
    uint8_t *op_stream;
    uint32_t *op_unit;  /* MS_NONE for step ops */
    uint32_t *op_layer; /* row of layer_name, or MS_NONE */
    uint32_t *op_node;  /* autograd node, or MS_NONE */
    double *op_flops;
    uint64_t *op_read_bytes, *op_write_bytes;
    uint64_t *op_ns;
    uint32_t *in_at, *in;     /* storages read */
    uint32_t *out_at, *out;   /* storages allocated, in order */
    uint32_t *drop_at, *drop; /* MS_DROP entries ended after the op, in order */

    uint32_t n_units;
    uint32_t *forward_at, *backward_at; /* n_units + 1 each */
    uint32_t *unit_block;               /* MS_NONE: in no block */
    uint32_t *unit_in_at, *unit_in;     /* frame storages a unit's forward reads
                                           from earlier units: what a checkpoint
                                           that starts here must hold */
    const char **unit_name;
    uint32_t *unit_state; /* (optional) per unit: a persistent storage for the
                             random state that a checkpoint which begins there
                             sets aside (in the device's memory: a CPU) */
    uint32_t n_saves;     /* what the nodes of forward save, as they do */
    struct ms_save *saves;
    uint32_t n_kept, *kept; /* storages that the training loop's own variables
                               hold (output, loss): made with one HOLD
                               reference, which the program drops after
                               backward, or after the step if keep_to_step */
    bool keep_to_step;

    uint32_t loss_unit;  /* first unit of the loss */
    uint32_t step_first; /* first op of the optimizer step */
    /* (optional) Ops [due_first[s], due_end[s]) of the step are due as soon as
     * the .grad s is reduced (a STEP_SET of a set that has it); all of them lie
     * in [step_first, step_all), what is due with the step of ALL behind it.
     * Without them NULL, and step_all is step_first. */
    uint32_t *due_first, *due_end; /* n_persistent */
    uint32_t step_all;

    uint32_t n_layers, n_blocks;
    const char **layer_name;
    const char **layer_type; /* "linear"; of an op graph "module" */
    uint8_t *layer_role;     /* ms_layer_role */
    uint64_t *layer_bytes;   /* of a layer's output; (optional) */
    const char **block_name;

    /* (optional) Derived by ms_prepare_graph so that a sweep need not; NULL:
     * expand derives them for itself.  storage_refs: references of a storage
     * just made and saved (sim/expand/books.h); n_start: how many exist at the
     * start; step: the optimizer step, booked; back_in: the frame storages that
     * a unit's backward reads and does not make; step_in: the storages that the
     * step reads and the start does not hold (.grad). */
    uint8_t *storage_refs;
    uint32_t n_start;
    const struct ms_plan *step;
    uint32_t *back_in_at, *back_in, *step_in, n_step_in;

    /* What the summary says of the model. */
    uint64_t parameters;       /* elements, tied ones once */
    uint64_t *weight_elements; /* (optional) where weights' formats differ */
    uint64_t tokens;    /* per micro-batch; 0 where tokens mean nothing */
    double model_flops; /* forward + backward of one micro-batch, no redo */
    uint32_t n_unknown; /* ops whose rule is a guess, by name; how many each */
    const char **unknown_name;
    uint32_t *unknown_count;
    uint32_t n_untrained, *untrained; /* weights, not frozen, to which no
                                         gradient comes */
} ms_graph;

/* The full name of a storage: "layer:name" or, where it has no layer, its
 * name; cut where the buffer ends. */
#define MS_STORAGE_NAME 1152u /* bytes: layer names have at most 1024 */
const char *ms_graph_storage_name(const ms_graph *graph, uint32_t storage,
                                  char buffer[MS_STORAGE_NAME]);
/* Is it a parameter, not a buffer of the model? */
bool ms_graph_is_weight(const ms_graph *graph, uint32_t storage);
/* The invariants above.  Faults: MS_EINPUT names the row, MS_ENOMEM. */
ms_err ms_graph_check(const ms_graph *graph, ms_fault *fault);
/* Fills the derived columns; the last thing to do with a graph. */
ms_err ms_prepare_graph(ms_graph *graph, ms_arena *arena, ms_fault *fault);

/* ---- program.c: the step as a list of calls ------------------------------ */

typedef enum ms_verb {
    MS_RUN,      /* run a unit's forward or backward ops */
    MS_RERUN,    /* run forward ops of units [unit, last] again (recompute) */
    MS_MOVE,     /* move set to place MS_HERE, MS_HOST or MS_NVME (copy engines,
                    the disk's by way of the host), of what is shared the part;
                    to MS_PACKED: into a buffer; from there to MS_HERE: out of
                    it; to MS_SHARD: let whole copies go; of gradients make the
                    part that is not there */
    MS_STEP_SET, /* the optimizer step (set: MS_ALL): with place MS_HOST what
                    the host and its disk do of it, with MS_PENDING the rest;
                    of a set what is due with its gradients (due_first) */
    MS_HOLD,     /* take a host reference on each storage of set */
    MS_DROP_SET, /* release those references */
    MS_SYNC,     /* the host waits for the last copies of set, for what wrote
                    buffer, or (NOTHING) until the device has caught up */
    MS_MARK,     /* a named instant: levels are read here */
    MS_GATHER,   /* all-gather set: one collective makes what is SHARD whole, in
                    storages of its own or PACKED in a buffer; what only lies in
                    another memory is brought; what the ranks do not share is
                    written where it is */
    MS_STATE,    /* set unit's random state aside (place MS_HERE) or let it go
                    (MS_GONE) */
    MS_WAIT,     /* the compute stream waits for the copies of set; what a MOVE
                    with LATER took to the host is dropped here */
    MS_REDUCE,   /* sum set over the ranks, place MS_SHARD: reduce-scatter into
                    the shards, MS_HERE: all-reduce; of what was not made
                    nothing */
    MS_TAKE,     /* allocate a buffer of the program */
    MS_GIVE,     /* the host lets go of it */
    MS_N_VERBS
} ms_verb;

/* Set ids: MS_ALL and MS_NOTHING, else a row of the program's sets. */
#define MS_ALL (MS_NONE - 1u)
#define MS_NOTHING (MS_NONE - 2u)

/* ms_call.flags.  RERUN: WHOLE runs to the end of the last unit, needed or
 * not; HOLD_OUTPUTS keeps what leaves the units until a DROP_SET with unit and
 * last of this call; STATE sets the random state aside for its time; PART runs
 * unit alone, other calls, then the PARTs of the units behind it to last
 * follow: together they are one RERUN from the first one's unit on.  RUN:
 * SAVES says that an autograd node holds `set` (a reentrant checkpoint saves
 * its inputs, a non-reentrant one's closure only names them).  MOVE: LATER
 * leaves the device's copy until a WAIT; IN_LINE copies on the compute stream;
 * SIDE starts behind the last copy with SIDE, out or in: one queue for both;
 * ADD adds to what lies in the host's memory already, there; PAGEABLE: the
 * host's memory is not pinned, the host waits for the copy; OUTER: between
 * device and disk without a copy in the host's memory; to MS_SHARD, LATER
 * leaves the whole copies; a buffer named takes over that of the set's first,
 * which something else still views, until it is given.  HOLD: AGAIN first makes
 * again what of the set is nowhere, and keeps nothing else that this makes.
 * REDUCE: OUTER sums over the groups that hold the same part, on their queue,
 * as many bytes as a buffer named has; WHOLE: every rank gets the sum of all,
 * though it keeps its part; FILLED: of a buffer what is packed in it, not all
 * of it; EXCHANGE: an all-to-all among the ranks of a node, or (OUTER) among
 * those that have the same place in each node; to HERE it arrives in call's
 * buffer; IN_LINE: who takes over the memory of the whole waits for it by an
 * event, so that it is not held.  SYNC: IN_LINE waits for the compute stream
 * alone.  MOVE to PACKED or out of a buffer: AHEAD copies on the ranks' queue
 * (to a buffer that is waited for: a WAIT follows).  GATHER: OUTER is among the
 * ranks of the outer ring; AHEAD takes memory of the queue's own, not of the
 * compute stream's; LIMIT: the host waits for what used the second last set
 * moved to SHARD. */
enum {
    MS_CALL_WHOLE = 1u,
    MS_CALL_HOLD_OUTPUTS = 2u,
    MS_CALL_SAVES = 4u,
    MS_CALL_LATER = 8u,
    MS_CALL_IN_LINE = 16u,
    MS_CALL_STATE = 32u,
    MS_CALL_ADD = 64u,
    MS_CALL_OUTER = 128u,
    MS_CALL_AHEAD = 256u,
    MS_CALL_LIMIT = 512u,
    MS_CALL_FILLED = 1024u,
    MS_CALL_PAGEABLE = 2048u,
    MS_CALL_SIDE = 4096u,
    MS_CALL_AGAIN = 8192u,
    MS_CALL_EXCHANGE = 16384u,
    MS_CALL_PART = 32768u
};

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

typedef struct ms_call {
    uint8_t verb;  /* ms_verb */
    uint8_t pass;  /* RUN: MS_FORWARD or MS_GRAD_INPUT (= backward) */
    uint8_t place; /* MOVE, REDUCE, STATE: ms_place; MARK: ms_mark */
    uint8_t rank;
    uint16_t flags;
    uint16_t frame; /* micro-batch slot */
    uint32_t micro_batch;
    uint32_t unit, last; /* RERUN, DROP_SET: units [unit, last] */
    uint32_t keep;       /* RUN forward: saved storages that keep their SAVED
                            reference: MS_ALL, MS_NOTHING or a set */
    uint32_t set; /* RUN forward: storages that get a HOLD reference and count
                     as activations; HOLD, DROP_SET, MOVE...: what */
    uint32_t buffer; /* TAKE, GIVE, WAIT, SYNC, GATHER, REDUCE and MOVE to
                        PACKED or SHARD; or NONE */
} ms_call;

typedef struct ms_program {
    uint32_t n_calls, calls_capacity;
    ms_call *calls;
    uint32_t n_sets, sets_capacity;
    uint32_t *set_at; /* n_sets + 1 */
    uint32_t set_items, items_capacity;
    uint32_t *set_item; /* storages */
    uint32_t n_buffers, buffers_capacity;
    ms_buffer *buffers;
    ms_hooks hooks;
    uint8_t *saved_in; /* (optional) per storage: ms_host_memory of its copy on
                          the host, where swaps differ; NULL: ms_machine's */
    uint16_t n_frames;
    uint8_t n_ranks;
    uint32_t n_micro_batches;
} ms_program;

/* The choices of keep policies (sim/README.md 4), consumed by
 * ms_program_default.  place[s] of a saved storage is MS_HERE (keep) or
 * MS_GONE (drop after its last forward use; bind makes it again); it alone
 * decides, in segments too.  Neighbouring units with the same segment are
 * replayed together by one RERUN just before the first of their backwards;
 * MS_NONE means not checkpointed. */
typedef struct ms_keep {
    uint8_t *place;    /* n_storages */
    uint32_t *segment; /* n_units */
    bool reentrant;    /* torch.utils.checkpoint use_reentrant=True */
    bool early_stop;
} ms_keep;

ms_err ms_program_keep_all(const ms_graph *graph, ms_arena *arena,
                           ms_keep *keep, ms_fault *fault);
/* For each micro-batch forward, loss, backward; then the step; all in frame 0
 * of rank 0.  What a segment reads from outside gets a HOLD when it is made
 * and loses it after the backward of the first segment that reads it, which
 * is the last one to be replayed. */
ms_err ms_program_default(const ms_graph *graph, const ms_keep *keep,
                          uint32_t micro_batches, ms_arena *arena,
                          ms_program *program, ms_fault *fault);
/* Appends a buffer; *buffer gets its id.  It is taken by a TAKE, any number of
 * times, one after the other. */
ms_err ms_program_add_buffer(ms_program *program, ms_buffer value,
                             ms_arena *arena, uint32_t *buffer,
                             ms_fault *fault);
/* A call with nothing set: unit, last and buffer MS_NONE, keep and set
 * MS_NOTHING. */
ms_call ms_program_call(ms_verb verb);
/* The same in the name of `like`: its rank, frame and micro-batch. */
ms_call ms_program_call_like(ms_verb verb, const ms_call *like);
/* from's sets and buffers, in tables of its own, and no calls: a program to be
 * written anew.  Each of the two may grow, neither knows what the other adds.
 */
ms_err ms_program_fork(const ms_program *from, ms_arena *arena,
                       ms_program *program, ms_fault *fault);
/* Writes the replays of several units in PARTs, so that calls that serve them
 * can stand between their units. */
ms_err ms_program_part_replays(ms_program *program, ms_arena *arena,
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

/* ---- dump.c, dumpread.c: nouns as text ----------------------------------- */

void ms_dump_graph(const ms_graph *graph, ms_text *text);
void ms_dump_program(const ms_graph *graph, const ms_program *program,
                     ms_text *text);
/* dumpread.c: reads the text form back, into an identical program that
 * ms_check_program accepts; errors carry name:line:column. */
ms_err ms_dumpread_program(const ms_graph *graph, const char *name,
                           const char *bytes, size_t length, ms_arena *arena,
                           ms_program *program, ms_fault *fault);

/* ---- expand.c: program to plan ------------------------------------------- */

/* The expanded program in host issue order.  A row is one allocation.
 * Op i allocates rows [op[i].alloc_at, op[i + 1].alloc_at) in order and after
 * it the host drops release[op[i].release_at .. op[i + 1].release_at).  Op r is
 * the start of rank r: it allocates what exists before the step.
 * wait lists, per op, earlier ops on other streams that must have ended.
 * use (only with opts.uses, else NULL) lists, per op, each row it touches;
 * cross-stream uses are always in wait. */
typedef struct ms_plan_op {
    uint64_t ns;
    uint32_t of; /* graph op, or MS_NONE (start, copies) */
    uint32_t micro_batch;
    uint32_t alloc_at, release_at;
    uint8_t pass, stream, rank;
} ms_plan_op;

/* streams: one bit per ms_stream_kind of its rank on which an op reads it;
 * kept where several streams are in use.  What another stream than the
 * block's has read stays active after the host's free until that stream has
 * passed it (torch's record_stream), unless the side that frees has waited for
 * it. */
typedef struct ms_row {
    uint64_t bytes;
    uint32_t storage; /* MS_NONE: a buffer of the program */
    uint32_t buffer;  /* then, which; else MS_NONE or unset */
    uint32_t op;      /* the op that allocates it */
    uint8_t category;
    uint8_t pool;     /* ms_pool_kind */
    uint8_t streams;  /* see above */
    bool saved : 1;   /* held by an autograd node */
    uint8_t home : 2; /* ms_block_home: whose block it is */
    bool waited : 1;  /* no record_stream: freed is free */
} ms_row;

typedef struct ms_plan {
    const ms_graph *graph;

    uint32_t n_ops;
    ms_plan_op *op; /* n_ops + 1: the last holds the closing offsets */
    uint32_t *release;
    uint32_t *wait_at, *wait; /* NULL where every op is on one stream */
    uint32_t *use_at, *use;

    uint32_t n_rows;
    ms_row *row;

    uint32_t n_marks;
    struct ms_plan_mark {
        uint8_t mark;
        uint8_t rank;
        uint32_t micro_batch;
        uint32_t op;       /* the last op before the mark */
        uint32_t releases; /* entries of release before the mark: op's last
                              ones may come after it */
    } * marks;

    uint32_t n_transfers; /* ops that move bytes, in order */
    struct ms_transfer {
        uint32_t op;
        uint8_t kind;   /* ms_transfer_kind */
        uint64_t bytes; /* of a collective: that each rank sends, and of */
        uint64_t network_bytes; /* these between nodes */
    } * transfers;
    const ms_buffer *buffers; /* the program's */
    const uint8_t *saved_in;  /* the program's */

    uint32_t n_sync; /* where a rank's host waits, ascending by op */
    struct ms_plan_sync {
        uint32_t op;    /* before it issues this one or a later of its own */
        uint32_t until; /* for the end of this earlier op; MS_NONE: of all of
                           the rank's */
        uint8_t rank;
    } * sync;
    uint8_t n_ranks;
    uint32_t n_micro_batches;
    uint32_t recomputed_ops; /* how many ops ran again */
    uint32_t repeated; /* this micro-batch stands for so many more, which do */
    uint32_t
        repeats; /* the same and are left out (sim/expand/repeat.h); or 0 */
} ms_plan;

typedef struct ms_expand_opts {
    bool uses; /* fill plan.use (for --book device) */
    double h2d_bytes_per_s, d2h_bytes_per_s; /* MOVE; 0: takes no time */
    uint64_t copy_ns;                        /* latency of one copy */
    double pageable_share; /* of these rates that pageable copies reach */
    /* This rank's part of what its node's ranks share: all do the same at
     * the same time.  0: takes no time. */
    double host_bytes_per_s; /* DRAM, read and written */
    double nvme_read_bytes_per_s, nvme_write_bytes_per_s;
    double hbm_bytes_per_s; /* of the device's memory, as printed */
    ms_ring ring;           /* GATHER, REDUCE */
    ms_ring outer;          /* REDUCE with OUTER */
} ms_expand_opts;

/* bind and expand (sim/README.md 3).  Whatever an op needs that is not present
 * is made present: GONE re-runs its maker with only what that needs.  Faults:
 * MS_EINPUT for a program that runs a unit before its inputs exist, reads a
 * dropped storage that nothing can make, or forms a cycle. */
ms_err ms_expand(const ms_graph *graph, const ms_program *program,
                 const ms_expand_opts *opts, ms_arena *arena, ms_plan *plan,
                 ms_fault *fault);

/* dumpplan.c: the plan as text, an op a line. */
void ms_dumpplan_write(const ms_plan *plan, ms_text *text);
/* The full name of what a row holds: a storage's or a buffer's. */
const char *ms_dumpplan_row_name(const ms_plan *plan, uint32_t row,
                                 char buffer[MS_STORAGE_NAME]);

#include "sim/timeline.h"

#include "sim/measure/measure.h"
#include "sim/pools/history/alloctrace.h"
#include "sim/pools/place/placement.h"
#endif
