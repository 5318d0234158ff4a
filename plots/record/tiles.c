/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/plots.h"
#include "plots/record/tiles.h"

#define WHOLE_TIME 1073741824.0 /* a cell's time, and its bytes, */
#define WHOLE_BYTES 16777216.0  /* in parts: products stay below 2^63 */
#define MOST_SPANS 2000u
#define MOST_PLACED 4000u /* more lie above each other, whenever they come */
#define ALIKE 0.25        /* neighbours that differ by less are put together */

const char *const ms_tiles_colors[MS_TILES_COLORS] = {
    "#2F62A8", "#F9C768", "#2F9C8B", "#A63D14", "#7FA9DA",
    "#6E5A8C", "#B7A3D0", "#4A4A4A", "#A39C8E"};

/* Memory without gaps, from its first byte to be held to its last: [address,
 * end) begins at `at` of the plane. */
struct island {
    uint64_t address, end, at;
    uint64_t from, to;
    bool is_paged;
};

/* A box in the plane. */
struct rect {
    ms_tile tile;
    uint32_t kind;
};

struct weaver {
    const ms_addressmap *map;
    ms_tiles *tiles;
    ms_arena *arena, scratch, looms;
    struct island *islands;
    uint32_t n_islands;
    struct rect *rects;
    uint32_t n_rects;
    ms_tiles_layer *layers[MS_TILES_KINDS];
    uint32_t n_layers;
    uint32_t n_columns, n_rows;
    uint32_t n_made;
    bool failed;
};

/* ---- the plane ----------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct island *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Blocks cross from pages to pages, never from segment to segment. */
static bool belongs(const struct island *island, const struct island *last)
{
    return island->address < last->end ||
           (island->address == last->end && island->is_paged && last->is_paged);
}

static void join_islands(struct weaver *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_islands; i++) {
        struct island *island = &w->islands[i];
        struct island *last = &w->islands[n > 0 ? n - 1 : 0];
        if (n == 0 || !belongs(island, last)) {
            w->islands[n++] = *island;
            continue;
        }
        if (island->end > last->end)
            last->end = island->end;
        if (island->from < last->from)
            last->from = island->from;
        if (island->to > last->to)
            last->to = island->to;
    }
    w->n_islands = n;
}

static ms_err find_islands(struct weaver *w, ms_fault *fault)
{
    const ms_addressmap *map = w->map;
    w->islands =
        ms_arena_take_raw(&w->scratch, map->n_spans, sizeof *w->islands);
    if (w->islands == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < map->n_spans; i++) {
        const ms_address_span *span = &map->spans[i];
        if (span->begin < span->end && span->begin < w->tiles->end)
            w->islands[w->n_islands++] =
                (struct island){.address = span->address,
                                .end = span->address + span->bytes,
                                .from = span->begin,
                                .to = span->end,
                                .is_paged = span->is_paged};
    }
    if (w->n_islands > 0)
        qsort(w->islands, w->n_islands, sizeof *w->islands, by_address);
    join_islands(w);
    return MS_OK;
}

static int by_begin(const void *a, const void *b)
{
    const struct island *x = *(struct island *const *)a;
    const struct island *y = *(struct island *const *)b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return by_address(x, y);
}

static int by_begin_down(const void *a, const void *b)
{
    const struct island *x = *(struct island *const *)a;
    const struct island *y = *(struct island *const *)b;
    return x->from != y->from ? by_begin(a, b) : by_address(y, x);
}

/* Finds the lowest place that is free for as long as the island is held;
 * placed: the islands that have one, in the order of their places.  Returns how
 * many of them lie at or below it. */
