/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/swap/swapcache.h"
#include "policies/common/least.h"
#include "policies/common/levels.h"
#include "policies/common/profile.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdio.h>
#include <string.h>

/* A tensor of one micro-batch between two of its uses. */
typedef struct tensor {
    uint32_t next; /* the call of the next use; MS_NONE: none */
    uint32_t used; /* of the last one so far */
    bool here;     /* made, and not away */
    uint32_t slot; /* of the cache, in the order in which they came */
} tensor;

typedef struct walker {
    ms_swap *swap;
    const ms_swapcache *cache;
    const ms_graph *graph;
    ms_profile profile;
    uint32_t *next;   /* per use of the profile: the call of the one behind */
    tensor *tensors;  /* per storage */
    uint32_t n_known; /* storages in the cache's hands, each once */
    uint32_t *known;
    uint32_t *list; /* room for a set */
    uint64_t budget_bytes, least_bytes;
    /* Of each call if what is away comes back when it is used, no earlier. */
    ms_levels levels;
    ms_least recent; /* per slot that may leave: its last use */
    ms_least away;   /* per slot that is away: its next use */
} walker;

static uint64_t bytes_of(const walker *w, uint32_t storage)
{
    return w->graph->storage_bytes[storage];
}

/* ---- uses ---------------------------------------------------------------- */

static ms_err take_columns(walker *w)
{
    ms_arena *arena = w->swap->arena;
    size_t n = w->graph->n_storages;
    size_t uses = w->profile.use_at[w->profile.n_calls];
    w->next = ms_arena_take_raw(arena, uses, sizeof *w->next);
    w->tensors = ms_arena_take(arena, n, sizeof *w->tensors);
    w->known = ms_arena_take_raw(arena, n, sizeof *w->known);
    w->list = ms_arena_take_raw(arena, n, sizeof *w->list);
    if (w->next == NULL || w->tensors == NULL || w->known == NULL ||
        w->list == NULL)
        return ms_fail_nomem(w->swap->fault);
    for (uint32_t s = 0; s < n; s++)
        w->tensors[s].next = MS_NONE;
    return MS_OK;
}

/* A use's next one is in the same micro-batch. */
static void find_next(walker *w)
{
    const ms_call *calls = w->cache->program->calls;
    const ms_profile *profile = &w->profile;
    for (uint32_t c = profile->n_calls; c-- > 0;)
        for (uint32_t i = profile->use_at[c]; i < profile->use_at[c + 1]; i++) {
            tensor *t = &w->tensors[profile->use[i]];
            bool same = t->next != MS_NONE &&
                        calls[t->next].micro_batch == calls[c].micro_batch;
            w->next[i] = same ? t->next : MS_NONE;
            t->next = c;
        }
}

/* The least peak: each is away whenever no call uses it. */
static ms_err find_least(walker *w)
{
    const ms_profile *profile = &w->profile;
    uint64_t away = 0;
    int64_t *change =
        ms_arena_take(w->swap->arena, profile->n_calls + 1, sizeof *change);
    if (change == NULL)
        return ms_fail_nomem(w->swap->fault);
    for (uint32_t c = 0; c < profile->n_calls; c++) {
        for (uint32_t i = profile->use_at[c]; i < profile->use_at[c + 1]; i++) {
            int64_t bytes = (int64_t)bytes_of(w, profile->use[i]);
            if (!w->cache->cached[profile->use[i]] || w->next[i] == MS_NONE)
                continue;
            change[c + 1] += bytes;
            change[w->next[i]] -= bytes;
        }
        away += (uint64_t)change[c];
        uint64_t level = profile->level_bytes[c] - away;
        w->least_bytes = level > w->least_bytes ? level : w->least_bytes;
    }
    return MS_OK;
}

static ms_err check_budget(const walker *w)
{
    char hint[64], budget[MS_SIZE_COUNT], least[MS_SIZE_COUNT];
    if (w->budget_bytes >= w->least_bytes)
        return MS_OK;
    ms_size_count(w->budget_bytes, budget);
    ms_size_count(w->least_bytes, least);
    snprintf(hint, sizeof hint, "give it budget=%llu or more",
             (unsigned long long)w->least_bytes);
    return ms_fail(w->swap->fault, MS_EINFEASIBLE, w->cache->name, hint,
                   "no plan fits in %s bytes: with every checkpoint away until "
                   "it is used the peak is %s",
                   budget, least);
}

