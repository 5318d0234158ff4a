/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/sim.h"

#include <string.h>

/* Keys after the first of an object bring their comma along. */
static void first_key(ms_text *text, const char *name)
{
    ms_text_json(text, name);
    ms_text_add(text, ": ");
}

static void key(ms_text *text, const char *name)
{
    ms_text_add(text, ", ");
    first_key(text, name);
}

static void put_string(ms_text *text, const char *string)
{
    if (string)
        ms_text_json(text, string);
    else
        ms_text_add(text, "null");
}

static void put_object(ms_text *text, const char *json)
{
    ms_text_put(text, json ? json : "null", json ? strlen(json) : 4);
}

static void put_id(ms_text *text, uint32_t id)
{
    if (id == MS_NONE)
        ms_text_add(text, "null");
    else
        ms_text_u64(text, id);
}

static void put_level(ms_text *text, uint64_t bytes)
{
    if (bytes == MS_NO_LEVEL)
        ms_text_add(text, "null");
    else
        ms_text_u64(text, bytes);
}

/* Rates are negative where they do not apply. */
static void put_rate(ms_text *text, double rate)
{
    if (rate < 0)
        ms_text_add(text, "null");
    else
        ms_text_double(text, rate);
}

/* FLOPs are whole numbers: all their digits, as long as they fit. */
static void put_flops(ms_text *text, double flops)
{
    if (flops < 0x1p63)
        ms_text_u64(text, (uint64_t)flops);
    else
        ms_text_double(text, flops);
}

/* A name with its value, for objects that are a list of such pairs. */
typedef struct field {
    const char *name;
    uint64_t value;
} field;

static void put_fields(ms_text *text, const field *fields, size_t n)
{
    ms_text_add(text, "{");
    for (size_t i = 0; i < n; i++) {
        if (i)
            ms_text_add(text, ", ");
        first_key(text, fields[i].name);
        put_level(text, fields[i].value);
    }
    ms_text_add(text, "}");
}

#define PUT_FIELDS(text, ...)                                                  \
    put_fields(text, (const field[]){__VA_ARGS__},                             \
               sizeof(const field[]){__VA_ARGS__} / sizeof(field))

static void put_categories(ms_text *text, const uint64_t *bytes)
{
    field fields[MS_N_CATEGORIES];
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        fields[c] = (field){ms_names_category[c], bytes[c]};
    put_fields(text, fields, MS_N_CATEGORIES);
}

static void put_phases(ms_text *text, const uint64_t *bytes)
{
    PUT_FIELDS(text, {"forward_bytes", bytes[MS_PHASE_FORWARD]},
               {"loss_bytes", bytes[MS_PHASE_LOSS]},
               {"backward_bytes", bytes[MS_PHASE_BACKWARD]},
               {"optimizer_bytes", bytes[MS_PHASE_OPTIMIZER]});
}

/* By the names of phases, as what they hold goes by the names of categories. */
static void put_phase_categories(ms_text *text, const ms_rank_report *rank)
{
    ms_text_add(text, "{");
    for (int phase = 0; phase < MS_N_PHASES; phase++) {
        ms_text_add(text, phase > 0 ? ", " : "");
        first_key(text, ms_names_phase[phase]);
        put_categories(text, rank->phase_by_category[phase]);
    }
    ms_text_add(text, "}");
}

static void put_peak(ms_text *text, const ms_rank_report *rank)
{
    const ms_peak *peak = &rank->peak;
    bool any = peak->event != MS_NONE;
    ms_text_add(text, "{");
    first_key(text, "allocated_bytes");
    ms_text_u64(text, peak->allocated_bytes);
    key(text, "active_bytes");
    ms_text_u64(text, peak->active_bytes);
    key(text, "requested_bytes");
    ms_text_u64(text, peak->requested_bytes);
    key(text, "reserved_bytes");
    ms_text_u64(text, peak->reserved_bytes);
    key(text, "time_ns");
    put_level(text, any ? peak->t_ns : MS_NO_LEVEL);
    key(text, "event");
    put_id(text, peak->number);
    key(text, "phase");
    put_string(text, any ? ms_names_phase[peak->phase] : NULL);
    key(text, "pass");
    put_string(text, any ? ms_names_pass[peak->pass] : NULL);
    key(text, "op");
    put_string(text, peak->op);
    key(text, "layer");
    put_string(text, peak->layer);
    key(text, "micro_batch");
    put_id(text, peak->micro_batch);
    key(text, "rank");
    ms_text_u64(text, rank->rank);
    key(text, "by_category");
    put_categories(text, peak->by_category);
    ms_text_add(text, "}");
}

