/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a saved result says of its memory pool: of the rank it reports. */

#include "tools/results/results.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define READ(values, object, rows, into)                                       \
    ms_values_read(values, object, rows, COUNT(rows), into)

#define RANK(name, field)                                                      \
    {                                                                          \
        name, MS_VALUE_NUMBER, offsetof(ms_pooled_rank, field)                 \
    }
static const ms_value_row rank_rows[] = {
    RANK("allocated_peak_bytes", allocated_peak_bytes),
    RANK("segments", segments),
    RANK("device_allocs", device_allocs),
    RANK("device_frees", device_frees),
    RANK("retries", retries),
    RANK("requests", requests),
    RANK("reserved_most_bytes", reserved_most_bytes),
};
static const ms_value_row moment_rows[] = {
    RANK("reserved_bytes", at_peak.reserved_bytes),
    RANK("allocated_bytes", at_peak.allocated_bytes),
    RANK("idle_bytes", at_peak.idle_bytes),
    RANK("largest_idle_bytes", at_peak.largest_idle_bytes),
    RANK("usable_bytes", at_peak.usable_bytes),
    RANK("next_request_bytes", at_peak.next_bytes),
};

#define STEP(name, field)                                                      \
    {                                                                          \
        name, MS_VALUE_NUMBER, offsetof(ms_pooled_step, field)                 \
    }
static const ms_value_row peak_rows[] = {
    STEP("allocated_bytes", allocated_peak_bytes),
    STEP("reserved_bytes", reserved_peak_bytes),
};
static const ms_value_row end_rows[] = {
    STEP("reserved_bytes", reserved_bytes),
    STEP("segments", segments),
};
static const ms_value_row calls_rows[] = {
    STEP("device_allocs", device_allocs),
    STEP("device_frees", device_frees),
    STEP("retries", retries),
};
static const struct {
    const char *key;
    const ms_value_row *rows;
    size_t n;
} step_parts[] = {
    {"peak", peak_rows, COUNT(peak_rows)},
    {"at_end", end_rows, COUNT(end_rows)},
    {"calls", calls_rows, COUNT(calls_rows)},
};
static const ms_value_row kind_rows[] = {
    {"batch", MS_VALUE_LEVEL, offsetof(ms_pooled_kind, batch)},
    {"sequence", MS_VALUE_LEVEL, offsetof(ms_pooled_kind, sequence)},
};
static const ms_value_row oom_rows[] = {
    {"step", MS_VALUE_COUNT, offsetof(ms_pooled_oom, step)},
    {"requested_bytes", MS_VALUE_NUMBER,
     offsetof(ms_pooled_oom, requested_bytes)},
};

static ms_err read_step(const ms_values *values, uint32_t row,
                        ms_pooled_kind *kind, ms_pooled_step *step)
{
    uint32_t part;
    MS_TRY(READ(values, row, kind_rows, kind));
    kind->batch = kind->batch == MS_NO_LEVEL ? 0 : kind->batch;
    kind->sequence = kind->sequence == MS_NO_LEVEL ? 0 : kind->sequence;
    for (size_t i = 0; i < COUNT(step_parts); i++) {
        MS_TRY(ms_values_member(values, row, step_parts[i].key, MS_JSON_OBJECT,
                                &part));
        MS_TRY(ms_values_read(values, part, step_parts[i].rows, step_parts[i].n,
                              step));
    }
    return MS_OK;
}

/* As many kinds as steps: which of them are alike does not matter, but whether
 * all are. */
static ms_err read_steps(const ms_values *values, uint32_t list, uint8_t rank,
                         ms_pooled *pooled)
{
    const ms_json *json = values->json;
    uint32_t n = json->nodes[list].value.n;
    if (n == 0 || n > MS_ALLOCATOR_MOST_STEPS)
        return ms_json_fail(json, list, values->fault, NULL,
                            "there are 1 to %u steps, not %u",
                            MS_ALLOCATOR_MOST_STEPS, n);
    ms_pooled_kind *kinds = ms_arena_take(values->arena, n, sizeof *kinds);
    pooled->n_ranks = rank + 1u; /* the others are not told of */
    pooled->steps = ms_arena_take(values->arena, (size_t)n * pooled->n_ranks,
                                  sizeof *pooled->steps);
    if (kinds == NULL || pooled->steps == NULL)
        return ms_fail_nomem(values->fault);
    pooled->kinds = kinds;
    pooled->setup.steps = n;
    pooled->n_kinds = 1;
    uint32_t row = ms_json_first(json, list);
    for (uint32_t i = 0; i < n; i++, row = json->nodes[row].next) {
        MS_TRY(read_step(values, row, &kinds[i],
                         &pooled->steps[(size_t)i * pooled->n_ranks + rank]));
        if (kinds[i].batch != kinds[0].batch ||
            kinds[i].sequence != kinds[0].sequence)
            pooled->n_kinds = n;
    }
    return MS_OK;
}

ms_err ms_resultpool_read(const ms_values *values, uint32_t object,
                          ms_report *report)
{
    uint32_t pool, member, steps = MS_NONE;
    MS_TRY(ms_values_optional(values, object, "pool", MS_JSON_OBJECT, &pool));
    if (pool != MS_NONE)
        MS_TRY(
            ms_values_optional(values, pool, "by_step", MS_JSON_ARRAY, &steps));
    if (steps == MS_NONE) /* exact, or of a version that did not tell */
        return MS_OK;
    ms_pooled *pooled = ms_arena_take(values->arena, 1, sizeof *pooled);
    ms_pooled_rank *ranks =
        ms_arena_take(values->arena, report->worst + 1u, sizeof *ranks);
    if (pooled == NULL || ranks == NULL)
        return ms_fail_nomem(values->fault);
    ms_pooled_rank *rank = &ranks[report->worst];
    pooled->ranks = ranks;
    MS_TRY(READ(values, pool, rank_rows, rank));
    MS_TRY(ms_values_member(values, pool, "at_peak", MS_JSON_OBJECT, &member));
    MS_TRY(READ(values, member, moment_rows, rank));
    MS_TRY(read_steps(values, steps, report->worst, pooled));
    MS_TRY(ms_values_optional(values, pool, "oom", MS_JSON_OBJECT, &member));
    pooled->oom = member != MS_NONE;
    if (pooled->oom)
        MS_TRY(READ(values, member, oom_rows, &pooled->lack));
    report->pooled = pooled;
    return MS_OK;
}
