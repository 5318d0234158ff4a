/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/chaintable.h"

#include <math.h>

typedef ms_chaintable_row row;

/* ---- rows ---------------------------------------------------------------- */

static size_t pair(const ms_chaintable *p, uint32_t s, uint32_t t)
{
    return (size_t)s * (p->n + 1) + t;
}

static const row *row_of(const ms_chaintable *p, uint32_t s, uint32_t t)
{
    return &p->by_first[pair(p, s, t)];
}

double ms_chaintable_more_ns(const ms_chaintable *p, uint32_t s, uint32_t t,
                             uint64_t m)
{
    const row *at = row_of(p, s, t);
    if (m < at->low)
        return INFINITY;
    return m < at->high ? p->table[at->at + m - at->low] : 0;
}

double ms_chaintable_again_ns(const ms_chaintable *p, uint32_t s, uint32_t end)
{
    return p->forward_ns[end - 1] - p->forward_ns[s - 1] -
           (double)p->chain->stages[end - 1].tail_ns +
           (double)p->chain->replay_ns;
}

/* ---- stages that are the same -------------------------------------------- */

static bool is_like(const ms_chain_stage *a, const ms_chain_stage *b)
{
    return a->forward_ns == b->forward_ns && a->backward_ns == b->backward_ns &&
           a->output_bytes == b->output_bytes &&
           a->saved_bytes == b->saved_bytes &&
           a->forward_extra_bytes == b->forward_extra_bytes &&
           a->backward_extra_bytes == b->backward_extra_bytes &&
           a->left_bytes == b->left_bytes && a->tail_ns == b->tail_ns;
}

/* Of each stage the later one from which on as many stages as possible are the
 * same as from it on. */
static ms_err find_twins(ms_chaintable *p, ms_arena *arena, ms_fault *fault)
{
    uint32_t n = p->n;
    p->twin = ms_arena_take(arena, n + 2u, sizeof *p->twin);
    p->alike = ms_arena_take(arena, n + 2u, sizeof *p->alike);
    /* of the stage at hand and the one before: by the other stage */
    uint32_t *same = ms_arena_take(arena, n + 2u, sizeof *same);
    if (p->twin == NULL || p->alike == NULL || same == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t s = n; s > 0; s--)
        for (uint32_t k = s + 1; k <= n; k++) {
            bool like = is_like(&p->chain->stages[s], &p->chain->stages[k]);
            same[k] = like ? same[k + 1] + 1 : 0;
            if (same[k] > p->alike[s]) {
                p->alike[s] = same[k];
                p->twin[s] = k;
            }
        }
    return MS_OK;
}

/* Pairs (s, t) between which the stages are the same share a row. */
static void count_rows(ms_chaintable *p)
{
    for (uint32_t s = p->n; s > 0; s--)
        for (uint32_t t = s; t <= p->n; t++) {
            bool known = t - s < p->alike[s];
            p->n_rows += known ? 0 : 1;
            p->n_sums += known ? 0 : t - s + 1;
        }
}

ms_err ms_chaintable_open(const ms_chain *chain, ms_arena *arena,
                          ms_chaintable *table, ms_fault *fault)
{
    uint32_t n = chain->n;
    double *forward_ns = ms_arena_take(arena, n + 1u, sizeof *forward_ns);
    *table = (ms_chaintable){.chain = chain, .n = n, .forward_ns = forward_ns};
    if (forward_ns == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t l = 1; l <= n; l++)
        forward_ns[l] = forward_ns[l - 1] + (double)chain->stages[l].forward_ns;
    MS_TRY(find_twins(table, arena, fault));
    count_rows(table);
    return MS_OK;
}

/* Rows that are those of other stages are these; NULL: the row is its own. */
static const row *twin_of(const ms_chaintable *p, uint32_t s, uint32_t t)
{
    uint32_t by = p->twin[s] - s;
    return p->shares && t - s < p->alike[s] ? row_of(p, s + by, t + by) : NULL;
}

