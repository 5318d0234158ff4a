/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/results/rows.h"
#include "graphs/json/json.h"
#include "policies/common/policy.h"
#include "sim/base/size.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 128u

/* ---- columns
 * ----------------------------------------------------------------- */

/* Behind the varied keys the columns are the rows of ms_keys_row that follow
 * "point": first the required ones in this order, then any of the others. A
 * number may be missing where the point has no result. */
#define MOST_KNOWN 32u
enum { STATUS = 1, PEAK = 3, FITS = 5 };

static uint32_t n_known(void)
{
    assert(ms_keys_row.n <= MOST_KNOWN);
    return ms_keys_row.n - 1;
}

static const ms_key *known(uint32_t column)
{
    return &ms_keys_row.rows[column + 1];
}

/* The column of that key; n_known() where there is none. */
static uint32_t column_of(const char *key)
{
    uint32_t i = 0;
    while (i < n_known() && strcmp(known(i)->name, key) != 0)
        i++;
    return i;
}

/* The columns that every file has: memsim 0.1.0 wrote no others. */
static uint32_t n_required(void)
{
    uint32_t n = 0;
    while (!known(n)->optional)
        n++;
    return n;
}

static const char *const statuses[] = {"ok", "over", "out_of_memory",
                                       "infeasible", "refused"};
#define N_STATUSES (sizeof statuses / sizeof statuses[0])

/* A value and its place in the file; words is NULL for an empty or null
 * value. */
struct cell {
    const char *words;
    size_t at;
};

typedef struct reading {
    const ms_quote *source;
    ms_arena *arena;
    ms_rows *rows;
    ms_fault *fault;
    ms_sweep_row *row;    /* the row that is filled */
    bool has[MOST_KNOWN]; /* by column: whether the file has it */
    /* of CSV: the column of each field behind the keys */
    uint32_t map[MOST_KNOWN];
    uint32_t n_columns;
} reading;

static ms_quote quote(const reading *r, size_t at)
{
    ms_quote place = *r->source;
    place.offset = at;
    return place;
}

#define FAIL_AT(r, at, ...)                                                    \
    ms_fail_at((r)->fault, MS_EINPUT, (ms_quote[]){quote((r), (at))},          \
               __VA_ARGS__)

static const char again[] = "is it as memsim sweep wrote it?";

static ms_err read_u64(const reading *r, const struct cell *cell,
                       const char *key, uint64_t *number)
{
    ms_decimal decimal;
    if (!ms_size_decimal(cell->words, &decimal) || decimal.scale != 1 ||
        *decimal.end != '\0' || decimal.whole > INT64_MAX)
        return FAIL_AT(r, cell->at, again,
                       "\"%s\" must be a whole number, not \"%s\"", key,
                       cell->words);
    *number = decimal.whole;
    return MS_OK;
}

static ms_err read_bool(const reading *r, const struct cell *cell,
                        const char *key, bool *yes)
{
    *yes = strcmp(cell->words, "true") == 0;
    if (*yes || strcmp(cell->words, "false") == 0)
        return MS_OK;
    return FAIL_AT(r, cell->at, again,
                   "\"%s\" must be true or false, not \"%s\"", key,
                   cell->words);
}

/* Reads a rate as memsim writes it: "1.5", "2e+07". */
static ms_err read_rate(const reading *r, const struct cell *cell,
                        const char *key, double *rate)
{
    static const char digits[] = "0123456789";
    size_t whole = strspn(cell->words, digits);
    const char *end = cell->words + whole;
    if (*end == '.')
        end += 1 + strspn(end + 1, digits);
    if (*end == 'e') {
        end += 1 + (end[1] == '+' || end[1] == '-');
        end += strspn(end, digits);
    }
    *rate = whole > 0 && *end == '\0' ? strtod(cell->words, NULL) : -1.0;
    if (*rate >= 0.0)
        return MS_OK;
    return FAIL_AT(r, cell->at, again, "\"%s\" must be a number, not \"%s\"",
                   key, cell->words);
}

