/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of a rank in memsim run --json. */

#include "tools/results/keys/keys_rank.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/results/sheet.h"

#include <string.h>

#define MUST MS_KEYS_MUST
#define SKIP MS_KEYS_SKIP
#define RANK(kind, member) MS_KEYS_AT(kind, ms_rank_report, member)

static uint64_t peak_sum(const ms_peak *peak)
{
    uint64_t bytes = 0;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        bytes += peak->by_category[c];
    return bytes;
}

static const char *peak_wrong(const void *of, const void *value)
{
    const ms_rank_report *rank = of;
    (void)value;
    if (rank->peak.number != MS_NONE && rank->peak.t_ns == MS_NO_LEVEL)
        return "\"time_ns\" should be an integer from 0 on, not null";
    return peak_sum(&rank->peak) == rank->peak.allocated_bytes
               ? NULL
               : "\"by_category\" does not sum to \"allocated_bytes\"";
}

/* Was anything allocated? */
static bool peak_there(const void *of)
{
    const ms_rank_report *rank = of;
    return rank->peak.number != MS_NONE;
}

static const ms_key peak_rows[] = {
    MS_KEYS_COUNT("allocated_bytes", RANK(U64, peak.allocated_bytes), MUST),
    MS_KEYS_COUNT("active_bytes", RANK(U64, peak.active_bytes), MUST),
    MS_KEYS_COUNT("requested_bytes", RANK(U64, peak.requested_bytes), MUST),
    MS_KEYS_COUNT("reserved_bytes", RANK(U64, peak.reserved_bytes), MUST),
    MS_KEYS_COUNT_OR_NULL("time_ns", RANK(U64, peak.t_ns), MUST,
                          .there = peak_there),
    MS_KEYS_COUNT_OR_NULL("event", RANK(U32, peak.number), MUST),
    {.name = "phase",
     .type = MS_KEY_WORD,
     .null = true,
     .names = ms_names_phase,
     .n_names = MS_N_PHASES,
     RANK(U8, peak.phase),
     MUST,
     .there = peak_there},
    {.name = "pass",
     .type = MS_KEY_WORD,
     .null = true,
     .names = ms_names_pass,
     .n_names = MS_N_PASSES,
     RANK(U8, peak.pass),
     MUST,
     .there = peak_there},
    MS_KEYS_TEXT_OR_NULL("op", RANK(TEXT, peak.op), MUST),
    MS_KEYS_TEXT_OR_NULL("layer", RANK(TEXT, peak.layer), MUST),
    MS_KEYS_COUNT_OR_NULL("micro_batch", RANK(U32, peak.micro_batch), MUST),
    MS_KEYS_COUNT("rank", RANK(U16, rank), SKIP),
    {.name = "by_category",
     MS_KEYS_CATEGORIES,
     RANK(U64, peak.by_category),
     MUST,
     .help = "what is alive then; sums to allocated_bytes"},
    {.name = "error_percent",
     .type = MS_KEY_COUNT,
     RANK(SOME, peak.error_percent),
     .null = true,
     .help = "how far the peak was off at most for 95 of 100 measured runs of "
             "this kind (who divides the states, recomputation); null: there "
             "are none"},
    {.name = "measured_runs",
     .type = MS_KEY_COUNT,
     RANK(SOME, peak.measured_runs),
     .null = true,
     .help = "how many these are"},
};
const ms_keys ms_keys_rank_peak = MS_KEYS_OBJECT("peak", peak_rows);

static uint64_t states_total(const void *of)
{
    const ms_rank_report *rank = of;
    return rank->parameters_bytes + rank->gradients_bytes +
           rank->optimizer_state_bytes;
}

static const ms_key states_rows[] = {
    MS_KEYS_COUNT("parameters_bytes", RANK(U64, parameters_bytes), MUST),
    MS_KEYS_COUNT("gradients_bytes", RANK(U64, gradients_bytes), MUST),
    MS_KEYS_COUNT("optimizer_state_bytes", RANK(U64, optimizer_state_bytes),
                  MUST),
    MS_KEYS_COUNT("total_bytes", .make = states_total, SKIP)};
