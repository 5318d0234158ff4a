/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A point of a sweep as a row.  Rows of CSV, too, are one line each. */

#include "tools/cli/sweep/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum column_kind {
    BYTES_OR_NS,
    YES_OR_NO,
    VERDICT,
    RATE,
    WORDS
} column_kind;

/* The numbers of a row, behind status and message. */
static const struct {
    const char *key;
    column_kind kind;
    size_t offset;
} columns[] = {
    {"peak_allocated_bytes", BYTES_OR_NS,
     offsetof(ms_outcome, peak_allocated_bytes)},
    {"peak_reserved_bytes", BYTES_OR_NS,
     offsetof(ms_outcome, peak_reserved_bytes)},
    {"fits", VERDICT, offsetof(ms_outcome, fits)},
    {"step_ns", BYTES_OR_NS, offsetof(ms_outcome, step_ns)},
    {"recompute_ns", BYTES_OR_NS, offsetof(ms_outcome, recompute_ns)},
    {"stall_ns", BYTES_OR_NS, offsetof(ms_outcome, stall_ns)},
    {"exposed_comm_ns", BYTES_OR_NS, offsetof(ms_outcome, exposed_comm_ns)},
    {"tokens_per_second", RATE, offsetof(ms_outcome, tokens_per_second)},
    {"host_peak_bytes", BYTES_OR_NS, offsetof(ms_outcome, host_peak_bytes)},
    {"host_reserved_peak_bytes", BYTES_OR_NS,
     offsetof(ms_outcome, host_reserved_peak_bytes)},
    {"model", WORDS, offsetof(ms_outcome, model)},
    {"setup", WORDS, offsetof(ms_outcome, setup)},
    {"job_gpus", BYTES_OR_NS, offsetof(ms_outcome, job_gpus)},
    {"job_batch", BYTES_OR_NS, offsetof(ms_outcome, job_batch)},
    {"capacity_bytes", BYTES_OR_NS, offsetof(ms_outcome, capacity_bytes)},
    {"context_bytes", BYTES_OR_NS, offsetof(ms_outcome, context_bytes)},
    {"fits_exact", YES_OR_NO, offsetof(ms_outcome, fits_exact)},
};
#define N_COLUMNS (sizeof columns / sizeof columns[0])

/* ---- what is known beforehand -------------------------------------------- */

void ms_sweep_rows_header(const ms_sweep *sweep, ms_text *text)
{
    if (sweep->json)
        return;
    ms_text_add(text, "point");
    for (uint32_t a = 0; a < sweep->grid->n_axes; a++) {
        if (a == sweep->policy_axis)
            continue;
        ms_text_put(text, ",", 1);
        ms_table_field(text, sweep->grid->axes[a].key);
    }
    ms_text_add(text, ",policy,status,message");
    for (size_t i = 0; i < N_COLUMNS; i++)
        ms_text_add(text, ",%s", columns[i].key);
    ms_text_put(text, "\n", 1);
}

/* A whole number as JSON has it, which 007 is not. */
static bool is_whole(const char *value)
{
    size_t digits = strspn(value, "0123456789");
    return digits > 0 && digits < 16 && value[digits] == '\0' &&
           (value[0] != '0' || digits == 1);
}

static void put_value(const ms_sweep *sweep, const char *key, const char *value,
                      ms_text *text)
{
    if (!sweep->json) {
        ms_text_put(text, ",", 1);
        ms_table_field(text, value);
        return;
    }
    ms_text_put(text, ", ", 2);
    ms_text_json(text, key);
    ms_text_put(text, ": ", 2);
    if (is_whole(value))
        ms_text_put(text, value, strlen(value));
    else
        ms_text_json(text, value);
}

void ms_sweep_rows_begin(const ms_sweep *sweep, uint32_t item, ms_text *text)
{
    const ms_grid *grid = sweep->grid;
    uint64_t point = ms_sweep_point(sweep, item);
    uint32_t policy = 0;
    if (sweep->json)
        ms_text_add(text, "{\"point\": ");
    ms_text_u64(text, point + 1);
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        if (a == sweep->policy_axis)
            policy = ms_grid_index(grid, point, a);
        else
            put_value(sweep, grid->axes[a].key, ms_grid_value(grid, point, a),
                      text);
    }
    put_value(sweep, "policy", sweep->policies[policy], text);
}

/* ---- what came out ------------------------------------------------------- */

/* "where: what; hint", or nothing. */
static void make_message(const ms_outcome *outcome, char *message, size_t size)
{
    const ms_fault *fault = &outcome->fault;
    snprintf(message, size, "%s%s%s%s%s", fault->where,
             fault->where[0] != '\0' ? ": " : "", fault->what,
             fault->hint[0] != '\0' ? "; " : "", fault->hint);
    for (char *c = message; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
}

static void put_status(const ms_sweep *sweep, const ms_outcome *outcome,
                       ms_text *text)
{
    char message[sizeof(ms_fault)];
    const char *status = ms_names_status[outcome->status];
    if (outcome->fault.err != MS_OK)
        status = outcome->fault.err == MS_EINFEASIBLE
                     ? ms_names_status[MS_INFEASIBLE]
                     : "refused";
    make_message(outcome, message, sizeof message);
    if (!sweep->json) {
        ms_text_add(text, ",%s,", status);
        ms_table_field(text, message);
        return;
    }
    ms_text_add(text, ", \"status\": \"%s\", \"message\": ", status);
    if (message[0] != '\0')
        ms_text_json(text, message);
    else
        ms_text_add(text, "null");
}

static void put_words(const ms_sweep *sweep, const char *words, ms_text *text)
{
    if (sweep->json)
        ms_text_json(text, words);
    else
        ms_table_field(text, words);
}

static void put_number(const ms_sweep *sweep, const ms_outcome *outcome,
                       size_t column, ms_text *text)
{
    const char *at = (const char *)outcome + columns[column].offset;
    uint64_t number;
    double rate;
    bool yes;
    switch (columns[column].kind) {
    case BYTES_OR_NS:
        memcpy(&number, at, sizeof number);
        ms_text_u64(text, number);
        return;
    case YES_OR_NO:
    case VERDICT:
        memcpy(&yes, at, sizeof yes);
        ms_text_add(text, yes ? "true" : "false");
        return;
    case RATE:
        memcpy(&rate, at, sizeof rate);
        ms_text_double(text, rate);
        return;
    case WORDS:
        put_words(sweep, at, text);
        return;
    }
}

static bool applies(const ms_outcome *outcome, size_t column)
{
    if (outcome->fault.err != MS_OK)
        return false;
    if (columns[column].kind == VERDICT)
        return outcome->fits_known;
    return columns[column].kind != RATE || outcome->tokens_per_second >= 0;
}

/* Where it does not apply: null, or nothing. */
void ms_sweep_rows_end(const ms_sweep *sweep, const ms_outcome *outcome,
                       ms_text *text)
{
    put_status(sweep, outcome, text);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (sweep->json)
            ms_text_add(text, ", \"%s\": ", columns[i].key);
        else
            ms_text_put(text, ",", 1);
        if (applies(outcome, i))
            put_number(sweep, outcome, i, text);
        else if (sweep->json)
            ms_text_add(text, "null");
    }
    ms_text_add(text, sweep->json ? "}\n" : "\n");
}
