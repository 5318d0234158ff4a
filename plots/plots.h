/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_H
#define MS_PLOTS_H

/* plots/ makes tables and figures from timelines.  It writes files whole or
 * not at all (write beside, fsync, rename) and runs gnuplot without a shell.
 *
 *     ms_drawing drawing = {.title = "gpt3", .path = "out.svg", ...};
 *     MS_TRY(ms_record_of(&line, &report, &names, arena, &record, fault));
 *     MS_TRY(ms_figure_timeline(&record, report.worst, &drawing, fault));
 */

#include "sim/base/base.h"
#include "sim/names.h"
#include "sim/nouns.h"

typedef struct ms_record ms_record; /* record.h */
typedef struct ms_tiles ms_tiles;   /* tiles.h */

/* output.c: path "-" is standard output, written unbuffered: flush what stdio
 * holds first.  Refuses directories; follows symbolic links. */
ms_err ms_output_write(const char *path, const char *bytes, size_t length,
                       ms_fault *fault);
/* The same for an output that is made piece by piece: next gives a piece, in
 * the end one of length 0; false stops the writing, with errno as its cause. */
typedef bool ms_output_next(void *of, const char **bytes, size_t *length);
ms_err ms_output_stream(const char *path, ms_output_next *next, void *of,
                        ms_fault *fault);
/* The same for a long text, of which put adds a little; *more: is there more to
 * come?  text: empty, what put adds to; a failure of put's is the result. */
typedef ms_err ms_output_put(void *of, bool *more);
ms_err ms_output_text(const char *path, ms_output_put *put, void *of,
                      ms_text *text, ms_fault *fault);

/* table.c: the timeline as CSV (RFC 4180): a header row, then one row per
 * event: event, t_ns, op, pass, layer, micro_batch, action (alloc|free),
 * storage, category, bytes, allocated_bytes (rank 0's device level after),
 * recompute_ns, recompute_flops (what rank 0 has run again until then). */
ms_err ms_table_csv(const ms_timeline *line, ms_text *text, ms_fault *fault);

/* One field of such a file, in quotes where it needs them. */
void ms_table_field(ms_text *text, const char *field);

/* chrome.c: streams and memory in the Chrome trace event format, for Perfetto
 * or chrome://tracing.  A process is a rank, a thread a stream with a slice for
 * each op that takes time; an arrow leads from a send to the first slice of the
 * other rank that waits for it.  At each instant counters give the levels of
 * the memories (device, host, disk) that the rank uses, by category and in all;
 * a level of the device that is higher only within the instant comes first.  ts
 * and dur in microseconds, to the nanosecond. */
ms_err ms_chrome_trace(const ms_timeline *line, const ms_report *report,
                       const ms_report_names *names, const char *path,
                       ms_arena *arena, ms_fault *fault);

/* What exports of allocations need to know besides. */
typedef struct ms_export {
    const ms_timeline *line;
    const ms_machine *machine;
    const ms_report_names *names;
    const char *model_path;  /* where the model was read */
    const uint32_t *lines;   /* per layer of the graph its line in that file,
                                0 where there is none; or NULL: none has */
    uint16_t rank;           /* whose */
    uint64_t capacity_bytes; /* of the device, what others hold included */
    uint64_t context_bytes;  /* that they do */
    const char *conf;        /* options of the timeline's pool, where it has
                                one; as PYTORCH_CUDA_ALLOC_CONF, or NULL */
} ms_export;

/* memoryviz.c: the step as torch.cuda.memory._dump_snapshot would pickle it
 * in the rank's process, which sees its GPU alone, as device 0; for
 * pytorch.org/memory_viz and torch/cuda/_memory_viz.py.  Rows go through
 * PyTorch's caching allocator: the timeline's pool, its version, options and
 * limits, begun anew (with an exact one 2.11, no options, addresses down);
 * where memory is not enough on a device that never refuses, so that the whole
 * step is there. Frames, innermost first: tensor, op and pass, layer. */
ms_err ms_memoryviz_write(const ms_export *of, const char *path,
                          ms_arena *arena, ms_fault *fault);
/* lifetimes.c: "id,lower,upper,size" as minimalloc reads it: a number,
 * instants [lower, upper) counted in allocations and frees of the rank, bytes.
 * What the step leaves alive ends with it. */
ms_err ms_lifetimes_write(const ms_export *of, const char *path,
                          ms_arena *arena, ms_fault *fault);
/* allocations.c: the same as a trace in text form, which memsim alloc reads
 * (sim/pools/history/alloctrace.h); ids are rows of the plan. */
ms_err ms_allocations_write(const ms_export *of, const char *path,
                            ms_arena *arena, ms_fault *fault);

/* chart.c: the level over time in one line of width block characters, scaled
 * from 0 to the peak; peak columns keep their maximum. */