static void put_states_and_levels(ms_text *text, const ms_rank_report *rank)
{
    const uint64_t *levels = rank->levels;
    key(text, "category_peaks");
    put_categories(text, rank->category_peaks);
    key(text, "model_states");
    PUT_FIELDS(text, {"parameters_bytes", rank->parameters_bytes},
               {"gradients_bytes", rank->gradients_bytes},
               {"optimizer_state_bytes", rank->optimizer_state_bytes},
               {"total_bytes", rank->parameters_bytes + rank->gradients_bytes +
                                   rank->optimizer_state_bytes});
    key(text, "levels");
    PUT_FIELDS(text, {"start_bytes", levels[MS_MARK_START]},
               {"before_loss_bytes", levels[MS_MARK_BEFORE_LOSS]},
               {"after_forward_bytes", levels[MS_MARK_AFTER_FORWARD]},
               {"after_backward_bytes", levels[MS_MARK_AFTER_BACKWARD]},
               {"end_bytes", levels[MS_MARK_END]});
    key(text, "phase_peaks");
    put_phases(text, rank->phase_peaks);
}

static void put_times(ms_text *text, const ms_times *time)
{
    PUT_FIELDS(
        text, {"step_ns", time->step_ns}, {"forward_ns", time->forward_ns},
        {"backward_ns", time->backward_ns},
        {"recompute_ns", time->recompute_ns},
        {"optimizer_ns", time->optimizer_ns},
        {"exposed_comm_ns", time->exposed_comm_ns},
        {"stall_ns", time->stall_ns}, {"bubble_ns", time->bubble_ns},
        {"host_bound_ns", time->host_bound_ns},
        {"page_wait_ns", time->page_wait_ns},
        {"memory_wait_ns", time->memory_wait_ns}, {"idle_ns", time->idle_ns});
}

/* Waits by cause: six kinds, then the parts of two of them. */
static void put_stalls(ms_text *text, const ms_rank_report *rank)
{
    const ms_times *time = &rank->time;
    field fields[6 + MS_N_CAUSES] = {
        {"host", time->host_bound_ns},   {"copy", time->stall_ns},
        {"comm", time->exposed_comm_ns}, {"bubble", time->bubble_ns},
        {"pages", time->page_wait_ns},   {"memory", time->memory_wait_ns}};
    size_t n = 6;
    for (int cause = MS_CAUSE_GATHER; cause < MS_CAUSE_RANK; cause++)
        fields[n++] = (field){ms_waits_names[cause], rank->stalls_ns[cause]};
    put_fields(text, fields, n);
}

static void put_traffic(ms_text *text, const ms_rank_report *rank)
{
    const ms_link_use *links = rank->links;
    PUT_FIELDS(text, {"h2d_bytes", rank->h2d_bytes},
               {"d2h_bytes", rank->d2h_bytes}, {"comm_bytes", rank->comm_bytes},
               {"network_bytes", links[MS_LINK_COMM].network_bytes +
                                     links[MS_LINK_OUTER].network_bytes},
               {"nvme_bytes", rank->nvme_bytes},
               {"nvme_read_bytes", links[MS_LINK_NVME_READ].bytes},
               {"nvme_write_bytes", links[MS_LINK_NVME_WRITE].bytes});
}

/* Names and values without the braces. */
static void put_overlap(ms_text *text, const ms_overlap *time)
{
    first_key(text, "busy_ns");
    ms_text_u64(text, time->busy_ns);
    key(text, "hidden_ns");
    ms_text_u64(text, time->busy_ns - time->exposed_ns);
    key(text, "exposed_ns");
    ms_text_u64(text, time->exposed_ns);
}

static void put_link(ms_text *text, const ms_link_use *use)
{
    uint64_t busy_ns = use->time.busy_ns, rate = MS_NO_LEVEL;
    if (busy_ns > 0 && use->bytes > 0)
        rate = (uint64_t)((double)use->bytes * 1e9 / (double)busy_ns);
    ms_text_add(text, "{");
    first_key(text, "bytes");
    ms_text_u64(text, use->bytes);
    key(text, "network_bytes");
    ms_text_u64(text, use->network_bytes);
    key(text, "bytes_per_s");
    put_level(text, rate);
    ms_text_add(text, ", ");
    put_overlap(text, &use->time);
    ms_text_add(text, "}");
}