const ms_keys ms_keys_rank_states = MS_KEYS_OBJECT("model_states", states_rows);

#define LEVEL(key, mark)                                                       \
    MS_KEYS_COUNT_OR_NULL(key, RANK(U64, levels[mark]), MUST)
static const ms_key levels_rows[] = {
    LEVEL("start_bytes", MS_MARK_START),
    LEVEL("before_loss_bytes", MS_MARK_BEFORE_LOSS),
    LEVEL("after_forward_bytes", MS_MARK_AFTER_FORWARD),
    LEVEL("after_backward_bytes", MS_MARK_AFTER_BACKWARD),
    LEVEL("end_bytes", MS_MARK_END)};
const ms_keys ms_keys_rank_levels = MS_KEYS_OBJECT("levels", levels_rows);

/* A row for an array by phase. */
#define PHASE(key, phase)                                                      \
    MS_KEYS_COUNT_OR_NULL(key, .held = MS_HELD_U64,                            \
                          .at = (phase) * sizeof(uint64_t), MUST)
static const ms_key phases_rows[] = {
    PHASE("forward_bytes", MS_PHASE_FORWARD),
    PHASE("loss_bytes", MS_PHASE_LOSS),
    PHASE("backward_bytes", MS_PHASE_BACKWARD),
    PHASE("optimizer_bytes", MS_PHASE_OPTIMIZER)};
const ms_keys ms_keys_rank_phases = MS_KEYS_OBJECT("phase_peaks", phases_rows);

/* Checks that the parts of each phase's highest level add up to it. */
static const char *phase_wrong(const void *of, const void *value)
{
    const ms_rank_report *rank = of;
    const uint64_t *bytes = value;
    uint64_t sum_bytes = 0;
    int phase = 0;
    while (rank->phase_by_category[phase] != bytes)
        phase++;
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum_bytes += bytes[c];
    return sum_bytes == rank->phase_peaks_with_workspace[phase]
               ? NULL
               : "this does not sum to the peak of the phase";
}

#define PHASE_CATEGORIES(key, phase)                                           \
    {                                                                          \
        .name = (key), MS_KEYS_CATEGORIES,                                     \
        RANK(U64, phase_by_category[phase]), MUST, .wrong = phase_wrong        \
    }
static const ms_key phase_categories_rows[] = {
    PHASE_CATEGORIES("forward", MS_PHASE_FORWARD),
    PHASE_CATEGORIES("loss", MS_PHASE_LOSS),
    PHASE_CATEGORIES("backward", MS_PHASE_BACKWARD),
    PHASE_CATEGORIES("optimizer", MS_PHASE_OPTIMIZER),
};
const ms_keys ms_keys_rank_phase_categories =
    MS_KEYS_OBJECT("phase_peaks_by_category", phase_categories_rows);

