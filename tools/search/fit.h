/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIT_H
#define MS_TOOLS_FIT_H

/* The parts of memsim fit:
 *
 *     fitchoices.c  what is searched, as data: dimensions and their choices
 *     fitalone.c    the job without policies
 *     fitsetup.c    a set-up as a job, as a policy and in words
 *     fitspace.c    the set-ups that the dimensions make of a job
 *     fitprobe.c    settings that a few replays decide for all set-ups
 *     fitbounds.c   what a set-up costs at least, without a replay
 *     fitsearch.c   replays; what provably cannot matter is passed over
 *     fitproof.c    what is shown goes through the allocator; the best of it
 *     fitmax.c      the largest batch or sequence
 *     fitreply.c    what is told of what was found
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
 * The search replays with the exact pool; what is shown is replayed again
 * through the allocator `proof`, and is not shown where it does not fit there.
 * A job with an allocator of its own (steps of several lengths) is searched
 * through that: what is reserved is that pool's, never less than what is
 * allocated, of which the bounds are.
 *
 * Goals.  Where the batch is searched, steps have different samples: a set-up's
 * cost is its step's time for as many as the largest has, its time else.  By
 * tokens/s and by step time the least cost is sought, by memory what reserves
 * least.
 *
 * A set-up fits when the device holds what it reserves beside the context, and
 * the node what its ranks leave in host memory and on the disk. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/points.h"
#include "tools/job/result.h"
#include "tools/options/options.h"
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
                              MS_FIT_SHARE,
                              MS_FIT_N_AXES
} ms_fit_axis_id;

/* What %u in a choice stands for. */
typedef enum ms_fit_values {
    MS_FIT_ONE,      /* nothing: it is one set-up */
    MS_FIT_LENGTHS,  /* blocks of a segment, from 2: of those that cut the
                        blocks into as many segments the least */
    MS_FIT_BLOCKS,   /* 1 to one less than there are blocks */
    MS_FIT_EIGHTHS,  /* so many eighths of the blocks, and one less than all */
    MS_FIT_DIVISORS, /* of the batch, from 2 */
    MS_FIT_POWERS    /* of two, from 2, as long as the step of the model alone
                        gains MS_FIT_GAIN percent for the same samples */
} ms_fit_values;

typedef struct ms_fit_choice {
    const char *spec;  /* as -p takes it, or the value of the dimension's key,
                          with %u; "": nothing */
    const char *words; /* "checkpoints of the first %u blocks" */
    ms_fit_values values;
    const char *label;  /* of a way to checkpoint */
    const char *beside; /* "a|b": only with these ways; NULL: any */
} ms_fit_choice;

/* The first choice of each is the plain one. */
typedef struct ms_fit_dimension {
    const char *name;     /* "checkpointing" */
    const char *policies; /* "ddp|zero|fsdp" decide it; it is not searched where
                             one of them is given; "": none decides it */
    const char *key;      /* of the setting that it is, "training.kernels"; not
                             searched where that is given; NULL: policies */
    const ms_fit_choice *choices;
    uint32_t n_choices;
} ms_fit_dimension;
extern const ms_fit_dimension ms_fitchoices_all[MS_FIT_N_AXES];
#define MS_FIT_GAIN 2u          /* percent */
#define MS_FIT_MOST_BATCH 1024u /* of MS_FIT_POWERS */

typedef struct ms_fit_option {
    const ms_fit_choice *choice;
    uint32_t value;
} ms_fit_option;

typedef struct ms_fit_axis {
    bool fixed; /* by a policy given, or because there is nothing to choose */
    ms_fit_option *options;
    uint32_t n;
    uint32_t dropped; /* a bit per option: in no set-up but the plain one */
} ms_fit_axis;

/* ---- fitbounds.c --------------------------------------------------------- */

/* No schedule of the set-up reserves less or takes less time. */
typedef struct ms_fit_bound {
    uint64_t peak_bytes, step_ns;
} ms_fit_bound;

/* From what the graph alone says.  Both are sound because
 *
 *   memory: what exists when the step starts is in the books of rank 0 before
 *           its first op, so the highest level is no lower;
 *   time:   every op runs at least once (forward and backward once per
 *           micro-batch), for no less than its ns, and a stream runs one op at
 *           a time: the step is no shorter than the sum over any stream.
 *           Accumulations count nothing: a buffer may be stolen instead.
 *
 * Unified memory keeps what is over elsewhere: its graphs have no bound. */
