/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pools/steps/planned.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/pools/place/placement.h"
#include "sim/pools/steps/pooled.h"
#include "sim/timeline.h"

#include <stdlib.h>

#define QUANTUM UINT64_C(512) /* as PyTorch's blocks */

/* One rank's step.  buffers[i] is of row rows[i]; time is the number of the
 * request, from 1. */
typedef struct planned {
    const ms_timeline *line;
    const ms_request *list;
    uint32_t n_list;
    ms_placement_buffer *buffers;
    uint32_t *rows, n;
    uint32_t *of_row; /* row to buffer, MS_NONE: not live */
    uint64_t *offsets;
    ms_pooled *out;
    ms_pooled_rank *rank;
    ms_arena *trial;
    ms_fault *fault;
} planned;

static uint64_t rounded(const planned *p, uint32_t row)
{
    const ms_plan *plan = p->line->plan;
    uint64_t bytes = ms_active_asked(plan, &plan->row[row]);
    return (bytes + QUANTUM - 1) / QUANTUM * QUANTUM;
}

/* ---- lives --------------------------------------------------------------- */

static ms_err take_tables(planned *p)
{
    uint32_t n_rows = p->line->plan->n_rows;
    p->buffers = ms_arena_take_raw(p->trial, p->n_list, sizeof *p->buffers);
    p->rows = ms_arena_take_raw(p->trial, p->n_list, sizeof *p->rows);
    p->offsets = ms_arena_take_raw(p->trial, p->n_list, sizeof *p->offsets);
    p->of_row = ms_arena_take_raw(p->trial, n_rows, sizeof *p->of_row);
    if (!p->buffers || !p->rows || !p->offsets || !p->of_row)
        return ms_fail_nomem(p->fault);
    for (uint32_t row = 0; row < n_rows; row++)
        p->of_row[row] = MS_NONE;
    return MS_OK;
}

/* A free that other streams hold up ends the life only when it is seen. */
static void list_lives(planned *p)
{
    for (uint32_t i = 0; i < p->n_list; i++) {
        uint32_t row = p->list[i].row, *at = &p->of_row[row];
        if (p->list[i].kind == MS_REQUEST_ALLOC) {
            *at = p->n;
            p->rows[p->n] = row;
            p->buffers[p->n++] = (ms_placement_buffer){
                i + 1, p->n_list + UINT64_C(1), rounded(p, row), 1};
        } else if (p->list[i].kind != MS_REQUEST_FREE_LATER) {
            p->buffers[*at].upper = i + 1;
        }
    }
}

/* ---- levels -------------------------------------------------------------- */

typedef struct levels {
    uint64_t allocated, active, requested;
} levels;

