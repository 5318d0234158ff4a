/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/results/results.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define READ(values, object, rows, into)                                       \
    ms_values_read(values, object, rows, COUNT(rows), into)

/* ---- what stands in each rank -------------------------------------------- */

static ms_err read_categories(const ms_values *values, uint32_t object,
                              const char *key, uint64_t *bytes)
{
    ms_value_row rows[MS_N_CATEGORIES];
    uint32_t member;
    for (uint32_t c = 0; c < MS_N_CATEGORIES; c++)
        rows[c] = (ms_value_row){ms_names_category[c], MS_VALUE_NUMBER,
                                 c * sizeof *bytes};
    MS_TRY(ms_values_member(values, object, key, MS_JSON_OBJECT, &member));
    return READ(values, member, rows, bytes);
}

#define PEAK(name, field, kind)                                                \
    {                                                                          \
        name, kind, offsetof(ms_peak, field)                                   \
    }
static const ms_value_row peak_rows[] = {
    PEAK("allocated_bytes", allocated_bytes, MS_VALUE_NUMBER),
    PEAK("active_bytes", active_bytes, MS_VALUE_NUMBER),
    PEAK("requested_bytes", requested_bytes, MS_VALUE_NUMBER),
    PEAK("reserved_bytes", reserved_bytes, MS_VALUE_NUMBER),
    PEAK("event", number, MS_VALUE_ID),
    PEAK("op", op, MS_VALUE_WORDS),
    PEAK("layer", layer, MS_VALUE_WORDS),
    PEAK("micro_batch", micro_batch, MS_VALUE_ID),
};
static const ms_value_row peak_time[] = {
    PEAK("time_ns", t_ns, MS_VALUE_NUMBER),
};

static ms_err read_when(const ms_values *values, uint32_t object, ms_peak *peak)
{
    uint32_t row, which;
    MS_TRY(READ(values, object, peak_time, peak));
    MS_TRY(ms_values_member(values, object, "phase", MS_JSON_STRING, &row));
    MS_TRY(ms_values_word(values, row, ms_names_phase, MS_N_PHASES, &which));
    peak->phase = (uint8_t)which;
    MS_TRY(ms_values_member(values, object, "pass", MS_JSON_STRING, &row));
    MS_TRY(ms_values_word(values, row, ms_names_pass, MS_N_PASSES, &which));
    peak->pass = (uint8_t)which;
    return MS_OK;
}

static ms_err read_peak(const ms_values *values, uint32_t parent, ms_peak *peak)
{
    uint64_t sum_bytes = 0;
    uint32_t object;
    MS_TRY(ms_values_member(values, parent, "peak", MS_JSON_OBJECT, &object));
    MS_TRY(READ(values, object, peak_rows, peak));
    peak->plan_op = MS_NONE;
    peak->event = peak->number;
    if (peak->event != MS_NONE)
        MS_TRY(read_when(values, object, peak));
    MS_TRY(read_categories(values, object, "by_category", peak->by_category));
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        sum_bytes += peak->by_category[c];
    if (sum_bytes == peak->allocated_bytes)
        return MS_OK;
    return ms_json_fail(values->json, object, values->fault,
                        "was the file edited?",
                        "\"by_category\" does not sum to \"allocated_bytes\"");
}

#define RANK(name, field)                                                      \
    {                                                                          \
        name, MS_VALUE_NUMBER, offsetof(ms_rank_report, field)                 \
    }
#define LEVEL(name, mark)                                                      \
    {                                                                          \
        name, MS_VALUE_LEVEL, offsetof(ms_rank_report, levels[mark])           \
    }
