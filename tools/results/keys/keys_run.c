/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim run --json. */

#include "graphs/json/json.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/results/keys/keys_rank.h"
#include "tools/results/sheet.h"

#define MUST MS_KEYS_MUST
#define SKIP MS_KEYS_SKIP

#define SHEET(kind, member) MS_KEYS_AT(kind, ms_sheet, member)
#define REPORT(kind, member)                                                   \
    MS_KEYS_VIA(ms_sheet, report), MS_KEYS_AT(kind, ms_report, member)
#define TOLD MS_KEYS_VIA(ms_sheet, told)

static const ms_key unknown_rows[] = {
    MS_KEYS_TEXT("op", MS_KEYS_AT(TEXT, ms_sheet_op, name)),
    MS_KEYS_COUNT("count", MS_KEYS_AT(U32, ms_sheet_op, count))};
static const ms_keys unknown =
    MS_KEYS_STRUCT("unknown_op", unknown_rows, ms_sheet_op);

static ms_key_list unknown_list(const void *of)
{
    const ms_sheet *sheet = of;
    return (ms_key_list){sheet->unknown, sheet->n_unknown,
                         sizeof *sheet->unknown};
}

static ms_key_list exceeded_list(const void *of)
{
    const ms_sheet *sheet = of;
    return (ms_key_list){(void *)sheet->exceeded, sheet->n_exceeded,
                         sizeof *sheet->exceeded};
}

static const ms_key lack_rows[] = {
    MS_KEYS_TEXT_OR_NULL("op", MS_KEYS_AT(TEXT, ms_report, lack_op), MUST),
    MS_KEYS_TEXT_OR_NULL("layer", MS_KEYS_AT(TEXT, ms_report, lack_layer),
                         MUST),
    MS_KEYS_COUNT("time_ns", MS_KEYS_AT(U64, ms_report, lack.t_ns), MUST),
    MS_KEYS_COUNT("missing_bytes",
                  MS_KEYS_AT(U64, ms_report, lack.missing_bytes), MUST)};
static const ms_keys lack = MS_KEYS_OBJECT("out_of_memory", lack_rows);

/* It is null where the step never lacks memory, or where something helped. */
static bool lack_there(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->lack.missing_bytes > 0;
}

static const ms_key average_rows[] = {
    MS_KEYS_COUNT("peak_allocated_bytes",
                  MS_KEYS_AT(U64, ms_report, average.peak_bytes), MUST),
    MS_KEYS_COUNT("step_ns", MS_KEYS_AT(U64, ms_report, average.step_ns),
                  MUST)};
static const ms_keys average = MS_KEYS_OBJECT("average_rank", average_rows);

static bool is_optimum(const void *of)
{
    return ((const ms_sheet *)of)->optimum.best != NULL;
}

static bool is_uneven(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->average.peak_bytes > 0;
}

static bool is_pooled(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->pooled != NULL;
}

static const ms_key flops_rows[] = {
    {.name = "forward",
     .type = MS_KEY_NUMBER,
     REPORT(FLOPS, forward_flops),
     MUST},
    {.name = "backward",
     .type = MS_KEY_NUMBER,
     REPORT(FLOPS, backward_flops),
     MUST},
    {.name = "recompute",
     .type = MS_KEY_NUMBER,
     REPORT(FLOPS, recompute_flops),
     MUST},
    {.name = "optimizer",
     .type = MS_KEY_NUMBER,
     REPORT(FLOPS, optimizer_flops),
     MUST},
    {.name = "total", .type = MS_KEY_NUMBER, SHEET(FLOPS, total_flops), SKIP}};
static const ms_keys flops = MS_KEYS_OBJECT("flops", flops_rows);

/* A row for memory outside the device. */
#define FAR(pool, kind, member) REPORT(kind, far[MS_##pool##_POOL].member)