static uint32_t find_place(struct island *const *placed, uint32_t n,
                           struct island *island)
{
    uint64_t at = 0, bytes = island->end - island->address;
    uint32_t i = 0, behind = 0;
    for (; i < n; i++) {
        const struct island *other = placed[i];
        uint64_t top = other->at + (other->end - other->address);
        if (other->to <= island->from || island->to <= other->from)
            continue;
        if (other->at >= at && other->at - at >= bytes)
            break;
        if (top > at)
            at = top;
    }
    island->at = at;
    while (behind < n && placed[behind]->at <= at)
        behind++;
    return behind;
}

/* Places islands in the order in which they came; those that came at once by
 * address, from the top where the device answers from the top. */
static ms_err place_islands(struct weaver *w, ms_fault *fault)
{
    uint32_t n = w->n_islands;
    struct island **order =
        ms_arena_take_raw(&w->scratch, n, sizeof(struct island *));
    struct island **placed =
        ms_arena_take_raw(&w->scratch, n, sizeof(struct island *));
    uint64_t height = 0;
    if (order == NULL || placed == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        order[i] = &w->islands[i];
    if (n > 0)
        qsort(order, n, sizeof(struct island *),
              w->map->descends ? by_begin_down : by_begin);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t among = n <= MOST_PLACED ? i : 0;
        uint32_t at = find_place(placed, among, order[i]);
        if (n > MOST_PLACED)
            order[i]->at = height;
        for (uint32_t j = among; j > at; j--)
            placed[j] = placed[j - 1];
        placed[at] = order[i];
        uint64_t top = order[i]->at + (order[i]->end - order[i]->address);
        height = top > height ? top : height;
    }
    w->tiles->height_bytes = height;
    return MS_OK;
}

/* Moves a tile from addresses to the plane.  false: it lies outside of what is
 * held, or of the time that is shown. */
static bool lay(const struct weaver *w, const ms_tile *real, ms_tile *tile)
{
    uint32_t low = 0, high = w->n_islands;
    *tile = *real;
    if (tile->to > w->tiles->end)
        tile->to = w->tiles->end;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->islands[middle].address <= real->at_bytes)
            low = middle;
        else
            high = middle;
    }
    if (high == 0 || real->at_bytes < w->islands[low].address ||
        real->bytes > w->islands[low].end - real->at_bytes ||
        real->at_bytes > w->islands[low].end)
        return false;
    tile->at_bytes =
        real->at_bytes - w->islands[low].address + w->islands[low].at;
    return tile->from < tile->to && tile->bytes > 0;
}

/* ---- tiles --------------------------------------------------------------- */

static void add_tile(struct weaver *w, ms_tiles_layer *layer,
                     const ms_tile *tile)
{
    if (layer->n == layer->capacity) {
        ms_tile *grown = ms_arena_grow(w->arena, layer->tiles, &layer->capacity,
                                       layer->n + 1, sizeof *grown);
        w->failed |= grown == NULL;
        if (grown == NULL)
            return;
        layer->tiles = grown;
    }
    layer->tiles[layer->n++] = *tile;
    w->n_made++;
}

/* One of the two sides of the plane, cut into cells. */
struct side {
    uint64_t cell, end;
    uint32_t n;
    double whole; /* parts of a cell */
};

static struct side side_of(uint64_t end, uint32_t n, double whole)
{
    uint64_t cell = end / n + (end % n > 0);
    if (cell == 0)
        cell = 1;
    return (struct side){cell, end, (uint32_t)((end + cell - 1) / cell), whole};
}

struct grid {
    struct side bytes, time;
};

static struct grid grid_of(const struct weaver *w)
{
    return (struct grid){
        side_of(w->tiles->height_bytes, w->n_rows, WHOLE_BYTES),
        side_of(w->tiles->end, w->n_columns, WHOLE_TIME)};
}

static bool is_large(const struct grid *grid, const ms_tile *tile)
{
    return tile->bytes >= grid->bytes.cell &&
           tile->to - tile->from >= grid->time.cell;
}

/* ---- areas in cells ------------------------------------------------------ */

/* Areas by cell, along the long side of boxes as differences from cell to cell:
 * a long box then costs as much as a short one.  On its short side it meets two
 * cells at most. */