static const ms_value_row state_rows[] = {
    RANK("parameters_bytes", parameters_bytes),
    RANK("gradients_bytes", gradients_bytes),
    RANK("optimizer_state_bytes", optimizer_state_bytes),
};
static const ms_value_row level_rows[] = {
    LEVEL("start_bytes", MS_MARK_START),
    LEVEL("before_loss_bytes", MS_MARK_BEFORE_LOSS),
    LEVEL("after_forward_bytes", MS_MARK_AFTER_FORWARD),
    LEVEL("after_backward_bytes", MS_MARK_AFTER_BACKWARD),
    LEVEL("end_bytes", MS_MARK_END),
};
static const ms_value_row traffic_rows[] = {
    RANK("h2d_bytes", h2d_bytes),
    RANK("d2h_bytes", d2h_bytes),
    RANK("comm_bytes", comm_bytes),
    RANK("nvme_bytes", nvme_bytes),
};
static const ms_value_row stall_rows[] = {
    RANK("host", stalls_ns[MS_CAUSE_HOST]),
    RANK("bubble", stalls_ns[MS_CAUSE_RANK]),
    RANK("pages", stalls_ns[MS_CAUSE_PAGES]),
    RANK("memory", stalls_ns[MS_CAUSE_MEMORY]),
    RANK("gather", stalls_ns[MS_CAUSE_GATHER]),
    RANK("reduce", stalls_ns[MS_CAUSE_REDUCE]),
    RANK("copy_to_device", stalls_ns[MS_CAUSE_TO_DEVICE]),
    RANK("copy_to_host", stalls_ns[MS_CAUSE_TO_HOST]),
    RANK("disk", stalls_ns[MS_CAUSE_DISK]),
    RANK("host_work", stalls_ns[MS_CAUSE_HOST_WORK]),
    RANK("pack", stalls_ns[MS_CAUSE_PACK]),
};
static const ms_value_row count_rows[] = {
    {"in_flight_micro_batches", MS_VALUE_COUNT,
     offsetof(ms_rank_report, in_flight_micro_batches)},
};

#define PHASE(name, phase)                                                     \
    {                                                                          \
        name, MS_VALUE_NUMBER, (phase) * sizeof(uint64_t)                      \
    }
static const ms_value_row phase_rows[] = {
    PHASE("forward_bytes", MS_PHASE_FORWARD),
    PHASE("loss_bytes", MS_PHASE_LOSS),
    PHASE("backward_bytes", MS_PHASE_BACKWARD),
    PHASE("optimizer_bytes", MS_PHASE_OPTIMIZER),
};

#define TIME(name)                                                             \
    {                                                                          \
#name, MS_VALUE_NUMBER, offsetof(ms_times, name)                       \
    }
static const ms_value_row time_rows[] = {
    TIME(step_ns), /* the rest sums to it */
    TIME(forward_ns),     TIME(backward_ns),     TIME(recompute_ns),
    TIME(optimizer_ns),   TIME(exposed_comm_ns), TIME(stall_ns),
    TIME(bubble_ns),      TIME(host_bound_ns),   TIME(page_wait_ns),
    TIME(memory_wait_ns), TIME(idle_ns),
};

static ms_err read_times(const ms_values *values, uint32_t object,
                         ms_times *time)
{
    uint32_t member;
    uint64_t sum_ns = 0, part_ns;
    MS_TRY(ms_values_member(values, object, "time", MS_JSON_OBJECT, &member));
    MS_TRY(READ(values, member, time_rows, time));
    for (size_t i = 1; i < COUNT(time_rows); i++) {
        memcpy(&part_ns, (const char *)time + time_rows[i].offset,
               sizeof part_ns);
        sum_ns += part_ns;
    }
    if (sum_ns == time->step_ns)
        return MS_OK;
    return ms_json_fail(values->json, member, values->fault,
                        "was the file edited?",
                        "the parts do not sum to \"step_ns\"");
}

static const ms_value_row overlap_rows[] = {
    {"busy_ns", MS_VALUE_NUMBER, offsetof(ms_overlap, busy_ns)},
    {"exposed_ns", MS_VALUE_NUMBER, offsetof(ms_overlap, exposed_ns)},
};
static const ms_value_row link_rows[] = {
    {"bytes", MS_VALUE_NUMBER, offsetof(ms_link_use, bytes)},
    {"network_bytes", MS_VALUE_NUMBER, offsetof(ms_link_use, network_bytes)},
};

static ms_err read_overlap(const ms_values *values, uint32_t object,
                           ms_overlap *overlap)
{
    MS_TRY(READ(values, object, overlap_rows, overlap));
    if (overlap->exposed_ns <= overlap->busy_ns)
        return MS_OK;
    return ms_json_fail(values->json, object, values->fault,
                        "was the file edited?",
                        "\"exposed_ns\" is longer than \"busy_ns\"");
}

static ms_err read_links(const ms_values *values, uint32_t object,
                         ms_rank_report *rank)
{
    uint32_t links, overlap, member;
    MS_TRY(ms_values_member(values, object, "links", MS_JSON_OBJECT, &links));
    for (int link = 0; link < MS_N_LINKS; link++) {
        MS_TRY(ms_values_member(values, links, ms_waits_links[link],
                                MS_JSON_OBJECT, &member));
        MS_TRY(READ(values, member, link_rows, &rank->links[link]));
        MS_TRY(read_overlap(values, member, &rank->links[link].time));
    }
    MS_TRY(
        ms_values_member(values, object, "overlap", MS_JSON_OBJECT, &overlap));
    MS_TRY(ms_values_member(values, overlap, "comm", MS_JSON_OBJECT, &member));
    MS_TRY(read_overlap(values, member, &rank->comm));
    MS_TRY(
        ms_values_member(values, overlap, "copies", MS_JSON_OBJECT, &member));
    return read_overlap(values, member, &rank->copies);
}

