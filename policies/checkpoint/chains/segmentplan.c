/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/segmentplan.h"
#include "policies/checkpoint/chains/chaincalls.h"
#include "policies/checkpoint/chains/cuts.h"
#include "policies/checkpoint/checkpointrows.h"
#include "sim/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan ------------------------------------------------------------ */

/* Stages s to t, whose backward is next: they are cut by level. */
typedef struct span {
    uint32_t s, t, level;
} span;

typedef struct writer {
    const ms_segmentplan *how;
    ms_arena *arena;
    ms_chain_plan *plan;
    ms_fault *fault;
    span *left; /* a stack */
    uint32_t n_left;
} writer;

static ms_err add(const writer *w, ms_chain_verb verb, uint32_t stage)
{
    return ms_chain_add(w->plan, verb, stage, w->arena, w->fault);
}

/* The number of a level, counted from 0; 0: there is none. */
static uint32_t size_of(const char *sizes, uint32_t level)
{
    for (; level > 0 && sizes != NULL; level--) {
        sizes = strchr(sizes, '/');
        sizes += sizes != NULL;
    }
    return sizes == NULL ? 0 : (uint32_t)strtoul(sizes, NULL, 10);
}

/* Per stage of the span the number of its piece; false: it is not cut. */
static bool cut_span(const writer *w, const span *at, uint32_t *piece)
{
    uint32_t length = at->t - at->s + 1, parts = w->how->parts;
    uint32_t size = size_of(w->how->sizes, at->level);
    if (length == 1)
        return false;
    if (parts > 0)
        ms_cuts_even(length, parts < length ? parts : length, piece);
    else if (size > 0 && size < length)
        ms_cuts_every(length, size, piece);
    return parts > 0 || (size > 0 && size < length);
}

static ms_err save_span(const writer *w, const span *at)
{
    for (uint32_t l = at->s; l <= at->t; l++)
        MS_TRY(add(w, MS_CHAIN_SAVE, l));
    for (uint32_t l = at->t; l >= at->s; l--)
        MS_TRY(add(w, MS_CHAIN_BACKWARD, l));
    return MS_OK;
}

/* Runs forward to the last piece and leaves them all to be run backward. */
static ms_err open_span(writer *w, const span *at, const uint32_t *piece)
{
    uint32_t length = at->t - at->s + 1;
    for (uint32_t i = 0, first = 0; i < length; i++) {
        bool ends = i + 1 == length || piece[i + 1] != piece[i];
        bool is_last = piece[i] == piece[length - 1];
        if (!is_last)
            MS_TRY(add(w, i == first ? MS_CHAIN_CHECKPOINT : MS_CHAIN_PASS,
                       at->s + i));
        if (!ends)
            continue;
        w->left[w->n_left++] = (span){at->s + first, at->s + i, at->level + 1};
        first = i + 1;
    }
    return MS_OK;
}

static ms_err write_segment(writer *w, uint32_t s, uint32_t t, uint32_t *piece)
{
    w->left[w->n_left++] = (span){s, t, 1};
    while (w->n_left > 0) {
        span at = w->left[--w->n_left];
        if (cut_span(w, &at, piece))
            MS_TRY(open_span(w, &at, piece));
        else if (at.s < at.t && size_of(w->how->sizes, at.level) > 0)
            w->left[w->n_left++] = (span){at.s, at.t, at.level + 1};
        else
            MS_TRY(save_span(w, &at));
    }
    return MS_OK;
}

ms_err ms_segmentplan_write(const ms_chain *chain, const ms_segmentplan *how,
                            ms_arena *arena, ms_chain_plan *plan,
                            ms_fault *fault)
{
    writer w = {.how = how, .arena = arena, .plan = plan, .fault = fault};
    const uint32_t *segment = how->segment;
    uint32_t n = chain->n;
    *plan = (ms_chain_plan){0};
    w.left = ms_arena_take_raw(arena, n + 1u, sizeof *w.left);
    uint32_t *piece = ms_arena_take_raw(arena, n + 1u, sizeof *piece);
    if (w.left == NULL || piece == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t l = 1; l <= n; l++) {
        bool goes_on = l > 1 && segment[l] == segment[l - 1];
        MS_TRY(add(&w,
                   segment[l] == MS_NONE ? MS_CHAIN_SAVE
                   : goes_on             ? MS_CHAIN_PASS
                                         : MS_CHAIN_CHECKPOINT,
                   l));
    }
    for (uint32_t l = n, first; l > 0; l = first - 1) {
        first = l;
        if (segment[l] == MS_NONE) {
            MS_TRY(add(&w, MS_CHAIN_BACKWARD, l));
            continue;
        }
        while (first > 1 && segment[first - 1] == segment[l])
            first--;
        MS_TRY(write_segment(&w, first, l, piece));
    }
    return MS_OK;
}