static void put_links(ms_text *text, const ms_rank_report *rank)
{
    key(text, "links");
    ms_text_add(text, "{");
    for (int link = 0; link < MS_N_LINKS; link++) {
        ms_text_add(text, link > 0 ? ", " : "");
        first_key(text, ms_waits_links[link]);
        put_link(text, &rank->links[link]);
    }
    ms_text_add(text, "}");
    key(text, "overlap");
    ms_text_add(text, "{");
    first_key(text, "comm");
    ms_text_add(text, "{");
    put_overlap(text, &rank->comm);
    ms_text_add(text, "}, ");
    first_key(text, "copies");
    ms_text_add(text, "{");
    put_overlap(text, &rank->copies);
    ms_text_add(text, "}}");
}

static void put_flops_by_phase(ms_text *text, const ms_report *report)
{
    ms_text_add(text, "{");
    first_key(text, "forward");
    put_flops(text, report->forward_flops);
    key(text, "backward");
    put_flops(text, report->backward_flops);
    key(text, "recompute");
    put_flops(text, report->recompute_flops);
    key(text, "optimizer");
    put_flops(text, report->optimizer_flops);
    key(text, "total");
    put_flops(text, report->forward_flops + report->backward_flops +
                        report->recompute_flops + report->optimizer_flops);
    ms_text_add(text, "}");
}

static void put_rank(ms_text *text, const ms_rank_report *rank)
{
    ms_text_add(text, "{");
    first_key(text, "rank");
    ms_text_u64(text, rank->rank);
    key(text, "stage");
    ms_text_add(text, "null");
    key(text, "peak");
    put_peak(text, rank);
    put_states_and_levels(text, rank);
    key(text, "time");
    put_times(text, &rank->time);
    key(text, "stalls");
    put_stalls(text, rank);
    key(text, "traffic");
    put_traffic(text, rank);
    put_links(text, rank);
    key(text, "in_flight_micro_batches");
    ms_text_u64(text, rank->in_flight_micro_batches);
    ms_text_add(text, "}");
}

static void put_unknown(ms_text *text, const ms_graph *graph)
{
    key(text, "unknown_ops");
    ms_text_add(text, "[");
    for (uint32_t i = 0; i < graph->n_unknown; i++) {
        ms_text_add(text, i ? ", {" : "{");
        first_key(text, "op");
        put_string(text, graph->unknown_name[i]);
        key(text, "count");
        ms_text_u64(text, graph->unknown_count[i]);
        ms_text_add(text, "}");
    }
    ms_text_add(text, "]");
}

/* What was missing where nothing helped; null where it did, or nobody waits. */
static void put_lack(ms_text *text, const ms_report *report)
{
    const ms_lack *lack = &report->lack;
    key(text, "out_of_memory");
    if (lack->missing_bytes == 0) {
        ms_text_add(text, "null");
        return;
    }
    ms_text_add(text, "{");
    first_key(text, "op");
    put_string(text, report->lack_op);
    key(text, "layer");
    put_string(text, report->lack_layer);
    key(text, "time_ns");
    ms_text_u64(text, lack->t_ns);
    key(text, "missing_bytes");
    ms_text_u64(text, lack->missing_bytes);
    ms_text_add(text, "}");
}

static void put_or_null(ms_text *text, uint64_t number)
{
    if (number > 0)
        ms_text_u64(text, number);
    else
        ms_text_add(text, "null");
}

static void put_steps(ms_text *text, const ms_pooled *pooled, uint8_t rank)
{
    uint32_t n = pooled->n_kinds;
    key(text, "by_step");
    for (uint32_t k = 0; k < pooled->setup.steps; k++) {
        const ms_pooled_step *step =
            &pooled->steps[(size_t)k * pooled->n_ranks + rank];
        ms_pooled_kind kind = {0};
        if (n > 0)
            kind = pooled->kinds[k % n];
        ms_text_add(text, k == 0 ? "[{" : ", {");
        first_key(text, "batch");
        put_or_null(text, kind.batch);
        key(text, "sequence");
        put_or_null(text, kind.sequence);
        key(text, "peak");
        PUT_FIELDS(text, {"allocated_bytes", step->allocated_peak_bytes},
                   {"reserved_bytes", step->reserved_peak_bytes});
        key(text, "at_end");
        PUT_FIELDS(text, {"allocated_bytes", step->allocated_bytes},
                   {"reserved_bytes", step->reserved_bytes},
                   {"segments", step->segments});
        key(text, "calls");
        PUT_FIELDS(text, {"device_allocs", step->device_allocs},
                   {"device_frees", step->device_frees},
                   {"retries", step->retries});
        ms_text_add(text, "}");
    }
    ms_text_add(text, "]");
}

