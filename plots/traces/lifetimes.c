/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes and lifetimes, for planners. */

#include "plots/plots.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/timeline.h"

typedef struct lifetimes {
    const ms_plan *plan;
    const ms_request *list;
    uint32_t n, at;
    uint32_t *upper;        /* per request: when what it allocates ends */
    uint32_t clock, n_rows; /* instants, lines so far */
    ms_text text;
} lifetimes;

static bool is_instant(const ms_request *request)
{
    return request->kind != MS_REQUEST_FREE_LATER;
}

/* Goes from the last request to the first, so that the end of an allocation is
 * the one of its row that was met last. */
static void find_ends(lifetimes *l, uint32_t *next_end)
{
    uint32_t clock = 0;
    for (uint32_t i = 0; i < l->n; i++)
        clock += is_instant(&l->list[i]);
    for (uint32_t row = 0; row < l->plan->n_rows; row++)
        next_end[row] = clock;
    for (uint32_t i = l->n; i-- > 0;) {
        uint32_t row = l->list[i].row;
        clock -= is_instant(&l->list[i]);
        if (l->list[i].kind == MS_REQUEST_ALLOC)
            l->upper[i] = next_end[row];
        else if (is_instant(&l->list[i]))
            next_end[row] = clock;
    }
}

static void put_next(lifetimes *l)
{
    uint32_t i = l->at++;
    const ms_request *request = &l->list[i];
    uint64_t numbers[] = {
        l->n_rows, l->clock, l->upper[i],
        ms_active_asked(l->plan, &l->plan->row[request->row])};
    l->clock += is_instant(request);
    if (request->kind != MS_REQUEST_ALLOC)
        return;
    l->n_rows++;
    for (int k = 0; k < 4; k++) {
        ms_text_u64(&l->text, numbers[k]);
        ms_text_put(&l->text, k < 3 ? "," : "\n", 1);
    }
}

static ms_err put_more(void *of, bool *more)
{
    lifetimes *l = of;
    if (l->text.bytes == NULL)
        ms_text_add(&l->text, "id,lower,upper,size\n");
    if (l->at < l->n)
        put_next(l);
    *more = l->at < l->n;
    return MS_OK;
}

ms_err ms_lifetimes_write(const ms_export *of, const char *path,
                          ms_arena *arena, ms_fault *fault)
{
    ms_request *list;
    lifetimes l = {.plan = of->line->plan, .text = {.arena = arena}};
    MS_TRY(ms_requests_list(of->line, of->machine, of->rank, arena, &list, &l.n,
                            fault));
    l.list = list;
    l.upper = ms_arena_take_raw(arena, l.n, sizeof *l.upper);
    uint32_t *ends = ms_arena_take_raw(arena, l.plan->n_rows, sizeof *ends);
    if (l.upper == NULL || ends == NULL)
        return ms_fail_nomem(fault);
    find_ends(&l, ends);
    return ms_output_text(path, put_more, &l, &l.text, fault);
}
