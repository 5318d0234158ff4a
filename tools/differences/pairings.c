/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/differences/pairings.h"
#include "sim/names.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_BYTES 512u

/* An allocation among those to be paired. */
typedef struct entry {
    uint64_t key, bytes; /* of equal ones pairs are made */
    uint32_t from, life;
    uint8_t side;
} entry;

/* A name of either side, as it is compared. */
typedef struct name {
    const char *word;
    uint32_t site;
    uint8_t side;
} name;

typedef struct pairing {
    ms_side *sides; /* two of them */
    ms_arena *arena;
    ms_pairings *out;
    entry *entries;
    uint32_t n;
    uint32_t *name_of[2]; /* by site, the last one of what has none */
    const char **names;   /* by such a number */
    uint32_t n_names;
    uint32_t *partner[2]; /* by life, at the peaks; MS_NONE */
    uint32_t *in_step[2]; /* the same in the whole steps */
} pairing;

/* ---- names --------------------------------------------------------------- */

/* "layers.*.mlp.up:out, ..." or "forward (linear.py) < ..." */
static const char *plain(const pairing *p, int side, const char *word)
{
    bool layers = p->sides[side].tells_layers, done = false;
    ms_text text = {.arena = p->arena};
    ms_text_add(&text, "%s", "");
    for (const char *at = word; *at != '\0';) {
        size_t digits = strspn(at, "0123456789");
        bool begins = at > word && at[-1] == (layers ? '.' : ':');
        if (digits == 0 || !begins || done) {
            size_t n = digits > 0 ? digits : 1;
            ms_text_put(&text, at, n);
            at += n;
            continue;
        }
        if (layers)
            ms_text_put(&text, "*", 1);
        else if (at[digits] == ')')
            text.bytes[--text.length] = '\0'; /* the colon */
        else
            ms_text_put(&text, at, digits);
        done = layers;
        at += digits;
    }
    return text.failed ? NULL : text.bytes;
}

static int by_word(const void *a, const void *b)
{
    const name *x = a, *y = b;
    return strcmp(x->word, y->word);
}

static ms_err find_names(pairing *p, ms_fault *fault)
{
    uint32_t n = 0, most = p->sides[0].n_words + p->sides[1].n_words + 2u;
    name *all = ms_arena_take(p->arena, most, sizeof *all);
    p->names = ms_arena_take(p->arena, most, sizeof *p->names);
    if (all == NULL || p->names == NULL)
        return ms_fail_nomem(fault);
    for (int s = 0; s < 2; s++) {
        const ms_side *side = &p->sides[s];
        p->name_of[s] =
            ms_arena_take(p->arena, side->n_words + 1u, sizeof *p->name_of[s]);
        if (p->name_of[s] == NULL)
            return ms_fail_nomem(fault);
        for (uint32_t i = 0; i <= side->n_words; i++) {
            const char *word = i < side->n_words ? side->words[i] : "";
            all[n] = (name){plain(p, s, word), i, (uint8_t)s};
            if (all[n++].word == NULL)
                return ms_fail_nomem(fault);
        }
    }
    qsort(all, n, sizeof *all, by_word);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || by_word(&all[i - 1], &all[i]) != 0)
            p->names[p->n_names++] = all[i].word;
        p->name_of[all[i].side][all[i].site] = p->n_names - 1;
    }
    return MS_OK;
}

static uint32_t name_of(const pairing *p, int side, const ms_pagelife *life)
{
    uint32_t site = life->site == MS_NONE ? p->sides[side].n_words : life->site;
    return p->name_of[side][site];
}

/* ---- pairs --------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->side != y->side)
        return x->side < y->side ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

typedef enum way { BY_NAME, BY_PHASE, BY_BYTES } way;

static uint64_t key_of(const pairing *p, int s, const ms_pagelife *life, way by)
{
    if (by == BY_NAME)
        return (uint64_t)name_of(p, s, life) << 8 | life->category;
    return by == BY_PHASE ? ms_side_phase_of(&p->sides[s], life) : 0;
}

/* Those that are alive at the peak, or at some time of the step. */
static bool takes_part(const ms_side *side, const ms_pagelife *life,
                       bool at_peak)
{
    return at_peak ? ms_side_is_alive(life, side->peak_state)
                   : ms_side_is_of_step(side, life);
}

