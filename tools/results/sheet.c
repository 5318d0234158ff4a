/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/results/sheet.h"
#include "graphs/json/json.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/pools/steps/pooled.h"
#include "sim/program.h"
#include "sim/report.h"

#include <string.h>

/* ---- to be printed ------------------------------------------------------- */

/* Tells the kind of each step of the pool; the kinds repeat cyclically. */
static bool open_steps(ms_sheet *sheet, ms_arena *arena)
{
    const ms_pooled *pooled = sheet->pooled;
    uint32_t n = pooled->setup.steps;
    ms_pooled_kind *kinds = ms_arena_take(arena, n, sizeof *kinds);
    sheet->steps = ms_arena_take(arena, n, sizeof *sheet->steps);
    if (kinds == NULL || sheet->steps == NULL)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        size_t at = (size_t)k * pooled->n_ranks + sheet->report->told;
        if (pooled->n_kinds > 0)
            kinds[k] = pooled->kinds[k % pooled->n_kinds];
        sheet->steps[k] = (ms_sheet_step){&kinds[k], &pooled->steps[at]};
    }
    return true;
}

static bool open_pool(ms_sheet *sheet, ms_arena *arena)
{
    const ms_pooled *pooled = sheet->report->pooled;
    if (pooled == NULL)
        return true;
    uint8_t kind = pooled->setup.heap.kind;
    sheet->pooled = (ms_pooled *)pooled;
    sheet->pooled_rank = &pooled->ranks[sheet->report->told];
    sheet->pool_kind = ms_pool_types[kind];
    if (kind == MS_POOL_TORCH)
        sheet->pool_version =
            ms_torchconf_versions[pooled->setup.torch.version];
    return open_steps(sheet, arena);
}

static bool open_unknown(ms_sheet *sheet, const ms_graph *graph,
                         ms_arena *arena)
{
    sheet->n_unknown = graph->n_unknown;
    sheet->unknown =
        ms_arena_take(arena, graph->n_unknown, sizeof *sheet->unknown);
    if (sheet->unknown == NULL)
        return false;
    for (uint32_t i = 0; i < graph->n_unknown; i++)
        sheet->unknown[i] =
            (ms_sheet_op){graph->unknown_name[i], graph->unknown_count[i]};
    return true;
}

static void open_exceeded(ms_sheet *sheet)
{
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        if (ms_capacity_short(sheet->report, (ms_pool_kind)pool) > 0)
            sheet->exceeded[sheet->n_exceeded++] = ms_names_pool[pool];
}

static void open_optimum(ms_sheet *sheet, const ms_foreseen *seen)
{
    const ms_rank_report *told = sheet->told;
    if (seen == NULL || seen->best == MS_BEST_NONE)
        return;
    sheet->optimum = (ms_sheet_optimum){
        .best = ms_names_best[seen->best],
        .unit_bytes = seen->unit_bytes,
        .peak_bytes = seen->peak_bytes,
        .ns = seen->step_ns,
        .more_bytes =
            (int64_t)told->peak.allocated_bytes - (int64_t)seen->peak_bytes,
        .more_ns = (int64_t)told->time.step_ns - (int64_t)seen->step_ns};
}

void ms_sheet_open(ms_sheet *sheet, const ms_report *report,
                   const ms_graph *graph, const ms_report_names *names,
                   ms_text *text)
{
    *sheet = (ms_sheet){.parameters = graph->parameters,
                        .memsim = MS_VERSION,
                        .model = names->model,
                        .device = names->device,
                        .policy = names->policy,
                        .settings_json = names->settings_json,
                        .from_json = names->from_json,
                        .report = (ms_report *)report,
                        .told = &report->ranks[report->told],
                        .used_bytes = ms_capacity_used(report),
                        .total_flops =
                            report->forward_flops + report->backward_flops +
                            report->recompute_flops + report->optimizer_flops};
    sheet->libraries_bytes = ms_measure_libraries(graph, &sheet->n_libraries);
    open_exceeded(sheet);
    open_optimum(sheet, names->foreseen);
    if (!open_unknown(sheet, graph, text->arena) ||
        !open_pool(sheet, text->arena))
        text->failed = true;
}

