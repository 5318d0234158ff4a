/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swapwrite.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdlib.h>
#include <string.h>

/* What to add between two calls: copies out end what was before, then what is
 * away is freed, then copies in. */
enum { OUT, FREE, IN, N_KINDS };

typedef struct entry {
    uint32_t call; /* before this one */
    uint32_t kind, like;
    uint64_t order_ns;
    uint32_t storage;
} entry;

typedef struct writer {
    const ms_swapplan *plan;
    ms_program *program;
    ms_arena *arena;
    ms_fault *fault;
    uint32_t n_entries, at;
    entry *entries;
    uint32_t *list; /* room for a set */
    uint8_t *gone;  /* per storage, of the micro-batch under way */
} writer;

/* ---- moves and waits ----------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = compare(x->call, y->call);
    order = order != 0 ? order : compare(x->kind, y->kind);
    order = order != 0 ? order : compare(x->order_ns, y->order_ns);
    return order != 0 ? order : compare(x->storage, y->storage);
}

static ms_err list_entries(writer *w)
{
    const ms_profile *profile = w->plan->profile;
    w->entries = ms_arena_take_raw(w->arena, (size_t)profile->n_tensors * 3,
                                   sizeof *w->entries);
    if (w->entries == NULL)
        return ms_fail_nomem(w->fault);
    for (uint32_t i = 0; i < profile->n_tensors; i++) {
        const ms_profile_tensor *t = &profile->tensors[i];
        const ms_swapplan_choice *choice = &w->plan->choice[i];
        if (choice->place != MS_HOST)
            continue;
        w->entries[w->n_entries++] =
            (entry){t->out_call + 1, OUT, t->out_call, t->out_ns, t->storage};
        w->entries[w->n_entries++] =
            (entry){choice->free_call, FREE, t->out_call, 0, t->storage};
        w->entries[w->n_entries++] =
            (entry){choice->in_call, IN, t->back_call, t->back_ns, t->storage};
    }
    qsort(w->entries, w->n_entries, sizeof *w->entries, by_place);
    return MS_OK;
}

/* One call for the entries from w->at on that belong together. */
static ms_err write_entries(writer *w, uint32_t call)
{
    static const ms_move_call out = {.to = MS_HOST, .later = true};
    static const ms_move_call in = {.to = MS_HERE};
    const ms_call *calls = w->plan->swap->from->calls;
    while (w->at < w->n_entries && w->entries[w->at].call == call) {
        entry first = w->entries[w->at];
        const ms_call *like = &calls[first.like];
        uint32_t n = 0;
        for (; w->at < w->n_entries; w->at++) {
            const entry *e = &w->entries[w->at];
            if (e->call != call || e->kind != first.kind ||
                calls[e->like].micro_batch != like->micro_batch)
                break;
            w->list[n++] = e->storage;
        }
        ms_call made = first.kind == FREE
                           ? ms_program_wait(like, MS_NOTHING)
                           : ms_program_move(like, MS_NOTHING,
                                             first.kind == OUT ? out : in);
        ms_swapdisk_aim(w->plan->swap, &made);
        MS_TRY(ms_program_add_set(w->program, w->list, n, w->arena, &made.set,
                                  w->fault));
        MS_TRY(ms_program_add(w->program, made, w->arena, w->fault));
    }
    return MS_OK;
}

/* ---- what is made again -------------------------------------------------- */

static bool any_gone(const writer *w, const ms_call *call)
{
    const ms_graph *graph = w->plan->swap->context->graph;
    uint32_t end = graph->out_at[graph->forward_at[call->unit + 1]];
    for (uint32_t i = graph->out_at[graph->forward_at[call->unit]]; i < end;
         i++)
        if (w->gone[graph->out[i]])
            return true;
    return false;
}

/* The keep set of a forward without those. */
static ms_err keep_less(writer *w, ms_call *call)
{
    const ms_graph *graph = w->plan->swap->context->graph;
    const ms_program *from = w->plan->swap->from;
    uint32_t n = 0, first, end;
    if (call->run.keep == MS_NOTHING || !any_gone(w, call))
        return MS_OK;
    bool all = call->run.keep == MS_ALL;
    first = all ? graph->out_at[graph->forward_at[call->unit]]
                : from->set_at[call->run.keep];
    end = all ? graph->out_at[graph->forward_at[call->unit + 1]]
              : from->set_at[call->run.keep + 1];
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = all ? graph->out[i] : from->set_item[i];
        if (!w->gone[s] && graph->storage_saved_end[s] != MS_NONE)
            w->list[n++] = s;
    }
    return ms_program_add_set(w->program, w->list, n, w->arena, &call->run.keep,
                              w->fault);
}

static void mark_gone(writer *w, uint32_t micro_batch)
{
    const ms_profile *profile = w->plan->profile;
    memset(w->gone, 0, w->plan->swap->context->graph->n_storages);
    for (uint32_t i = 0; i < profile->n_tensors; i++)
        if (profile->tensors[i].micro_batch == micro_batch &&
            w->plan->choice[i].place == MS_GONE)
            w->gone[profile->tensors[i].storage] = 1;
}

/* ---- the program --------------------------------------------------------- */

static ms_err write_calls(writer *w)
{
    const ms_program *from = w->plan->swap->from;
    uint32_t micro_batch = MS_NONE;
    for (uint32_t c = 0; c < from->n_calls; c++) {
        ms_call call = from->calls[c];
        MS_TRY(write_entries(w, c));
        if (ms_swap_is_forward(&call)) {
            if (call.micro_batch != micro_batch)
                mark_gone(w, call.micro_batch);
            micro_batch = call.micro_batch;
            MS_TRY(keep_less(w, &call));
        }
        MS_TRY(ms_program_add(w->program, call, w->arena, w->fault));
    }
    return MS_OK;
}

ms_err ms_swapwrite_program(const ms_swapplan *plan, ms_program *program)
{
    const ms_graph *graph = plan->swap->context->graph;
    size_t most = (size_t)graph->n_storages + plan->profile->n_tensors;
    writer w = {.plan = plan,
                .program = program,
                .arena = plan->programs,
                .fault = plan->swap->fault};
    MS_TRY(ms_program_fork(plan->swap->from, w.arena, program, w.fault));
    w.list = ms_arena_take_raw(w.arena, most, sizeof *w.list);
    w.gone = ms_arena_take(w.arena, graph->n_storages, 1);
    if (w.list == NULL || w.gone == NULL)
        return ms_fail_nomem(w.fault);
    MS_TRY(list_entries(&w));
    return write_calls(&w);
}

ms_err ms_swapwrite_copy(const ms_program *from, ms_arena *arena,
                         ms_program *program, ms_fault *fault)
{
    MS_TRY(ms_program_fork(from, arena, program, fault));
    for (uint32_t c = 0; c < from->n_calls; c++)
        MS_TRY(ms_program_add(program, from->calls[c], arena, fault));
    return MS_OK;
}