static ms_err check_status(const reading *r, const struct cell *cell)
{
    for (size_t i = 0; i < N_STATUSES && cell->words != NULL; i++)
        if (strcmp(cell->words, statuses[i]) == 0)
            return MS_OK;
    return FAIL_AT(
        r, cell->at, "a row is ok, over, out_of_memory, infeasible or refused",
        "unknown status \"%s\"", cell->words != NULL ? cell->words : "");
}

static ms_err read_number(reading *r, uint32_t column, const struct cell *cell)
{
    char *into = (char *)r->row + known(column)->at;
    const char *key = known(column)->name;
    uint64_t number = 0;
    double rate;
    bool yes;
    switch (known(column)->held) {
    case MS_HELD_U64:
        MS_TRY(read_u64(r, cell, key, &number));
        memcpy(into, &number, sizeof number);
        break;
    case MS_HELD_BOOL:
        MS_TRY(read_bool(r, cell, key, &yes));
        memcpy(into, &yes, sizeof yes);
        break;
    case MS_HELD_RATE:
        MS_TRY(read_rate(r, cell, key, &rate));
        memcpy(into, &rate, sizeof rate);
        break;
    default: /* words */
        break;
    }
    return MS_OK;
}

/* Says whether the value may be missing: a rate may not apply, and a sweep
 * without a pool writes fits_exact only. */
static bool may_lack(const reading *r, uint32_t column)
{
    ms_key_held held = known(column)->held;
    return !r->has[column] || held == MS_HELD_TEXT || held == MS_HELD_RATE ||
           (column == FITS && r->has[column_of("fits_exact")]);
}

/* Reads a row's cells. Either all numbers are there (except a rate that does
 * not apply) or none is. */
static ms_err read_cells(reading *r, const struct cell *cells)
{
    ms_sweep_row *row = r->row;
    row->tokens_per_second = -1.0;
    row->has_numbers = cells[PEAK].words != NULL;
    MS_TRY(check_status(r, &cells[STATUS]));
    for (uint32_t i = 0; i < n_known(); i++) {
        const char *words = cells[i].words;
        if (known(i)->held == MS_HELD_TEXT) {
            words = words != NULL ? words : "";
            memcpy((char *)row + known(i)->at, &words, sizeof words);
        } else if (words != NULL) {
            MS_TRY(read_number(r, i, &cells[i]));
        }
        if (!may_lack(r, i) && (words != NULL) != row->has_numbers)
            return FAIL_AT(r, cells[i].at, again,
                           words != NULL ? "\"%s\" has a value, though "
                                           "\"peak_allocated_bytes\" has none"
                                         : "\"%s\" has no value",
                           known(i)->name);
    }
    row->fits_known = cells[FITS].words != NULL;
    if (!row->fits_known)
        row->fits = row->fits_exact;
    if (!r->has[column_of("host_reserved_peak_bytes")])
        row->host_reserved_peak_bytes = row->host_peak_bytes;
    return MS_OK;
}

static ms_err add_row(reading *r, const struct cell *point)
{
    ms_rows *rows = r->rows;
    if (rows->n == rows->capacity)
        rows->rows = ms_arena_grow(r->arena, rows->rows, &rows->capacity,
                                   rows->n + 1, sizeof *rows->rows);
    if (rows->rows == NULL)
        return ms_fail_nomem(r->fault);
    r->row = &rows->rows[rows->n++];
    *r->row = (ms_sweep_row){
        .values = ms_arena_take(r->arena, rows->n_keys + 1, sizeof(char *))};
    if (r->row->values == NULL)
        return ms_fail_nomem(r->fault);
    if (point->words == NULL)
        return FAIL_AT(r, point->at, again, "the row has no \"point\"");
    return read_u64(r, point, "point", &r->row->point);
}

/* All files of a sweep vary the same keys; in JSON objects their order may
 * differ. */