/* ---- nested and recursive ------------------------------------------------ */

/* Each level is of smaller segments. */
static ms_err check_sizes(const char *sizes, ms_fault *fault)
{
    uint32_t before = size_of(sizes, 0);
    for (uint32_t level = 1; size_of(sizes, level) > 0; level++) {
        uint32_t size = size_of(sizes, level);
        if (size >= before)
            return ms_fail(fault, MS_EUSAGE, "checkpoint:nested",
                           "write 12/4/1, for example",
                           "segments of %u blocks are not cut into segments "
                           "of %u",
                           before, size);
        before = size;
    }
    return MS_OK;
}

/* The blocks of part k; what is longer than it is one segment. */
static ms_err cut_part(const ms_policy_context *context,
                       const ms_chainparts *parts, uint32_t k,
                       ms_segmentplan *how, ms_fault *fault)
{
    const ms_policy_value *last = &context->values[MS_CHECKPOINT_LAST];
    uint32_t n = parts->n_blocks[k], count = parts->of[k].chain.n;
    const uint32_t *block = parts->block[k];
    uint32_t *cut = ms_arena_take_raw(context->arena, n + 1u, sizeof *cut);
    uint32_t *segment =
        ms_arena_take_raw(context->arena, count + 1u, sizeof *segment);
    if (cut == NULL || segment == NULL)
        return ms_fail_nomem(fault);
    if (n > 0 && how->parts > 0)
        ms_cuts_even(n, how->parts < n ? how->parts : n, cut);
    else if (n > 0)
        ms_cuts_every(n, size_of(how->sizes, 0), cut);
    if (n > 0 && last->given && last->number == MS_CHECKPOINT_OPEN)
        ms_cuts_open_last(n, cut);
    for (uint32_t l = 1; l <= count; l++)
        segment[l] = block[l] == MS_NONE ? MS_NONE : cut[block[l]];
    how->segment = segment;
    return MS_OK;
}

static ms_err read_values(const ms_policy_context *context,
                          const ms_chainparts *parts, ms_segmentplan *how,
                          ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    char hint[64];
    uint32_t most;
    MS_TRY(ms_chainparts_blocks(parts, &most, fault));
    if (values[MS_CHECKPOINT_RECURSIVE].given) {
        how->parts = (uint32_t)values[MS_CHECKPOINT_PARTS].number;
        return MS_OK;
    }
    how->sizes = values[MS_CHECKPOINT_NESTED].text;
    MS_TRY(check_sizes(how->sizes, fault));
    if (size_of(how->sizes, 0) <= most)
        return MS_OK;
    snprintf(hint, sizeof hint, "begin with segments of %u, nested=%u%s", most,
             most, most > 1 ? "/1" : "");
    return ms_fail(fault, MS_EUSAGE, "checkpoint:nested", hint,
                   "%s %u block%s: segments are of 1 to %u",
                   parts->n == 1 ? "the model has" : "a stage has at most",
                   most, most == 1 ? "" : "s", most);
}

ms_err ms_segmentplan_equal(const ms_chainparts *parts, uint32_t k,
                            uint32_t blocks, bool open, ms_arena *arena,
                            ms_chain_plan *plan, ms_fault *fault)
{
    const ms_chain *chain = &parts->of[k].chain;
    uint32_t last = parts->n_blocks[k] > 0 ? parts->n_blocks[k] - 1 : 0;
    uint32_t *segment =
        ms_arena_take_raw(arena, chain->n + 1u, sizeof *segment);
    if (segment == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t l = 1; l <= chain->n; l++) {
        uint32_t block = parts->block[k][l];
        bool saves =
            block == MS_NONE || (open && block / blocks == last / blocks);
        segment[l] = saves ? MS_NONE : block / blocks;
    }
    return ms_segmentplan_write(chain, &(ms_segmentplan){.segment = segment},
                                arena, plan, fault);
}

ms_err ms_segmentplan_place(const ms_policy_context *context, bool early_stop,
                            ms_program *program, ms_fault *fault)
{
    ms_arena *arena = context->arena;
    ms_segmentplan how = {0};
    ms_chainparts parts;
    MS_TRY(ms_chainparts_find(context, &parts, fault));
    MS_TRY(read_values(context, &parts, &how, fault));
    ms_chain_plan *plans = ms_arena_take(arena, parts.n, sizeof *plans);
    if (plans == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < parts.n; k++) {
        MS_TRY(cut_part(context, &parts, k, &how, fault));
        MS_TRY(ms_segmentplan_write(&parts.of[k].chain, &how, arena, &plans[k],
                                    fault));
    }
    return ms_chaincalls_write(context,
                               &(ms_chaincalls){.parts = &parts,
                                                .plans = plans,
                                                .early_stop = early_stop},
                               arena, program, fault);
}