ms_fit_bound ms_fitbounds_graph(const ms_graph *graph, const ms_shape *shape);
/* Raises bound to what the program says besides:
 *
 *   memory: when rank 0's first backward begins, what forward saved and the
 *           program kept (or holds) is here, with what was here at the start,
 *           but for what any call moves away or drops;
 *   time:   what the calls run, on each stream; what a backward reads that was
 *           not kept, nor held, nor moved, is made again by its maker: the
 *           compute stream has that op once more; what was saved and leaves
 *           for the host takes its bytes over the link's rate, on its stream
 *           or, in line, on the compute stream. */
ms_err ms_fitbounds_program(const ms_graph *graph, const ms_program *program,
                            const ms_expand_opts *opts, ms_arena *arena,
                            ms_fit_bound *bound, ms_fault *fault);

/* ---- fitsearch.c --------------------------------------------------------- */

typedef enum ms_fit_state {
    MS_FIT_OPEN,
    MS_FIT_REFUSED,  /* by a policy */
    MS_FIT_TOO_BIG,  /* provably does not fit */
    MS_FIT_TOO_SLOW, /* provably further from the goal than MS_FIT_FAR */
    MS_FIT_BEATEN,   /* provably no smaller and no faster than one that fits */
    MS_FIT_REPLAYED,
    MS_FIT_N_STATES
} ms_fit_state;

typedef enum ms_fit_goal {
    MS_FIT_TOKENS, /* the most tokens (samples) a second; batch is searched
                      where nothing fixes it */
    MS_FIT_STEP,   /* the shortest step */
    MS_FIT_MEMORY, /* the least memory */
    MS_FIT_N_GOALS
} ms_fit_goal;
extern const char
    *const ms_fit_data_goals[MS_FIT_N_GOALS]; /* words of --goal */

typedef struct ms_fit_point {
    uint8_t state; /* ms_fit_state */
    bool proven;   /* the numbers are those of the allocator */
    bool fits_exact;
    uint16_t option[MS_FIT_N_AXES];
    uint32_t weight; /* steps for the samples that the largest batch has */
    ms_fit_bound bound;
    /* Of what was replayed: */
    bool fits;
    ms_status status;
    bool far_full; /* host memory or disk of the node are too small, by: */
    uint64_t host_short_bytes, nvme_short_bytes;
    uint64_t peak_bytes, reserved_bytes, step_ns, recompute_ns, stall_ns,
        exposed_comm_ns, host_peak_bytes, host_reserved_peak_bytes;
    uint64_t used_bytes; /* with the context: what nvidia-smi shows */
    int64_t headroom_bytes;
    double tokens_per_second;
} ms_fit_point;

/* Set-ups that are so many times further from the goal than the best that fits
 * are none of the front: they save too little to be worth a run. */
#define MS_FIT_FAR_NUMERATOR 3u
#define MS_FIT_FAR_DENOMINATOR 2u
/* Until times are held against measurements, those within so many percent of
 * the fastest are called equal; then the one with most headroom is the best. */
#define MS_FIT_EQUAL 30u
/* Differences of no more percent decide nothing when settings are probed: a
 * roofline knows no better. */
#define MS_FIT_TIE 1u

typedef struct ms_fit {
    const ms_job *job; /* with the policies given */
    ms_points *points;
    ms_arena *arena;
    uint32_t threads;
    ms_fit_goal goal;
    bool vary_precision;
    const ms_allocator *proof;    /* NULL: the exact pool is what is shown */
    uint32_t proof_steps;         /* through it; 0: not said */
    bool exhaustive;              /* for tests: replay everything */
    bool any;                     /* stop at the first that fits */
    const ms_fit_point *hint;     /* with any: what to try first; or NULL */
    bool frozen[MS_FIT_N_AXES];   /* not to be searched */
    const struct ms_fit *settled; /* drop what was dropped there; or NULL */

    ms_fit_axis axes[MS_FIT_N_AXES];
    uint32_t n_blocks;
    uint64_t capacity_bytes, context_bytes;
    ms_outside outside; /* context_bytes by what it is of */
    ms_fit_point *all;  /* the plain one first */
    uint32_t n_all;

    uint32_t count[MS_FIT_N_STATES];
    uint32_t fastest;   /* that fits, of several the smallest; MS_NONE: none */
    uint32_t leanest;   /* of what fits, by memory */
    uint32_t best;      /* of the equals the one with most headroom, or by
                           memory the leanest */
    uint32_t on_device; /* the same of those that keep all on the device */
    /* Of what was replayed, where nothing fits; MS_NONE: nothing could be. */
    uint32_t smallest;     /* of those for which the node has enough */
    uint32_t smallest_far; /* of those for which it has not */
    uint32_t *front;       /* what fits and nothing beats, the fastest first */
    uint32_t n_front;
    uint32_t n_whole; /* what is too far stands behind n_front */
    /* fitproof.c: what of the front was proven and fits, the best first: the
     * n_equal equals by headroom, then the others by cost, by memory all by
     * what they reserve.  None is beaten by another. */
    uint32_t *rows;
    uint32_t n_rows, n_equal;
    uint32_t n_failed;  /* that fit exactly and not through the allocator */
    uint32_t n_decided; /* replays of fitprobe.c */
    ms_fault refusal;   /* of the first set-up that a policy refused */

    ms_points_seat seat; /* of model; ms_fitspace_close leaves it */
    ms_result model;     /* lowered without any policy */
} ms_fit;

