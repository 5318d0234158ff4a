/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/farlevels.h"
#include "sim/measure/inflight.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/stage.h"
#include "sim/timeline.h"

/* Passes that belong to no phase of their own: what they allocate counts for
 * the phase in which they are issued. */
#define CARRIED ((uint8_t)MS_N_PHASES)

/* A place in the event list where levels are read: before event "at". */
typedef struct level_stop {
    uint32_t at;
    uint16_t rank;
    uint8_t what; /* ms_mark, or PEAK */
} level_stop;
#define PEAK ((uint8_t)MS_N_MARKS)

typedef struct rank_state {
    uint64_t level[MS_N_CATEGORIES];
    uint64_t part_bytes[MS_N_CATEGORIES]; /* see is_part */
    uint64_t total_bytes;
    uint32_t n_events;
    uint8_t phase; /* of the last op issued, or CARRIED before the first */
    ms_rank_report *out;
} rank_state;

typedef struct timed_op {
    uint64_t start_ns;
    uint32_t op;
} timed_op;

typedef struct fold_state {
    const ms_timeline *line;
    const ms_plan *plan;
    timed_op *order;  /* ops by start, when booked by device time; else NULL */
    uint32_t next_op; /* ops before it in that order, or the plan's, have begun
                       */
    bool merged; /* events lie merged by time: those of ranks are folded in the
                    order of the plan, in which so many rows and releases are */
    uint32_t row, release;
    uint8_t phase_of[MS_N_PASSES];
    ms_farlevels far; /* host and NVMe */
    rank_state *ranks;
} fold_state;

