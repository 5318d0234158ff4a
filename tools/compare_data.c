/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A comparison for scripts. */

#include "tools/compare.h"

/* ---- CSV ----------------------------------------------------------------- */

static void csv_header(ms_text *text)
{
    ms_text_add(text, "variant,policy,status,fits,headroom_bytes,phase,");
    for (uint32_t row = 0; row < ms_compare_n_rows; row++)
        ms_text_add(text, "%s,", ms_compare_rows[row].key);
    ms_text_add(text, "host_peak_bytes,tokens_per_second\n");
}

static void csv_variant(const ms_variant *variant, uint32_t number,
                        ms_text *text)
{
    const ms_report *report = &variant->result.report;
    const ms_peak *peak = &ms_compare_rank(variant)->peak;
    ms_text_add(text, "%u,", number);
    ms_table_field(text, variant->policy);
    ms_text_add(text, ",%s,%s,", ms_names_status[report->status],
                report->fits ? "true" : "false");
    ms_text_i64(text, report->headroom_bytes);
    ms_text_add(text, ",%s,",
                peak->event == MS_NONE ? "" : ms_names_phase[peak->phase]);
    for (uint32_t row = 0; row < ms_compare_n_rows; row++) {
        ms_text_u64(text, ms_compare_value(variant, row));
        ms_text_add(text, ",");
    }
    ms_text_u64(text, report->host_peak_bytes);
    ms_text_add(text, ",");
    if (report->tokens_per_second >= 0)
        ms_text_double(text, report->tokens_per_second);
    ms_text_add(text, "\n");
}

void ms_compare_data_csv(const ms_comparison *comparison, ms_text *text)
{
    csv_header(text);
    for (uint32_t i = 0; i < comparison->n; i++)
        csv_variant(&comparison->variants[i], i + 1, text);
}

/* ---- JSON ---------------------------------------------------------------- */

static void json_difference(const ms_comparison *comparison, uint32_t i,
                            ms_text *text)
{
    const ms_variant *first = &comparison->variants[0];
    const ms_variant *variant = &comparison->variants[i];
    ms_text_add(text, "{\"variant\": %u, \"against\": 1", i + 1);
    for (uint32_t row = 0; row < ms_compare_n_rows; row++) {
        ms_text_add(text, ", \"%s\": ", ms_compare_rows[row].key);
        ms_text_i64(text, (int64_t)(ms_compare_value(variant, row) -
                                    ms_compare_value(first, row)));
    }
    ms_text_add(text, "}");
}

static void json_group(const ms_comparison *comparison, uint32_t g,
                       ms_text *text)
{
    const ms_group *group = &comparison->groups[g];
    uint64_t a = group->side[0].bytes, b = group->side[1].bytes;
    ms_text_add(text, "{");
    ms_tell_json_group(group, text);
    ms_text_add(text, ", \"difference_bytes\": ");
    ms_text_i64(text, (int64_t)(b - a));
    ms_text_add(text, ", \"variants\": [");
    for (int s = 0; s < 2; s++) {
        const ms_result *result = &comparison->variants[s].result;
        const ms_group_side *side = &group->side[s];
        ms_text_add(text, "%s{\"bytes\": ", s > 0 ? ", " : "");
        ms_text_u64(text, side->bytes);
        ms_text_add(text, ", \"why\": ");
        ms_tell_json_why(result, side, text);
        ms_text_add(text, ", \"next_reader\": ");
        ms_tell_json_reader(side, text);
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
        ms_tell_json_instant(&comparison->variants[s].result, instant, text);
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

ms_err ms_compare_data_json(const ms_comparison *comparison, ms_text *text,
                            ms_fault *fault)
{
    ms_text_add(text, "{\"schema_version\": 1, \"memsim\": \"%s\", \"model\": ",
                MS_VERSION);
    ms_text_json(text, comparison->variants[0].result.model.name);
    ms_text_add(text, ", \"variants\": [");
    for (uint32_t i = 0; i < comparison->n; i++) {
        const ms_variant *variant = &comparison->variants[i];
        ms_text_add(text, "%s", i > 0 ? ", " : "");
        MS_TRY(ms_run_json(&variant->job, &variant->result, variant->policy,
                           text, fault));
    }
    ms_text_add(text, "], \"differences\": [");
    for (uint32_t i = 1; i < comparison->n; i++) {
        ms_text_add(text, "%s", i > 1 ? ", " : "");
        json_difference(comparison, i, text);
    }
    ms_text_add(text, "], \"explain\": ");
    json_explain(comparison, text);
    ms_text_add(text, "}\n");
    return MS_OK;
}
