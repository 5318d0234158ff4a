/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FIT_H
#define MS_TOOLS_FIT_H

/* The parts of memsim fit:
 *
 *     fitspace.c    what is searched, as data: dimensions and their choices
 *     fitbounds.c   what a set-up costs at least, without a replay
 *     fitsearch.c   replays; what provably cannot matter is passed over
 *     fitmax.c      the largest batch or sequence
 *     fitreply.c    what is told of what was found
 *     fit_text.c, fit_data.c, fit_figure.c   for people; JSON and CSV
 *     fit.c         the command
 *
 *     ms_fit fit = {.job = &job, .points = &points, .arena = &arena};
 *     MS_TRY(ms_fitspace_open(&fit, fault));
 *     MS_TRY(ms_fitsearch_run(&fit, fault));
 *     ... fit.best, fit.front ...
 *     ms_fitspace_close(&fit);
 *
 * With --allocator each replay goes through its pool: what is reserved is that
 * pool's, never less than what is allocated, of which the bounds are.
 *
 * A set-up fits when the device holds what it reserves beside the context, and
 * the node what its ranks leave in host memory and on the disk. */

#include "tools/points.h"

/* ---- fitspace.c ---------------------------------------------------------- */

typedef enum ms_fit_axis_id { /* from the last resort to what costs least */
                              MS_FIT_OFFLOAD,
                              MS_FIT_SWAP,
                              MS_FIT_CHECKPOINT,
                              MS_FIT_MICROBATCH,
                              MS_FIT_SHARE,
                              MS_FIT_N_AXES
} ms_fit_axis_id;

/* What %u in a choice stands for. */
typedef enum ms_fit_values {
    MS_FIT_ONE,     /* nothing: it is one set-up */
    MS_FIT_LENGTHS, /* blocks of a segment, from 2: of those that cut the
                       blocks into as many segments the least */
    MS_FIT_BLOCKS,  /* 1 to one less than there are blocks */
    MS_FIT_EIGHTHS, /* so many eighths of the blocks, and one less than all */
    MS_FIT_DIVISORS /* of the batch, from 2 */
} ms_fit_values;

typedef struct ms_fit_choice {
    const char *spec;  /* as -p takes it, with %u; "": nothing */
    const char *words; /* "checkpoints of the first %u blocks" */
    ms_fit_values values;
    const char *label;  /* of a way to checkpoint */
    const char *beside; /* "a|b": only with these ways; NULL: any */
} ms_fit_choice;

/* The first choice of each is the plain one. */
typedef struct ms_fit_dimension {
    const char *name;     /* "checkpointing" */
    const char *policies; /* "ddp|zero|fsdp": who decides it; where one of them
                             is given it is not searched */
    const ms_fit_choice *choices;
    uint32_t n_choices;
} ms_fit_dimension;
extern const ms_fit_dimension ms_fitspace_dimensions[MS_FIT_N_AXES];

typedef struct ms_fit_option {
    const ms_fit_choice *choice;
    uint32_t value;
} ms_fit_option;

typedef struct ms_fit_axis {
    bool fixed; /* by a policy given, or because there is nothing to choose */
    ms_fit_option *options;
    uint32_t n;
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
    MS_FIT_TOO_SLOW, /* provably slower than MS_FIT_SLOWEST */
    MS_FIT_BEATEN,   /* provably no smaller and no faster than one that fits */
    MS_FIT_REPLAYED,
    MS_FIT_N_STATES
} ms_fit_state;

typedef struct ms_fit_point {
    uint8_t state; /* ms_fit_state */
    uint16_t option[MS_FIT_N_AXES];
    ms_fit_bound bound;
    bool program_bound; /* bound knows the program */
    /* Of what was replayed: */
    bool fits;
    ms_status status;
    bool far_full; /* host memory or disk of the node are too small, by: */
    uint64_t host_short_bytes, nvme_short_bytes;
    uint64_t peak_bytes, reserved_bytes, step_ns, recompute_ns, stall_ns,
        exposed_comm_ns, host_peak_bytes, host_reserved_peak_bytes;
    int64_t headroom_bytes;
    double tokens_per_second;
} ms_fit_point;

/* Set-ups that take longer than so many times the fastest that fits are none
 * of the front: nobody would run them for their headroom. */
#define MS_FIT_SLOWEST_NUMERATOR 3u
#define MS_FIT_SLOWEST_DENOMINATOR 2u
/* Times that differ by no more than one part in so many are a tie: a roofline
 * knows no better.  Then the simpler set-up is the better one: the one whose
 * choices stand further up in the tables.  Of the same choices it is the one
 * that needs less, then the one listed first. */
#define MS_FIT_TIE 100u

