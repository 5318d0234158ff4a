/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIT_H
#define MS_TOOLS_FIT_H

/* The parts of memsim fit:
 *
 *     fitchoices.c  what is searched, as data: dimensions and their choices
 *     fitalone.c    the job without policies
 *     fitsetup.c    a set-up as a job, as policies and in words
 *     fitspace.c    the set-ups that the dimensions make of a job
 *     fitprobe.c    settings that a few replays decide for all set-ups
 *     fitbounds.c   lower bounds of a set-up, without a replay
 *     fitstages.c   the same of pipelines, from fitcosts.c
 *     fitpoint.c    the bounds and the replay of one set-up
 *     fitjudge.c    what a set-up is worth, and which are equals
 *     fitsearch.c   replays, without those that provably cannot matter
 *     fitproof.c    replays what is shown through the allocator; finds the best
 *     fitmax.c      the largest batch or sequence
 *     fitreply.c    what is reported of what was found
 *     fitlaunch.c   a set-up as the arguments of systems that train
 *     fit_text.c, fit_data.c, fit_figure.c   for people; JSON and CSV
 *     fit.c         the command
 *
 *     ms_fit fit = {.job = &job, .points = &points, .arena = &arena};
 *     MS_TRY(ms_fitspace_open(&fit, fault));
 *     MS_TRY(ms_fitsearch_run(&fit, fault));
 *     MS_TRY(ms_fitproof_run(&fit, fault));
 *     ... fit.best, fit.rows ...
 *     ms_fitspace_close(&fit);
 *
 * The search replays with the exact pool (no fragmentation); what is shown is
 * replayed again through the allocator `proof`, and is left out where it does
 * not fit there. A job with an allocator of its own (steps of several lengths)
 * is searched through that one: then reserved bytes are that pool's. They are
 * never less than the allocated bytes that the bounds are of, so the bounds
 * hold.
 *
 * Goals. Where the batch is searched, or where ranks share samples, steps train
 * different numbers of samples: the cost of a set-up is the time of as many of
 * its steps as train the samples of the most; else it is the time of its step.
 * The goals tokens/s and step time seek the least cost; the goal memory seeks
 * the least reserved bytes.
 *
 * A set-up fits when the device holds what it reserves beside the context, and
 * the node holds what its ranks put into host memory and on the disk. */

#include "policies/common/policy.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
#include "tools/points/points.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

/* ---- fitspace.c ---------------------------------------------------------- */

typedef enum ms_fit_axis_id { /* from the last resort to what costs least */
                              MS_FIT_OFFLOAD,
                              MS_FIT_SWAP,
                              MS_FIT_CHECKPOINT,
                              MS_FIT_MICROBATCH,
                              MS_FIT_BATCH,
                              MS_FIT_PRECISION,
                              MS_FIT_LOSS,
                              MS_FIT_KERNELS,
                              MS_FIT_OPTIMIZER,
                              MS_FIT_SCHEDULE, /* of the pipeline */
                              MS_FIT_PIPELINE,
                              MS_FIT_EXPERT,
                              MS_FIT_CONTEXT,
                              MS_FIT_TENSOR,
                              MS_FIT_SHARE,
                              MS_FIT_N_AXES
} ms_fit_axis_id;

/* What %u in a choice stands for. */
typedef enum ms_fit_values {
    MS_FIT_ONE, /* no value: it is one set-up */
    /* blocks of a segment, from 2 on: for each number of segments only the
     * least length */
    MS_FIT_LENGTHS,
    MS_FIT_BLOCKS,   /* 1 to one less than there are blocks */
    MS_FIT_EIGHTHS,  /* 1/8 to 7/8 of the blocks, and all but one */
    MS_FIT_DIVISORS, /* of the batch of the fewest ranks, from 2 on */
    MS_FIT_NODE,     /* powers of two that divide a node's GPUs and the job's */
    MS_FIT_GPUS,     /* powers of two that divide the job's GPUs */
    MS_FIT_RANKS,    /* of those, as many as there are blocks at most */
    MS_FIT_CHUNKS,   /* that cut the blocks evenly, of MS_FIT_MOST_CHUNKS */
    MS_FIT_SAMPLES,  /* 1, 2, 4 and 8 */
    MS_FIT_SPARE,    /* percent of the memory: 3, 6 and 12 */
    /* of two, from 2 on, as long as the model alone gains MS_FIT_GAIN percent
     * of time per sample */
    MS_FIT_POWERS
} ms_fit_values;

