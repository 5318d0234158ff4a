/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opblocks.h"

#include "graphs/json/index.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <ctype.h>
#include <string.h>

#define SIDE_BY_SIDE 3u /* modules that differ in the number alone */

/* A number at the end of a part of a dotted name: where it begins and where
 * the part ends; first 0: none. */
typedef struct number {
    size_t first, end;
    bool whole; /* it is the part */
} number;

/* The first number from byte `from` on. */
static number next_number(const char *module, size_t from)
{
    size_t start = from;
    while (module[start]) {
        size_t end = start + strcspn(module + start, ".");
        size_t first = end;
        while (first > start && isdigit((unsigned char)module[first - 1]))
            first--;
        bool whole = first == start && first < end;
        if (whole || (first < end && first > start && module[first - 1] == '_'))
            return (number){first, end, whole};
        start = end + (module[end] == '.');
    }
    return (number){0, 0, false};
}

/* How many numbers each stem ("encoder.layer_") has. */
typedef struct stems {
    ms_index index, names; /* stems to rows of count; names seen */
    uint32_t *count, n;
} stems;

static ms_err count_numbers(ms_trace *trace, const ms_opgraph *ops, stems *s,
                            ms_arena *scratch)
{
    s->count = ms_arena_take(scratch, ops->n_modules, sizeof *s->count);
    if (!s->count)
        return ms_fail_nomem(trace->fault);
    MS_TRY(ms_index_make(&s->index, ops->n_modules, scratch, trace->fault));
    MS_TRY(ms_index_make(&s->names, ops->n_modules, scratch, trace->fault));
    for (uint32_t m = 0; m < ops->n_modules; m++) {
        number at = next_number(ops->modules[m], 0);
        if (at.end == 0 || at.whole)
            continue;
        const char *name = ms_arena_text(scratch, ops->modules[m], at.end);
        const char *stem = ms_arena_text(scratch, ops->modules[m], at.first);
        if (!name || !stem)
            return ms_fail_nomem(trace->fault);
        if (ms_index_add(&s->names, name, m) != m)
            continue; /* counted */
        uint32_t row = ms_index_add(&s->index, stem, s->n);
        s->n += row == s->n;
        s->count[row]++;
    }
    return MS_OK;
}

/* The length of the block's name, 0: the module is in none. */
static ms_err block_length(ms_trace *trace, const char *module, const stems *s,
                           ms_arena *scratch, size_t *length)
{
    number at = next_number(module, 0);
    *length = at.end;
    if (at.end == 0 || at.whole)
        return MS_OK;
    const char *stem = ms_arena_text(scratch, module, at.first);
    if (!stem)
        return ms_fail_nomem(trace->fault);
    if (s->count[ms_index_find(&s->index, stem)] >= SIDE_BY_SIDE)
        return MS_OK;
    do
        at = next_number(module, at.end + (module[at.end] == '.'));
    while (at.end > 0 && !at.whole);
    *length = at.end;
    return MS_OK;
}

static ms_err find(ms_trace *trace, const ms_opgraph *ops, ms_arena *scratch,
                   uint32_t *block_of)
{
    ms_graph *g = trace->graph;
    ms_index names;
    stems s = {.n = 0};
    g->n_blocks = 0;
    g->block_name =
        ms_arena_take(trace->arena, ops->n_modules, sizeof *g->block_name);
    if (!g->block_name)
        return ms_fail_nomem(trace->fault);
    MS_TRY(count_numbers(trace, ops, &s, scratch));
    MS_TRY(ms_index_make(&names, ops->n_modules, scratch, trace->fault));
    for (uint32_t m = 0; m < ops->n_modules; m++) {
        size_t n;
        block_of[m] = MS_NONE;
        MS_TRY(block_length(trace, ops->modules[m], &s, scratch, &n));
        if (n == 0)
            continue;
        const char *name = ms_arena_text(trace->arena, ops->modules[m], n);
        if (!name)
            return ms_fail_nomem(trace->fault);
        block_of[m] = ms_index_add(&names, name, g->n_blocks);
        if (block_of[m] == g->n_blocks)
            g->block_name[g->n_blocks++] = name;
    }
    return MS_OK;
}

ms_err ms_opblocks_find(ms_trace *trace, const ms_opgraph *ops,
                        uint32_t *block_of)
{
    ms_arena scratch = {.limit_bytes = trace->scratch->limit_bytes};
    ms_err err = find(trace, ops, &scratch, block_of);
    ms_arena_free(&scratch);
    return err;
}