/* ---- the cache ----------------------------------------------------------- */

static ms_err open_cache(walker *w)
{
    ms_arena *arena = w->swap->arena;
    ms_fault *fault = w->swap->fault;
    uint32_t n = w->graph->n_storages;
    MS_TRY(ms_levels_open(&w->levels, w->profile.level_bytes,
                          w->profile.n_calls, arena, fault));
    MS_TRY(ms_least_open(&w->recent, n, arena, fault));
    return ms_least_open(&w->away, n, arena, fault);
}

/* Is the storage away, to come back? */
static bool is_away(const tensor *t)
{
    return !t->here && t->next != MS_NONE;
}

/* The storage has this state from now on, and `used` of its row. */
static void turn(walker *w, uint32_t storage, bool here, uint32_t next)
{
    tensor *t = &w->tensors[storage];
    int64_t bytes = (int64_t)bytes_of(w, storage);
    if (is_away(t))
        ms_levels_add(&w->levels, 0, t->next, bytes);
    t->here = here;
    t->next = next;
    if (is_away(t))
        ms_levels_add(&w->levels, 0, t->next, -bytes);
    ms_least_set(&w->away, t->slot, is_away(t) ? next : MS_NONE);
    ms_least_set(&w->recent, t->slot,
                 here && next != MS_NONE ? t->used : MS_NONE);
}

/* What the call uses does not leave until it has run. */
static void lock(walker *w, uint32_t call)
{
    const ms_profile *profile = &w->profile;
    for (uint32_t i = profile->use_at[call]; i < profile->use_at[call + 1]; i++)
        if (w->cache->cached[profile->use[i]])
            ms_least_set(&w->recent, w->tensors[profile->use[i]].slot, MS_NONE);
}

static bool is_over(const walker *w, uint32_t first, uint32_t end,
                    uint64_t bytes)
{
    int64_t most = ms_levels_most(&w->levels, first, end) + (int64_t)bytes;
    return most > 0 && (uint64_t)most > w->budget_bytes;
}

static ms_err add_set(walker *w, uint32_t n, uint32_t *set)
{
    ms_swap *swap = w->swap;
    return ms_program_add_set(swap->program, w->list, n, swap->arena, set,
                              swap->fault);
}

static ms_err make_room(walker *w, uint32_t call)
{
    uint32_t n = 0, set = MS_NOTHING, slot;
    lock(w, call);
    while (is_over(w, call, call + 1, 0) &&
           (slot = ms_least_slot(&w->recent)) != MS_NONE) {
        uint32_t s = w->known[slot];
        turn(w, s, false, w->tensors[s].next);
        w->list[n++] = s;
    }
    const ms_call *like = &w->cache->program->calls[call];
    MS_TRY(add_set(w, n, &set));
    MS_TRY(ms_swapcalls_move(w->swap, like, set,
                             (ms_move_call){.to = MS_HOST, .later = true}));
    return ms_swapcalls_wait(w->swap, like, set);
}

/* Calls that run a fetching unit's backward. */
static bool fetches_at(const walker *w, uint32_t call)
{
    const ms_call *it = &w->cache->program->calls[call];
    return ms_swap_is_backward(it) && w->cache->fetches[it->unit];
}

/* What is used until the end of the next such backward. */
static uint32_t fetch_until(const walker *w, uint32_t call)
{
    uint32_t last = call + 1;
    while (last < w->profile.n_calls && !fetches_at(w, last))
        last++;
    return last;
}

/* Soonest needed first; MS_NONE: nothing is needed until then, or there is no
 * room for it. */
static uint32_t next_to_fetch(const walker *w, uint32_t call, uint32_t until)
{
    uint32_t slot = ms_least_slot(&w->away);
    if (slot == MS_NONE)
        return MS_NONE;
    uint32_t s = w->known[slot], next = w->tensors[s].next;
    bool fits = next <= until && !is_over(w, call, next, bytes_of(w, s));
    return fits ? s : MS_NONE;
}