ms_err ms_chart_line(const ms_timeline *line, uint16_t rank, uint32_t width,
                     ms_arena *arena, ms_text *text, ms_fault *fault);
/* What belongs below it: "|forward  |backward       |opt. ".  Nothing where
 * the step takes no time. */
ms_err ms_chart_phases(const ms_timeline *line, uint16_t rank, uint32_t width,
                       ms_arena *arena, ms_text *text, ms_fault *fault);

/* What a figure has at its top, and where it goes.  The format follows the
 * file's ending: .svg, .png, .pdf.  MS_EPROGRAM when gnuplot is missing or
 * fails. */
typedef struct ms_drawing {
    const char *title, *subtitle; /* any bytes: escaped here */
    const char *path;
    const char *script_path; /* also keep the script there; NULL: no */
    ms_arena *arena;
    bool per_gpu; /* of several, which the axes of memory say */
} ms_drawing;

/* What a run may take.  Where runs of one figure have other devices, each has
 * its own line. */
typedef struct ms_limit {
    const char *device;                    /* any bytes */
    uint64_t capacity_bytes, usable_bytes; /* less context; 0: no line */
} ms_limit;

/* figure_timeline.c: stacked categories, phase strip, peak arrow, breakdown at
 * the peak, capacity line, over-capacity part hatched; of report.ranks[rank].
 * MS_EINPUT where the record has no ranks. */
ms_err ms_figure_timeline(const ms_record *record, uint32_t rank,
                          const ms_drawing *drawing, ms_fault *fault);

/* figure_gantt.c: the streams of the rank under its memory: what each works on
 * and why the compute stream waits, with the time of each beside it. */
ms_err ms_figure_gantt(const ms_record *record, uint32_t rank,
                       const ms_drawing *drawing, ms_fault *fault);

/* figure_bars.c: the peak of each run by category, as horizontal stacked bars
 * in the order given, with the step's time beside them; capacity line.  The
 * first 40 are drawn, of more it is said how many; MS_EINPUT where there is
 * none. */
typedef struct ms_bar {
    const char *name; /* any bytes */
    uint64_t by_category[MS_N_CATEGORIES];
    uint64_t allocated_bytes; /* what by_category sums to */
    uint64_t reserved_bytes;  /* what exceeds allocated is drawn, too */
    uint64_t step_ns;         /* 0: none is told */
    bool fits;
    ms_limit limit;
    const char *instead; /* why there is no bar ("refused"); NULL: there is */
} ms_bar;
ms_err ms_figure_bars(const ms_bar *bars, uint32_t n, const ms_drawing *drawing,
                      ms_fault *fault);

/* figure_totals.c: the level of each run over the time of its own step, its
 * peak marked: filled where it fits.  MS_EINPUT for a record without a timeline
 * (ms_record_check), or of a step that takes no time. */
#define MS_TOTALS_MOST 4u
typedef struct ms_total {
    const ms_record *run;
    const char *name, *family; /* any bytes */
} ms_total;
ms_err ms_figure_totals(const ms_total *totals, uint32_t n,
                        const ms_drawing *drawing, ms_fault *fault);

/* figure_overlay.c: the allocated memory of two steps on one axis from 0 to 1,
 * on which their phases are equally long; edges: where each phase ends, all 0
 * where they are not known.  MS_EINPUT for a line without points. */
typedef struct ms_overlay_point {
    double at;
    uint64_t bytes; /* until the next */
} ms_overlay_point;
typedef struct ms_overlay_line {
    const char *name; /* any bytes */
    const ms_overlay_point *points;
    uint32_t n;
} ms_overlay_line;
typedef struct ms_overlay {
    ms_overlay_line lines[2];
    double edges[MS_N_PHASES];
} ms_overlay;
ms_err ms_figure_overlay(const ms_overlay *of, const ms_drawing *drawing,
                         ms_fault *fault);

/* figure_pipeline.c: of each rank the turns it takes, on which micro-batch, and
 * under them its memory with peak and capacity; of several runs one under
 * another on one axis of time.  MS_EINPUT for a record without stages. */
#define MS_PIPED_MOST 4u
typedef struct ms_piped {
    const ms_record *run;
    const char *name; /* any bytes; of several */
} ms_piped;
ms_err ms_figure_pipeline(const ms_piped *runs, uint32_t n,
                          const ms_drawing *drawing, ms_fault *fault);

/* figure_pareto.c: peak against step time, lower left is better, or, where
 * steps do not all do the same work, against throughput, upper left: what
 * nothing beats is filled and on a staircase, the rest hollow; right of the
 * capacity nothing fits.  Trades of the same family share a sign; what was
 * chosen has a star. */
