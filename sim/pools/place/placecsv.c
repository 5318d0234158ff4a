/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buffers as CSV in the form of minimalloc (google/minimalloc, README). */

#include "sim/pools/place/placement.h"

#include <string.h>

enum { ID, LOWER, UPPER, SIZE, ALIGNMENT, OFFSET, N_COLUMNS };
static const char *const columns[N_COLUMNS] = {"id",   "lower",     "upper",
                                               "size", "alignment", "offset"};
#define MOST_COLUMNS 16u
#define MOST_BUFFERS (1u << 24)

typedef struct reader {
    ms_quote at;
    uint8_t kinds[MOST_COLUMNS]; /* what each column holds */
    uint32_t n;
    ms_arena *arena;
    ms_placement_list *list;
    ms_fault *fault;
} reader;

typedef struct cell {
    const char *at;
    size_t length;
    bool last; /* it is the last cell of its line */
} cell;

static cell next_cell(reader *r)
{
    cell c = {.at = r->at.bytes + r->at.offset};
    size_t left = r->at.length - r->at.offset;
    while (c.length < left && c.at[c.length] != ',' && c.at[c.length] != '\n')
        c.length++;
    c.last = c.length == left || c.at[c.length] == '\n';
    r->at.offset += c.length + (c.length < left);
    if (c.last && c.length > 0 && c.at[c.length - 1] == '\r')
        c.length--;
    return c;
}

static ms_err fail(reader *r, const cell *c, const char *hint, const char *what)
{
    r->at.offset = (size_t)(c->at - r->at.bytes);
    return ms_fail_at(r->fault, MS_EINPUT, &r->at, hint, "%s", what);
}

static ms_err read_heading(reader *r)
{
    bool seen[N_COLUMNS] = {false};
    for (cell c = {0}; !c.last;) {
        uint8_t kind = 0;
        c = next_cell(r);
        while (kind < N_COLUMNS && (strlen(columns[kind]) != c.length ||
                                    memcmp(columns[kind], c.at, c.length) != 0))
            kind++;
        if (kind == N_COLUMNS || seen[kind] || r->n == MOST_COLUMNS)
            return fail(r, &c, "id,lower,upper,size[,alignment]",
                        kind < N_COLUMNS ? "a column stands there twice"
                                         : "a column that is not known here");
        seen[kind] = true;
        r->kinds[r->n++] = kind;
        if (c.last && !(seen[ID] && seen[LOWER] && seen[UPPER] && seen[SIZE]))
            return fail(r, &c, "id,lower,upper,size[,alignment]",
                        "a column is missing");
    }
    return MS_OK;
}

static ms_err read_number(reader *r, const cell *c, uint64_t *value)
{
    *value = 0;
    if (c->length == 0)
        return fail(r, c, NULL, "expected a whole number");
    for (size_t i = 0; i < c->length; i++) {
        uint64_t digit = (uint64_t)((unsigned char)c->at[i] - '0');
        if (digit > 9)
            return fail(r, c, NULL, "expected a whole number");
        if (*value > (MS_PLACEMENT_MOST_BYTES - digit) / 10)
            return fail(r, c, NULL, "larger than 2^62");
        *value = *value * 10 + digit;
    }
    return MS_OK;
}

static ms_err read_line(reader *r, ms_placement_buffer *buffer, const char **id)
{
    uint64_t numbers[N_COLUMNS] = {[ALIGNMENT] = 1};
    cell cells[N_COLUMNS] = {{0}}, c = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        uint8_t kind = r->kinds[i];
        c = cells[kind] = next_cell(r);
        if (c.last != (i + 1 == r->n))
            return fail(r, &c, NULL,
                        c.last ? "the line has too few columns"
                               : "the line has too many columns");
        if (kind != ID && kind != OFFSET)
            MS_TRY(read_number(r, &c, &numbers[kind]));
    }
    const cell *name = &cells[ID];
    if (name->length == 0 || memchr(name->at, '"', name->length) != NULL)
        return fail(r, name, NULL, "expected an id, without quotes");
    for (size_t i = 0; i < name->length; i++)
        if ((unsigned char)name->at[i] < 0x20 || name->at[i] == 0x7F)
            return fail(r, name, NULL, "an id with a control character");
    /* Lives are half open, [lower, upper): a buffer may take the place of one
     * that ends when it begins. */
    if (numbers[LOWER] >= numbers[UPPER])
        return fail(r, &cells[UPPER], NULL,
                    "upper, the end of the life, is not above lower");
    if (numbers[SIZE] == 0 || numbers[ALIGNMENT] == 0)
        return fail(r, &cells[numbers[SIZE] == 0 ? SIZE : ALIGNMENT], NULL,
                    "expected a number over 0");
    *buffer = (ms_placement_buffer){numbers[LOWER], numbers[UPPER],
                                    numbers[SIZE], numbers[ALIGNMENT]};
    *id = ms_arena_text(r->arena, name->at, name->length);
    return *id != NULL ? MS_OK : ms_fail_nomem(r->fault);
}

static ms_err add(reader *r)
{
    ms_placement_list *list = r->list;
    list->buffers = ms_arena_grow(r->arena, list->buffers, &list->capacity,
                                  list->n + 1, sizeof *list->buffers);
    list->ids = ms_arena_grow(r->arena, list->ids, &list->ids_capacity,
                              list->n + 1, sizeof *list->ids);
    if (list->buffers == NULL || list->ids == NULL)
        return ms_fail_nomem(r->fault);
    MS_TRY(read_line(r, &list->buffers[list->n], &list->ids[list->n]));
    list->n++;
    return MS_OK;
}

ms_err ms_placecsv_read(const char *name, const char *bytes, size_t length,
                        ms_arena *arena, ms_placement_list *list,
                        ms_fault *fault)
{
    reader r = {.at = {name, bytes, length, 0},
                .arena = arena,
                .list = list,
                .fault = fault};
    *list = (ms_placement_list){0};
    MS_TRY(read_heading(&r));
    while (r.at.offset < length) {
        if (list->n == MOST_BUFFERS)
            return ms_fail_at(fault, MS_EINPUT, &r.at, NULL,
                              "more than %u buffers", MOST_BUFFERS);
        MS_TRY(add(&r));
    }
    return MS_OK;
}