struct loom {
    struct side across, along; /* the short side of the boxes, the long one */
    bool by_time;              /* across is time */
    int64_t *sums;             /* across.n times (along.n + 1) */
    float *used;               /* per cell: what other kinds have of it */
    double owed;               /* area that was too little for a tile */
};

struct extent {
    uint64_t from, to;
};

/* How many parts of that cell the extent has. */
static int64_t part(const struct side *side, const struct extent *extent,
                    uint64_t cell)
{
    uint64_t from = cell * side->cell, to = from + side->cell;
    from = extent->from > from ? extent->from : from;
    to = extent->to < to ? extent->to : to;
    if (from >= to)
        return 0;
    return (int64_t)((double)(to - from) / (double)side->cell * side->whole +
                     0.5);
}

/* The sums of a line are differences: a tile writes only at the cells where it
 * begins and ends, which it may cover in part, and a running sum fills the
 * cells between. */
static void spread(struct loom *loom, const ms_tile *tile)
{
    struct extent bytes = {tile->at_bytes, tile->at_bytes + tile->bytes};
    struct extent time = {tile->from, tile->to};
    const struct extent *across = loom->by_time ? &time : &bytes;
    const struct extent *along = loom->by_time ? &bytes : &time;
    uint64_t first = along->from / loom->along.cell;
    uint64_t last = (along->to - 1) / loom->along.cell;
    int64_t whole = (int64_t)loom->along.whole;
    for (uint64_t c = across->from / loom->across.cell;
         c <= (across->to - 1) / loom->across.cell; c++) {
        int64_t *sums = &loom->sums[c * (loom->along.n + 1)];
        int64_t weight = part(&loom->across, across, c);
        int64_t head = part(&loom->along, along, first);
        int64_t tail = part(&loom->along, along, last);
        sums[first] += weight * head;
        if (first == last) {
            sums[first + 1] -= weight * head;
            continue;
        }
        sums[first + 1] += weight * (whole - head);
        sums[last] += weight * (tail - whole);
        sums[last + 1] -= weight * tail;
    }
}

/* ---- from areas to tiles ------------------------------------------------- */

/* Cells [from, to) of a line across whose areas are alike. */
struct run {
    uint32_t line, from, to;
    double share; /* of the cells, on average */
};

static struct extent reach(const struct side *side, uint32_t from, uint32_t to)
{
    uint64_t end = to * side->cell;
    return (struct extent){from * side->cell,
                           end < side->end ? end : side->end};
}

/* Beside what other kinds have there, as far as there is room. */
static void weave_run(struct weaver *w, struct loom *loom,
                      ms_tiles_layer *layer, const struct run *run)
{
    struct extent along = reach(&loom->along, run->from, run->to);
    struct extent across = reach(&loom->across, run->line, run->line + 1);
    double length = (double)(along.to - along.from);
    double room = (double)(across.to - across.from), before = 0.0;
    float *used = &loom->used[(size_t)run->line * loom->along.n];
    double area = run->share * (double)(run->to - run->from) *
                      (double)loom->across.cell * (double)loom->along.cell +
                  loom->owed;
    double width = floor(fmin(area / length, room));
    loom->owed = area - width * length;
    if (width < 1.0)
        return;
    for (uint32_t i = run->from; i < run->to; i++)
        before = fmax(before, (double)used[i]);
    before = floor(fmin(before, room - width));
    for (uint32_t i = run->from; i < run->to; i++)
        used[i] = (float)(before + width);
    across.from += (uint64_t)before;
    across.to = across.from + (uint64_t)width;
    const struct extent *bytes = loom->by_time ? &along : &across;
    const struct extent *time = loom->by_time ? &across : &along;
    add_tile(
        w, layer,
        &(ms_tile){bytes->from, bytes->to - bytes->from, time->from, time->to});
}

