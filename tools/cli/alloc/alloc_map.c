/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws where the blocks of a trace lie over its operations. */

#include "plots/plots.h"
#include "plots/record/record.h"
#include "plots/record/tiles.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/job/outputs.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#include <stdlib.h>
#include <string.h>

/* A box has the colour of a category, of a site, or of a stream and a pool:
 * 2 * stream + is_large. */
#define MOST_KINDS (MS_TILES_COLORS - 1u)
#define OTHERS MOST_KINDS
#define WAITING (MOST_KINDS + 1u)

static bool is_asked(const ms_alloc_run *run)
{
    return run->figure.path != NULL;
}

static bool by_category(const ms_alloc_run *run)
{
    return run->source.is_recorded && run->source.recording.has_categories;
}

static bool by_site(const ms_alloc_run *run)
{
    return run->source.is_recorded && run->source.recording.n_sites > 0 &&
           !by_category(run);
}

/* ---- as the trace goes --------------------------------------------------- */

void ms_alloc_map_listen(const ms_alloc_run *run, ms_alloc_pool *pool)
{
    if (!is_asked(run))
        return;
    pool->setup.torch.log = ms_addressmap_log;
    pool->setup.torch.log_of = &pool->map;
}

ms_err ms_alloc_map_start(const ms_alloc_run *run, ms_alloc_pool *pool,
                          ms_fault *fault)
{
    ms_torch_snapshot shot;
    if (!is_asked(run))
        return MS_OK;
    MS_TRY(
        ms_torchview_snapshot(pool->follow.play.pool, run->keep, &shot, fault));
    MS_TRY(ms_addressmap_start(&pool->map, &shot, run->keep, fault));
    for (uint32_t i = 0; i < shot.n_segments; i++)
        for (uint32_t b = 0; b < shot.segments[i].n_blocks; b++) {
            const ms_torch_block_view *block = &shot.segments[i].blocks[b];
            if (block->state != MS_TORCH_INACTIVE)
                ms_addressmap_take(&pool->map, block->address, block->bytes,
                                   MS_NONE);
        }
    return MS_OK;
}

void ms_alloc_map_tick(ms_alloc_pool *pool)
{
    pool->map.now = pool->follow.play.n_ops;
}

/* The index of a stream. The last index stands for all streams beyond the
 * colours. */
static uint32_t stream_of(ms_alloc_run *run, uint64_t stream)
{
    uint32_t i = 0;
    while (i < run->n_streams && run->streams[i] != stream)
        i++;
    if (i == run->n_streams && i < MS_ALLOC_STREAMS)
        run->streams[run->n_streams++] = stream;
    return i;
}

ms_err ms_alloc_map_note(ms_alloc_run *run, ms_alloc_pool *pool,
                         uint64_t stream, const ms_recording_event *event,
                         ms_fault *fault)
{
    const ms_allocplay *play = &pool->follow.play;
    const ms_alloctrace_spot spot = {run->source.name, play->line, 0};
    ms_allocplay_name *name;
    bool small = false;
    if (!is_asked(run) || run->row.kind != 'a' || !run->row.ok)
        return MS_OK;
    MS_TRY(ms_allocplay_block(play, &spot, run->row.id, &name, fault));
    if (name == NULL)
        return MS_OK;
    ms_torch_block_view block = ms_torchview_block(play->pool, name->block);
    if (ms_pool_kind_of(play->pool) == MS_POOL_TORCH)
        ms_torch_rounded(play->pool, block.requested_bytes, &small);
    uint32_t of = by_category(run) ? event->category
                  : by_site(run)   ? event->site
                                   : 2 * stream_of(run, stream) + !small;
    ms_addressmap_take(&pool->map, block.address, block.bytes, of);
    return MS_OK;
}

/* ---- kinds --------------------------------------------------------------- */