static void raise_to(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

/* ---- the event fold ------------------------------------------------------ */

static uint8_t phase_for(const fold_state *fold, const rank_state *state,
                         uint32_t op)
{
    uint8_t phase = fold->phase_of[fold->plan->op[op].pass];
    return phase == CARRIED ? state->phase : phase;
}

static void see_phase(const rank_state *state, uint8_t phase)
{
    ms_rank_report *out = state->out;
    if (phase == CARRIED)
        return;
    raise_to(&out->phase_peaks[phase],
             state->total_bytes - state->level[MS_WORKSPACE]);
    if (state->total_bytes <= out->phase_peaks_with_workspace[phase])
        return;
    out->phase_peaks_with_workspace[phase] = state->total_bytes;
    memcpy(out->phase_by_category[phase], state->level, sizeof state->level);
}

/* Where the ops of a phase allocate nothing, its peak is the level at which
 * they start. */
static inline void begin_op(const fold_state *fold, rank_state *state,
                            uint32_t op)
{
    uint8_t phase = phase_for(fold, state, op);
    /* In host order each rise since the op before was seen in its phase. */
    if (phase == state->phase && !fold->order)
        return;
    state->phase = phase;
    see_phase(state, phase);
}

/* In host order. */
static inline void begin_until(fold_state *fold, uint32_t last, bool alone)
{
    const ms_plan *plan = fold->plan;
    while (fold->next_op <= last && fold->next_op < plan->n_ops) {
        uint32_t op = fold->next_op++;
        begin_op(fold, &fold->ranks[alone ? 0 : plan->op[op].rank], op);
    }
}

static bool has_begun(const fold_state *fold, const ms_event *event)
{
    if (fold->next_op >= fold->plan->n_ops)
        return false;
    uint64_t start_ns = fold->order[fold->next_op].start_ns;
    return start_ns < event->t_ns ||
           (start_ns == event->t_ns && (event->op_act & 1u));
}

/* The next in the order of starts. */
static void begin_next(fold_state *fold)
{
    uint32_t op = fold->order[fold->next_op++].op;
    begin_op(fold, &fold->ranks[fold->plan->op[op].rank], op);
}

/* What has begun when the event is booked. */
static inline void begin_ops(fold_state *fold, const ms_event *event,
                             bool alone)
{
    if (!fold->order)
        begin_until(fold, event->op_act >> 1, alone);
    while (fold->order && has_begun(fold, event))
        begin_next(fold);
}

static void begin_rest(fold_state *fold)
{
    if (!fold->order)
        begin_until(fold, UINT32_MAX, false);
    while (fold->order && fold->next_op < fold->plan->n_ops)
        begin_next(fold);
}

/* Categories of which a part is reported on its own. */
static bool is_part(const ms_plan *plan, const ms_row *row)
{
    switch (row->category) {
    case MS_PARAMETERS: /* model buffers */
        return row->storage != MS_NONE &&
               plan->graph->storage_buffer[row->storage] == MS_MODEL_BUFFER;
    case MS_ACTIVATIONS: /* held by autograd nodes */
        return row->saved;
    case MS_TEMPORARIES: /* of the optimizer */
    case MS_WORKSPACE:
        return plan->op[row->op].pass == MS_STEP;
    default:
        return false;
    }
}

/* Events of one op, one instant, one kind and rows of one category and pool:
 * the level only rises or only falls, so that it need be looked at only at the
 * end. */
static inline bool same_run(const ms_event *a, const ms_event *b,
                            const ms_row *x, const ms_row *y)
{
    return a->op_act == b->op_act && a->t_ns == b->t_ns &&
           x->category == y->category && x->pool == y->pool;
}

static void apply(rank_state *state, uint8_t category, uint64_t delta,
                  uint64_t part)
{
    ms_rank_report *out = state->out;
    uint64_t level = state->level[category] += delta;
    state->total_bytes += delta;
    state->part_bytes[category] += part;
    raise_to(&out->category_peaks[category], level);
    if (category == MS_PARAMETERS)
        raise_to(&out->parameters_bytes,
                 level - state->part_bytes[MS_PARAMETERS]);
    raise_to(&out->optimizer_scratch_bytes,
             state->part_bytes[MS_TEMPORARIES] +
                 state->part_bytes[MS_WORKSPACE]);
}

/* So many bytes of rows like this one come, or go. */
static inline void apply_rows(fold_state *fold, rank_state *state,
                              const ms_row *row, uint32_t op_act,
                              uint64_t bytes, uint64_t part)
{
    bool allocates = op_act & 1u;
    if (row->pool != MS_DEVICE_POOL) {
        if (!fold->merged)
            ms_farlevels_add(&fold->far, state->out->rank, row,
                             allocates ? bytes : 0 - bytes);
        return;
    }
    apply(state, row->category, allocates ? bytes : 0 - bytes,
          allocates ? part : 0 - part);
    if (allocates) /* in host order its op is the last of the rank that began */
        see_phase(state, fold->order ? phase_for(fold, state, op_act >> 1)
                                     : state->phase);
}

/* Applies the run that starts at an event; where it ends.  Inlining is forced
 * because gcc does not inline what two loops call. */
static inline __attribute__((always_inline)) const ms_event *
apply_run(fold_state *fold, rank_state *state, const ms_event *first,
          const ms_event *end)
{
    const ms_plan *plan = fold->plan;
    const ms_row *row = &plan->row[first->row], *next = row;
    uint64_t bytes = 0, part = 0;
    const ms_event *event = first;
    do {
        bytes += next->bytes;
        part += is_part(plan, next) ? next->bytes : 0;
        if (++event == end)
            break;
        next = &plan->row[event->row];
    } while (same_run(first, event, row, next));
    apply_rows(fold, state, row, first->op_act, bytes, part);
    return event;
}

/* The same of rows [first, end) that an op of the plan allocates, or of these
 * entries of a list that it releases. */
static inline __attribute__((always_inline)) void
apply_list(fold_state *fold, rank_state *state, uint32_t op,
           const uint32_t *list, uint32_t first, uint32_t end)
{
    const ms_plan *plan = fold->plan;
    state->n_events += end - first;
    while (first < end) {
        const ms_row *row = &plan->row[list ? list[first] : first];
        const ms_row *next = row;
        uint64_t bytes = 0, part = 0;
        do {
            bytes += next->bytes;
            part += is_part(plan, next) ? next->bytes : 0;
            if (++first == end)
                break;
            next = &plan->row[list ? list[first] : first];
        } while (row->category == next->category && row->pool == next->pool);
        apply_rows(fold, state, row, op << 1 | (list == NULL), bytes, part);
    }
}

static void read_stop(const fold_state *fold, const level_stop *stop)
{
    const rank_state *state = &fold->ranks[stop->rank];
    ms_rank_report *out = state->out;
    if (stop->what != PEAK) {
        out->levels[stop->what] =
            state->total_bytes - state->level[MS_WORKSPACE];
        if (stop->what == MS_MARK_AFTER_FORWARD)
            out->saved_for_backward_bytes = state->part_bytes[MS_ACTIVATIONS];
        return;
    }
    out->peak.number =
        fold->plan->n_ranks > 1 ? state->n_events - 1 : out->peak.event;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        out->peak.by_category[c] = state->level[c];
    uint8_t phase = phase_for(fold, state, out->peak.plan_op);
    out->peak.phase = phase == CARRIED || phase == MS_PHASE_LOSS
                          ? (uint8_t)MS_PHASE_FORWARD
                          : phase;
}

/* alone: there is one rank. */
static inline void apply_events(fold_state *fold, const ms_event *event,
                                const ms_event *end, bool alone)
{
    while (event < end) {
        uint16_t rank = alone ? 0 : fold->plan->op[event->op_act >> 1].rank;
        rank_state *state = &fold->ranks[rank];
        begin_ops(fold, event, alone);
        const ms_event *next = apply_run(fold, state, event, end);
        if (!alone)
            state->n_events += (uint32_t)(next - event);
        event = next;
    }
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The next events in the order of the plan, so many: of an op they may be a
 * part. */
static void run_plan(fold_state *fold, uint32_t left)
{
    const ms_plan *plan = fold->plan;
    for (uint32_t op = fold->next_op > 0 ? fold->next_op - 1 : 0; left > 0;
         op++) {
        const ms_plan_op *it = &plan->op[op];
        rank_state *state = &fold->ranks[it->rank];
        if (fold->next_op == op) {
            fold->next_op++;
            begin_op(fold, state, op);
        }
        uint32_t row = fold->row, release = fold->release;
        fold->row = row + lesser(it[1].alloc_at - row, left);
        left -= fold->row - row;
        fold->release = release + lesser(it[1].release_at - release, left);
        left -= fold->release - release;
        apply_list(fold, state, op, NULL, row, fold->row);
        apply_list(fold, state, op, plan->release, release, fold->release);
    }
}

static void run_events(fold_state *fold, uint32_t first, uint32_t end)
{
    ms_eventwalk walk;
    if (fold->merged) {
        run_plan(fold, end - first);
        return;
    }
    ms_timeline_walk(fold->line, first, &walk);
    for (uint32_t left = end - first, n; left > 0; left -= n) {
        const ms_event *event = ms_timeline_peek(&walk);
        uint64_t made = (uint64_t)(walk.end - event);
        n = made < left ? (uint32_t)made : left;
        walk.at += n;
        if (fold->plan->n_ranks == 1)
            apply_events(fold, event, walk.at, true);
        else
            apply_events(fold, event, walk.at, false);
    }
}

/* Host memory and disk are those of all ranks together, by time. */
static void run_far(fold_state *fold)
{
    ms_eventwalk walk;
    uint64_t peak_bytes = 0;
    for (uint32_t r = 0; r < fold->plan->n_ranks; r++)
        for (int p = MS_DEVICE_POOL + 1; p < MS_N_POOLS; p++)
            peak_bytes |= fold->line->ranks[r].pool[p].peak_bytes;
    if (!fold->merged || peak_bytes == 0)
        return;
    ms_timeline_walk(fold->line, 0, &walk);
    for (uint32_t e = 0; e < fold->line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        const ms_row *row = &fold->plan->row[event->row];
        if (row->pool != MS_DEVICE_POOL)
            ms_farlevels_add(&fold->far,
                             fold->plan->op[event->op_act >> 1].rank, row,
                             event->op_act & 1u ? row->bytes : 0 - row->bytes);
    }
}

static void run_fold(fold_state *fold, const level_stop *stops,
                     uint32_t n_stops)
{
    uint32_t n_events = fold->line->n_events, e = 0, s = 0;
    for (; s < n_stops && stops[s].at < n_events; s++) {
        run_events(fold, e, stops[s].at);
        read_stop(fold, &stops[s]);
        e = stops[s].at;
    }
    run_events(fold, e, n_events);
    run_far(fold);
    begin_rest(fold);
    for (; s < n_stops; s++)
        read_stop(fold, &stops[s]);
}

/* ---- where to stop ------------------------------------------------------- */

static int compare_stops(const void *left, const void *right)
{
    const level_stop *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

/* The event of the peak, in the order of the fold. */
static uint32_t peak_of(const fold_state *fold, const ms_rank_report *out)
{
    if (!fold->merged || out->peak.event == MS_NONE)
        return out->peak.event;
    const ms_event event = ms_timeline_event(fold->line, out->peak.event);
    return fold->plan->op[event.op_act >> 1].release_at + event.row;
}

static uint32_t list_stops(const fold_state *fold, const uint32_t *until,
                           level_stop *stops)
{
    const ms_plan *plan = fold->plan;
    uint32_t n = 0;
    for (uint16_t rank = 0; rank < plan->n_ranks; rank++) {
        uint32_t peak = peak_of(fold, fold->ranks[rank].out);
        for (uint32_t mark = 0; mark < MS_N_MARKS; mark++) {
            uint32_t at = until[rank * (uint32_t)MS_N_MARKS + mark];
            if (at != MS_NONE)
                stops[n++] = (level_stop){at, rank, (uint8_t)mark};
        }
        if (peak != MS_NONE) /* levels are read before "at": behind the peak */
            stops[n++] = (level_stop){peak + 1, rank, PEAK};
    }
    qsort(stops, n, sizeof *stops, compare_stops);
    return n;
}

/* ---- the peak ------------------------------------------------------------ */

/* The names of a plan op: of a pseudo-op its pass's and no layer. */
static void name_op(const ms_plan *plan, uint32_t plan_op, const char **name,
                    const char **layer)
{
    const ms_graph *graph = plan->graph;
    uint32_t op = plan->op[plan_op].of;
    *name = op == MS_NONE ? ms_names_pass[plan->op[plan_op].pass]
                          : graph->op_name[op];
    if (op != MS_NONE && graph->op_layer[op] != MS_NONE)
        *layer = graph->layer_name[graph->op_layer[op]];
}

static void name_peak(const ms_plan *plan, ms_peak *peak)
{
    peak->pass = plan->op[peak->plan_op].pass;
    if (peak->pass != MS_START && peak->pass != MS_STEP)
        peak->micro_batch = plan->op[peak->plan_op].micro_batch;
    name_op(plan, peak->plan_op, &peak->op, &peak->layer);
}

static void find_peak(const ms_timeline *line, ms_rank_report *out)
{
    const ms_rank_levels *levels = &line->ranks[out->rank];
    const ms_level *device = &levels->pool[MS_DEVICE_POOL];
    ms_peak *peak = &out->peak;
    *peak = (ms_peak){.allocated_bytes = device->peak_bytes,
                      .active_bytes = levels->active_peak_bytes,
                      .requested_bytes = levels->requested_peak_bytes,
                      .reserved_bytes = levels->reserved_peak_bytes,
                      .event = MS_NONE,
                      .number = MS_NONE,
                      .plan_op = MS_NONE,
                      .micro_batch = MS_NONE,
                      .pass = MS_START};
    if (device->peak_bytes == 0)
        return;
    const ms_event event = ms_timeline_event(line, device->peak_event);
    peak->event = device->peak_event;
    peak->t_ns = event.t_ns;
    peak->plan_op = event.op_act >> 1;
    name_peak(line->plan, peak);
}

/* ---- rates --------------------------------------------------------------- */

/* How many ranks run the model from its first op (0): the stages of a pipeline
 * run one model together, other ranks each run one of their own. */
static uint32_t count_models(const ms_plan *plan)
{
    if (plan->n_ranks == 1)
        return 1;
    uint64_t seen[(UINT16_MAX + 1u) / 64u] = {0}; /* a bit per rank */
    uint32_t n = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t rank = plan->op[op].rank;
        uint64_t bit = UINT64_C(1) << rank % 64u;
        if (plan->op[op].of != 0 || (seen[rank / 64u] & bit) != 0)
            continue;
        seen[rank / 64u] |= bit;
        n++;
    }
    return n > 0 ? n : 1;
}

void ms_measure_rates(const ms_timeline *line, const ms_machine *machine,
                      ms_report *report)
{
    const ms_graph *graph = line->plan->graph;
    double step_s = (double)report->ranks[0].time.step_ns * 1e-9;
    double micro_batches =
        (double)line->plan->n_micro_batches * (double)count_models(line->plan);
    double devices = (double)line->plan->n_ranks;
    double side_by_side = machine->data_ranks > 1 ? machine->data_ranks : 1;
    report->tokens_per_second = report->mfu = -1;
    if (step_s > 0 && graph->tokens)
        report->tokens_per_second =
            (double)graph->tokens * micro_batches * side_by_side / step_s;
    if (step_s > 0 && machine->peak_flops > 0 && graph->model_flops > 0)
        report->mfu = graph->model_flops * micro_batches /
                      (step_s * machine->peak_flops * devices);
}

/* ---- all of it ----------------------------------------------------------- */

static int compare_timed(const void *left, const void *right)
{
    const timed_op *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

static ms_err order_ops(fold_state *fold, ms_arena *arena, ms_fault *fault)
{
    uint32_t n_ops = fold->plan->n_ops;
    fold->order = ms_arena_take_raw(arena, n_ops, sizeof *fold->order);
    if (!fold->order)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < n_ops; op++)
        fold->order[op] = (timed_op){fold->line->start_ns[op], op};
    qsort(fold->order, n_ops, sizeof *fold->order, compare_timed);
    return MS_OK;
}

static void init_rank(fold_state *fold, ms_rank_report *out, uint16_t rank)
{
    fold->ranks[rank].out = out;
    fold->ranks[rank].phase = CARRIED;
    out->rank = rank;
    for (uint32_t i = 0; i < fold->plan->n_stages; i++)
        if (fold->plan->stages[i].rank == rank && out->n_stages++ == 0)
            out->stage = i;
    out->saved_for_backward_bytes = MS_NO_LEVEL;
    for (int mark = 0; mark < MS_N_MARKS; mark++)
        out->levels[mark] = MS_NO_LEVEL;
    find_peak(fold->line, out);
}

static ms_err init_fold(fold_state *fold, ms_arena *arena, ms_report *report,
                        ms_fault *fault)
{
    const ms_plan *plan = fold->plan;
    fold->ranks = ms_arena_take(arena, plan->n_ranks, sizeof *fold->ranks);
    report->ranks = ms_arena_take(arena, plan->n_ranks, sizeof *report->ranks);
    if (!fold->ranks || !report->ranks)
        return ms_fail_nomem(fault);
    for (uint16_t rank = 0; rank < plan->n_ranks; rank++)
        init_rank(fold, &report->ranks[rank], rank);
    for (ms_pass pass = 0; pass < MS_N_PASSES; pass++)
        fold->phase_of[pass] = pass == MS_START || pass == MS_COPY
                                   ? CARRIED
                                   : (uint8_t)ms_names_phase_of(pass);
    fold->merged = plan->n_ranks > 1 && !fold->line->by_device;
    return fold->line->by_device ? order_ops(fold, arena, fault) : MS_OK;
}

uint64_t ms_measure_libraries(const ms_graph *graph, uint32_t *n)
{
    uint64_t bytes = 0;
    *n = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        if (graph->storage_category[s] != MS_WORKSPACE ||
            graph->storage_bytes[s] == 0)
            continue;
        bytes += graph->storage_bytes[s];
        ++*n;
    }
    return bytes;
}

ms_err ms_measure(const ms_timeline *line, const ms_machine *machine,
                  ms_arena *arena, ms_report *report, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    *report = (ms_report){.n_ranks = plan->n_ranks,
                          .events = line->n_events,
                          .paged = machine->paging.page_bytes > 0,
                          .page_faults = line->pages.faults,
                          .wall = machine->wall,
                          .revoked_prefetches = line->n_revoked,
                          .pooled = line->pooled,
                          .lack = line->lack,
                          .recomputed_ops = plan->recomputed_ops};
    fold_state fold = {.line = line, .plan = plan};
    MS_TRY(init_fold(&fold, arena, report, fault));
    MS_TRY(ms_farlevels_open(&fold.far, report, arena, fault));
    level_stop *stops = ms_arena_take_raw(
        arena, (size_t)plan->n_ranks * (MS_N_MARKS + 1), sizeof *stops);
    if (!stops)
        return ms_fail_nomem(fault);
    uint32_t *until;
    MS_TRY(ms_timeline_marks(line, arena, &until, fault));
    run_fold(&fold, stops, list_stops(&fold, until, stops));
    for (uint16_t rank = 0; rank < plan->n_ranks; rank++) {
        ms_rank_report *out = &report->ranks[rank];
        out->gradients_bytes = out->category_peaks[MS_GRADIENTS];
        out->optimizer_state_bytes = out->category_peaks[MS_OPTIMIZER_STATE];
    }
    MS_TRY(ms_times_measure(line, arena, report, fault));
    if (line->lack.missing_bytes > 0)
        name_op(plan, line->lack.op, &report->lack_op, &report->lack_layer);
    MS_TRY(ms_inflight_measure(plan, arena, report, fault));
    ms_measure_rates(line, machine, report);
    MS_TRY(ms_hostmemory_measure(line, machine, arena, report, fault));
    ms_capacity_judge(&line->pages, machine, report);
    return MS_OK;
}