/* ---- the ends of rows ---------------------------------------------------- */

/* The least units that a choice takes, the checkpoint at the input of k; pass:
 * of the forwards that save nothing, with t's output. */
static uint64_t least_with(const ms_chaintable *p, uint32_t s, uint32_t t,
                           uint32_t k, uint64_t pass)
{
    uint64_t behind = p->stage[k - 1].output + p->by_last[pair(p, t, k)].low;
    uint64_t before =
        ms_chainunits_left(p->stage, k, t) + p->by_first[pair(p, s, k - 1)].low;
    return ms_chainunits_more(pass, ms_chainunits_more(behind, before));
}

static void set_ends(const ms_chaintable *p, uint32_t s, uint32_t t,
                     uint64_t pass)
{
    row *at = &p->by_first[pair(p, s, t)];
    uint64_t saved = ms_chainunits_saved(p->stage, s, t), none = p->room + 1;
    uint64_t low = saved, high = saved;
    if (s < t) {
        const row *rest = row_of(p, s + 1, t);
        low = ms_chainunits_more(saved, p->stage[s].saved + rest->low);
        high = ms_chainunits_more(saved, p->stage[s].saved + rest->high);
    }
    for (uint32_t k = s + 1; k <= t; k++) {
        uint64_t least = least_with(p, s, t, k, pass);
        low = least < low ? least : low;
    }
    at->low = (uint32_t)(low < none ? low : none);
    at->high = (uint32_t)(high < none ? high : none);
}

/* Where each row is, and room for it; *n: of all. */
static void lay_out(const ms_chaintable *p, uint64_t *n)
{
    *n = 0;
    for (uint32_t s = p->n; s > 0; s--) {
        uint64_t pass = 0;
        for (uint32_t t = s; t <= p->n; t++) {
            row *at = &p->by_first[pair(p, s, t)];
            const row *twin = twin_of(p, s, t);
            if (twin != NULL) {
                *at = *twin;
            } else {
                set_ends(p, s, t, p->stage[t].output + pass);
                at->at = *n;
                *n += at->high > at->low ? at->high - at->low : 0;
            }
            p->by_last[pair(p, t, s)] = *at;
            pass = ms_chainunits_pass(p->stage, s, t, pass);
        }
    }
}

/* ---- sums ---------------------------------------------------------------- */

/* best[m] of the row at hand, from `low` on, is more than `again_ns` below *end
 * alone. */
static void find_end(const double *best, uint64_t low, double again_ns,
                     uint64_t *end)
{
    while (*end > low && best[*end - 1 - low] <= again_ns)
        --*end;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* best = the lesser of it and base + a + b, where both rows have numbers, or
 * base + a, block by block: as all of them fall, a block whose last sum is no
 * less than its first best value has nothing to give.  Blocks are of one length
 * so that the compiler makes vectors of them. */
#define BLOCK 16u

static inline void take_sums(double *restrict best, const double *restrict a,
                             const double *restrict b, double base, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double ns = base + a[i] + b[i];
        best[i] = ns < best[i] ? ns : best[i];
    }
}

static inline void take_row(double *restrict best, const double *restrict a,
                            double base, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double ns = base + a[i];
        best[i] = ns < best[i] ? ns : best[i];
    }
}

static void take_both(double *best, const double *a, const double *b,
                      double base, uint64_t n)
{
    uint64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        if (base + a[i + BLOCK - 1] + b[i + BLOCK - 1] < best[i])
            take_sums(best + i, a + i, b + i, base, BLOCK);
    if (i < n && base + a[n - 1] + b[n - 1] < best[i])
        take_sums(best + i, a + i, b + i, base, n - i);
}

static void take_one(double *best, const double *a, double base, uint64_t n)
{
    uint64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        if (base + a[i + BLOCK - 1] < best[i])
            take_row(best + i, a + i, base, BLOCK);
    if (i < n && base + a[n - 1] < best[i])
        take_row(best + i, a + i, base, n - i);
}

