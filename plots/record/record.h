/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_RECORD_H
#define MS_PLOTS_RECORD_H

/* What of a run is kept: the report, and the step thinned to what a figure can
 * show.  run --json writes it, plot and compare read it back, and the figures
 * of one run are drawn from it alone, so that a saved result gives the figure
 * that the run itself would have given, byte for byte.
 *
 *     ms_record record;
 *     MS_TRY(ms_record_of(&line, &report, &names, arena, &record, fault));
 *     MS_TRY(ms_figure_timeline(&record, 0, &drawing, fault));
 */

#include "plots/record/tiles.h"
#include "sim/measure/turntimes.h"
#include "sim/report.h"

#define MS_RECORD_COLUMNS 600u /* parts of the step that are told apart */

/* A phase of a rank's compute stream. */
typedef struct ms_band {
    uint64_t from_ns, to_ns;
    uint8_t phase; /* never MS_PHASE_LOSS: it is part of forward */
} ms_band;

/* What a stream works on, or why the compute stream of a rank stands still;
 * the other streams are only idle. */
typedef enum ms_work {
    MS_WORK_FORWARD, /* and loss */
    MS_WORK_RECOMPUTE,
    MS_WORK_BACKWARD,
    MS_WORK_OPTIMIZER,
    MS_WORK_COMM,
    MS_WORK_H2D,
    MS_WORK_D2H,
    MS_WORK_HOST,
    MS_WORK_NVME,
    MS_WORK_PACK, /* copies within the device */
    MS_WORK_WAIT_HOST,
    MS_WORK_WAIT_COMM,
    MS_WORK_WAIT_COPY,
    MS_WORK_WAIT_DISK,
    MS_WORK_WAIT_CORES, /* of the host */
    MS_WORK_WAIT_RANK,
    MS_WORK_WAIT_PAGES,
    MS_WORK_WAIT_MEMORY,
    MS_WORK_IDLE,
    MS_N_WORKS
} ms_work;

/* A part of a lane that is wide enough to be seen; several works share it by
 * their times. */
typedef struct ms_slice {
    uint64_t from_ns, to_ns;
    uint64_t work_ns[MS_N_WORKS]; /* not idle alone */
} ms_slice;

/* A stream of a rank. */
typedef struct ms_record_lane {
    uint8_t stream; /* ms_stream_kind */
    uint32_t n;
    ms_slice *slices;
    uint64_t work_ns[MS_N_WORKS]; /* of the whole step, exact */
} ms_record_lane;

/* Of report.ranks[i]. */
typedef struct ms_record_rank {
    const ms_rank_report *report;
    bool has_time;   /* false: t_ns and end_ns count events */
    uint64_t end_ns; /* of the step, or of what lies after it; > 0 */
    uint32_t n_points, n_bands, n_lanes, n_far;
    ms_point *points;         /* ascending; the exact peak is one of them */
    uint64_t *reserved_bytes; /* the highest so far when point i ends, never
                                 below its total */
    uint64_t *recompute_ns, *recompute_flops; /* what ran again before point i
                                                 begins; NULL: nothing does */
    uint64_t again_ns, again_flops;           /* and in the whole step */
    ms_band *bands;        /* in order, without gaps; none: no op takes time */
    ms_record_lane *lanes; /* the compute stream, then each that works; none:
                              no op takes time */
    uint32_t n_turns;      /* of a pipeline's stages; 0: it is none */
    ms_turn_time *turns;
    uint64_t *far; /* highest level of the host's memory in each of
                      n_far equal parts of the step; 0: none is used */
} ms_record_rank;

/* From t_ns to that of the next one. */
typedef struct ms_record_level {
    uint64_t t_ns, bytes;
} ms_record_level;

/* The level of the worst rank in the step that the job would have without its
 * policies on what waits for backward, in the time of that step. */
typedef struct ms_record_without {
    const char *policy; /* "checkpoint:sqrt": what it is without */
    uint64_t end_ns;    /* of that step, > 0 */
    uint64_t peak_bytes;
    uint32_t n;
    ms_record_level *levels; /* ascending; peak_bytes is the highest */
} ms_record_without;

typedef struct ms_record_setting {
    const char *key, *value; /* "training.batch", "8" */
} ms_record_setting;

typedef struct ms_record {
    const char *model, *device, *policy; /* as in ms_report_names */
    const char *title, *subtitle;        /* of a figure of this run alone */
    uint64_t parameters;
    uint32_t data_ranks;   /* ms_machine's: how many do what each rank does */
    ms_report report;      /* read back: without event, plan_op */
    ms_record_rank *ranks; /* NULL: read back from a result without them */
    uint32_t n_layers;     /* of the worst rank */
    ms_layer_use *layers;
    ms_tiles *addresses; /* of the worst rank; NULL: they were not kept */
    ms_record_without *without; /* NULL: there is no such policy, or no such
                                   step; or nobody asked */
    /* Read back only: */
    const char *refused; /* of a variant: why there are no numbers, and of the
                            rest only policy, status, name; NULL: there are */
    const char *name;    /* in the comparison that holds it; NULL: in none */
    uint32_t n_settings;
    ms_record_setting *settings;
    const char *json; /* the object itself; json_length bytes */
    size_t json_length;
} ms_record;

extern const char *const ms_record_works[MS_N_WORKS]; /* "wait_copy" */
/* Of MS_PHASE_MIXED, too; NULL for the loss. */
extern const char *const ms_record_phases[MS_N_PHASES + 1];

/* record points into line, report and names; title, subtitle, data_ranks,
 * addresses and without are the caller's to set, and turns with the next one,
 * which does nothing for a program without stages. */
ms_err ms_record_of(const ms_timeline *line, const ms_report *report,
                    const ms_report_names *names, ms_arena *arena,
                    ms_record *record, ms_fault *fault);
ms_err ms_record_add_turns(const ms_timeline *line, const ms_program *program,
                           ms_arena *arena, ms_record *record, ms_fault *fault);
/* The level of a rank, thinned to what a figure can show: has_time, end_ns,
 * points and n_points. */
ms_err ms_record_points(const ms_timeline *line, uint16_t rank, ms_arena *arena,
                        ms_record_rank *of, ms_fault *fault);
/* MS_EINPUT for a record without ranks: it was read back from a result that has
 * no timeline, and figures of one run cannot be drawn. */
ms_err ms_record_check(const ms_record *record, ms_fault *fault);

/* ---- recordwithoutpolicies.c: the step without the policies of a figure
 * ---------- */

/* line: of that step; policy is the caller's to set. */
ms_err ms_recordwithoutpolicies_of(const ms_timeline *line, uint16_t rank,
                                   ms_arena *arena, ms_record_without **without,
                                   ms_fault *fault);

/* ---- addresses.c: where the blocks of a run's pool lie ------------------- */

/* Of the worst rank, into the record; NULL where the timeline has no maps.
 * allocator: its name, any bytes. */
ms_err ms_addresses_of(const ms_timeline *line, const char *allocator,
                       ms_arena *arena, ms_record *record, ms_fault *fault);
/* What blocks of a run can be: the categories, then what waits for other
 * streams.  Names and colours. */
#define MS_ADDRESSES_KINDS (MS_N_CATEGORIES + 1u)
void ms_addresses_kinds(ms_tiles *tiles);
/* Without the last: the first MS_N_CATEGORIES kinds, by ms_category. */
void ms_addresses_categories(ms_tiles *tiles);
/* MS_EINPUT for a record without. */
ms_err ms_addresses_check(const ms_record *record, ms_fault *fault);

#endif