static bool is_alike(const struct run *run, double share)
{
    return fabs(share - run->share) <= ALIKE * run->share;
}

static void weave_line(struct weaver *w, struct loom *loom,
                       ms_tiles_layer *layer, uint32_t line)
{
    const int64_t *sums = &loom->sums[(size_t)line * (loom->along.n + 1)];
    double whole = loom->across.whole * loom->along.whole;
    struct run run = {.line = line};
    int64_t sum = 0;
    for (uint32_t i = 0; i <= loom->along.n; i++) {
        /* Behind the last cell there is nothing, which ends the last run. */
        sum += i < loom->along.n ? sums[i] : -sum;
        double share = (double)sum / whole;
        if (run.to > run.from && !is_alike(&run, share)) {
            weave_run(w, loom, layer, &run);
            run.from = run.to;
        }
        if (run.to == run.from)
            run.from = run.to = i, run.share = 0.0;
        if (share <= 0.0) {
            run.from = run.to = i + 1;
            continue;
        }
        double n = (double)(run.to - run.from);
        run.share = (run.share * n + share) / (n + 1.0);
        run.to = i + 1;
    }
}

static bool open_loom(struct weaver *w, const struct grid *grid, bool by_time,
                      struct loom *loom)
{
    *loom = (struct loom){by_time ? grid->time : grid->bytes,
                          by_time ? grid->bytes : grid->time,
                          by_time,
                          NULL,
                          NULL,
                          0.0};
    size_t n = (size_t)loom->across.n * (loom->along.n + 1);
    loom->sums = ms_arena_take_raw(&w->looms, n, sizeof *loom->sums);
    loom->used = ms_arena_take(&w->looms, n, sizeof *loom->used);
    w->failed |= loom->sums == NULL || loom->used == NULL;
    return !w->failed;
}

/* The small ones of a kind: short-lived ones by time, low ones by bytes. */
static void weave_kind(struct weaver *w, const struct grid *grid,
                       struct loom *loom, uint32_t kind)
{
    bool any = false;
    memset(loom->sums, 0,
           (size_t)loom->across.n * (loom->along.n + 1) * sizeof *loom->sums);
    for (uint32_t i = 0; i < w->n_rects; i++) {
        const ms_tile *tile = &w->rects[i].tile;
        bool is_tall = tile->bytes >= grid->bytes.cell;
        if (w->rects[i].kind != kind || is_large(grid, tile) ||
            is_tall != loom->by_time)
            continue;
        spread(loom, tile);
        any = true;
    }
    loom->owed = 0.0;
    for (uint32_t i = 0;
         any && i < loom->across.n && w->n_made <= MS_TILES_MOST; i++)
        weave_line(w, loom, w->layers[kind], i);
}

/* Breaks off where there are too many. */
static void weave(struct weaver *w)
{
    struct grid grid = grid_of(w);
    struct loom short_lived, low;
    w->n_made = 0;
    ms_arena_reset(&w->looms);
    for (uint32_t k = 0; k < w->n_layers; k++)
        w->layers[k]->n = 0;
    for (uint32_t i = 0; i < w->n_rects && w->n_made <= MS_TILES_MOST; i++)
        if (is_large(&grid, &w->rects[i].tile))
            add_tile(w, w->layers[w->rects[i].kind], &w->rects[i].tile);
    if (w->n_made > MS_TILES_MOST || !open_loom(w, &grid, true, &short_lived) ||
        !open_loom(w, &grid, false, &low))
        return;
    for (uint32_t k = 0; k < w->n_layers; k++) {
        weave_kind(w, &grid, &short_lived, k);
        weave_kind(w, &grid, &low, k);
    }
}

