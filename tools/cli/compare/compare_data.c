/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A comparison for scripts. */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "sim/names.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "tools/alive/alive.h"
#include "tools/cli/compare/compare.h"
#include "tools/job/result.h"

#include <string.h>

/* ---- CSV ----------------------------------------------------------------- */

/* Of a real pool, last in a row. */
#define POOL(key, field)                                                       \
    {                                                                          \
        key, offsetof(ms_pooled_rank, field)                                   \
    }
static const struct {
    const char *key;
    size_t offset; /* of a uint64_t */
} pool_columns[] = {
    POOL("reserved_most_bytes", reserved_most_bytes),
    POOL("segments", segments),
    POOL("idle_bytes", at_peak.idle_bytes),
    POOL("largest_idle_bytes", at_peak.largest_idle_bytes),
    POOL("next_request_bytes", at_peak.next_bytes),
    POOL("usable_bytes", at_peak.usable_bytes),
    POOL("retries", retries),
};
#define N_POOL_COLUMNS (sizeof pool_columns / sizeof pool_columns[0])

/* What names a variant; refused or not. */
static void csv_names(const ms_variant *variant, uint32_t number, ms_text *text)
{
    const ms_record *record = &variant->record;
    bool there = variant->refused == NULL;
    ms_text_add(text, "%u,", number);
    ms_table_field(text, variant->name);
    ms_text_add(text, ",");
    ms_table_field(text, there ? record->model : "");
    ms_text_add(text, ",");
    ms_table_field(text, there ? record->device : "");
    ms_text_add(text, ",");
    ms_table_field(text, variant->policy);
    ms_text_add(text, ",%s,", ms_variants_status(variant));
    ms_table_field(text, there ? "" : variant->refused);
}

static void csv_header(ms_text *text)
{
    ms_text_add(text, "variant,name,model,device,policy,status,message,fits,"
                      "parameters,capacity_bytes,headroom_bytes,phase,");
    for (uint32_t row = 0; row < ms_compare_rows_n; row++)
        ms_text_add(text, "%s,", ms_compare_rows[row].key);
    ms_text_add(text, "host_peak_bytes,host_reserved_peak_bytes,"
                      "tokens_per_second,allocator");
    for (size_t i = 0; i < N_POOL_COLUMNS; i++)
        ms_text_add(text, ",%s", pool_columns[i].key);
    ms_text_add(text, ",out_of_memory_step\n");
}

/* What lies beside the table, of the report and its peak. */
static void csv_verdict(const ms_variant *variant, ms_text *text)
{
    const ms_report *report = &variant->record.report;
    const ms_peak *peak = &ms_compare_values_rank(variant)->peak;
    ms_text_add(text, ",%s,", report->fits ? "true" : "false");
    ms_text_u64(text, variant->record.parameters);
    ms_text_add(text, ",");
    ms_text_u64(text, report->capacity_bytes);
    ms_text_add(text, ",");
    ms_text_i64(text, report->headroom_bytes);
    ms_text_add(text, ",%s,",
                peak->allocated_bytes == 0 ? "" : ms_names_phase[peak->phase]);
}

static void csv_pool(const ms_variant *variant, ms_text *text)
{
    const ms_pooled_rank *rank = ms_compare_pools_rank(variant);
    const ms_pooled *pooled = variant->record.report.pooled;
    uint64_t value;
    for (size_t i = 0; i < N_POOL_COLUMNS; i++) {
        ms_text_add(text, ",");
        if (rank == NULL)
            continue;
        memcpy(&value, (const char *)rank + pool_columns[i].offset,
               sizeof value);
        ms_text_u64(text, value);
    }
    ms_text_add(text, ",");
    if (rank != NULL && pooled->oom)
        ms_text_u64(text, pooled->lack.step);
}

static void csv_numbers(const ms_variant *variant, ms_text *text)
{
    const ms_report *report = &variant->record.report;
    csv_verdict(variant, text);
    for (uint32_t row = 0; row < ms_compare_rows_n; row++) {
        ms_text_u64(text, ms_compare_values_of(variant, row));
        ms_text_add(text, ",");
    }
    ms_text_u64(text, report->host_peak_bytes);
    ms_text_add(text, ",");
    ms_text_u64(text, report->far[MS_HOST_POOL].reserved_bytes);
    ms_text_add(text, ",");
    if (report->tokens_per_second >= 0)
        ms_text_double(text, report->tokens_per_second);
    ms_text_add(text, ",");
    ms_table_field(text, variant->allocator);
    csv_pool(variant, text);
}

/* As many fields as any other row has. */
static void csv_nothing(const ms_variant *variant, ms_text *text)
{
    ms_text_add(text, ",,,,,,,");
    for (uint32_t row = 0; row < ms_compare_rows_n; row++)
        ms_text_add(text, ",");
    ms_text_add(text, ",,"); /* then the pool */
    ms_table_field(text, variant->allocator != NULL ? variant->allocator : "");
    for (size_t i = 0; i <= N_POOL_COLUMNS; i++)
        ms_text_add(text, ",");
}

void ms_compare_data_csv(const ms_comparison *comparison, ms_text *text)
{
    csv_header(text);
    for (uint32_t i = 0; i < comparison->n; i++) {
        const ms_variant *variant = &comparison->variants[i];
        csv_names(variant, i + 1, text);
        if (variant->refused == NULL)
            csv_numbers(variant, text);
        else
            csv_nothing(variant, text);
        ms_text_add(text, "\n");
    }
}

/* ---- JSON ---------------------------------------------------------------- */