static ms_err agree_on_keys(reading *r, const struct cell *keys, uint32_t n)
{
    ms_rows *rows = r->rows;
    if (rows->name == NULL) {
        rows->keys = ms_arena_take(r->arena, n + 1, sizeof *rows->keys);
        if (rows->keys == NULL)
            return ms_fail_nomem(r->fault);
        for (uint32_t i = 0; i < n; i++)
            rows->keys[i] = keys[i].words;
        rows->n_keys = n;
        rows->name = r->source->name;
        return MS_OK;
    }
    for (uint32_t i = 0; i < n || i < rows->n_keys; i++)
        if (i >= n || i >= rows->n_keys ||
            strcmp(keys[i].words, rows->keys[i]) != 0)
            return FAIL_AT(r, i < n ? keys[i].at : keys[0].at,
                           "plot the rows of one sweep, or of its shards",
                           "varies %s%s%s; %s varies other keys",
                           i < n ? "\"" : "fewer keys",
                           i < n ? keys[i].words : "", i < n ? "\"" : "",
                           rows->name);
    return MS_OK;
}

/* ---- CSV ----------------------------------------------------------------- */

/* Reads a quoted field from behind its first quote. */
static ms_err read_quoted(const reading *r, size_t *at, const char **words)
{
    const ms_quote *source = r->source;
    size_t begin = *at, n = 0;
    char *text = NULL;
    for (int pass = 0; pass < 2; pass++) {
        size_t i = begin;
        bool closed = false;
        for (n = 0; i < source->length; i++, n++) {
            closed = source->bytes[i] == '"' && source->bytes[++i] != '"';
            if (closed)
                break;
            if (text != NULL)
                text[n] = source->bytes[i];
        }
        if (!closed)
            return FAIL_AT(r, begin - 1, again, "the quote does not end");
        *at = i;
        if (pass == 0)
            text = ms_arena_take(r->arena, n + 1, 1);
        if (text == NULL)
            return ms_fail_nomem(r->fault);
    }
    *words = text;
    return MS_OK;
}

/* Reads the next field; *ends says that it is the last one of its line,
 * whose end has been read as well. */
static ms_err next_field(const reading *r, size_t *at, struct cell *field,
                         bool *ends)
{
    const ms_quote *source = r->source;
    *field = (struct cell){.at = *at};
    if (*at < source->length && source->bytes[*at] == '"') {
        ++*at;
        MS_TRY(read_quoted(r, at, &field->words));
    } else {
        size_t from = *at;
        while (*at < source->length &&
               strchr(",\r\n", source->bytes[*at]) == NULL)
            ++*at;
        if (*at > from)
            field->words =
                ms_arena_text(r->arena, source->bytes + from, *at - from);
        if (*at > from && field->words == NULL)
            return ms_fail_nomem(r->fault);
    }
    *ends = *at >= source->length || source->bytes[*at] != ',';
    if (!*ends) {
        ++*at;
        return MS_OK;
    }
    *at += *at < source->length && source->bytes[*at] == '\r';
    if (*at < source->length && source->bytes[*at] != '\n')
        return FAIL_AT(r, *at, again, "a field ends with a comma or a line");
    *at += *at < source->length;
    return MS_OK;
}

static ms_err next_line(const reading *r, size_t *at,
                        struct cell cells[MOST_COLUMNS], uint32_t *n)
{
    bool ends = false;
    for (*n = 0; !ends; ++*n) {
        if (*n == MOST_COLUMNS)
            return FAIL_AT(r, *at, again, "more than %u columns", MOST_COLUMNS);
        MS_TRY(next_field(r, at, &cells[*n], &ends));
    }
    return MS_OK;
}

static bool is_word(const struct cell *cell, const char *word)
{
    return cell->words != NULL && strcmp(cell->words, word) == 0;
}