/* Maps the numbers that boxes have to the kinds of the figure. */
typedef struct kinds {
    const ms_alloc_run *run;
    uint32_t *of; /* by number: the index of its kind; n of them */
    uint32_t n;
    const char *names[MOST_KINDS];
    uint32_t n_names;
} kinds;

static uint32_t kind_of(const void *of, const ms_address_box *box)
{
    const kinds *k = of;
    if (box->waits)
        return WAITING;
    return box->of < k->n ? k->of[box->of] : OTHERS;
}

/* A frame in short: "forward (linear.py:114)", for its callers as well. */
static const char *frame_of(const char *site, ms_arena *arena)
{
    const char *end = strstr(site, " < ");
    return end != NULL ? ms_arena_text(arena, site, (size_t)(end - site))
                       : site;
}

typedef struct weight {
    double area; /* bytes times the operations that they are alive */
    uint32_t site;
    const char *frame;
} weight;

static int by_frame(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    int order = strcmp(x->frame, y->frame);
    return order != 0 ? order : (x->site > y->site) - (x->site < y->site);
}

static int by_area(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    if (x->area != y->area)
        return x->area < y->area ? 1 : -1;
    return by_frame(a, b);
}

/* Groups sites by their innermost frames; the heaviest groups have a colour
 * each. */
static ms_err weigh_sites(kinds *k, const weight *sites, ms_arena *arena,
                          ms_fault *fault)
{
    weight *frames = ms_arena_take(arena, k->n, sizeof *frames);
    uint32_t n = 0;
    if (frames == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < k->n; i++) {
        if (n == 0 || strcmp(frames[n - 1].frame, sites[i].frame) != 0)
            frames[n++] = (weight){0.0, i, sites[i].frame};
        frames[n - 1].area += sites[i].area;
    }
    qsort(frames, n, sizeof *frames, by_area);
    for (uint32_t f = 0; f < n && f < MOST_KINDS; f++) {
        k->names[k->n_names++] = frames[f].frame;
        for (uint32_t i = 0; i < k->n; i++)
            if (strcmp(sites[i].frame, frames[f].frame) == 0)
                k->of[sites[i].site] = f;
    }
    return MS_OK;
}

static ms_err find_sites(kinds *k, uint64_t end, ms_arena *arena,
                         ms_fault *fault)
{
    const ms_recording *recording = &k->run->source.recording;
    const ms_addressmap *map = &k->run->pools[0].map;
    weight *sites = ms_arena_take(arena, k->n, sizeof *sites);
    if (sites == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < k->n; i++) {
        sites[i] = (weight){0.0, i, frame_of(recording->sites[i], arena)};
        k->of[i] = OTHERS;
        if (sites[i].frame == NULL)
            return ms_fail_nomem(fault);
    }
    for (uint32_t b = 0; b < map->n_boxes; b++) {
        const ms_address_box *box = &map->boxes[b];
        uint64_t to = box->end < end ? box->end : end;
        if (box->of < k->n && box->begin < to)
            sites[box->of].area +=
                (double)box->bytes * (double)(to - box->begin);
    }
    qsort(sites, k->n, sizeof *sites, by_frame);
    return weigh_sites(k, sites, arena, fault);
}