/* What not every pool has. */
static void put_told(ms_text *text, uint8_t kind, const ms_pool_stats *told)
{
    bool heap = kind > MS_POOL_TORCH && kind < MS_POOL_N_TYPES;
    bool moves = kind == MS_POOL_CONTIGUOUS;
    key(text, "touched_bytes");
    put_level(text, heap ? told->touched_bytes : UINT64_MAX);
    key(text, "moves");
    put_level(text, moves ? told->moves : UINT64_MAX);
    key(text, "moved_bytes");
    put_level(text, moves ? told->moved_bytes : UINT64_MAX);
}

/* The rank that the top of the report is of. */
static void put_pool(ms_text *text, const ms_report *report)
{
    const ms_pooled *pooled = report->pooled;
    const ms_pooled_rank *rank = &pooled->ranks[report->worst];
    const struct ms_pooled_moment *at = &rank->at_peak;
    const ms_pooled_oom *oom = &pooled->lack;
    uint8_t kind = pooled->setup.heap.kind;
    key(text, "pool");
    ms_text_add(text, "{");
    first_key(text, "version");
    put_string(text, kind == MS_POOL_TORCH
                         ? ms_torchconf_versions[pooled->setup.torch.version]
                         : NULL);
    key(text, "kind");
    put_string(text, ms_pool_types[kind]);
    key(text, "steps");
    ms_text_u64(text, pooled->setup.steps);
    key(text, "allocated_peak_bytes");
    ms_text_u64(text, rank->allocated_peak_bytes);
    key(text, "segments");
    ms_text_u64(text, rank->segments);
    key(text, "device_allocs");
    ms_text_u64(text, rank->device_allocs);
    key(text, "device_frees");
    ms_text_u64(text, rank->device_frees);
    key(text, "retries");
    ms_text_u64(text, rank->retries);
    key(text, "requests");
    ms_text_u64(text, rank->requests);
    key(text, "reserved_most_bytes");
    ms_text_u64(text, rank->reserved_most_bytes);
    put_steps(text, pooled, report->worst);
    put_told(text, kind, &rank->told);
    key(text, "at_peak");
    PUT_FIELDS(text, {"reserved_bytes", at->reserved_bytes},
               {"allocated_bytes", at->allocated_bytes},
               {"idle_bytes", at->idle_bytes},
               {"largest_idle_bytes", at->largest_idle_bytes},
               {"usable_bytes", at->usable_bytes},
               {"next_request_bytes", at->next_bytes});
    key(text, "oom");
    if (pooled->oom)
        PUT_FIELDS(text, {"step", oom->step}, {"rank", oom->rank},
                   {"requested_bytes", oom->requested_bytes},
                   {"total_bytes", oom->total_bytes},
                   {"allowed_bytes", oom->allowed_bytes},
                   {"free_bytes", oom->free_bytes},
                   {"allocated_bytes", oom->allocated_bytes},
                   {"reserved_bytes", oom->reserved_bytes});
    else
        ms_text_add(text, "null");
    ms_text_add(text, "}");
}

void ms_report_overheads(const ms_report *report, const ms_graph *graph,
                         ms_text *text)
{
    const ms_outside *outside = &report->outside;
    uint32_t n;
    uint64_t libraries_bytes = ms_measure_libraries(graph, &n);
    key(text, "device_used_bytes");
    ms_text_u64(text, ms_capacity_used(report));
    key(text, "overheads");
    PUT_FIELDS(text, {"context_and_kernels_bytes", outside->kernels_bytes},
               {"nccl_bytes", outside->nccl_bytes},
               {"nccl_communicators", outside->communicators},
               {"nccl_channels", outside->channels},
               {"library_workspaces_bytes", libraries_bytes},
               {"library_workspaces", n});
}

static void put_exceeded(ms_text *text, const ms_report *report)
{
    const char *between = "";
    key(text, "exceeded");
    ms_text_add(text, "[");
    for (int pool = 0; pool < MS_N_POOLS; pool++) {
        if (ms_capacity_short(report, (ms_pool_kind)pool) == 0)
            continue;
        ms_text_add(text, "%s\"%s\"", between, ms_names_pool[pool]);
        between = ", ";
    }
    ms_text_add(text, "]");
}