static uint64_t far_headroom(const void *of, ms_pool_kind pool)
{
    const ms_sheet *sheet = of;
    const struct ms_far_memory *far = &sheet->report->far[pool];
    return far->capacity_bytes - far->node_reserved_bytes;
}

static bool far_known(const void *of, ms_pool_kind pool)
{
    const ms_sheet *sheet = of;
    return sheet->report->far[pool].capacity_bytes > 0;
}

static uint64_t host_headroom(const void *of)
{
    return far_headroom(of, MS_HOST_POOL);
}

static uint64_t nvme_headroom(const void *of)
{
    return far_headroom(of, MS_NVME_POOL);
}

static bool host_known(const void *of)
{
    return far_known(of, MS_HOST_POOL);
}

static bool nvme_known(const void *of)
{
    return far_known(of, MS_NVME_POOL);
}

static bool is_paged(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->paged;
}

static bool has_wall(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->wall;
}

static bool has_repeats(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->repeats > 0;
}

static bool has_record(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->record != NULL;
}

static ms_key_list ranks_list(const void *of)
{
    const ms_sheet *sheet = of;
    return (ms_key_list){sheet->report->ranks, sheet->report->n_ranks,
                         sizeof(ms_rank_report)};
}

static ms_err ranks_room(const ms_values *values, uint32_t value, void *of)
{
    ms_report *report = ((ms_sheet *)of)->report;
    uint32_t n = values->json->nodes[value].value.n;
    if (n == 0 || n > UINT8_MAX)
        return ms_json_fail(values->json, value, values->fault, NULL,
                            "there are 1 to %u ranks, not %u", UINT8_MAX, n);
    report->n_ranks = (uint16_t)n;
    report->ranks = ms_arena_take(values->arena, n, sizeof *report->ranks);
    return report->ranks != NULL ? MS_OK : ms_fail_nomem(values->fault);
}

static bool has_from(const void *of)
{
    return ((const ms_sheet *)of)->from_json != NULL;
}