/* Reads the model, finds the options and lists what is to be searched. */
ms_err ms_fitspace_open(ms_fit *fit, ms_fault *fault);
void ms_fitspace_close(ms_fit *fit); /* whether it was opened or not */
/* ---- fitalone.c ---------------------------------------------------------- */

/* The job without its policies, with so many samples a rank; 0: as it says. */
ms_err ms_fitalone_lower(ms_fit *fit, uint64_t batch, ms_result *result,
                         ms_fault *fault);
/* What a step of the model alone takes at least with another batch. */
ms_err ms_fitalone_step(ms_fit *fit, uint32_t batch, uint64_t *step_ns,
                        ms_fault *fault);

/* ---- fitsetup.c ---------------------------------------------------------- */

const ms_fit_option *ms_fitsetup_option(const ms_fit *fit,
                                        const ms_fit_point *point,
                                        ms_fit_axis_id axis);
/* The job with the policies and settings of the point. */
ms_err ms_fitsetup_job(const ms_fit *fit, const ms_fit_point *point,
                       ms_arena *arena, ms_job *job, ms_fault *fault);
/* What it sets on that axis, "fused" or "8"; NULL: nothing, or a policy. */
const char *ms_fitsetup_value(const ms_fit *fit, const ms_fit_point *point,
                              ms_fit_axis_id axis, ms_arena *arena);
uint64_t ms_fitsetup_batch(const ms_fit *fit, const ms_fit_point *point);
/* Its choice of that axis: "ZeRO stage 1"; nothing where that is plain. */
void ms_fitsetup_part(const ms_fit *fit, const ms_fit_point *point,
                      ms_fit_axis_id axis, ms_text *text);
/* All of them: "ZeRO stage 1, a checkpoint every 3 blocks". */
void ms_fitsetup_words(const ms_fit *fit, const ms_fit_point *point,
                       ms_text *text);
/* The point that has option `to` on that axis, all else alike; or MS_NONE. */
uint32_t ms_fitsetup_other(const ms_fit *fit, uint32_t point,
                           ms_fit_axis_id axis, uint16_t to);
/* The job as it is proven: memsim run's. */
ms_job ms_fitsetup_proof(const ms_fit *fit, const ms_job *job);

/* ---- fitchoices.c, fitprobe.c -------------------------------------------- */

ms_err ms_fitchoices_open(ms_fit *fit, ms_fit_axis_id id, ms_fault *fault);
/* Drops options of kernels, loss and optimizer that no probe (without and with
 * checkpoints, the least and the largest batch) shows to be of use: another is
 * nowhere larger, and slower by no more than half of what is called equal. */
ms_err ms_fitprobe_run(ms_fit *fit, ms_fault *fault);

/* ---- the search ---------------------------------------------------------- */

/* What is the same for any number of threads: all of fit. */
ms_err ms_fitsearch_run(ms_fit *fit, ms_fault *fault);
/* Is it further from the goal than what the front may hold? */
bool ms_fitsearch_is_far(const ms_fit *fit, const ms_fit_point *point);
/* Replays points (n of list) with the exact pool or, where proof is set,
 * through the allocator; a set-up that is refused becomes so. */
ms_err ms_fitsearch_replay(ms_fit *fit, const uint32_t *list, uint32_t n,
                           bool proof, ms_fault *fault);
/* Replays points that are in no list yet, with the exact pool. */
ms_err ms_fitsearch_probe(ms_fit *fit, ms_fit_point *points, uint32_t n,
                          ms_fault *fault);
uint64_t ms_fitsearch_cost(const ms_fit_point *point);
/* Of a list, the fastest first, each smaller than the one before: how many are
 * equals of the first, of which the last is the best; by memory all. */
uint32_t ms_fitsearch_equals(const ms_fit *fit, const uint32_t *list,
                             uint32_t n);

/* ---- fitproof.c ---------------------------------------------------------- */

/* After the search: rows, and of them the best, the fastest, on_device.  Where
 * nothing is proven to fit, smallest and smallest_far are proven. */
ms_err ms_fitproof_run(ms_fit *fit, ms_fault *fault);
/* What is told besides, replayed as the rows were. */
ms_err ms_fitproof_one(ms_fit *fit, uint32_t point, ms_fault *fault);