/* Groups by stream where there are several streams, else by pool. */
static ms_err find_streams(kinds *k, ms_arena *arena, ms_fault *fault)
{
    const ms_alloc_run *run = k->run;
    bool several = run->n_streams > 1;
    for (uint32_t i = 0; i < k->n; i++)
        k->of[i] = several ? i / 2 : i % 2;
    k->n_names = several ? run->n_streams : 2;
    k->names[0] = "small pool";
    k->names[1] = "large pool";
    for (uint32_t s = 0; several && s < run->n_streams; s++) {
        k->names[s] = ms_arena_format(arena, "stream %llu",
                                      (unsigned long long)run->streams[s]);
        if (k->names[s] == NULL)
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

static ms_err find_kinds(const ms_alloc_run *run, uint64_t end, ms_arena *arena,
                         kinds *k, ms_fault *fault)
{
    *k = (kinds){.run = run,
                 .n = by_category(run) ? MS_N_CATEGORIES
                      : by_site(run)   ? run->source.recording.n_sites
                                       : 2 * MS_ALLOC_STREAMS};
    k->of = ms_arena_take(arena, k->n, sizeof *k->of);
    if (k->of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < k->n; i++)
        k->of[i] = i;
    if (by_category(run))
        return MS_OK;
    return by_site(run) ? find_sites(k, end, arena, fault)
                        : find_streams(k, arena, fault);
}

/* ---- the figure ---------------------------------------------------------- */

static void name_kinds(const kinds *k, ms_tiles *tiles)
{
    bool more = by_site(k->run) || k->run->n_streams == MS_ALLOC_STREAMS;
    if (by_category(k->run))
        ms_addresses_categories(tiles);
    for (uint32_t i = 0; i < k->n_names; i++)
        tiles->kinds[i] =
            (ms_tiles_kind){.name = k->names[i], .color = ms_tiles_colors[i]};
    tiles->kinds[OTHERS] =
        (ms_tiles_kind){.name = more ? "others" : "from before",
                        .color = ms_tiles_colors[MS_TILES_COLORS - 1]};
    tiles->kinds[WAITING] = (ms_tiles_kind){.name = MS_TILES_WAITING,
                                            .color = MS_TILES_WAITING_COLOR};
    tiles->n_kinds = WAITING + 1;
}

static ms_err make_tiles(const kinds *k, ms_alloc_pool *pool, uint64_t end,
                         ms_arena *arena, ms_tiles *tiles, ms_fault *fault)
{
    *tiles = (ms_tiles){
        .allocator = pool->as.spec, .counted = "operations", .end = end};
    name_kinds(k, tiles);
    MS_TRY(ms_addressmap_close(&pool->map, fault));
    return ms_tiles_make(&pool->map, kind_of, k, arena, tiles, fault);
}

static ms_err draw(const ms_alloc_run *run, const ms_tiles *const *maps,
                   const char *const *names, ms_arena *arena, ms_fault *fault)
{
    const ms_allocplay *play = &run->pools[0].follow.play;
    ms_text subtitle = {.arena = arena};
    ms_text_add(&subtitle, "%s operations, %s allocations; device %s",
                ms_quantity_count(play->n_ops).s,
                ms_quantity_count(play->n_allocs).s,
                ms_quantity_size(run->pools[0].setup.torch.total_bytes).s);
    if (subtitle.failed)
        return ms_fail_nomem(fault);
    ms_drawing drawing = {.title = run->figure.title != NULL ? run->figure.title
                                                             : run->source.name,
                          .subtitle = subtitle.bytes,
                          .path = run->figure.path,
                          .script_path = run->figure.script,
                          .arena = arena};
    return ms_figure_address(maps, names, run->n_pools, &drawing, fault);
}

ms_err ms_alloc_map_draw(ms_alloc_run *run, ms_arena *arena, bool quiet,
                         ms_fault *fault)
{
    const char *names[MS_ALLOC_MOST_POOLS];
    const ms_tiles *maps[MS_ALLOC_MOST_POOLS];
    kinds k;
    if (!is_asked(run))
        return MS_OK;
    uint64_t end = run->pools[0].follow.play.n_ops;
    end = end > 0 ? end : 1;
    MS_TRY(find_kinds(run, end, arena, &k, fault));
    for (uint32_t i = 0; i < run->n_pools; i++) {
        ms_tiles *tiles = ms_arena_take(arena, 1, sizeof *tiles);
        if (tiles == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(make_tiles(&k, &run->pools[i], end, arena, tiles, fault));
        maps[i] = tiles;
        names[i] = run->pools[i].as.spec;
    }
    MS_TRY(draw(run, maps, names, arena, fault));
    if (!quiet && !ms_outputs_is_stdout(run->figure.path))
        ms_complain_note("wrote", run->figure.path);
    return MS_OK;
}