/* Objects of a rank that are filled from one table. */
static const struct {
    const char *key;
    const ms_value_row *rows;
    size_t n, offset;
} objects[] = {
    {"model_states", state_rows, COUNT(state_rows), 0},
    {"levels", level_rows, COUNT(level_rows), 0},
    {"phase_peaks", phase_rows, COUNT(phase_rows),
     offsetof(ms_rank_report, phase_peaks)},
    {"stalls", stall_rows, COUNT(stall_rows), 0},
    {"traffic", traffic_rows, COUNT(traffic_rows), 0},
};

static ms_err read_rank(const ms_values *values, uint32_t object,
                        ms_rank_report *rank)
{
    uint32_t member;
    uint64_t number;
    MS_TRY(ms_values_member(values, object, "rank", MS_JSON_INT, &member));
    MS_TRY(ms_values_u64(values, member, &number));
    if (number > UINT8_MAX)
        return ms_json_fail(values->json, member, values->fault, NULL,
                            "ranks go up to %u", UINT8_MAX);
    rank->rank = (uint8_t)number;
    MS_TRY(read_peak(values, object, &rank->peak));
    MS_TRY(read_categories(values, object, "category_peaks",
                           rank->category_peaks));
    for (size_t i = 0; i < COUNT(objects); i++) {
        MS_TRY(ms_values_member(values, object, objects[i].key, MS_JSON_OBJECT,
                                &member));
        MS_TRY(ms_values_read(values, member, objects[i].rows, objects[i].n,
                              (char *)rank + objects[i].offset));
    }
    MS_TRY(read_times(values, object, &rank->time));
    rank->stalls_ns[MS_CAUSE_IDLE] = rank->time.idle_ns;
    MS_TRY(read_links(values, object, rank));
    return READ(values, object, count_rows, rank);
}

/* ---- what the job has once ----------------------------------------------- */

static const ms_value_row record_rows[] = {
    {"model", MS_VALUE_NAME, offsetof(ms_record, model)},
    {"device", MS_VALUE_NAME, offsetof(ms_record, device)},
    {"policy", MS_VALUE_NAME, offsetof(ms_record, policy)},
    {"parameters", MS_VALUE_NUMBER, offsetof(ms_record, parameters)},
};

#define REPORT(name, field, kind)                                              \
    {                                                                          \
        name, kind, offsetof(ms_report, field)                                 \
    }
static const ms_value_row report_rows[] = {
    REPORT("fits", fits, MS_VALUE_BOOL),
    REPORT("capacity_bytes", capacity_bytes, MS_VALUE_NUMBER),
    REPORT("context_bytes", context_bytes, MS_VALUE_NUMBER),
    REPORT("headroom_bytes", headroom_bytes, MS_VALUE_SIGNED),
    REPORT("tokens_per_second", tokens_per_second, MS_VALUE_RATE),
    REPORT("mfu", mfu, MS_VALUE_RATE),
    REPORT("events", events, MS_VALUE_COUNT),
    REPORT("recomputed_ops", recomputed_ops, MS_VALUE_NUMBER),
    REPORT("page_faults", page_faults, MS_VALUE_LEVEL),
    REPORT("revoked_prefetches", revoked_prefetches, MS_VALUE_ID),
};
static const ms_value_row overheads_rows[] = {
    REPORT("context_and_kernels_bytes", outside.kernels_bytes, MS_VALUE_NUMBER),
    REPORT("nccl_bytes", outside.nccl_bytes, MS_VALUE_NUMBER),
    REPORT("nccl_communicators", outside.communicators, MS_VALUE_COUNT),
    REPORT("nccl_channels", outside.channels, MS_VALUE_COUNT),
};
static const ms_value_row flops_rows[] = {
    REPORT("forward", forward_flops, MS_VALUE_RATE),
    REPORT("backward", backward_flops, MS_VALUE_RATE),
    REPORT("recompute", recompute_flops, MS_VALUE_RATE),
    REPORT("optimizer", optimizer_flops, MS_VALUE_RATE),
};
static const ms_value_row lack_rows[] = {
    REPORT("op", lack_op, MS_VALUE_WORDS),
    REPORT("layer", lack_layer, MS_VALUE_WORDS),
    REPORT("time_ns", lack.t_ns, MS_VALUE_NUMBER),
    REPORT("missing_bytes", lack.missing_bytes, MS_VALUE_NUMBER),
};
static const ms_value_row worst_rows[] = {
    RANK("optimizer_scratch_bytes", optimizer_scratch_bytes),
    {"saved_for_backward_bytes", MS_VALUE_LEVEL,
     offsetof(ms_rank_report, saved_for_backward_bytes)},
};