/* ---- fitmax.c ------------------------------------------------------------ */

#define MS_FIT_RUNGS 24u
#define MS_FIT_PAYS 5u /* percent */

typedef struct ms_fit_max {
    const char *key;   /* "batch" or "sequence" */
    uint64_t value;    /* the largest for which something fits */
    uint64_t over;     /* the smallest tried for which nothing does; 0: none */
    uint64_t cap;      /* no larger one is tried */
    bool model_cap;    /* the cap is the model's */
    uint32_t searches; /* values tried */
    uint64_t replays;
    /* Of a batch: powers of two that were searched in full, and samples per
     * second of the fastest that fits. */
    struct ms_fit_rung {
        uint64_t value;
        double rate;
    } rungs[MS_FIT_RUNGS];
    uint32_t n_rungs;
    uint64_t pays; /* the least of them with all but MS_FIT_PAYS percent of the
                      highest rate; of a sequence: value */
} ms_fit_max;

ms_err ms_fitmax_find(ms_fit *fit, const char *what, ms_fit_max *max,
                      ms_fault *fault);
/* At which value set-ups are told: the one that pays, or the least where none
 * fits. */
uint64_t ms_fitmax_told(const ms_fit_max *max);

/* ---- fitreply.c ---------------------------------------------------------- */

typedef struct ms_fit_reply {
    ms_fit *fit;
    const ms_fit_max *max; /* NULL: not asked for */
    const ms_arguments *arguments;
    const char *given;  /* the policies given; NULL: none */
    const char *fixed;  /* what is not searched for them, in words; NULL */
    uint32_t chosen;    /* best, or where nothing fits the smallest; that
                           needs more than the node has if there is no other */
    uint32_t without_n; /* set-ups that lack a part of the chosen one */
    struct ms_fit_without {
        ms_fit_axis_id axis;
        uint32_t point;
    } without[MS_FIT_N_AXES];
    const char *pool;    /* of the chosen one, in words; NULL: it is exact */
    const char *command; /* to type for the chosen one; NULL: nothing is */
} ms_fit_reply;

#define MS_FIT_ROWS 12u

/* Row i of what is not searched; NULL: no more. */
const char *ms_fitreply_not_searched(const ms_fit *fit, uint32_t i);

/* Replays what is told besides: the plain set-up, the chosen one without each
 * of its parts. */
ms_err ms_fitreply_of(ms_fit *fit, const ms_fit_max *max,
                      const ms_arguments *arguments, ms_fit_reply *reply,
                      ms_fault *fault);
/* To type for a point; NULL: out of memory. */
const char *ms_fitreply_command(const ms_fit_reply *reply, uint32_t point);
/* The policies in canonical spelling; NULL: out of memory. */
const char *ms_fitreply_policy(const ms_fit *fit, uint32_t point,
                               ms_arena *arena);

/* ---- fit_text.c, fit_table.c, fit_data.c --------------------------------- */

void ms_fit_text_write(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text);
/* "batch 1 x 2048 tokens, ..." of what is searched, in each rank and the job.
 */
void ms_fit_text_batch(const ms_fit *fit, const char *times, ms_text *words);
/* What differs between rows: settings with more than one option left, then the
 * policies.  skips: per axis, what is left out; NULL: nothing. */
void ms_fit_table_set_up(const ms_fit *fit, uint32_t i, const bool *skips,
                         ms_text *text);
/* The rows, at most MS_FIT_ROWS, and what was searched. */
void ms_fit_table_write(const ms_fit_reply *reply, const ms_style *style,
                        ms_text *text);
void ms_fit_table_searched(const ms_fit_reply *reply, const ms_style *style,
                           ms_text *text);
/* A line per number of GPUs (n of them), and what to type for each. */
void ms_fit_table_gpus(const ms_fit_reply *replies, uint32_t n,
                       const ms_style *style, ms_text *text);
/* The same with what they have in common above it. */
void ms_fit_text_gpus(const ms_fit_reply *replies, uint32_t n,
                      const ms_style *style, ms_text *text);
/* "+15.8 %", "-" for what is equal. */
ms_label ms_fit_table_percent(uint64_t value, uint64_t of);
void ms_fit_data_json(const ms_fit_reply *reply, ms_text *text);
/* A row per set-up that was replayed, with the columns of a sweep. */
void ms_fit_data_csv(const ms_fit *fit, ms_text *text);

/* ---- fit_figure.c -------------------------------------------------------- */

/* Peak against throughput, or step time where all steps do the same: what was
 * replayed and takes neither far longer than the fastest that fits nor far more
 * memory than there is. */
ms_err ms_fit_figure_draw(const ms_fit_reply *reply, const ms_picture *picture,
                          ms_arena *arena, ms_fault *fault);

#endif