/* Fetches what the call uses; a fetching backward also what is used next.
 * What was made room for comes after what leaves. */
static ms_err fetch(walker *w, uint32_t call)
{
    uint32_t n = 0, set = MS_NOTHING, s;
    const ms_profile *profile = &w->profile;
    for (uint32_t i = profile->use_at[call]; i < profile->use_at[call + 1];
         i++) {
        tensor *t = &w->tensors[profile->use[i]];
        if (!w->cache->cached[profile->use[i]])
            continue;
        if (!t->here && t->next == call)
            w->list[n++] = profile->use[i];
        t->used = call;
        turn(w, profile->use[i], true, w->next[i]);
    }
    uint32_t until = fetches_at(w, call) ? fetch_until(w, call) : call;
    while ((s = next_to_fetch(w, call, until)) != MS_NONE) {
        w->tensors[s].used = call;
        turn(w, s, true, w->tensors[s].next);
        w->list[n++] = s;
    }
    MS_TRY(add_set(w, n, &set));
    return ms_swapcalls_move(w->swap, &w->cache->program->calls[call], set,
                             (ms_move_call){.to = MS_HERE});
}

/* The first use of a storage in a micro-batch is the op that makes it. */
static void meet(walker *w, uint32_t call)
{
    const ms_profile *profile = &w->profile;
    for (uint32_t i = profile->use_at[call]; i < profile->use_at[call + 1];
         i++) {
        uint32_t s = profile->use[i];
        tensor *t = &w->tensors[s];
        if (!w->cache->cached[s] || t->next == call)
            continue;
        if (t->used == MS_NONE) {
            t->slot = w->n_known;
            w->known[w->n_known++] = s;
        }
        t->used = call;
        turn(w, s, true, call);
    }
}

static ms_err walk(walker *w)
{
    const ms_program *from = w->cache->program;
    for (uint32_t s = 0; s < w->graph->n_storages; s++)
        w->tensors[s] = (tensor){.next = MS_NONE, .used = MS_NONE};
    for (uint32_t c = 0; c < from->n_calls; c++) {
        meet(w, c);
        MS_TRY(make_room(w, c));
        MS_TRY(fetch(w, c));
        MS_TRY(ms_program_add(w->swap->program, from->calls[c], w->swap->arena,
                              w->swap->fault));
    }
    return MS_OK;
}

/* Booked by device time a copy takes memory until it has ended. */
static ms_err check_peak(const walker *w)
{
    char hint[64], budget[MS_SIZE_COUNT], peak[MS_SIZE_COUNT];
    uint64_t peak_bytes, step_ns;
    MS_TRY(ms_profile_measure(w->swap->context, w->swap->program, &peak_bytes,
                              &step_ns, w->swap->fault));
    if (peak_bytes <= w->budget_bytes)
        return MS_OK;
    ms_size_count(w->budget_bytes, budget);
    ms_size_count(peak_bytes, peak);
    snprintf(hint, sizeof hint, "give it budget=%llu or more",
             (unsigned long long)peak_bytes);
    return ms_fail(w->swap->fault, MS_EINFEASIBLE, w->cache->name, hint,
                   "no plan found fits in %s bytes: its peak is %s", budget,
                   peak);
}

ms_err ms_swapcache_write(ms_swap *swap, const ms_swapcache *cache)
{
    walker w = {.swap = swap, .cache = cache, .graph = swap->context->graph};
    MS_TRY(ms_profile_run(swap->context, cache->program,
                          (uint64_t)swap->values[MS_SWAP_MIN].number,
                          &w.profile, swap->fault));
    w.budget_bytes = ms_profile_budget(swap->context, cache->budget);
    MS_TRY(take_columns(&w));
    find_next(&w);
    MS_TRY(find_least(&w));
    MS_TRY(check_budget(&w));
    MS_TRY(open_cache(&w));
    MS_TRY(walk(&w));
    return check_peak(&w);
}