#define TIME(member)                                                           \
    MS_KEYS_COUNT(#member, MS_KEYS_AT(U64, ms_times, member), MUST)
static const ms_key time_rows[] = {
    TIME(step_ns), /* the times that follow add up to it */
    TIME(forward_ns),
    TIME(backward_ns),
    TIME(recompute_ns),
    TIME(optimizer_ns),
    TIME(exposed_comm_ns),
    TIME(stall_ns),
    TIME(bubble_ns),
    TIME(host_bound_ns),
    TIME(page_wait_ns),
    TIME(memory_wait_ns),
    TIME(idle_ns),
    {.name = "error_percent",
     .type = MS_KEY_COUNT,
     MS_KEYS_AT(SOME, ms_times, error_percent),
     .null = true,
     .help = "how far step_ns was off at most for 95 of 100 measured runs of "
             "this kind (device, kernels, length); null: there are none"},
    {.name = "measured_runs",
     .type = MS_KEY_COUNT,
     MS_KEYS_AT(SOME, ms_times, measured_runs),
     .null = true,
     .help = "how many these are"}};
#define N_TIMES 12u /* of the rows, step_ns and its parts */
const ms_keys ms_keys_rank_times = MS_KEYS_OBJECT("time", time_rows);

static const char *times_wrong(const void *of, const void *value)
{
    const char *time = value;
    uint64_t sum_ns = 0, step_ns, part_ns;
    (void)of;
    memcpy(&step_ns, time + time_rows[0].at, sizeof step_ns);
    for (size_t i = 1; i < N_TIMES; i++) {
        memcpy(&part_ns, time + time_rows[i].at, sizeof part_ns);
        sum_ns += part_ns;
    }
    return sum_ns == step_ns ? NULL : "the parts do not sum to \"step_ns\"";
}

static bool waits_for_activations(const void *of)
{
    return ((const ms_rank_report *)of)->stalls_ns[MS_CAUSE_MEETING] > 0;
}

/* How long a rank waits, by cause: six kinds, then the parts of two of them. */
#define STALL(key, cause) MS_KEYS_COUNT(key, RANK(U64, stalls_ns[cause]), MUST)
static const ms_key stalls_rows[] = {
    STALL("host", MS_CAUSE_HOST),
    MS_KEYS_COUNT("copy", RANK(U64, time.stall_ns), SKIP),
    MS_KEYS_COUNT("comm", RANK(U64, time.exposed_comm_ns), SKIP),
    STALL("bubble", MS_CAUSE_RANK),
    STALL("pages", MS_CAUSE_PAGES),
    STALL("memory", MS_CAUSE_MEMORY),
    STALL("gather", MS_CAUSE_GATHER),
    STALL("reduce", MS_CAUSE_REDUCE),
    STALL("copy_to_device", MS_CAUSE_TO_DEVICE),
    STALL("copy_to_host", MS_CAUSE_TO_HOST),
    MS_KEYS_COUNT("disk", RANK(U64, stalls_ns[MS_CAUSE_DISK]), MUST,
                  .before = "copy_to_host"),
    {.name = "activations",
     .type = MS_KEY_COUNT,
     RANK(U64, stalls_ns[MS_CAUSE_MEETING]),
     .there = waits_for_activations,
     .optional = true,
     .help = "of comm, collectives of ranks that split layers"},
    STALL("host_work", MS_CAUSE_HOST_WORK),
    STALL("pack", MS_CAUSE_PACK)};
const ms_keys ms_keys_rank_stalls = MS_KEYS_OBJECT("stalls", stalls_rows);

static uint64_t network_bytes(const void *of)
{
    const ms_rank_report *rank = of;
    return rank->links[MS_LINK_COMM].network_bytes +
           rank->links[MS_LINK_OUTER].network_bytes;
}

static bool has_groups(const void *of)
{
    const ms_rank_report *rank = of;
    uint64_t bytes = 0;
    for (uint32_t group = 0; group < MS_GROUP_NAMES; group++)
        bytes += rank->group_bytes[group];
    return bytes > 0;
}

static const ms_key traffic_rows[] = {
    MS_KEYS_COUNT("h2d_bytes", RANK(U64, h2d_bytes), MUST),
    MS_KEYS_COUNT("d2h_bytes", RANK(U64, d2h_bytes), MUST),
    MS_KEYS_COUNT("comm_bytes", RANK(U64, comm_bytes), MUST),
    MS_KEYS_COUNT("network_bytes", .make = network_bytes, SKIP),
    {.name = "groups",
     .type = MS_KEY_SOME,
     .names = ms_group_names,
     .n_names = MS_GROUP_NAMES,
     RANK(NOT, group_bytes),
     .there = has_groups,
     .optional = true,
     .help = "of comm_bytes, by the group of ranks: data (those that divide "
             "the states), replicate (those with the same part), secondary, "
             "node and across (ZeRO++, reshard_ranks), expert-data, "
             "expert-replicate (expert_ranks), other (a program's own)"},
    MS_KEYS_COUNT("nvme_bytes", RANK(U64, nvme_bytes), MUST),
    MS_KEYS_COUNT("nvme_read_bytes", RANK(U64, links[MS_LINK_NVME_READ].bytes),
                  SKIP),
    MS_KEYS_COUNT("nvme_write_bytes",
                  RANK(U64, links[MS_LINK_NVME_WRITE].bytes), SKIP)};
const ms_keys ms_keys_rank_traffic = MS_KEYS_OBJECT("traffic", traffic_rows);

static uint64_t hidden_ns(const void *of)
{
    const ms_overlap *time = of;
    return time->busy_ns - time->exposed_ns;
}

static const char *overlap_wrong(const void *of, const void *value)
{
    const ms_overlap *time = value;
    (void)of;
    return time->exposed_ns <= time->busy_ns
               ? NULL
               : "\"exposed_ns\" is longer than \"busy_ns\"";
}

static const ms_key busy_rows[] = {
    MS_KEYS_COUNT("busy_ns", MS_KEYS_AT(U64, ms_overlap, busy_ns), MUST),
    MS_KEYS_COUNT("hidden_ns", .make = hidden_ns, SKIP),
    MS_KEYS_COUNT("exposed_ns", MS_KEYS_AT(U64, ms_overlap, exposed_ns), MUST)};
static const ms_keys busy = MS_KEYS_OBJECT("busy", busy_rows);

#define LINK(kind, member) MS_KEYS_AT(kind, ms_link_use, member)

static uint64_t link_rate(const void *of)
{
    const ms_link_use *use = of;
    uint64_t busy_ns = use->time.busy_ns;
    if (busy_ns == 0 || use->bytes == 0)
        return MS_NO_LEVEL;
    return (uint64_t)((double)use->bytes * 1e9 / (double)busy_ns);
}

static uint64_t link_hidden_ns(const void *of)
{
    const ms_link_use *use = of;
    return hidden_ns(&use->time);
}

static const char *link_wrong(const void *of, const void *value)
{
    const ms_link_use *use = value;
    return overlap_wrong(of, &use->time);
}

static const ms_key link_rows[] = {
    MS_KEYS_COUNT("bytes", LINK(U64, bytes), MUST),
    MS_KEYS_COUNT("network_bytes", LINK(U64, network_bytes), MUST),
    MS_KEYS_COUNT_OR_NULL("bytes_per_s", .make = link_rate, SKIP),
    MS_KEYS_COUNT("busy_ns", LINK(U64, time.busy_ns), MUST),
    MS_KEYS_COUNT("hidden_ns", .make = link_hidden_ns, SKIP),
    MS_KEYS_COUNT("exposed_ns", LINK(U64, time.exposed_ns), MUST)};
const ms_keys ms_keys_rank_links =
    MS_KEYS_STRUCT("link", link_rows, ms_link_use);

static const ms_key overlap_rows[] = {{.name = "comm",
                                       .type = MS_KEY_OBJECT,
                                       .of = &busy,
                                       RANK(NOT, comm),
                                       MUST,
                                       .wrong = overlap_wrong},
                                      {.name = "copies",
                                       .type = MS_KEY_OBJECT,
                                       .of = &busy,
                                       RANK(NOT, copies),
                                       MUST,
                                       .wrong = overlap_wrong}};
const ms_keys ms_keys_rank_overlap = MS_KEYS_OBJECT("overlap", overlap_rows);

static uint64_t stage_of(const void *of)
{
    const ms_rank_report *rank = of;
    return rank->n_stages > 0 ? rank->stage : MS_NO_LEVEL;
}

#define IDLE(member)                                                           \
    static uint64_t member##_of(const void *of)                                \
    {                                                                          \
        return ms_times_idle(of).member;                                       \
    }
IDLE(busy_ns)
IDLE(idle_ns)
IDLE(span_idle_ns)

/* What was saved before has no first_ns: the rank's own span is not known. */
static bool has_span(const void *of)
{
    return ((const ms_rank_report *)of)->last_ns > 0;
}

static const char *span_wrong(const void *of, const void *value)
{
    const ms_rank_report *rank = of;
    (void)value;
    return rank->first_ns <= rank->last_ns ? NULL
                                           : "it ends before \"first_ns\"";
}

/* Of a rank alone the run's own keys say it. */
static bool has_host(const void *of)
{
    const ms_rank_report *rank = of;
    return rank->n_stages > 0 && rank->far[MS_HOST_POOL].peak_bytes > 0;
}

static const ms_key rank_rows[] = {
    MS_KEYS_COUNT("rank", RANK(U16, rank), MUST),
    MS_KEYS_COUNT_OR_NULL("stage", .make = stage_of, SKIP,
                          .help = "the rank's first, of a pipeline"),
    MS_RANK_PEAK(MUST, .wrong = peak_wrong),
    MS_RANK_CATEGORY_PEAKS(MUST),
    MS_RANK_MODEL_STATES(MUST),
    MS_RANK_LEVELS(MUST),
    MS_RANK_PHASE_PEAKS(MUST),
    MS_RANK_TIMES(MUST, .wrong = times_wrong),
    MS_RANK_STALLS(MUST),
    MS_RANK_TRAFFIC(MUST),
    MS_RANK_LINKS(MUST, .wrong = link_wrong),
    MS_RANK_OVERLAP(MUST),
    MS_KEYS_COUNT("in_flight_micro_batches", RANK(U32, in_flight_micro_batches),
                  MUST),
    {.name = "host_peak_bytes",
     .type = MS_KEY_COUNT,
     RANK(U64, far[MS_HOST_POOL].peak_bytes),
     .there = has_host,
     .optional = true,
     .help = "what it holds in host memory at most"},
    {.name = "host_reserved_bytes",
     .type = MS_KEY_COUNT,
     RANK(U64, far[MS_HOST_POOL].reserved_bytes),
     .there = has_host,
     .optional = true,
     .help = "and what that takes, with blocks of PyTorch's pinned allocator"},
    MS_KEYS_COUNT("busy_ns", .make = busy_ns_of, SKIP,
                  .help =
                      "what its compute stream computes: forward, backward, "
                      "recompute and optimizer"),
    MS_KEYS_COUNT("idle_ns", .make = idle_ns_of, SKIP,
                  .help =
                      "step_ns less busy_ns; step_ns is the makespan of all "
                      "ranks or, with optimizer=postvalidate, the longest "
                      "of their own spans"),
    {.name = "first_ns",
     .type = MS_KEY_COUNT,
     RANK(U64, first_ns),
     .there = has_span,
     .optional = true,
     .help = "where its own span begins, with the first op of its compute "
             "stream that takes time"},
    {.name = "last_ns",
     .type = MS_KEY_COUNT,
     RANK(U64, last_ns),
     .there = has_span,
     .optional = true,
     .wrong = span_wrong,
     .help = "and ends, with the last one"},
    {.name = "span_idle_ns",
     .type = MS_KEY_COUNT,
     .make = span_idle_ns_of,
     .there = has_span,
     .optional = true,
     SKIP,
     .help = "its own span less busy_ns: what is idle where steps follow each "
             "other without a barrier"},
};
const ms_keys ms_keys_rank = MS_KEYS_STRUCT("rank", rank_rows, ms_rank_report);

/* ---- ranks of a ring ----------------------------------------------------- */

#define RING(kind, member) MS_KEYS_AT(kind, struct ms_ring_rank, member)

static const ms_key ring_rows[] = {
    MS_KEYS_COUNT("rank", RING(U32, rank), SKIP),
    MS_KEYS_COUNT("peak_allocated_bytes", RING(U64, peak_bytes), SKIP),
    {.name = "work_ns",
     .type = MS_KEY_COUNT,
     RING(U64, work_ns),
     SKIP,
     .help = "forward, backward, recompute and optimizer"},
    {.name = "exposed_comm_ns",
     .type = MS_KEY_COUNT,
     RING(U64, wait_ns),
     SKIP,
     .help = "it waits for the others"}};
const ms_keys ms_keys_rank_ring = MS_KEYS_OBJECT("ring_rank", ring_rows);

ms_key_list ms_keys_rank_ring_list(const void *sheet)
{
    const ms_report *report = ((const ms_sheet *)sheet)->report;
    return (ms_key_list){report->ring, report->n_ring, sizeof *report->ring};
}

bool ms_keys_rank_has_ring(const void *sheet)
{
    return ((const ms_sheet *)sheet)->report->n_ring > 0;
}