static void put_heading(ms_text *text, const ms_report *report,
                        const ms_graph *graph, const ms_report_names *names)
{
    first_key(text, "schema_version");
    ms_text_u64(text, 1);
    key(text, "memsim");
    put_string(text, MS_VERSION);
    key(text, "status");
    put_string(text, ms_names_status[report->status]);
    key(text, "model");
    put_string(text, names->model);
    key(text, "device");
    put_string(text, names->device);
    key(text, "policy");
    put_string(text, names->policy);
    key(text, "settings");
    put_object(text, names->settings_json);
    key(text, "parameters");
    ms_text_u64(text, graph->parameters);
    put_unknown(text, graph);
    key(text, "fits");
    ms_text_add(text, report->fits ? "true" : "false");
    put_exceeded(text, report);
    key(text, "capacity_bytes");
    ms_text_u64(text, report->capacity_bytes);
    key(text, "context_bytes");
    ms_text_u64(text, report->context_bytes);
    key(text, "headroom_bytes");
    ms_text_i64(text, report->headroom_bytes);
    ms_report_overheads(report, graph, text);
    put_lack(text, report);
    if (report->pooled)
        put_pool(text, report);
}

/* A memory outside the device: "host_peak_bytes", "host_by_category", ... */
static void put_far(ms_text *text, const char *name,
                    const struct ms_far_memory *far)
{
    uint64_t node = far->node_reserved_bytes, has = far->capacity_bytes;
    const field fields[] = {{"node", far->node_bytes},
                            {"reserved_peak", far->reserved_bytes},
                            {"node_reserved", node},
                            {"node_capacity", has > 0 ? has : MS_NO_LEVEL}};
    ms_text_add(text, ", \"%s_peak_bytes\": %llu, \"%s_by_category\": ", name,
                (unsigned long long)far->peak_bytes, name);
    put_categories(text, far->by_category);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        ms_text_add(text, ", \"%s_%s_bytes\": ", name, fields[i].name);
        put_level(text, fields[i].value);
    }
    ms_text_add(text, ", \"%s_headroom_bytes\": ", name);
    if (has > 0)
        ms_text_i64(text, (int64_t)(has - node));
    else
        ms_text_add(text, "null");
}

static void put_memory(ms_text *text, const ms_report *report)
{
    const ms_rank_report *rank = &report->ranks[report->worst];
    key(text, "peak");
    put_peak(text, rank);
    put_states_and_levels(text, rank);
    key(text, "optimizer_scratch_bytes");
    ms_text_u64(text, rank->optimizer_scratch_bytes);
    key(text, "phase_peaks_with_workspace");
    put_phases(text, rank->phase_peaks_with_workspace);
    key(text, "phase_peaks_by_category");
    put_phase_categories(text, rank);
    key(text, "saved_for_backward_bytes");
    put_level(text, rank->saved_for_backward_bytes);
    put_far(text, "host", &report->far[MS_HOST_POOL]);
    key(text, "host_pinned_bytes");
    ms_text_u64(text, report->far[MS_HOST_POOL].pinned_bytes);
    put_far(text, "nvme", &report->far[MS_NVME_POOL]);
}

static void put_cost(ms_text *text, const ms_report *report)
{
    const ms_rank_report *rank = &report->ranks[report->worst];
    key(text, "time");
    put_times(text, &rank->time);
    key(text, "stalls");
    put_stalls(text, rank);
    key(text, "page_faults");
    put_level(text, report->paged ? report->page_faults : MS_NO_LEVEL);
    key(text, "revoked_prefetches");
    put_level(text, report->wall ? report->revoked_prefetches : MS_NO_LEVEL);
    key(text, "flops");
    put_flops_by_phase(text, report);
    key(text, "recomputed_ops");
    ms_text_u64(text, report->recomputed_ops);
    key(text, "traffic");
    put_traffic(text, rank);
    put_links(text, rank);
    key(text, "tokens_per_second");
    put_rate(text, report->tokens_per_second);
    key(text, "mfu");
    put_rate(text, report->mfu);
    key(text, "events");
    ms_text_u64(text, report->events);
    if (report->repeats > 0) {
        key(text, "repeats");
        ms_text_u64(text, report->repeats);
    }
}

void ms_report_json(const ms_report *report, const ms_graph *graph,
                    const ms_report_names *names, ms_text *text)
{
    ms_text_add(text, "{");
    put_heading(text, report, graph, names);
    put_memory(text, report);
    put_cost(text, report);
    key(text, "ranks");
    ms_text_add(text, "[");
    for (uint8_t rank = 0; rank < report->n_ranks; rank++) {
        if (rank)
            ms_text_add(text, ", ");
        put_rank(text, &report->ranks[rank]);
    }
    ms_text_add(text, "]");
    key(text, "timeline");
    put_object(text, names->timeline_json);
    ms_text_add(text, "}");
}