typedef enum ms_fit_where {
    MS_FIT_ANYWHERE,
    MS_FIT_PIPELINED,
    MS_FIT_UNPIPED
} ms_fit_where;

typedef struct ms_fit_choice {
    /* for -p, or the value for the dimension's key, with %u; "": nothing */
    const char *spec;
    const char *words; /* "checkpoints of the first %u blocks" */
    ms_fit_values values;
    const char *label; /* of a way to checkpoint; NULL: it is none */
    /* "a|b": legal only with these ways to checkpoint; NULL: with any */
    const char *beside;
    bool on_device; /* legal only without swap and offload */
    /* legal only in a pipeline, or only without one */
    ms_fit_where where;
    bool pair; /* a schedule of two stages a rank */
} ms_fit_choice;

/* The first choice of each dimension is the plain one. */
typedef struct ms_fit_dimension {
    const char *name; /* "checkpointing" */
    /* "ddp|zero|fsdp": the dimension is not searched where one of these is
     * given; "": no policy decides it */
    const char *policies;
    /* "training.kernels": not searched where that setting is given; NULL: the
     * choices are policies */
    const char *key;
    const ms_fit_choice *choices;
    uint32_t n_choices;
} ms_fit_dimension;
extern const ms_fit_dimension ms_fitchoices_all[MS_FIT_N_AXES];
#define MS_FIT_GAIN 2u          /* percent of time per sample */
#define MS_FIT_MOST_BATCH 1024u /* the largest of MS_FIT_POWERS */
#define MS_FIT_MOST_CHUNKS 16u  /* stages of a rank */
/* Shorter samples are not divided among ranks: their batch is. */
#define MS_FIT_LONG 8192u

typedef struct ms_fit_option {
    const ms_fit_choice *choice;
    uint32_t value;
} ms_fit_option;

typedef struct ms_fit_axis {
    bool fixed; /* as said, or because there is nothing to choose */
    bool given; /* by a policy of the job */
    ms_fit_option *options;
    uint32_t n;
    uint32_t dropped; /* a bit per option that only the plain set-up may have */
} ms_fit_axis;

/* So many stages divide the blocks evenly, or blocks, embedding and loss
 * together, which then count as blocks (*counted). */
bool ms_fitchoices_even(uint32_t n_blocks, uint32_t stages, bool *counted);

/* ---- fitbounds.c --------------------------------------------------------- */

/* Lower bounds: every schedule of the set-up reserves at least peak_bytes and
 * takes at least step_ns. */
typedef struct ms_fit_bound {
    uint64_t peak_bytes, step_ns;
    /* of a pipeline, whose ranks share with fewer others: what it has in place
     * of ms_fit's context_bytes; 0: that */
    uint64_t context_bytes;
} ms_fit_bound;

/* Bytes of a storage that are in a rank's device pool when the step starts and
 * that its first micro-batch does not free. */
uint64_t ms_fitbounds_start(const ms_graph *graph, uint32_t storage);
/* The bounds that follow from the graph alone. They are sound because
 *
 *   memory: what exists when the step starts is in the books of rank 0 before
 *           its first op, so the highest level is no lower;
 *   time:   every op runs at least once (forward and backward once per
 *           micro-batch), for no less than its ns, and a stream runs one op at
 *           a time: the step is no shorter than the sum over any stream.
 *           Accumulations count nothing, because autograd may reuse a buffer
 *           in place of adding.
 *
 * Unified memory pages the excess out to the host: its graphs have no bound. */