typedef struct ms_trade {
    const char *name, *family; /* any bytes */
    uint64_t peak_bytes, step_ns;
    double work; /* samples or tokens of a step of all GPUs; 0: not known */
    bool has_tokens, fits, is_chosen;
    bool is_bound; /* on the curve that bounds the others: without a name; the
                      staircase is of these alone, where there are some */
    ms_limit limit;
} ms_trade;
ms_err ms_figure_pareto(const ms_trade *trades, uint32_t n,
                        const ms_drawing *drawing, ms_fault *fault);

/* figure_curve.c: a number against a swept parameter, a line per series, whose
 * name stands where it ends; more than MS_CURVES_PANEL of them in panels one
 * under another, at most MS_CURVES_MOST.  x is logarithmic where its values are
 * geometric. */
#define MS_CURVES_PANEL 8u
#define MS_CURVES_MOST 32u
typedef struct ms_series {
    const char *name, *family; /* any bytes; family: what its colour is of */
    uint32_t n;
    const double *x;   /* ascending */
    const uint64_t *y; /* bytes or ns; MS_NO_LEVEL: a gap */
    const bool *fits;  /* hollow where false; NULL: all */
} ms_series;
typedef struct ms_curves {
    const ms_series *series;
    uint32_t n;
    const char *x_name, *y_name; /* of the axes, without units */
    bool is_time;                /* y in ns; else bytes */
    const char *const *x_words;  /* of a parameter that is no number: x is an
                                    index into these; NULL: x is a number */
    uint32_t n_words;
    const ms_series *limits; /* capacities, lines of their own; one point: all
                                along x */
    uint32_t n_limits;
} ms_curves;
ms_err ms_figure_curve(const ms_curves *curves, const ms_drawing *drawing,
                       ms_fault *fault);

/* figure_layers.c: of each layer in order the bytes saved for backward and the
 * time to recompute it, one above the other.  Of more than 300 layers the most
 * of neighbours is drawn, which is said.  MS_EINPUT where there is none. */
ms_err ms_figure_layers(const ms_layer_use *layers, uint32_t n,
                        const ms_drawing *drawing, ms_fault *fault);

/* figure_ranks.c: of each rank the peak by category and the parts of its
 * step's time.  data_ranks: ms_machine's, how many do what each of these does;
 * 0 or 1: it alone.  One rank has its numbers beside it; of more than 64 the
 * one with the highest peak stands for its neighbours, which is said.
 * MS_EINPUT where there is none. */
ms_err ms_figure_ranks(const ms_report *report, uint32_t data_ranks,
                       const ms_drawing *drawing, ms_fault *fault);

/* figure_address.c: where the blocks of a pool lie over time, coloured by what
 * they are; what is held and unused is grey.  Several (at most
 * MS_ADDRESS_MOST, with names) one under another on the same scales, with a
 * line at what the first reserves.  MS_EINPUT where some count time and others
 * do not, MS_EUSAGE for too many. */
#define MS_ADDRESS_MOST 4u
ms_err ms_figure_address(const ms_tiles *const *maps, const char *const *names,
                         uint32_t n, const ms_drawing *drawing,
                         ms_fault *fault);

/* figure_recorded.c: what a device was recorded to do over what it is predicted
 * to do, a lane each on one line of time.  A slice that several kinds of
 * kernels share is divided between them by height, as in figure gantt.
 * MS_EINPUT where nothing takes time. */
typedef struct ms_recorded_slice {
    double from_ns, to_ns; /* from 0 */
    uint8_t lane, kind;
} ms_recorded_slice;
typedef struct ms_recorded_kind {
    const char *name; /* with its times, in the legend */
    bool is_shown;
} ms_recorded_kind;
#define MS_RECORDED_LANES 2u
#define MS_RECORDED_KINDS 8u
typedef struct ms_recorded_lanes {
    const ms_recorded_slice *slices;
    uint32_t n;
    const char *lanes[MS_RECORDED_LANES]; /* their names */
    ms_recorded_kind kinds[MS_RECORDED_KINDS];
} ms_recorded_lanes;
ms_err ms_figure_recorded(const ms_recorded_lanes *of,
                          const ms_drawing *drawing, ms_fault *fault);

/* gnuplot.c: runs a script (text, not a path) and returns its picture. */
typedef enum ms_format { MS_SVG, MS_PNG, MS_PDF } ms_format;
ms_err ms_gnuplot_format(const char *path, ms_format *format, ms_fault *fault);
ms_err ms_gnuplot_run(const char *script, size_t length, ms_format format,
                      ms_arena *arena, char **picture, size_t *picture_length,
                      ms_fault *fault);
/* Runs the script and writes its picture; script_path as above. */
ms_err ms_gnuplot_draw(const ms_text *script, ms_format format,
                       const char *path, const char *script_path,
                       ms_fault *fault);

#endif