static void change(const planned *p, const ms_request *request, levels *now)
{
    uint64_t bytes = rounded(p, request->row);
    const ms_plan *plan = p->line->plan;
    uint64_t asked = ms_active_asked(plan, &plan->row[request->row]);
    uint8_t kind = request->kind;
    if (kind == MS_REQUEST_ALLOC) {
        now->allocated += bytes;
        now->active += bytes;
        now->requested += asked;
        return;
    }
    now->allocated -= kind != MS_REQUEST_COMPLETED ? bytes : 0;
    now->active -= kind != MS_REQUEST_FREE_LATER ? bytes : 0;
    now->requested -= kind != MS_REQUEST_FREE_LATER ? asked : 0;
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns the request after which most is allocated. */
static uint32_t fold_levels(planned *p)
{
    ms_pooled_rank *rank = p->rank;
    levels now = {0};
    uint32_t peak = 0;
    for (uint32_t i = 0; i < p->n_list; i++) {
        change(p, &p->list[i], &now);
        rank->active_peak_bytes = more(rank->active_peak_bytes, now.active);
        rank->requested_peak_bytes =
            more(rank->requested_peak_bytes, now.requested);
        if (now.allocated <= rank->allocated_peak_bytes)
            continue;
        rank->allocated_peak_bytes = now.allocated;
        rank->at_peak = (struct ms_pooled_moment){
            .op = p->line->plan->row[p->list[i].row].op,
            .reserved_bytes = rank->reserved_peak_bytes,
            .allocated_bytes = now.allocated,
            .idle_bytes = rank->reserved_peak_bytes - now.active};
        peak = i;
    }
    rank->allocated_bytes = now.allocated;
    return peak;
}

/* ---- the gaps at the peak ------------------------------------------------ */

typedef struct place {
    uint64_t offset, end;
} place;

static int by_offset(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->offset, y = ((const place *)b)->offset;
    return (x > y) - (x < y);
}

static ms_err find_largest_gap(planned *p, uint32_t peak)
{
    uint64_t *largest = &p->rank->at_peak.largest_idle_bytes, end = 0;
    uint32_t n = 0;
    place *live = ms_arena_take_raw(p->trial, p->n + 1, sizeof *live);
    if (live == NULL)
        return ms_fail_nomem(p->fault);
    for (uint32_t b = 0; b < p->n; b++)
        if (p->buffers[b].lower <= peak + 1 && p->buffers[b].upper > peak + 1)
            live[n++] =
                (place){p->offsets[b], p->offsets[b] + p->buffers[b].bytes};
    qsort(live, n, sizeof *live, by_offset);
    live[n] = (place){p->rank->reserved_peak_bytes, 0};
    for (uint32_t i = 0; i <= n; i++) {
        if (live[i].offset - end > *largest)
            *largest = live[i].offset - end;
        end = live[i].end;
    }
    return MS_OK;
}

/* ---- where it does not fit ----------------------------------------------- */

/* The first request, in host issue order, whose place is above the end. */
static void find_lack(planned *p, uint64_t most_bytes)
{
    const ms_pooled_setup *setup = &p->out->setup;
    levels now = {0};
    for (uint32_t i = 0, b = 0; i < p->n_list; i++) {
        uint32_t row = p->list[i].row;
        if (p->list[i].kind == MS_REQUEST_ALLOC &&
            p->offsets[b] + p->buffers[b].bytes > most_bytes) {
            p->out->oom = true;
            p->out->lack = (ms_pooled_oom){
                .step = 1,
                .rank = p->line->plan->op[p->line->plan->row[row].op].rank,
                .op = p->line->plan->row[row].op,
                .requested_bytes = p->line->plan->row[row].bytes,
                .total_bytes = setup->torch.total_bytes,
                .free_bytes =
                    setup->torch.total_bytes - setup->torch.base_bytes,
                .allocated_bytes = now.allocated,
                .reserved_bytes = p->rank->reserved_peak_bytes,
                .allowed_bytes = UINT64_MAX};
            return;
        }
        b += p->list[i].kind == MS_REQUEST_ALLOC;
        change(p, &p->list[i], &now);
    }
}

/* ---- a rank -------------------------------------------------------------- */

static ms_err place_all(planned *p)
{
    uint32_t from = p->out->setup.heap.order, to = from + 1;
    uint64_t *least = &p->rank->reserved_peak_bytes;
    if (from == MS_PLACEMENT_N_RULES) {
        from = 0;
        to = MS_PLACEMENT_N_RULES;
    }
    for (uint32_t rule = from; rule < to; rule++) {
        uint64_t height,
            *offsets = ms_arena_take(p->trial, p->n, sizeof *offsets);
        if (offsets == NULL)
            return ms_fail_nomem(p->fault);
        MS_TRY(ms_placement_greedy(p->buffers, p->n, (ms_placement_rule)rule,
                                   offsets, &height, p->fault));
        if (rule > from && height >= *least)
            continue;
        *least = height;
        p->offsets = offsets;
    }
    return MS_OK;
}

static void tell(ms_addressmap *map, ms_torch_action action, uint64_t address,
                 uint64_t bytes)
{
    ms_torch_entry entry = {
        .address = address, .bytes = bytes, .action = action};
    ms_addressmap_log(map, &entry);
}

/* Records where the rows lie, if maps are asked for. */
static ms_err tell_places(const planned *p, uint16_t rank, ms_arena *arena)
{
    ms_addressmap *map = p->out->maps ? &p->out->maps[rank] : NULL;
    if (map == NULL)
        return MS_OK;
    MS_TRY(ms_addressmap_start(map, NULL, arena, p->fault));
    tell(map, MS_TORCH_SEGMENT_ALLOC, 0, p->rank->reserved_peak_bytes);
    for (uint32_t i = 0; i < p->n_list; i++) {
        const ms_request *request = &p->list[i];
        uint64_t offset = p->offsets[p->of_row[request->row]];
        map->now = p->line->step_ns > 0 ? request->t_ns : i;
        if (request->kind == MS_REQUEST_ALLOC)
            ms_addressmap_take(map, offset, rounded(p, request->row),
                               request->row);
        if (request->kind == MS_REQUEST_FREE ||
            request->kind == MS_REQUEST_FREE_LATER)
            tell(map, MS_TORCH_FREE_REQUESTED, offset, 0);
        if (request->kind == MS_REQUEST_FREE ||
            request->kind == MS_REQUEST_COMPLETED)
            tell(map, MS_TORCH_FREE_COMPLETED, offset, 0);
    }
    return ms_addressmap_close(map, p->fault);
}

static ms_err plan_rank(planned *p, const ms_machine *machine, uint16_t rank,
                        ms_arena *arena)
{
    const ms_torch_setup *device = &p->out->setup.torch;
    ms_request *list;
    MS_TRY(ms_requests_list(p->line, machine, rank, p->trial, &list, &p->n_list,
                            p->fault));
    p->list = list;
    MS_TRY(take_tables(p));
    list_lives(p);
    if (p->n == 0)
        return MS_OK;
    MS_TRY(place_all(p));
    p->rank->segments = 1;
    p->rank->requests = p->n;
    MS_TRY(find_largest_gap(p, fold_levels(p)));
    uint64_t most_bytes = device->total_bytes - device->base_bytes;
    if (!p->out->oom && p->rank->reserved_peak_bytes > most_bytes)
        find_lack(p, most_bytes);
    return tell_places(p, rank, arena);
}

/* The buffer is there from the first request of the rank on. */
static ms_err note_raises(ms_timeline *line, const ms_pooled *out,
                          ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    line->n_raises = 0;
    line->raises =
        ms_arena_take_raw(arena, plan->n_ranks, sizeof *line->raises);
    if (line->raises == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        uint32_t op = plan->row[r].op, k = 0;
        uint16_t rank = plan->op[op].rank;
        while (k < line->n_raises && plan->op[line->raises[k].op].rank != rank)
            k++;
        if (k == line->n_raises && plan->row[r].pool == MS_DEVICE_POOL &&
            plan->row[r].bytes > 0)
            line->raises[line->n_raises++] =
                (struct ms_raise){op, out->ranks[rank].reserved_peak_bytes};
    }
    return MS_OK;
}

ms_err ms_planned_run(const ms_machine *machine, ms_arena *arena,
                      ms_timeline *line, ms_pooled *out, ms_fault *fault)
{
    ms_arena trial = {0};
    ms_err err = MS_OK;
    for (uint16_t rank = 0; rank < line->plan->n_ranks && err == MS_OK;
         rank++) {
        planned p = {.line = line,
                     .out = out,
                     .rank = &out->ranks[rank],
                     .trial = &trial,
                     .fault = fault};
        err = plan_rank(&p, machine, rank, arena);
        ms_arena_reset(&trial);
    }
    ms_arena_free(&trial);
    if (err != MS_OK)
        return err;
    return note_raises(line, out, arena, fault);
}