/* (fitstages.h has those of pipelines.) */
ms_fit_bound ms_fitbounds_graph(const ms_graph *graph, const ms_shape *shape);
/* Raises the bounds to what the program adds:
 *
 *   memory: when rank 0's first backward begins, the tensors that forward
 *           saved and that the program keeps or holds are on the device, with
 *           what was there at the start; without those that any call moves
 *           away or drops;
 *   time:   the ops that the calls run, by stream; a tensor that a backward
 *           reads and that was neither kept, nor held, nor moved is made again:
 *           its maker runs once more; a saved tensor that leaves for the host
 *           takes its bytes over the link's rate, on the copy stream or,
 *           in line, on the compute stream. */
ms_err ms_fitbounds_program(const ms_graph *graph, const ms_program *program,
                            const ms_expand_opts *opts, ms_arena *arena,
                            ms_fit_bound *bound, ms_fault *fault);

/* ---- fitsearch.c --------------------------------------------------------- */

typedef enum ms_fit_state {
    MS_FIT_OPEN,
    MS_FIT_REFUSED,  /* a policy refuses it */
    MS_FIT_TOO_BIG,  /* provably does not fit */
    MS_FIT_TOO_SLOW, /* provably further from the goal than MS_FIT_FAR */
    MS_FIT_BEATEN,   /* provably no smaller and no faster than one that fits */
    MS_FIT_REPLAYED,
    MS_FIT_N_STATES
} ms_fit_state;

typedef enum ms_fit_goal {
    /* the most tokens (or samples) a second; the batch is searched unless it is
     * given */
    MS_FIT_TOKENS,
    MS_FIT_STEP,   /* the shortest step */
    MS_FIT_MEMORY, /* the least memory */
    MS_FIT_N_GOALS
} ms_fit_goal;

typedef struct ms_fit_point {
    uint8_t state; /* ms_fit_state */
    bool proven;   /* the numbers below are those of the allocator */
    bool fits_exact;
    uint16_t option[MS_FIT_N_AXES];
    /* checkpoints of each stage ("9/4/0"), where the set-up has as many as it
     * needs; NULL: not known yet */
    const char *first;
    /* steps that train the samples of the set-up whose step trains the most */
    uint32_t weight;
    ms_fit_bound bound;
    /* Of what was replayed: */
    bool fits;
    ms_status status;
    /* host memory or the disk of the node is too small, by these bytes */
    bool far_full;
    uint64_t host_short_bytes, nvme_short_bytes;
    uint64_t peak_bytes, reserved_bytes, step_ns, recompute_ns, stall_ns,
        exposed_comm_ns, host_peak_bytes, host_reserved_peak_bytes;
    uint64_t used_bytes; /* with the context, as nvidia-smi shows it */
    int64_t headroom_bytes;
    double tokens_per_second;
    uint64_t error_percent; /* of step_ns, as in ms_times */
    uint64_t measured_runs;
} ms_fit_point;

/* Set-ups that are more than 3/2 times as far from the goal as the best one
 * that fits are not in the front: they save too little to be worth a run. */
#define MS_FIT_FAR_NUMERATOR 3u
#define MS_FIT_FAR_DENOMINATOR 2u
/* Of pipelines, of which there are many, one that is no smaller and no faster
 * than a point of the front by more than so many percent is not replayed,
 * unless it could be the fastest, the best or the leanest. */
#define MS_FIT_CLOSE 5u
/* Differences of at most so many percent decide nothing when settings are
 * probed: a roofline is no more exact than that. */
#define MS_FIT_TIE 1u

