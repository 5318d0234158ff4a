/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A point of a sweep as a row. A row of CSV is one line, too: texts have no
 * line breaks. */

#include "plots/plots.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/sweep/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LAST "fits_exact" /* the last of the columns */

uint64_t ms_sweep_rows_point(const ms_sweep *sweep, uint32_t item)
{
    uint64_t row = sweep->first + item;
    return sweep->kept == NULL ? row : sweep->kept[row];
}

/* ---- what is known before the simulation ------------------------------------
 */

/* All rows have the policies of the point in a column of their own. */
static bool is_column(const ms_axis *axis)
{
    return strcmp(axis->key, "policy") != 0;
}

void ms_sweep_rows_header(const ms_sweep *sweep, ms_text *text)
{
    if (sweep->json)
        return;
    ms_text_add(text, "point");
    for (uint32_t a = 0; a < sweep->grid->n_axes; a++) {
        if (is_column(&sweep->grid->axes[a])) {
            ms_text_put(text, ",", 1);
            ms_table_field(text, sweep->grid->axes[a].key);
        }
    }
    ms_keys_write_names(&ms_keys_row, "policy", LAST, text);
    ms_text_put(text, "\n", 1);
}

/* Is the value a whole number as JSON spells it? "007" is not. */
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
    uint64_t point = ms_sweep_rows_point(sweep, item);
    if (sweep->json)
        ms_text_add(text, "{\"point\": ");
    ms_text_u64(text, point + 1);
    for (uint32_t a = 0; a < grid->n_axes; a++)
        if (is_column(&grid->axes[a]))
            put_value(sweep, grid->axes[a].key, ms_grid_value(grid, point, a),
                      text);
    put_value(sweep, "policy", sweep->policies[ms_grid_spec_index(grid, point)],
              text);
}

/* ---- the result
 * -------------------------------------------------------------- */

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

/* A value that does not apply is null in JSON and empty in CSV. */
void ms_sweep_rows_end(const ms_sweep *sweep, const ms_outcome *outcome,
                       ms_text *text)
{
    char message[sizeof(ms_fault)];
    ms_sweep_row row = outcome->row;
    row.status = ms_names_status[outcome->status];
    if (outcome->fault.err != MS_OK)
        row.status = outcome->fault.err == MS_EINFEASIBLE
                         ? ms_names_status[MS_INFEASIBLE]
                         : "refused";
    make_message(outcome, message, sizeof message);
    row.message = message[0] != '\0' ? message : NULL;
    row.model = outcome->model;
    row.setup = outcome->setup;
    row.has_numbers &= outcome->fault.err == MS_OK;
    if (sweep->json)
        ms_keys_write_from(&ms_keys_row, "status", &row, text);
    else
        ms_keys_write_cells(&ms_keys_row, "status", LAST, &row, text);
    ms_text_add(text, sweep->json ? "}\n" : "\n");
}