static void collect(pairing *p, uint32_t *const partner[2], bool at_peak,
                    way by)
{
    p->n = 0;
    for (int s = 0; s < 2; s++)
        for (uint32_t i = 0; i < p->sides[s].n; i++) {
            const ms_pagelife *life = &p->sides[s].lives[i];
            uint64_t units = (life->bytes + ROUND_BYTES - 1) / ROUND_BYTES;
            if (partner[s][i] != MS_NONE ||
                !takes_part(&p->sides[s], life, at_peak))
                continue;
            p->entries[p->n++] = (entry){key_of(p, s, life, by),
                                         by == BY_NAME ? life->bytes : units,
                                         life->from, i, (uint8_t)s};
        }
}

/* Pairs entries of equal key and bytes, the first of one side with the first of
 * the other; returns how many. */
static uint32_t zip(const pairing *p, uint32_t *const partner[2])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n;) {
        uint32_t middle = i, end, k;
        for (end = i; end < p->n && p->entries[end].key == p->entries[i].key &&
                      p->entries[end].bytes == p->entries[i].bytes;
             end++)
            middle += p->entries[end].side == 0;
        for (k = 0; i + k < middle && middle + k < end; k++) {
            uint32_t a = p->entries[i + k].life;
            uint32_t b = p->entries[middle + k].life;
            partner[0][a] = b;
            partner[1][b] = a;
        }
        n += k;
        i = end;
    }
    return n;
}

static uint32_t pair(pairing *p, uint32_t *const partner[2], bool at_peak)
{
    static const way ways[] = {BY_NAME, BY_PHASE, BY_BYTES};
    uint32_t n = 0;
    for (int i = p->out->by_name ? 0 : 1; i < (p->out->by_name ? 1 : 3); i++) {
        collect(p, partner, at_peak, ways[i]);
        if (p->n > 0)
            qsort(p->entries, p->n, sizeof *p->entries, by_key);
        n += zip(p, partner);
    }
    return n;
}