typedef struct ms_fit {
    const ms_job *job; /* with the policies that were given */
    ms_points *points;
    ms_arena *arena;
    uint32_t threads;
    ms_fit_goal goal;
    bool vary_precision;
    /* what is shown goes through it; NULL: through the exact pool */
    const ms_allocator *proof;
    uint32_t proof_steps;       /* steps through proof; 0: its default */
    bool exhaustive;            /* replay every set-up (for tests) */
    bool any;                   /* stop at the first set-up that fits */
    const ms_fit_point *hint;   /* with any: the set-up to try first, or NULL */
    bool frozen[MS_FIT_N_AXES]; /* axes that are not searched */
    /* take its dropped options instead of probing; or NULL */
    const struct ms_fit *settled;

    ms_fit_axis axes[MS_FIT_N_AXES];
    uint32_t n_blocks;
    /* with --global-batch: ranks with samples of their own, where none of what
     * is searched has several of them share some */
    uint32_t ranks;
    uint64_t capacity_bytes, context_bytes;
    ms_outside outside; /* the parts of context_bytes */
    ms_fit_point *all;  /* every set-up, the plain one first */
    uint32_t n_all;

    uint32_t count[MS_FIT_N_STATES];
    /* of those that fit; of equally fast ones the smallest. MS_NONE: none fits
     */
    uint32_t fastest;
    uint32_t leanest; /* of those that fit, the one that reserves least */
    /* of the equals the one with the most headroom; by memory the leanest */
    uint32_t best;
    uint32_t on_device; /* the best of those that keep all on the device */
    /* Of the replayed ones where nothing fits; MS_NONE: none was replayed. */
    uint32_t smallest;     /* where the node's memories are large enough */
    uint32_t smallest_far; /* where they are not */
    /* the points that fit and that no other beats, the fastest first */
    uint32_t *front;
    uint32_t n_front;
    /* n_front and those behind it, which are too far from the goal */
    uint32_t n_whole;
    /* fitproof.c: the points of the front that are proven to fit, the best
     * first: the n_equal equals by headroom, then the others by cost; by memory
     * all are ordered by reserved bytes. No row beats another. */
    uint32_t *rows;
    uint32_t n_rows, n_equal;
    /* points that fit exactly but not through the allocator */
    uint32_t n_failed;
    uint32_t n_decided; /* replays that fitprobe.c made */
    ms_fault refusal;   /* of the first set-up that a policy refused */

    ms_points_seat seat; /* of `model`; ms_fitspace_close frees it */
    ms_result model;     /* lowered without any policy */
} ms_fit;

/* Reads the model, finds the options and lists the set-ups. */
ms_err ms_fitspace_open(ms_fit *fit, ms_fault *fault);
/* may be called whether or not it was opened */
void ms_fitspace_close(ms_fit *fit);
/* ---- fitalone.c ---------------------------------------------------------- */

/* Lowers the job without its policies, with `batch` samples a rank; 0: the
 * job's. */
ms_err ms_fitalone_lower(ms_fit *fit, uint64_t batch, ms_result *result,
                         ms_fault *fault);
/* The least time of a step of the model alone with another batch. */
ms_err ms_fitalone_step(ms_fit *fit, uint32_t batch, uint64_t *step_ns,
                        ms_fault *fault);

/* ---- fitsetup.c ---------------------------------------------------------- */

const ms_fit_option *ms_fitsetup_option(const ms_fit *fit,
                                        const ms_fit_point *point,
                                        ms_fit_axis_id axis);
/* The job with the policies and settings of the point. */
ms_err ms_fitsetup_job(const ms_fit *fit, const ms_fit_point *point,
                       ms_arena *arena, ms_job *job, ms_fault *fault);
/* The value that the point sets on that axis ("fused", "8"); NULL: none, or it
 * is a policy. */
const char *ms_fitsetup_value(const ms_fit *fit, const ms_fit_point *point,
                              ms_fit_axis_id axis, ms_arena *arena);
uint64_t ms_fitsetup_batch(const ms_fit *fit, const ms_fit_point *point);
/* Ranks that share the samples of one: those of tensor times those of context
 * and of the pipeline, as far as they are searched. */
uint32_t ms_fitsetup_degree(const ms_fit *fit, const ms_fit_point *point);
/* The ranks of its pipeline, and how many stages these have; 1: it has none. */
uint32_t ms_fitsetup_ranks(const ms_fit *fit, const ms_fit_point *point);
uint32_t ms_fitsetup_stages(const ms_fit *fit, const ms_fit_point *point);
/* The choice of that axis in words: "ZeRO stage 1"; "" where it is plain. */
void ms_fitsetup_part(const ms_fit *fit, const ms_fit_point *point,
                      ms_fit_axis_id axis, ms_text *text);
/* The choices of all axes in words: "ZeRO stage 1, a checkpoint every 3
 * blocks". */