#define FAR(name, field, kind)                                                 \
    {                                                                          \
        name, kind, offsetof(struct ms_far_memory, field)                      \
    }
static const struct {
    ms_pool_kind pool;
    const char *categories;
    ms_value_row rows[3];
} far_rows[] = {
    {MS_HOST_POOL,
     "host_by_category",
     {FAR("host_peak_bytes", peak_bytes, MS_VALUE_NUMBER),
      FAR("host_node_bytes", node_bytes, MS_VALUE_NUMBER),
      FAR("host_node_capacity_bytes", capacity_bytes, MS_VALUE_LEVEL)}},
    {MS_NVME_POOL,
     "nvme_by_category",
     {FAR("nvme_peak_bytes", peak_bytes, MS_VALUE_NUMBER),
      FAR("nvme_node_bytes", node_bytes, MS_VALUE_NUMBER),
      FAR("nvme_node_capacity_bytes", capacity_bytes, MS_VALUE_LEVEL)}},
};

/* What is taken for them: memsim 0.1.0 did not tell. */
static const struct {
    ms_pool_kind pool;
    ms_value_row row;
} reserved_rows[] = {
    {MS_HOST_POOL, FAR("host_pinned_bytes", pinned_bytes, MS_VALUE_NUMBER)},
    {MS_HOST_POOL,
     FAR("host_reserved_peak_bytes", reserved_bytes, MS_VALUE_NUMBER)},
    {MS_HOST_POOL,
     FAR("host_node_reserved_bytes", node_reserved_bytes, MS_VALUE_NUMBER)},
    {MS_NVME_POOL,
     FAR("nvme_reserved_peak_bytes", reserved_bytes, MS_VALUE_NUMBER)},
    {MS_NVME_POOL,
     FAR("nvme_node_reserved_bytes", node_reserved_bytes, MS_VALUE_NUMBER)},
};

static ms_err read_reserved(const ms_values *values, uint32_t object,
                            ms_report *report)
{
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
        report->far[pool].reserved_bytes = report->far[pool].peak_bytes;
        report->far[pool].node_reserved_bytes = report->far[pool].node_bytes;
    }
    for (size_t i = 0; i < COUNT(reserved_rows); i++)
        if (ms_json_find(values->json, object, reserved_rows[i].row.key) !=
            MS_NONE)
            MS_TRY(ms_values_read(values, object, &reserved_rows[i].row, 1,
                                  &report->far[reserved_rows[i].pool]));
    return MS_OK;
}

static ms_err read_far(const ms_values *values, uint32_t object,
                       ms_report *report)
{
    for (size_t i = 0; i < COUNT(far_rows); i++) {
        struct ms_far_memory *far = &report->far[far_rows[i].pool];
        MS_TRY(ms_values_read(values, object, far_rows[i].rows, 3, far));
        MS_TRY(read_categories(values, object, far_rows[i].categories,
                               far->by_category));
        if (far->capacity_bytes == MS_NO_LEVEL)
            far->capacity_bytes = 0;
    }
    report->host_peak_bytes = report->far[MS_HOST_POOL].peak_bytes;
    report->nvme_peak_bytes = report->far[MS_NVME_POOL].peak_bytes;
    return read_reserved(values, object, report);
}

static ms_err read_job(const ms_values *values, uint32_t object,
                       ms_report *report)
{
    uint32_t member, which;
    MS_TRY(READ(values, object, report_rows, report));
    report->paged = report->page_faults != MS_NO_LEVEL;
    report->page_faults = report->paged ? report->page_faults : 0;
    report->wall = report->revoked_prefetches != MS_NONE;
    report->revoked_prefetches = report->wall ? report->revoked_prefetches : 0;
    MS_TRY(ms_values_member(values, object, "status", MS_JSON_STRING, &member));
    MS_TRY(ms_values_word(values, member, ms_names_status, MS_INFEASIBLE + 1,
                          &which));
    report->status = (ms_status)which;
    MS_TRY(ms_values_member(values, object, "flops", MS_JSON_OBJECT, &member));
    MS_TRY(READ(values, member, flops_rows, report));
    MS_TRY(ms_values_optional(values, object, "out_of_memory", MS_JSON_OBJECT,
                              &member));
    report->lack.op = MS_NONE;
    if (member != MS_NONE)
        MS_TRY(READ(values, member, lack_rows, report));
    MS_TRY(ms_values_optional(values, object, "overheads", MS_JSON_OBJECT,
                              &member));
    if (member != MS_NONE) /* memsim 0.1.0 had none */
        MS_TRY(READ(values, member, overheads_rows, report));
    return read_far(values, object, report);
}