static ms_err take_room(pairing *p, ms_fault *fault)
{
    size_t all = (size_t)p->sides[0].n + p->sides[1].n + 1u;
    p->entries = ms_arena_take_raw(p->arena, all, sizeof *p->entries);
    for (int s = 0; s < 2; s++) {
        size_t n = p->sides[s].n + 1u;
        p->partner[s] = ms_arena_take_raw(p->arena, n, sizeof(uint32_t));
        p->in_step[s] = ms_arena_take_raw(p->arena, n, sizeof(uint32_t));
        if (p->partner[s] == NULL || p->in_step[s] == NULL)
            return ms_fail_nomem(fault);
        memset(p->partner[s], 0xff, n * sizeof(uint32_t));
        memset(p->in_step[s], 0xff, n * sizeof(uint32_t));
    }
    return p->entries == NULL ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- categories ---------------------------------------------------------- */

/* What of one side knows its category tells its partner, and what was made by
 * the same stack. */
static ms_err tell_categories(pairing *p, int s, ms_fault *fault)
{
    ms_side *side = &p->sides[s];
    uint8_t *of_site = ms_arena_take_raw(p->arena, side->n_words + 1u, 1);
    if (of_site == NULL)
        return ms_fail_nomem(fault);
    memset(of_site, MS_N_CATEGORIES, side->n_words + 1u);
    for (uint32_t i = 0; i < side->n; i++) {
        ms_pagelife *life = &side->lives[i];
        uint32_t other =
            p->partner[s][i] != MS_NONE ? p->partner[s][i] : p->in_step[s][i];
        if (life->category != MS_N_CATEGORIES || other == MS_NONE)
            continue;
        life->category = p->sides[1 - s].lives[other].category;
        if (life->site != MS_NONE && of_site[life->site] == MS_N_CATEGORIES)
            of_site[life->site] = life->category;
    }
    for (uint32_t i = 0; i < side->n; i++)
        if (side->lives[i].category == MS_N_CATEGORIES &&
            side->lives[i].site != MS_NONE)
            side->lives[i].category = of_site[side->lives[i].site];
    return MS_OK;
}

/* ---- groups -------------------------------------------------------------- */

static uint64_t gap_of(const ms_pairings_group *of)
{
    return of->gap < 0 ? 0 - (uint64_t)of->gap : (uint64_t)of->gap;
}

static int by_gap(const void *a, const void *b)
{
    const ms_pairings_group *x = a, *y = b;
    if (gap_of(x) != gap_of(y))
        return gap_of(x) > gap_of(y) ? -1 : 1;
    if (x->category != y->category)
        return x->category < y->category ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_to_group(const pairing *p, const entry *of,
                         ms_pairings_group *group)
{
    int s = of->side;
    const ms_pagelife *life = &p->sides[s].lives[of->life];
    group->each[s] =
        group->count[s] == 0 || group->each[s] == life->bytes ? life->bytes : 0;
    group->count[s]++;
    group->bytes[s] += life->bytes;
    group->gap = (int64_t)(group->bytes[1] - group->bytes[0]);
    group->made[s] += p->in_step[s][of->life] != MS_NONE;
}

/* Those left over, by category and name. */
static ms_err find_groups(pairing *p, ms_fault *fault)
{
    ms_pairings *out = p->out;
    collect(p, p->partner, true, BY_NAME);
    out->groups = ms_arena_take(p->arena, p->n + 1u, sizeof *out->groups);
    if (out->groups == NULL)
        return ms_fail_nomem(fault);
    if (p->n > 0)
        qsort(p->entries, p->n, sizeof *p->entries, by_key);
    for (uint32_t i = 0; i < p->n; i++) {
        const entry *of = &p->entries[i];
        const ms_pagelife *life = &p->sides[of->side].lives[of->life];
        if (i == 0 || of->key != p->entries[i - 1].key)
            out->groups[out->n++] = (ms_pairings_group){
                .name = p->names[of->key >> 8],
                .category = life->category,
                .phase = ms_side_phase_of(&p->sides[of->side], life)};
        add_to_group(p, of, &out->groups[out->n - 1]);
    }
    if (out->n > 0)
        qsort(out->groups, out->n, sizeof *out->groups, by_gap);
    return MS_OK;
}

static void count_same(const pairing *p)
{
    const ms_side *a = &p->sides[0], *b = &p->sides[1];
    for (uint32_t i = 0; i < a->n; i++) {
        if (p->partner[0][i] == MS_NONE)
            continue;
        uint64_t x = a->lives[i].bytes, y = b->lives[p->partner[0][i]].bytes;
        p->out->same_bytes += x;
        p->out->rounding[0] += x > y ? x - y : 0;
        p->out->rounding[1] += y > x ? y - x : 0;
    }
    for (int s = 0; s < 2; s++)
        for (uint32_t i = 0; i < p->sides[s].n; i++)
            p->out->step_count[s] +=
                takes_part(&p->sides[s], &p->sides[s].lives[i], false);
}

ms_err ms_pairings_find(ms_side sides[2], ms_arena *arena, ms_pairings *pairs,
                        ms_fault *fault)
{
    pairing p = {.sides = sides, .arena = arena, .out = pairs};
    *pairs = (ms_pairings){
        .by_name = sides[0].tells_layers == sides[1].tells_layers &&
                   (sides[0].n_words > 0) == (sides[1].n_words > 0)};
    MS_TRY(find_names(&p, fault));
    pairs->names = p.names;
    pairs->n_names = p.n_names;
    for (int s = 0; s < 2; s++)
        pairs->name_of[s] = p.name_of[s];
    MS_TRY(take_room(&p, fault));
    if (pairs->by_name) {
        ms_side_guess(&sides[0]);
        ms_side_guess(&sides[1]);
    }
    pairs->step_same = pair(&p, p.in_step, false);
    pairs->same_count = pair(&p, p.partner, true);
    for (int s = 0; s < 2 && !pairs->by_name; s++) {
        MS_TRY(tell_categories(&p, s, fault));
        ms_side_guess(&sides[s]);
    }
    count_same(&p);
    return find_groups(&p, fault);
}