static void json_difference(const ms_comparison *comparison, uint32_t i,
                            ms_text *text)
{
    const ms_variant *base = &comparison->variants[comparison->base];
    const ms_variant *variant = &comparison->variants[i];
    ms_text_add(text, "{\"variant\": %u, \"against\": %u", i + 1,
                comparison->base + 1);
    for (uint32_t row = 0; row < ms_compare_rows_n; row++) {
        ms_text_add(text, ", \"%s\": ", ms_compare_rows[row].key);
        ms_text_i64(text, (int64_t)(ms_compare_values_of(variant, row) -
                                    ms_compare_values_of(base, row)));
    }
    ms_text_add(text, "}");
}

static void json_group(const ms_comparison *comparison, uint32_t g,
                       ms_text *text)
{
    const ms_group *group = &comparison->groups[g];
    uint64_t a = group->side[0].bytes, b = group->side[1].bytes;
    ms_text_add(text, "{");
    ms_explain_text_json_group(group, text);
    ms_text_add(text, ", \"difference_bytes\": ");
    ms_text_i64(text, (int64_t)(b - a));
    ms_text_add(text, ", \"variants\": [");
    for (int s = 0; s < 2; s++) {
        const ms_result *result = &comparison->variants[s].result;
        const ms_group_side *side = &group->side[s];
        ms_text_add(text, "%s{\"bytes\": ", s > 0 ? ", " : "");
        ms_text_u64(text, side->bytes);
        ms_text_add(text, ", \"why\": ");
        ms_explain_text_json_why(result, side, text);
        ms_text_add(text, ", \"next_reader\": ");
        ms_explain_text_json_reader(side, text);
        ms_text_add(text, "}");
    }
    ms_text_add(text, "]}");
}

static void json_explain(const ms_comparison *comparison, ms_text *text)
{
    if (!comparison->explain) {
        ms_text_add(text, "null");
        return;
    }
    ms_text_add(text, "{\"variants\": [");
    for (int s = 0; s < 2; s++) {
        const ms_instant *instant = &comparison->alive[s].instant;
        ms_text_add(text, "%s{\"at\": ", s > 0 ? ", " : "");
        ms_explain_text_json_instant(&comparison->variants[s].result, instant,
                                     text);
        ms_text_add(text, ", \"total_bytes\": ");
        ms_text_u64(text, instant->bytes);
        ms_text_add(text, "}");
    }
    ms_text_add(text, "], \"groups\": [");
    for (uint32_t g = 0; g < comparison->n_groups && g < comparison->top; g++) {
        ms_text_add(text, "%s", g > 0 ? ", " : "");
        json_group(comparison, g, text);
    }
    ms_text_add(text, "]}");
}

/* The model's name where all have the same. */
static const char *common_model(const ms_comparison *comparison)
{
    const char *name = comparison->variants[comparison->base].record.model;
    for (uint32_t i = 0; i < comparison->n; i++)
        if (comparison->variants[i].refused == NULL &&
            strcmp(comparison->variants[i].record.model, name) != 0)
            return NULL;
    return name;
}

static void json_variant(const ms_variant *variant, ms_text *text)
{
    if (variant->refused == NULL) {
        ms_text_put(text, variant->json, variant->json_length);
        return;
    }
    ms_text_add(text,
                "{\"schema_version\": 1, \"memsim\": \"%s\", "
                "\"status\": \"%s\", \"message\": ",
                MS_VERSION, ms_variants_status(variant));
    ms_text_json(text, variant->refused);
    ms_text_add(text, ", \"policy\": ");
    ms_text_json(text, variant->policy);
    ms_text_add(text, "}");
}

/* Which pool helps, of variants that differ in theirs alone. */
static void json_pools(const ms_comparison *comparison, ms_text *text)
{
    ms_compare_pool_group group;
    const char *between = "";
    ms_text_add(text, ", \"pools\": [");
    for (uint32_t i = 0; i < comparison->n; i++) {
        if (!ms_compare_pools_group(comparison, i, &group))
            continue;
        ms_text_add(text, "%s{\"against\": %u, \"best\": %u, \"variants\": [",
                    between, group.first + 1, group.best + 1);
        for (uint32_t k = 0; k < group.n; k++)
            ms_text_add(text, "%s%u", k > 0 ? ", " : "", group.of[k] + 1);
        ms_text_add(text, "]}");
        between = ", ";
    }
    ms_text_add(text, "]");
}

static void json_variants(const ms_comparison *comparison, ms_text *text)
{
    ms_text_add(text, ", \"names\": [");
    for (uint32_t i = 0; i < comparison->n; i++) {
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        ms_text_json(text, comparison->variants[i].name);
    }
    ms_text_add(text, "], \"variants\": [");
    for (uint32_t i = 0; i < comparison->n; i++) {
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        json_variant(&comparison->variants[i], text);
    }
    ms_text_add(text, "]");
}

void ms_compare_data_json(const ms_comparison *comparison, ms_text *text)
{
    const char *model = common_model(comparison), *between = "";
    ms_text_add(text, "{\"schema_version\": 1, \"memsim\": \"%s\", \"model\": ",
                MS_VERSION);
    if (model != NULL)
        ms_text_json(text, model);
    else
        ms_text_add(text, "null");
    json_variants(comparison, text);
    ms_text_add(text, ", \"differences\": [");
    for (uint32_t i = comparison->base + 1; i < comparison->n; i++) {
        if (comparison->variants[i].refused != NULL)
            continue;
        ms_text_add(text, "%s", between);
        json_difference(comparison, i, text);
        between = ", ";
    }
    ms_text_add(text, "]");
    json_pools(comparison, text);
    ms_text_add(text, ", \"explain\": ");
    json_explain(comparison, text);
    ms_text_add(text, "}\n");
}