/* A row as a choice reads it: so many units less room. */
typedef struct shifted {
    const double *ns;  /* of m = 0; only [from, to) may be read */
    uint64_t from, to; /* numbers; nothing from `to` on */
} shifted;

static shifted shift(const ms_chaintable *p, const row *at, uint64_t by)
{
    return (shifted){p->table + at->at - at->low - by, at->low + by,
                     at->high + by};
}

/* Values [from, end) of a choice that takes base, and what the two rows say. */
static void take(const shifted *a, const shifted *b, double base, uint64_t from,
                 uint64_t end, double *best)
{
    uint64_t both = least_of(end, least_of(a->to, b->to));
    const shifted *longer = a->to > b->to ? a : b;
    uint64_t one = least_of(end, longer->to);
    if (from < both)
        take_both(best + from, a->ns + from, b->ns + from, base, both - from);
    from = ms_chainunits_more(from, both);
    if (from < one)
        take_one(best + from, longer->ns + from, base, one - from);
    for (from = ms_chainunits_more(from, one); from < end && best[from] > base;
         from++)
        best[from] = base;
}

/* ---- tiles --------------------------------------------------------------- */

/* How many rows a side has: of three sides of 16 rows of some 300 numbers each
 * there is room in a cache of 1 MiB. */
#define SIDE 16u

typedef struct tile {
    const ms_chaintable *p;
    uint32_t s_low, s_high, t_low, t_high;
    uint64_t pass[SIDE];       /* per s: of the forwards up to the last t */
    uint64_t none[SIDE][SIDE]; /* none(s, t) */
    uint64_t end[SIDE][SIDE];  /* where the numbers end that may fall */
} tile;

static double *best_of(const ms_chaintable *p, const row *at)
{
    return p->table + at->at;
}

/* The choice of the checkpoint at the input of k; false: k, and all behind it,
 * have nothing to give. */
static bool take_choice(tile *at, uint32_t s, uint32_t t, uint32_t k)
{
    const ms_chaintable *p = at->p;
    const row *of = row_of(p, s, t);
    uint64_t *end = &at->end[s - at->s_low][t - at->t_low];
    double again_ns = ms_chaintable_again_ns(p, s, k), *best = best_of(p, of);
    find_end(best, of->low, again_ns, end);
    if (*end <= of->low)
        return false;
    shifted behind =
        shift(p, &p->by_last[pair(p, t, k)], p->stage[k - 1].output);
    shifted before =
        shift(p, row_of(p, s, k - 1), ms_chainunits_left(p->stage, k, t));
    uint64_t from = ms_chainunits_more(behind.from, before.from);
    from = ms_chainunits_more(from, at->none[s - at->s_low][t - at->t_low]);
    if (from < *end)
        take(&behind, &before, again_ns, from, *end, best - of->low);
    return true;
}

/* A(s) is kept. */
static void take_saved(const tile *at, uint32_t s, uint32_t t)
{
    const ms_chaintable *p = at->p;
    const shifted nothing = {NULL, 0, 0};
    const row *of = row_of(p, s, t);
    shifted behind =
        shift(p, &p->by_last[pair(p, t, s + 1)], p->stage[s].saved);
    uint64_t from =
        ms_chainunits_more(ms_chainunits_saved(p->stage, s, t), behind.from);
    take(&behind, &nothing, 0, from, of->high, best_of(p, of) - of->low);
}

/* Choices whose rows both are of other tiles: k of (s_high, t_low]. */
static void take_far(tile *at)
{
    bool open = true;
    for (uint32_t k = at->s_high + 1; k <= at->t_low && open; k++) {
        open = false;
        for (uint32_t s = at->s_low; s <= at->s_high; s++)
            for (uint32_t t = at->t_low; t <= at->t_high; t++)
                open = take_choice(at, s, t, k) || open;
    }
}