typedef struct ms_fit {
    const ms_job *job; /* with the policies given */
    ms_points *points;
    ms_arena *arena;
    uint32_t threads;
    bool exhaustive;            /* for tests: replay everything */
    bool any;                   /* stop at the first that fits */
    const ms_fit_point *hint;   /* with any: what to try first; or NULL */
    bool frozen[MS_FIT_N_AXES]; /* not to be searched */

    ms_fit_axis axes[MS_FIT_N_AXES];
    uint32_t n_blocks;
    uint64_t capacity_bytes, context_bytes;
    ms_outside outside; /* context_bytes by what it is of */
    ms_fit_point *all;  /* the plain one first */
    uint32_t n_all;

    uint32_t count[MS_FIT_N_STATES];
    uint32_t fastest;   /* that fits, of several the smallest; MS_NONE: none */
    uint32_t best;      /* the simplest of those that tie with it */
    uint32_t on_device; /* the same of those that keep all on the device */
    /* Of what was replayed, where nothing fits; MS_NONE: nothing could be. */
    uint32_t smallest;     /* of those for which the node has enough */
    uint32_t smallest_far; /* of those for which it has not */
    uint32_t *front;       /* what fits and nothing beats, the fastest first */
    uint32_t n_front;
    ms_fault refusal; /* of the first set-up that a policy refused */

    ms_points_seat seat; /* of model; ms_fitspace_close leaves it */
    ms_result model;     /* lowered without any policy */
} ms_fit;

/* Reads the model, finds the options and lists what is to be searched. */
ms_err ms_fitspace_open(ms_fit *fit, ms_fault *fault);
void ms_fitspace_close(ms_fit *fit); /* whether it was opened or not */
/* The policies of a point in canonical spelling. */
ms_err ms_fitspace_spec(const ms_fit *fit, const ms_fit_point *point,
                        ms_arena *arena, ms_spec *spec, ms_fault *fault);
/* Its choice of that axis: "ZeRO stage 1"; nothing where that is plain. */
void ms_fitspace_part(const ms_fit *fit, const ms_fit_point *point,
                      ms_fit_axis_id axis, ms_text *text);
/* All of them: "ZeRO stage 1, a checkpoint every 3 blocks". */
void ms_fitspace_words(const ms_fit *fit, const ms_fit_point *point,
                       ms_text *text);
/* Which choices it is made of, whatever their values; the simpler the less. */
uint32_t ms_fitspace_kind(const ms_fit *fit, const ms_fit_point *point);
/* The point that has option `to` on that axis, all else alike; or MS_NONE. */
uint32_t ms_fitspace_other(const ms_fit *fit, uint32_t point,
                           ms_fit_axis_id axis, uint16_t to);
/* What is the same for any number of threads: all of fit. */
ms_err ms_fitsearch_run(ms_fit *fit, ms_fault *fault);
/* Does it take longer than what the front may hold? */
bool ms_fitsearch_is_slow(const ms_fit *fit, uint64_t step_ns);
/* Replays a point that the search passed over. */
ms_err ms_fitsearch_replay(ms_fit *fit, uint32_t point, ms_fault *fault);

/* ---- fitmax.c ------------------------------------------------------------ */

typedef struct ms_fit_max {
    const char *key;   /* "batch" or "sequence" */
    uint64_t value;    /* the largest for which something fits */
    uint64_t over;     /* the smallest tried for which nothing does; 0: none */
    uint64_t cap;      /* no larger one is tried */
    bool model_cap;    /* the cap is the model's */
    uint32_t searches; /* values tried */
    uint64_t replays;
} ms_fit_max;

ms_err ms_fitmax_find(ms_fit *fit, const char *what, ms_fit_max *max,
                      ms_fault *fault);
/* At which value set-ups are told: the largest, or the least where none fits.
 */
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
    uint32_t roomier;   /* the fastest that leaves MS_FIT_ROOM, where the best
                           does not; MS_NONE */
    uint32_t without_n; /* set-ups that lack a part of the chosen one */
    struct ms_fit_without {
        ms_fit_axis_id axis;
        uint32_t point;
    } without[MS_FIT_N_AXES];
    uint64_t fused_bytes; /* reserved by the chosen one with a fused optimizer;
                             0: none is known */
    bool fused_fits;
    const char *pool;    /* of the chosen one, in words; NULL: it is exact */
    const char *command; /* to type for the chosen one; NULL: nothing is */
} ms_fit_reply;

/* A caching allocator wants so much of the capacity, one part in, where it is
 * not simulated: what is reserved is what is active then. */
#define MS_FIT_ROOM 20u

/* Row i of what is not searched; NULL: no more. */
const char *ms_fitreply_not_searched(const ms_fit *fit, uint32_t i);

/* Replays what is told besides: the plain set-up, the chosen one without each
 * of its parts. */
ms_err ms_fitreply_of(ms_fit *fit, const ms_fit_max *max,
                      const ms_arguments *arguments, ms_fit_reply *reply,
                      ms_fault *fault);
/* In canonical spelling; NULL: out of memory. */
const char *ms_fitreply_policy(const ms_fit *fit, uint32_t point,
                               ms_arena *arena);

/* ---- fit_text.c, fit_data.c ---------------------------------------------- */

void ms_fit_text_write(const ms_fit_reply *reply, const ms_style *style,
                       ms_text *text);
void ms_fit_data_json(const ms_fit_reply *reply, ms_text *text);
/* A row per set-up that was replayed, with the columns of a sweep. */
void ms_fit_data_csv(const ms_fit *fit, ms_text *text);

/* ---- fit_figure.c -------------------------------------------------------- */

/* Peak against step time: what was replayed and takes neither far longer than
 * the fastest that fits nor far more memory than there is. */
ms_err ms_fit_figure_draw(const ms_fit_reply *reply, const ms_picture *picture,
                          ms_arena *arena, ms_fault *fault);

#endif
