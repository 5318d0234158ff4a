/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step as a trace of allocations in text form.
 *
 * A free that other streams hold up is told as PyTorch sees it: each of them
 * has one more piece of work when the block is freed, and has finished it, and
 * all before it, when an allocation finds the free complete. */

#include "plots/plots.h"
#include "sim/measure/requests.h"
#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "sim/timeline.h"

/* Of a stream: pieces of work it was given, those that it has finished. */
typedef struct work {
    uint64_t given, done;
} work;

typedef struct allocations {
    const ms_export *of;
    const ms_plan *plan;
    const ms_request *list;
    uint32_t n, at;
    work works[MS_N_STREAMS];
    uint64_t *pieces; /* per row and stream: which piece holds it up; NULL:
                         no free waits */
    ms_text text;
} allocations;

static void put_numbers(ms_text *text, char kind, const uint64_t *numbers,
                        uint32_t n)
{
    ms_text_put(text, &kind, 1);
    for (uint32_t i = 0; i < n; i++) {
        ms_text_put(text, " ", 1);
        ms_text_u64(text, numbers[i]);
    }
    ms_text_put(text, "\n", 1);
}

static uint64_t *piece_of(const allocations *a, uint32_t row, uint32_t stream)
{
    return &a->pieces[(size_t)row * MS_N_STREAMS + stream];
}

static void put_uses(allocations *a, uint32_t row)
{
    ms_streams streams = ms_active_foreign(a->plan, &a->plan->row[row]);
    for (uint32_t s = 0; s < MS_N_STREAMS; s++) {
        if (!(streams & 1u << s))
            continue;
        put_numbers(&a->text, 'w', (const uint64_t[]){s}, 1);
        put_numbers(&a->text, 'r', (const uint64_t[]){row, s}, 2);
        *piece_of(a, row, s) = ++a->works[s].given;
    }
}

static void put_passed(allocations *a, uint32_t row)
{
    ms_streams streams = ms_active_foreign(a->plan, &a->plan->row[row]);
    for (uint32_t s = 0; s < MS_N_STREAMS; s++) {
        uint64_t piece = *piece_of(a, row, s);
        if (!(streams & 1u << s) || piece <= a->works[s].done)
            continue;
        put_numbers(&a->text, 'c',
                    (const uint64_t[]){s, piece - a->works[s].done}, 2);
        a->works[s].done = piece;
    }
}

static void put_next(allocations *a)
{
    const ms_request *request = &a->list[a->at++];
    const ms_row *row = &a->plan->row[request->row];
    uint64_t numbers[] = {request->row, ms_active_asked(a->plan, row),
                          ms_active_memory(a->plan, row)};
    switch (request->kind) {
    case MS_REQUEST_ALLOC:
        put_numbers(&a->text, 'a', numbers, numbers[2] > 0 ? 3 : 2);
        break;
    case MS_REQUEST_FREE_LATER:
        put_uses(a, request->row);
        put_numbers(&a->text, 'f', numbers, 1);
        break;
    case MS_REQUEST_COMPLETED:
        put_passed(a, request->row);
        break;
    default:
        put_numbers(&a->text, 'f', numbers, 1);
        break;
    }
}

/* A name must not end its line. */
static void put_words(ms_text *text, const char *label, const char *words)
{
    ms_text_add(text, "# %s ", label);
    ms_text_json(text, words);
    ms_text_put(text, "\n", 1);
}

/* The reader takes a request over the device's memory for a mistake. */
static bool holds_each(const allocations *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (ms_active_asked(a->plan, &a->plan->row[a->list[i].row]) >
            a->of->capacity_bytes)
            return false;
    return true;
}

static void put_head(allocations *a)
{
    const ms_report_names *names = a->of->names;
    ms_text *text = &a->text;
    put_words(text, "memsim", MS_VERSION);
    put_words(text, "model", names->model);
    put_words(text, "device", names->device);
    put_words(text, "policy", names->policy);
    const ms_pooled *pooled = a->of->line->pooled;
    ms_torch_policy policy = MS_TORCH_DOWN;
    if (pooled != NULL)
        policy = pooled->setup.torch.policy;
    ms_text_add(text, "# rank %u\n# va %s\n", a->of->rank,
                ms_torch_policies[policy]);
    if (pooled != NULL && pooled->setup.heap.kind == MS_POOL_TORCH)
        ms_text_add(text, "# version %s\n",
                    ms_torchconf_versions[pooled->setup.torch.version]);
    if (a->of->conf != NULL && a->of->conf[0] != '\0')
        ms_text_add(text, "# conf %s\n", a->of->conf);
    uint64_t total_bytes = a->of->capacity_bytes;
    uint64_t base_bytes = a->of->context_bytes;
    if (pooled != NULL) { /* before what a fraction leaves */
        total_bytes = pooled->setup.torch.total_bytes;
        base_bytes = pooled->setup.torch.base_bytes;
    }
    if (holds_each(a)) {
        ms_text_add(text, "# total_bytes ");
        ms_text_u64(text, total_bytes);
        ms_text_add(text, "\n# base_used ");
        ms_text_u64(text, base_bytes);
        ms_text_put(text, "\n", 1);
    }
    if (pooled != NULL && pooled->setup.fraction > 0)
        ms_text_add(text, "m %.17g\n", pooled->setup.fraction);
}

static ms_err put_more(void *of, bool *more)
{
    allocations *a = of;
    if (a->text.bytes == NULL)
        put_head(a);
    if (a->at < a->n)
        put_next(a);
    *more = a->at < a->n;
    return MS_OK;
}

ms_err ms_allocations_write(const ms_export *of, const char *path,
                            ms_arena *arena, ms_fault *fault)
{
    ms_request *list;
    bool waits = false;
    allocations a = {
        .of = of, .plan = of->line->plan, .text = {.arena = arena}};
    MS_TRY(ms_requests_list(of->line, of->machine, of->rank, arena, &list, &a.n,
                            fault));
    a.list = list;
    for (uint32_t i = 0; i < a.n; i++)
        waits = waits || list[i].kind == MS_REQUEST_FREE_LATER;
    if (waits) {
        a.pieces = ms_arena_take(arena, (size_t)a.plan->n_rows * MS_N_STREAMS,
                                 sizeof *a.pieces);
        if (a.pieces == NULL)
            return ms_fail_nomem(fault);
    }
    return ms_output_text(path, put_more, &a, &a.text, fault);
}