void ms_sheet_json(const ms_report *report, const ms_graph *graph,
                   const ms_report_names *names, const ms_record *record,
                   ms_text *text)
{
    ms_sheet sheet;
    ms_sheet_open(&sheet, report, graph, names, text);
    sheet.record = record;
    if (!text->failed)
        ms_keys_write(&ms_keys_run, &sheet, text);
}

/* ---- read back ----------------------------------------------------------- */

#define EDITED "was the file edited?"

/* The top of the object repeats the numbers of the rank that is told, by
 * default the one with the highest peak; its number is in "peak". */
static ms_err find_told(const ms_values *values, uint32_t object,
                        ms_sheet *sheet)
{
    ms_report *report = sheet->report;
    uint32_t member, peak;
    uint8_t i = 0;
    MS_TRY(ms_values_member(values, object, "peak", MS_JSON_OBJECT, &peak));
    MS_TRY(ms_values_member(values, peak, "rank", MS_JSON_INT, &member));
    while (i < report->n_ranks && (int64_t)report->ranks[i].rank !=
                                      values->json->nodes[member].value.i)
        i++;
    if (i == report->n_ranks)
        return ms_json_fail(values->json, member, values->fault, EDITED,
                            "\"ranks\" does not list this rank");
    report->told = i;
    for (uint16_t r = 0; r < report->n_ranks; r++)
        if (report->ranks[r].peak.allocated_bytes >
            report->ranks[report->worst].peak.allocated_bytes)
            report->worst = r;
    sheet->told = &report->ranks[i];
    return MS_OK;
}

/* Checks that this copy agrees with the rank. */
static ms_err check_told(const ms_values *values, uint32_t object,
                         const ms_sheet *sheet)
{
    const ms_peak *peak = &sheet->told->peak;
    ms_rank_report top = {0};
    uint32_t member;
    MS_TRY(ms_keys_read_one(values, object, &ms_keys_rank, "peak", &top));
    if (peak->allocated_bytes == top.peak.allocated_bytes &&
        memcmp(peak->by_category, top.peak.by_category,
               sizeof top.peak.by_category) == 0)
        return MS_OK;
    MS_TRY(ms_values_member(values, object, "peak", MS_JSON_OBJECT, &member));
    return ms_json_fail(values->json, member, values->fault, EDITED,
                        "this peak is not that of its rank in \"ranks\"");
}

/* Whether it is a stage, and which: the number of a rank's stages is not
 * saved. */
static ms_err read_stage(const ms_values *values, uint32_t row,
                         ms_rank_report *rank)
{
    uint32_t member;
    uint64_t stage;
    MS_TRY(ms_values_optional(values, row, "stage", MS_JSON_INT, &member));
    if (member == MS_NONE)
        return MS_OK;
    MS_TRY(ms_values_u64(values, member, &stage));
    rank->n_stages = 1;
    rank->stage = (uint32_t)stage;
    return MS_OK;
}

static ms_err read_ranks(const ms_values *values, uint32_t object,
                         ms_sheet *sheet)
{
    const ms_report *report = sheet->report;
    uint32_t list;
    MS_TRY(ms_keys_read_one(values, object, &ms_keys_run, "ranks", sheet));
    MS_TRY(ms_values_member(values, object, "ranks", MS_JSON_ARRAY, &list));
    uint32_t row = ms_json_first(values->json, list);
    for (uint32_t i = 0; i < report->n_ranks; i++) {
        ms_rank_report *rank = &report->ranks[i];
        MS_TRY(read_stage(values, row, rank));
        rank->peak.plan_op = MS_NONE;
        rank->peak.event = rank->peak.number;
        rank->stalls_ns[MS_CAUSE_IDLE] = rank->time.idle_ns;
        if (i > 0 && rank->rank <= rank[-1].rank)
            return ms_json_fail(values->json, row, values->fault, NULL,
                                "the numbers of the ranks do not ascend");
        row = values->json->nodes[row].next;
    }
    MS_TRY(find_told(values, object, sheet));
    return check_told(values, object, sheet);
}