static ms_err map_columns(reading *r, const struct cell *cells, uint32_t n)
{
    memset(r->has, 0, sizeof r->has);
    r->n_columns = n;
    for (uint32_t i = 0; i < n || i < n_required(); i++) {
        if (i >= n)
            return FAIL_AT(r, r->source->offset, again,
                           "there is no column \"%s\"", known(i)->name);
        const char *name = cells[i].words != NULL ? cells[i].words : "";
        uint32_t column = column_of(name);
        if (i < n_required() && column != i)
            return FAIL_AT(r, cells[i].at, again,
                           "unknown column \"%s\" where \"%s\" belongs", name,
                           known(i)->name);
        if (column == n_known() || r->has[column])
            return FAIL_AT(r, cells[i].at, again, "%s column \"%s\"",
                           column == n_known() ? "unknown" : "a second", name);
        r->map[i] = column;
        r->has[column] = true;
    }
    return MS_OK;
}

static ms_err read_header(reading *r, const struct cell *cells, uint32_t n)
{
    uint32_t policy = 1;
    while (policy < n && !is_word(&cells[policy], "policy"))
        policy++;
    for (uint32_t i = 1; i < policy && i < n; i++)
        if (cells[i].words == NULL)
            return FAIL_AT(r, cells[i].at, again, "a column has no name");
    MS_TRY(map_columns(r, cells + policy, n - policy));
    return agree_on_keys(r, cells + 1, policy - 1);
}

static ms_err read_line(reading *r, const struct cell *cells, uint32_t n)
{
    uint32_t n_keys = r->rows->n_keys;
    uint32_t expected = 1 + n_keys + r->n_columns;
    struct cell all[MOST_KNOWN] = {{0}};
    if (n != expected)
        return FAIL_AT(r, cells[n < expected ? 0 : expected].at,
                       "the file may have been cut off",
                       "the row has %u fields, the header %u", n, expected);
    MS_TRY(add_row(r, &cells[0]));
    for (uint32_t i = 0; i < n_keys; i++)
        r->row->values[i] =
            cells[1 + i].words != NULL ? cells[1 + i].words : "";
    for (uint32_t i = 0; i < r->n_columns; i++)
        all[r->map[i]] = cells[1 + n_keys + i];
    return read_cells(r, all);
}

static ms_err read_csv(reading *r)
{
    struct cell cells[MOST_COLUMNS];
    uint32_t n;
    size_t at = r->source->offset;
    bool has_header = false;
    while (at < r->source->length) {
        MS_TRY(next_line(r, &at, cells, &n));
        if (n == 1 && cells[0].words == NULL)
            continue; /* an empty line */
        if (is_word(&cells[0], "point") || !has_header)
            MS_TRY(read_header(r, cells, n));
        else
            MS_TRY(read_line(r, cells, n));
        has_header = true;
    }
    return MS_OK;
}

/* ---- JSON Lines ---------------------------------------------------------- */

/* Makes a cell of a number, as it is spelled, or of a string. */
static ms_err cell_of(const reading *r, const ms_json *json, uint32_t row,
                      struct cell *cell)
{
    const ms_json_node *node = &json->nodes[row];
    const char *bytes = json->source.bytes + node->at;
    cell->at = node->at;
    cell->words = NULL;
    if (node->kind == MS_JSON_NULL)
        return MS_OK;
    if (node->kind == MS_JSON_ARRAY || node->kind == MS_JSON_OBJECT)
        return FAIL_AT(r, cell->at, again,
                       "%s stands where a number or a word belongs",
                       ms_json_kind_name(json, row));
    size_t length = node->kind == MS_JSON_STRING ? strlen(node->value.s)
                                                 : strcspn(bytes, ",} \t\r\n");
    cell->words = ms_arena_text(
        r->arena, node->kind == MS_JSON_STRING ? node->value.s : bytes, length);
    return cell->words != NULL ? MS_OK : ms_fail_nomem(r->fault);
}