/* ---- ranks --------------------------------------------------------------- */

/* What makes the highest level of each phase. */
static ms_err read_phases(const ms_values *values, uint32_t object,
                          ms_rank_report *rank)
{
    uint32_t phases, member;
    MS_TRY(ms_values_member(values, object, "phase_peaks_by_category",
                            MS_JSON_OBJECT, &phases));
    for (int phase = 0; phase < MS_N_PHASES; phase++) {
        const char *name = ms_names_phase[phase];
        uint64_t *bytes = rank->phase_by_category[phase], sum_bytes = 0;
        MS_TRY(read_categories(values, phases, name, bytes));
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            sum_bytes += bytes[c];
        member = ms_json_find(values->json, phases, name);
        if (sum_bytes != rank->phase_peaks_with_workspace[phase])
            return ms_json_fail(values->json, member, values->fault,
                                "was the file edited?",
                                "this does not sum to the peak of the phase");
    }
    return MS_OK;
}

/* What stands above copies the rank with the highest peak, and says some more
 * of it. */
static ms_err find_worst(const ms_values *values, uint32_t object,
                         ms_report *report)
{
    ms_rank_report top = {0};
    uint32_t member, peak;
    MS_TRY(read_peak(values, object, &top.peak));
    MS_TRY(ms_values_member(values, object, "peak", MS_JSON_OBJECT, &peak));
    MS_TRY(ms_values_member(values, peak, "rank", MS_JSON_INT, &member));
    uint8_t i = 0;
    while (i < report->n_ranks && (int64_t)report->ranks[i].rank !=
                                      values->json->nodes[member].value.i)
        i++;
    if (i == report->n_ranks)
        return ms_json_fail(values->json, member, values->fault,
                            "was the file edited?",
                            "\"ranks\" does not list this rank");
    ms_rank_report *worst = &report->ranks[i];
    report->worst = i;
    if (worst->peak.allocated_bytes != top.peak.allocated_bytes ||
        memcmp(worst->peak.by_category, top.peak.by_category,
               sizeof top.peak.by_category) != 0)
        return ms_json_fail(values->json, peak, values->fault,
                            "was the file edited?",
                            "this peak is not that of its rank in \"ranks\"");
    MS_TRY(READ(values, object, worst_rows, worst));
    MS_TRY(ms_values_member(values, object, "phase_peaks_with_workspace",
                            MS_JSON_OBJECT, &member));
    MS_TRY(READ(values, member, phase_rows, worst->phase_peaks_with_workspace));
    return read_phases(values, object, worst);
}

static ms_err read_ranks(const ms_values *values, uint32_t object,
                         ms_report *report)
{
    uint32_t list;
    MS_TRY(ms_values_member(values, object, "ranks", MS_JSON_ARRAY, &list));
    uint32_t n = values->json->nodes[list].value.n;
    if (n == 0 || n > UINT8_MAX)
        return ms_json_fail(values->json, list, values->fault, NULL,
                            "there are 1 to %u ranks, not %u", UINT8_MAX, n);
    report->n_ranks = (uint8_t)n;
    report->ranks = ms_arena_take(values->arena, n, sizeof *report->ranks);
    if (report->ranks == NULL)
        return ms_fail_nomem(values->fault);
    uint32_t row = ms_json_first(values->json, list);
    for (uint32_t i = 0; i < n; i++, row = values->json->nodes[row].next) {
        MS_TRY(read_rank(values, row, &report->ranks[i]));
        if (i > 0 && report->ranks[i].rank <= report->ranks[i - 1].rank)
            return ms_json_fail(values->json, row, values->fault, NULL,
                                "the numbers of the ranks do not ascend");
    }
    return find_worst(values, object, report);
}

ms_err ms_resultreport_read(const ms_values *values, uint32_t object,
                            ms_record *record)
{
    MS_TRY(READ(values, object, record_rows, record));
    MS_TRY(read_job(values, object, &record->report));
    MS_TRY(read_ranks(values, object, &record->report));
    return ms_resultpool_read(values, object, &record->report);
}