/* Larger cells until there are few enough. */
static void weave_all(struct weaver *w)
{
    w->n_columns = MS_TILES_COLUMNS;
    w->n_rows = MS_TILES_ROWS;
    weave(w);
    for (int i = 0; w->n_made > MS_TILES_MOST && !w->failed && i < 20; i++) {
        if (i % 2 == 0 && w->n_columns > 8)
            w->n_columns = w->n_columns * 2 / 3;
        else if (w->n_rows > 8)
            w->n_rows = w->n_rows * 2 / 3;
        weave(w);
    }
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err lay_boxes(struct weaver *w, ms_tiles_kind_of *kind_of,
                        const void *of, ms_fault *fault)
{
    const ms_addressmap *map = w->map;
    w->rects = ms_arena_take_raw(&w->scratch, map->n_boxes, sizeof *w->rects);
    if (w->rects == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < map->n_boxes; i++) {
        const ms_address_box *box = &map->boxes[i];
        const ms_tile real = {box->address, box->bytes, box->begin, box->end};
        struct rect *rect = &w->rects[w->n_rects];
        rect->kind = kind_of(of, box);
        if (box->made <= map->peak.change && map->peak.change < box->gone)
            w->tiles->kinds[rect->kind].peak_bytes += box->bytes;
        w->n_rects += lay(w, &real, &rect->tile);
    }
    return MS_OK;
}

/* Segments that are too many to have borders are pages. */
static ms_err lay_spans(struct weaver *w, ms_fault *fault)
{
    const ms_addressmap *map = w->map;
    bool is_much = map->n_spans > MOST_SPANS;
    w->n_rects = 0;
    w->rects = ms_arena_take_raw(&w->scratch, map->n_spans, sizeof *w->rects);
    if (w->rects == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < map->n_spans; i++) {
        const ms_address_span *span = &map->spans[i];
        const ms_tile real = {span->address, span->bytes, span->begin,
                              span->end};
        struct rect *rect = &w->rects[w->n_rects];
        *rect = (struct rect){.kind = 0};
        if (!lay(w, &real, &rect->tile))
            continue;
        if (is_much)
            w->n_rects++;
        else
            add_tile(w, span->is_paged ? &w->tiles->pages : &w->tiles->segments,
                     &rect->tile);
    }
    w->layers[0] = &w->tiles->pages;
    w->n_layers = 1;
    if (is_much)
        weave_all(w);
    return MS_OK;
}

static void count_merged(struct weaver *w)
{
    struct grid grid = grid_of(w);
    w->tiles->n_merged = 0;
    for (uint32_t i = 0; i < w->n_rects; i++)
        w->tiles->n_merged += !is_large(&grid, &w->rects[i].tile);
}

static ms_err make(struct weaver *w, ms_tiles_kind_of *kind_of, const void *of,
                   ms_fault *fault)
{
    MS_TRY(find_islands(w, fault));
    MS_TRY(place_islands(w, fault));
    MS_TRY(lay_boxes(w, kind_of, of, fault));
    for (uint32_t k = 0; k < w->tiles->n_kinds; k++)
        w->layers[k] = &w->tiles->kinds[k].of;
    w->n_layers = w->tiles->n_kinds;
    weave_all(w);
    count_merged(w);
    MS_TRY(lay_spans(w, fault));
    return w->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_tiles_make(const ms_addressmap *map, ms_tiles_kind_of *kind_of,
                     const void *of, ms_arena *arena, ms_tiles *tiles,
                     ms_fault *fault)
{
    struct weaver w = {.map = map,
                       .tiles = tiles,
                       .arena = arena,
                       .scratch = {.limit_bytes = arena->limit_bytes},
                       .looms = {.limit_bytes = arena->limit_bytes}};
    tiles->n_boxes = map->n_boxes;
    tiles->reserved_bytes = map->reserved_peak_bytes;
    tiles->live_bytes = map->peak.live_bytes;
    tiles->live_at = map->peak.at;
    tiles->idle_bytes = map->peak.reserved_bytes - map->peak.active_bytes;
    ms_err err = make(&w, kind_of, of, fault);
    ms_arena_free(&w.scratch);
    ms_arena_free(&w.looms);
    return err;
}