static const ms_key run_rows[] = {
    {.name = "schema_version",
     .type = MS_KEY_VERSION,
     .help = "1; keys may be added, none change"},
    {.name = "memsim",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, memsim),
     SKIP,
     .help = "version of the program"},
    {.name = "status",
     .type = MS_KEY_WORD,
     REPORT(ENUM, status),
     MUST,
     .names = ms_names_status,
     .n_names = MS_INFEASIBLE + 1,
     .help = "ok, over, out_of_memory (of a wall) or infeasible"},
    {.name = "model",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, model),
     MUST,
     .help = ""},
    {.name = "device",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, device),
     MUST,
     .help = ""},
    {.name = "policy",
     .type = MS_KEY_TEXT,
     SHEET(TEXT, policy),
     MUST,
     .help = "names; policy in canonical spelling"},
    {.name = "settings",
     .type = MS_KEY_OBJECT,
     SHEET(JSON, settings_json),
     SKIP,
     .of = &ms_keys_settings,
     .help = "every setting; \"defaults\" lists those not given"},
    MS_KEYS_FROM(ms_sheet, has_from),
    {.name = "parameters",
     .type = MS_KEY_COUNT,
     SHEET(U64, parameters),
     MUST,
     .help = "elements, tied ones once"},
    {.name = "unknown_ops",
     .type = MS_KEY_OBJECTS,
     .list = unknown_list,
     SKIP,
     .of = &unknown,
     .help = "op and count of each that has no rule (see graph.unknown_op)"},
    {.name = "fits",
     .type = MS_KEY_BOOL,
     REPORT(BOOL, fits),
     MUST,
     .help = "reserved + context <= capacity, and a node has the host memory "
             "and the disk that its ranks need"},
    {.name = "exceeded",
     .type = MS_KEY_TEXTS,
     .list = exceeded_list,
     SKIP,
     .optional = true,
     .help = "which are too small: device, host, nvme"},
    {.name = "capacity_bytes",
     .type = MS_KEY_COUNT,
     REPORT(U64, capacity_bytes),
     MUST,
     .help = "of the device, or --memory"},
    {.name = "context_bytes",
     .type = MS_KEY_COUNT,
     REPORT(U64, context_bytes),
     MUST,
     .help = "driver, kernels and NCCL, outside the pool"},
    {.name = "headroom_bytes",
     .type = MS_KEY_INTEGER,
     REPORT(I64, headroom_bytes),
     MUST,
     .help = "capacity - reserved - context"},
    {.name = "device_used_bytes",
     .type = MS_KEY_COUNT,
     SHEET(U64, used_bytes),
     SKIP,
     .help = "reserved + context, as nvidia-smi reports"},
    {.name = "overheads",
     .type = MS_KEY_OBJECT,
     .of = &ms_keys_overheads,
     .help = "what context_bytes is of, and what libraries keep in the pool"},
    {.name = "out_of_memory",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_sheet, report),
     .there = lack_there,
     .null = true,
     .of = &lack,
     .help = "with --wall: op, layer, time_ns and missing_bytes where nothing "
             "helped; with a pool where it raises its error, if it does"},
    {.name = "average_rank",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_sheet, report),
     .there = is_uneven,
     .optional = true,
     .of = &average,
     .help =
         "where the rank reported has more rows for its experts than others "
         "(expert:E,imbalance=): an average one, which waits for it"},
    {.name = "pool",
     .type = MS_KEY_OBJECT,
     .there = is_pooled,
     SKIP,
     .optional = true,
     .of = &ms_keys_pool,
     .help = "not with --allocator exact: of the rank and step reported, in "
             "bytes of blocks; requests and retries of all steps"},
    MS_RANK_PEAK(
        TOLD, SKIP,
        .help =
            "highest allocated, active, requested, reserved (_bytes); of the "
            "highest allocated its time_ns, event, phase, pass, op, layer, "
            "micro_batch, rank"),
    MS_RANK_CATEGORY_PEAKS(TOLD, SKIP,
                           .help = "highest level of each category on its own"),
    MS_RANK_MODEL_STATES(
        TOLD, SKIP, .help = "highest parameters, gradients, optimizer state"),
    MS_RANK_LEVELS(
        TOLD, SKIP,
        .help =
            "start, before_loss, after_forward, after_backward, end; without "
            "workspace"),
    MS_RANK_PHASE_PEAKS(
        TOLD, SKIP,
        .help = "highest level in forward, loss, backward, optimizer; without "
                "workspace"),
    {.name = "optimizer_scratch_bytes",
     .type = MS_KEY_COUNT,
     TOLD,
     MS_KEYS_AT(U64, ms_rank_report, optimizer_scratch_bytes),
     MUST,
     .before = "saved_for_backward_bytes",
     .help = "highest temporaries of the optimizer"},
    {.name = "phase_peaks_with_workspace",
     .type = MS_KEY_OBJECT,
     TOLD,
     MS_KEYS_AT(NOT, ms_rank_report, phase_peaks_with_workspace),
     MUST,
     .of = &ms_keys_rank_phases,
     .help = "the same with workspace"},
    {.name = "phase_peaks_by_category",
     .type = MS_KEY_OBJECT,
     TOLD,
     MUST,
     .of = &ms_keys_rank_phase_categories,
     .help = "what makes these, by phase"},
    {.name = "saved_for_backward_bytes",
     .type = MS_KEY_COUNT,
     TOLD,
     MS_KEYS_AT(U64, ms_rank_report, saved_for_backward_bytes),
     MUST,
     .null = true,
     .help = "activations held after the loss"},
    {.name = "host_peak_bytes",
     .type = MS_KEY_COUNT,
     FAR(HOST, U64, peak_bytes),
     MUST,
     .before = "nvme_peak_bytes",
     .help = ""},
    {.name = "host_by_category",
     MS_KEYS_CATEGORIES,
     FAR(HOST, U64, by_category),
     MUST,
     .before = "nvme_by_category",
     .help = ""},
    {.name = "host_node_bytes",
     .type = MS_KEY_COUNT,
     FAR(HOST, U64, node_bytes),
     MUST,
     .before = "nvme_node_bytes",
     .help = ""},
    {.name = "host_reserved_peak_bytes",
     .type = MS_KEY_COUNT,
     FAR(HOST, U64, reserved_bytes),
     .optional = true,
     .before = "nvme_reserved_peak_bytes",
     .help = ""},
    {.name = "host_node_reserved_bytes",
     .type = MS_KEY_COUNT,
     FAR(HOST, U64, node_reserved_bytes),
     .optional = true,
     .before = "nvme_node_reserved_bytes",
     .help = ""},
    {.name = "host_node_capacity_bytes",
     .type = MS_KEY_COUNT,
     FAR(HOST, SOME, capacity_bytes),
     MUST,
     .null = true,
     .before = "nvme_node_capacity_bytes",
     .help = ""},
    {.name = "host_headroom_bytes",
     .type = MS_KEY_INTEGER,
     .make = host_headroom,
     .there = host_known,
     SKIP,
     .null = true,
     .optional = true,
     .before = "nvme_headroom_bytes",
     .help = ""},
    {.name = "host_pinned_bytes",
     .type = MS_KEY_COUNT,
     FAR(HOST, U64, pinned_bytes),
     .optional = true,
     .before = "host_reserved_peak_bytes",
     .help = "blocks of PyTorch's pinned host allocator"},
    {.name = "nvme_peak_bytes",
     .type = MS_KEY_COUNT,
     FAR(NVME, U64, peak_bytes),
     MUST,
     .help = "highest levels outside the device, of this rank"},
    {.name = "nvme_by_category",
     MS_KEYS_CATEGORIES,
     FAR(NVME, U64, by_category),
     MUST,
     .help = "what makes these"},
    {.name = "nvme_node_bytes",
     .type = MS_KEY_COUNT,
     FAR(NVME, U64, node_bytes),
     MUST,
     .help = "of all ranks of a node"},
    {.name = "nvme_reserved_peak_bytes",
     .type = MS_KEY_COUNT,
     FAR(NVME, U64, reserved_bytes),
     .optional = true,
     .help = "what is taken for the highest levels: pinned blocks are powers "
             "of two and stay"},
    {.name = "nvme_node_reserved_bytes",
     .type = MS_KEY_COUNT,
     FAR(NVME, U64, node_reserved_bytes),
     .optional = true,
     .help = "of all ranks of a node: what it must have"},
    {.name = "nvme_node_capacity_bytes",
     .type = MS_KEY_COUNT,
     FAR(NVME, SOME, capacity_bytes),
     MUST,
     .null = true,
     .help = "what a node has, or --host-memory, --nvme; null: not known"},
    {.name = "nvme_headroom_bytes",
     .type = MS_KEY_INTEGER,
     .make = nvme_headroom,
     .there = nvme_known,
     SKIP,
     .null = true,
     .optional = true,
     .help = "what a node has less what its ranks need"},
    MS_RANK_TIMES(TOLD, SKIP,
                  .help = "parts that sum to step_ns on the compute stream"),
    MS_RANK_STALLS(
        TOLD, SKIP,
        .help =
            "ns of waiting by cause: host (it had not issued the op), copy, "
            "comm, bubble (another rank), pages, memory (full); of comm "
            "gather and reduce, of copy copy_to_device, copy_to_host, disk, "
            "host_work and pack (copies within the device)"),
    {.name = "page_faults",
     .type = MS_KEY_COUNT,
     REPORT(U64, page_faults),
     MUST,
     .there = is_paged,
     .null = true,
     .help = "with uvm: blocks that ops waited for"},
    {.name = "revoked_prefetches",
     .type = MS_KEY_COUNT,
     REPORT(U32, revoked_prefetches),
     MUST,
     .there = has_wall,
     .null = true,
     .help = "with --wall: copies whose memory was taken back before use, or "
             "put off"},
    {.name = "flops",
     .type = MS_KEY_OBJECT,
     MUST,
     .of = &flops,
     .help = "forward, backward, recompute, optimizer, total"},
    {.name = "recomputed_ops",
     .type = MS_KEY_COUNT,
     REPORT(U64, recomputed_ops),
     MUST,
     .help = "ops that ran again"},
    MS_RANK_TRAFFIC(
        TOLD, SKIP,
        .help = "bytes moved: h2d, d2h, comm (sent; of it between nodes: "
                "network), nvme (nvme_read + nvme_write)"),
    MS_RANK_LINKS(
        TOLD, SKIP,
        .help =
            "for comm, outer (between groups), h2d, d2h, nvme_read, "
            "nvme_write, host (work of its cores): bytes, network_bytes, "
            "bytes_per_s while busy; busy_ns = hidden_ns + exposed_ns (what "
            "the compute stream waits for)"),
    MS_RANK_OVERLAP(
        TOLD, SKIP,
        .help = "the same times of all collectives (comm) and of all copies"),
    {.name = "tokens_per_second",
     .type = MS_KEY_NUMBER,
     REPORT(RATE, tokens_per_second),
     MUST,
     .null = true,
     .help = ""},
    {.name = "mfu",
     .type = MS_KEY_NUMBER,
     REPORT(RATE, mfu),
     MUST,
     .null = true,
     .help = "null where they mean nothing"},
    {.name = "events",
     .type = MS_KEY_COUNT,
     REPORT(U32, events),
     MUST,
     .help = "allocations and frees replayed"},
    {.name = "repeats",
     .type = MS_KEY_COUNT,
     REPORT(U32, repeats),
     .there = has_repeats,
     .optional = true,
     .help = "micro-batches that are counted but not in events"},
    {.name = "ranks",
     .type = MS_KEY_OBJECTS,
     .list = ranks_list,
     SKIP,
     .room = ranks_room,
     .of = &ms_keys_rank,
     .help = "the same for each rank"},
    {.name = "ring_ranks",
     .type = MS_KEY_OBJECTS,
     .list = ms_keys_rank_ring_list,
     .there = ms_keys_rank_has_ring,
     SKIP,
     .optional = true,
     .of = &ms_keys_rank_ring,
     .help = "context:C,split=plain: what each rank holds and does"},
    {.name = "optimum",
     .type = MS_KEY_OBJECT,
     .there = is_optimum,
     SKIP,
     .optional = true,
     .of = &ms_keys_optimum,
     .help = "checkpoint:optimal: what its plan is the best of"},
    {.name = "timeline",
     .type = MS_KEY_OBJECT,
     MS_KEYS_VIA(ms_sheet, record),
     .there = has_record,
     SKIP,
     .null = true,
     .of = &ms_keys_timeline,
     .help = "what figures are drawn from: title, subtitle, data_ranks (that "
             "do what each of the ranks does), ranks and layers; tables are "
             "columns (their names) and rows"},
};
const ms_keys ms_keys_run = MS_KEYS_OBJECT("run", run_rows);

/* ---- instead of a run ---------------------------------------------------- */

#define REFUSED(kind, member) MS_KEYS_AT(kind, ms_sheet_refused, member)
static const char *const refusals[] = {"refused", "infeasible"};
static const ms_key refused_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", REFUSED(TEXT, memsim), SKIP),
    {.name = "status",
     .type = MS_KEY_WORD,
     .names = refusals,
     .n_names = MS_KEYS_N(refusals),
     REFUSED(U8, is_infeasible),
     MUST},
    MS_KEYS_TEXT("message", REFUSED(TEXT, message), MUST),
    MS_KEYS_TEXT("policy", REFUSED(TEXT, policy), MUST),
};
const ms_keys ms_keys_run_refused = MS_KEYS_OBJECT("refused", refused_rows);