static ms_err read_members(reading *r, const ms_json *json,
                           struct cell *columns_at, struct cell *keys,
                           struct cell *values, uint32_t *n_keys)
{
    for (uint32_t i = ms_json_first(json, 0); i != MS_NONE;
         i = json->nodes[i].next) {
        uint32_t column = column_of(json->nodes[i].key);
        if (column < n_known()) {
            MS_TRY(cell_of(r, json, i, &columns_at[column]));
        } else if (strcmp(json->nodes[i].key, "point") != 0) {
            if (*n_keys == MOST_COLUMNS)
                return FAIL_AT(r, json->nodes[i].at, again, "more than %u keys",
                               MOST_COLUMNS);
            const char *key = json->nodes[i].key;
            keys[*n_keys].at = json->nodes[i].key_at;
            keys[*n_keys].words = ms_arena_text(r->arena, key, strlen(key));
            if (keys[*n_keys].words == NULL)
                return ms_fail_nomem(r->fault);
            MS_TRY(cell_of(r, json, i, &values[(*n_keys)++]));
        }
    }
    return MS_OK;
}

static ms_err read_object(reading *r, const ms_json *json)
{
    struct cell cells[MOST_KNOWN] = {{0}}, keys[MOST_COLUMNS],
                values[MOST_COLUMNS], point;
    uint32_t n = 0, at = ms_json_find(json, 0, "point");
    keys[0].at = json->nodes[0].at;
    for (uint32_t i = 0; i < n_known(); i++) {
        r->has[i] = ms_json_find(json, 0, known(i)->name) != MS_NONE;
        if (i < n_required() && !r->has[i])
            return FAIL_AT(r, json->nodes[0].at, again, "the row has no \"%s\"",
                           known(i)->name);
    }
    if (at == MS_NONE)
        return FAIL_AT(r, json->nodes[0].at, again, "the row has no \"point\"");
    MS_TRY(cell_of(r, json, at, &point));
    MS_TRY(read_members(r, json, cells, keys, values, &n));
    MS_TRY(agree_on_keys(r, keys, n));
    MS_TRY(add_row(r, &point));
    for (uint32_t i = 0; i < n; i++)
        r->row->values[i] = values[i].words != NULL ? values[i].words : "";
    return read_cells(r, cells);
}

/* Reads one row after the other; the JSON of each is freed before the next
 * is read. */
static ms_err read_json(reading *r)
{
    ms_arena scratch = {.limit_bytes = r->arena->limit_bytes};
    ms_quote source = *r->source;
    uint32_t line = 1;
    ms_err err = MS_OK;
    while (err == MS_OK && source.offset < source.length) {
        ms_json json;
        ms_arena_reset(&scratch);
        err = ms_json_next(&source, &line, &scratch, &json, r->fault);
        if (err == MS_OK)
            err = json.nodes[0].kind == MS_JSON_OBJECT
                      ? read_object(r, &json)
                      : ms_json_fail(&json, 0, r->fault, again,
                                     "a row is an object");
    }
    ms_arena_free(&scratch);
    return err;
}

/* ---- which of them ------------------------------------------------------- */

static bool begins(const ms_quote *source, const char *words)
{
    size_t length = strlen(words);
    return source->length - source->offset >= length &&
           memcmp(source->bytes + source->offset, words, length) == 0;
}

static ms_quote without_blanks(const ms_quote *source)
{
    ms_quote from = *source;
    from.offset += strspn(from.bytes + from.offset, " \t\r\n");
    return from;
}

ms_err ms_rows_are(const ms_quote *source, ms_arena *scratch, bool *are,
                   ms_fault *fault)
{
    ms_quote from = without_blanks(source);
    ms_fault own = {0};
    ms_json json;
    uint32_t line = 1;
    *are = begins(&from, "point,") || begins(&from, "\"point\",");
    if (!begins(&from, "{"))
        return MS_OK;
    ms_err err = ms_json_next(&from, &line, scratch, &json, &own);
    *are = err == MS_OK && ms_json_find(&json, 0, "point") != MS_NONE;
    return ms_fail_but_refusal(err, &own, fault);
}

ms_err ms_rows_read(const ms_quote *source, ms_arena *arena, ms_rows *rows,
                    ms_fault *fault)
{
    ms_quote from = without_blanks(source);
    reading r = {.source = &from, .arena = arena, .rows = rows, .fault = fault};
    assert(source->bytes[source->length] == '\0');
    if (!begins(&from, "{"))
        return read_csv(&r);
    from.offset = source->offset;
    return read_json(&r);
}