void ms_fitsetup_words(const ms_fit *fit, const ms_fit_point *point,
                       ms_text *text);
/* The point that differs from `point` only in having option `to` on that axis,
 * or MS_NONE. */
uint32_t ms_fitsetup_other(const ms_fit *fit, uint32_t point,
                           ms_fit_axis_id axis, uint16_t to);
/* The job as it is proven, which is how memsim run would run it. */
ms_job ms_fitsetup_proof(const ms_fit *fit, const ms_job *job);

/* ---- fitchoices.c, fitprobe.c -------------------------------------------- */

ms_err ms_fitchoices_open(ms_fit *fit, ms_fit_axis_id id, ms_fault *fault);
/* Drops options of kernels, loss and optimizer that are of no use in any probe
 * (without and with checkpoints, at the least and the largest batch): another
 * option is nowhere larger, and slower by at most half of
 * MS_ACCURACY_UNKNOWN percent. */
ms_err ms_fitprobe_run(ms_fit *fit, ms_fault *fault);

/* ---- fitjudge.c ---------------------------------------------------------- */

uint64_t ms_fitjudge_cost(const ms_fit_point *point);
/* Costs within so many percent of that of the fastest point are called equal,
 * because measured steps of its kind were off by as much; of equals the one
 * with the most headroom is the best. */
uint32_t ms_fitjudge_band(const ms_fit_point *fastest);
/* For a list in which each point is slower and smaller than the one before: how
 * many are equals of the first (the last of these is the best). By memory all
 * are. */
uint32_t ms_fitjudge_equals(const ms_fit *fit, const uint32_t *list,
                            uint32_t n);
/* Is the point further from the goal than a point of the front may be? */
bool ms_fitjudge_is_far(const ms_fit *fit, const ms_fit_point *point);
/* The same of its bounds; do these say that it does not fit? */
bool ms_fitjudge_is_bound_far(const ms_fit *fit, const ms_fit_point *point);
bool ms_fitjudge_is_too_big(const ms_fit *fit, const ms_fit_point *point);

/* ---- the search ---------------------------------------------------------- */

/* Everything in fit that the search sets is the same for any number of threads.
 */
ms_err ms_fitsearch_run(ms_fit *fit, ms_fault *fault);
/* Replays n points of a list with the exact pool or, if `proof`, through the
 * allocator; a set-up that a policy refuses gets that state. */
ms_err ms_fitsearch_replay(ms_fit *fit, const uint32_t *list, uint32_t n,
                           bool proof, ms_fault *fault);
/* Replays points that are not in fit->all, with the exact pool. */
ms_err ms_fitsearch_probe(ms_fit *fit, ms_fit_point *points, uint32_t n,
                          ms_fault *fault);
/* ---- fitproof.c ---------------------------------------------------------- */

/* Sets rows and, of them, best, fastest and on_device. Where nothing is proven
 * to fit, it replays smallest and smallest_far instead. */
ms_err ms_fitproof_run(ms_fit *fit, ms_fault *fault);
/* Replays one more point that is reported, as the rows were. */
ms_err ms_fitproof_one(ms_fit *fit, uint32_t point, ms_fault *fault);

/* ---- fitmax.c ------------------------------------------------------------ */

#define MS_FIT_RUNGS 24u
#define MS_FIT_PAYS 5u /* percent */

typedef struct ms_fit_max {
    const char *key;   /* "batch" or "sequence" */
    uint64_t value;    /* the largest for which something fits */
    uint64_t over;     /* the smallest value tried that does not fit; 0: none */
    uint64_t cap;      /* no larger value is tried */
    bool model_cap;    /* the model gives the cap, not memsim */
    uint32_t searches; /* the number of values tried */
    uint64_t replays;
    /* For a batch: the powers of two that were searched in full, with the
     * samples per second of the fastest set-up that fits. */
    struct ms_fit_rung {
        uint64_t value;
        double rate;
    } rungs[MS_FIT_RUNGS];
    uint32_t n_rungs;
    /* the least of them within MS_FIT_PAYS percent of the highest rate; for a
     * sequence: value */
    uint64_t pays;
} ms_fit_max;