/* The others.  They cost less again than the far ones, or more. */
static void take_near(tile *at, uint32_t s, uint32_t t)
{
    const row *of = row_of(at->p, s, t);
    uint64_t *end = &at->end[s - at->s_low][t - at->t_low];
    if (s == t || of->low >= of->high)
        return;
    *end = of->high;
    take_saved(at, s, t);
    for (uint32_t k = s + 1; k <= t; k++) {
        if (k > at->s_high && k <= at->t_low)
            k = at->t_low + 1;
        if (k > t || !take_choice(at, s, t, k))
            return;
    }
}

/* Numbers of each row, none of them found yet.  Those of twins are there. */
static void open_tile(tile *at, uint32_t t_low, uint32_t side)
{
    const ms_chaintable *p = at->p;
    at->t_low = t_low;
    at->t_high = p->n - t_low < side ? p->n : t_low + side - 1;
    for (uint32_t s = at->s_low; s <= at->s_high; s++)
        for (uint32_t t = t_low; t <= at->t_high; t++) {
            uint32_t i = s - at->s_low, j = t - t_low;
            at->end[i][j] = 0;
            if (t < s)
                continue;
            const row *of = row_of(p, s, t);
            at->none[i][j] = p->stage[t].output + at->pass[i];
            at->pass[i] = ms_chainunits_pass(p->stage, s, t, at->pass[i]);
            if (twin_of(p, s, t) != NULL)
                continue;
            at->end[i][j] = of->high;
            for (uint64_t m = of->low; m < of->high; m++)
                best_of(p, of)[m - of->low] = INFINITY;
        }
}

static void fill_tile(tile *at)
{
    take_far(at);
    for (uint32_t s = at->s_high; s >= at->s_low; s--)
        for (uint32_t t = s > at->t_low ? s : at->t_low; t <= at->t_high; t++)
            if (twin_of(at->p, s, t) == NULL)
                take_near(at, s, t);
}

/* Rows that are shared need the order of tiles of one row.  Others take two
 * fifths of their time in tiles of SIDE (bench: solvers), where there is room
 * for a row of each pair. */
static bool is_tiled(const ms_chaintable *p)
{
    uint64_t n = p->n, n_rows = n * (n + 1) / 2;
    return p->n_sums >= n_rows * (n + 2) / 3 / 5 * 2 &&
           (p->n_rows == n_rows ||
            n_rows <= MS_OPTIMUM_TABLE / sizeof *p->table / (p->room + 1));
}

static void fill_tiles(const ms_chaintable *p, uint32_t side)
{
    for (uint32_t s_high = p->n; s_high > 0;) {
        tile at = {.p = p, .s_high = s_high};
        at.s_low = s_high > side ? s_high - side + 1 : 1;
        for (uint32_t t_low = at.s_low; t_low <= p->n; t_low += side) {
            open_tile(&at, t_low, side);
            fill_tile(&at);
        }
        s_high = at.s_low - 1;
    }
}

ms_err ms_chaintable_fill(ms_chaintable *p, const ms_chainunits *stage,
                          uint64_t room, ms_arena *arena, ms_fault *fault)
{
    uint64_t n;
    size_t pairs = (size_t)(p->n + 1u) * (p->n + 1u);
    p->stage = stage;
    p->room = room;
    p->shares = !is_tiled(p);
    p->by_first = ms_arena_take_raw(arena, pairs, sizeof *p->by_first);
    p->by_last = ms_arena_take_raw(arena, pairs, sizeof *p->by_last);
    if (p->by_first == NULL || p->by_last == NULL)
        return ms_fail_nomem(fault);
    lay_out(p, &n);
    p->table = ms_arena_take_raw(arena, n + 1, sizeof *p->table);
    if (p->table == NULL)
        return ms_fail_nomem(fault);
    fill_tiles(p, p->shares ? 1 : SIDE);
    return MS_OK;
}