/* Results of an exact pool have no "pool", and results of memsim 0.1.0 do not
 * say what each step of it was. */
static ms_err read_pool(const ms_values *values, uint32_t object,
                        ms_sheet *sheet)
{
    ms_report *report = sheet->report;
    uint32_t pool, steps = MS_NONE;
    MS_TRY(ms_values_optional(values, object, "pool", MS_JSON_OBJECT, &pool));
    if (pool != MS_NONE)
        MS_TRY(
            ms_values_optional(values, pool, "by_step", MS_JSON_ARRAY, &steps));
    if (steps == MS_NONE)
        return MS_OK;
    ms_pooled *pooled = ms_arena_take(values->arena, 1, sizeof *pooled);
    ms_pooled_rank *ranks =
        ms_arena_take(values->arena, report->told + 1u, sizeof *ranks);
    if (pooled == NULL || ranks == NULL)
        return ms_fail_nomem(values->fault);
    sheet->pooled = pooled;
    sheet->pooled_rank = &ranks[report->told];
    pooled->ranks = ranks;
    MS_TRY(ms_keys_read(values, pool, &ms_keys_pool, sheet));
    const ms_pooled_kind *kinds = pooled->kinds;
    pooled->n_kinds = 1;
    for (uint32_t i = 1; i < pooled->setup.steps; i++)
        if (kinds[i].batch != kinds[0].batch ||
            kinds[i].sequence != kinds[0].sequence)
            pooled->n_kinds = pooled->setup.steps;
    report->pooled = pooled;
    return MS_OK;
}

/* Fills the members of the report that are not in the file but follow from
 * what was read. */
static void settle(ms_report *report)
{
    report->lack.op = MS_NONE;
    report->paged = report->page_faults != MS_NO_LEVEL;
    report->page_faults = report->paged ? report->page_faults : 0;
    report->wall = report->revoked_prefetches != MS_NONE;
    report->revoked_prefetches = report->wall ? report->revoked_prefetches : 0;
    report->host_peak_bytes = report->far[MS_HOST_POOL].peak_bytes;
    report->nvme_peak_bytes = report->far[MS_NVME_POOL].peak_bytes;
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
        struct ms_far_memory *far = &report->far[pool];
        /* older results do not have it */
        if (far->reserved_bytes < far->peak_bytes)
            far->reserved_bytes = far->peak_bytes;
        if (far->node_reserved_bytes < far->node_bytes)
            far->node_reserved_bytes = far->node_bytes;
    }
}

/* Without a timeline the result has no figures of its own. */
static ms_err read_timeline(const ms_values *values, uint32_t object,
                            ms_record *record)
{
    uint32_t line;
    MS_TRY(
        ms_values_optional(values, object, "timeline", MS_JSON_OBJECT, &line));
    if (line != MS_NONE)
        return ms_keys_read(values, line, &ms_keys_timeline, record);
    record->title = record->model;
    record->subtitle = record->policy;
    return MS_OK;
}

ms_err ms_sheet_read(const ms_values *values, uint32_t object,
                     ms_record *record)
{
    ms_sheet sheet = {.report = &record->report};
    MS_TRY(read_ranks(values, object, &sheet));
    MS_TRY(ms_keys_read(values, object, &ms_keys_run, &sheet));
    settle(&record->report);
    record->parameters = sheet.parameters;
    record->model = sheet.model;
    record->device = sheet.device;
    record->policy = sheet.policy;
    MS_TRY(read_pool(values, object, &sheet));
    return read_timeline(values, object, record);
}