ms_err ms_fitmax_find(ms_fit *fit, const char *what, ms_fit_max *max,
                      ms_fault *fault);
/* The value at which set-ups are reported: the one that pays, or the least that
 * did not fit where none does. */
uint64_t ms_fitmax_told(const ms_fit_max *max);

/* ---- fitreply.c ---------------------------------------------------------- */

typedef struct ms_fit_reply {
    ms_fit *fit;
    const ms_fit_max *max; /* NULL: --max is not given */
    const ms_arguments *arguments;
    const char *given; /* the policies that are given; NULL: none */
    const char *fixed; /* dimensions that these fix, in words; or NULL */
    /* best; where nothing fits, smallest, or else smallest_far */
    uint32_t chosen;
    /* set-ups that differ from the chosen one by one part */
    uint32_t without_n;
    struct ms_fit_without {
        ms_fit_axis_id axis;
        uint32_t point;
    } without[MS_FIT_N_AXES];
    /* the allocator's words for the chosen set-up; NULL: it is exact */
    const char *pool;
    const char *command; /* to type for the chosen set-up */
    /* the chosen set-up on several GPUs, and the row that each system can have
     * first (MS_NONE: none); NULL: on one GPU */
    const struct ms_fitlaunch *launch;
} ms_fit_reply;

#define MS_FIT_ROWS 12u

/* The i-th thing that is not searched; NULL: there are no more. */
const char *ms_fitreply_not_searched(const ms_fit *fit, uint32_t i);

/* Replays what is reported beside the rows: the plain set-up, and the chosen
 * one without each of its parts. */
ms_err ms_fitreply_of(ms_fit *fit, const ms_fit_max *max,
                      const ms_arguments *arguments, ms_fit_reply *reply,
                      ms_fault *fault);
/* The command line for a point; NULL: out of memory. */
const char *ms_fitreply_command(const ms_fit_reply *reply, uint32_t point);
/* The policies of a point in their canonical spelling; NULL: out of memory. */
const char *ms_fitreply_policy(const ms_fit *fit, uint32_t point,
                               ms_arena *arena);

/* ---- fit_text.c, fit_table.c, fit_data.c --------------------------------- */

void ms_fit_text_write(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text);
/* "batch 1 x 2048 tokens, ...": what is searched, for each rank and for the
 * job. */
void ms_fit_text_batch(const ms_fit *fit, const char *times, ms_text *words);
/* What differs between rows: settings with more than one option left, then the
 * policies. skips: by axis, what is left out; NULL: nothing is. */
void ms_fit_table_set_up(const ms_fit *fit, uint32_t i, const bool *skips,
                         ms_text *text);
/* The table of at most MS_FIT_ROWS rows. */
void ms_fit_table_write(const ms_fit_reply *reply, const ms_style *style,
                        ms_text *text);
void ms_fit_table_searched(const ms_fit_reply *reply, const ms_style *style,
                           ms_text *text);
/* A table with a line for each of n numbers of GPUs, and what to type for each.
 */
void ms_fit_table_gpus(const ms_fit_reply *replies, uint32_t n,
                       const ms_style *style, ms_text *text);
/* The same below the lines that the numbers of GPUs have in common. */
void ms_fit_text_gpus(const ms_fit_reply *replies, uint32_t n,
                      const ms_style *style, ms_text *text);
/* "+15.8 %"; "-" where the two are equal. */
ms_label ms_fit_table_percent(uint64_t value, uint64_t of);
void ms_fit_data_json(const ms_fit_reply *reply, ms_text *text);
/* A row for every set-up that was replayed, in the columns of a sweep. */
void ms_fit_data_csv(const ms_fit *fit, ms_text *text);

/* ---- fit_figure.c -------------------------------------------------------- */

/* Draws the peak against the throughput, or against the step's time where all
 * steps train the same samples. It leaves out set-ups that are far slower than
 * the fastest that fits or need far more memory than there is. */
ms_err ms_fit_figure_draw(const ms_fit_reply *reply, const ms_picture *picture,
                          ms_arena *arena, ms_fault *fault);

#endif
