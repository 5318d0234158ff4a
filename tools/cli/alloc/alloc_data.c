/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc --json: the statistics and segments of each pool at the end. */

#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/cli/alloc/alloc_keys.h"

ms_alloc_held ms_alloc_data_held(const ms_alloc_run *run)
{
    const ms_recording *recording = &run->source.recording;
    ms_alloc_held held = {.anew = run->anew};
    if (!run->source.is_recorded)
        return held;
    for (uint32_t i = 0; i < recording->n_start; i++) {
        const ms_recording_segment *segment = &recording->start[i];
        held.reserved_bytes += segment->bytes;
        for (uint32_t k = 0; k < segment->n_blocks; k++) {
            const ms_recording_block *block =
                &recording->blocks[segment->blocks_at + k];
            if (block->state == MS_TORCH_INACTIVE)
                continue;
            held.blocks++;
            held.bytes += block->bytes;
        }
    }
    return held;
}

static ms_err show_segments(ms_alloc_pool_shown *shown, bool is_heap,
                            ms_arena *arena, ms_fault *fault)
{
    ms_torch_snapshot snapshot;
    MS_TRY(ms_torchview_snapshot(shown->pool->follow.play.pool, arena,
                                 &snapshot, fault));
    shown->n_segments = snapshot.n_segments;
    shown->segments =
        ms_arena_take(arena, snapshot.n_segments, sizeof *shown->segments);
    if (shown->segments == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < snapshot.n_segments; i++) {
        const ms_torch_segment_view *view = &snapshot.segments[i];
        shown->segments[i] =
            (ms_alloc_segment_shown){view, is_heap       ? NULL
                                           : view->small ? "small"
                                                         : "large"};
    }
    return MS_OK;
}

static ms_err show_pool(const ms_alloc_run *run, const ms_alloc_pool *pool,
                        bool with_segments, ms_arena *arena,
                        ms_alloc_pool_shown *shown, ms_fault *fault)
{
    uint8_t kind = pool->as.heap.kind;
    *shown = (ms_alloc_pool_shown){
        .pool = pool,
        .kind = ms_pool_types[kind],
        .va = pool->setup.torch.policy == MS_TORCH_GIVEN
                  ? "recorded"
                  : ms_torch_policies[pool->setup.torch.policy],
        .version = kind == MS_POOL_TORCH
                       ? ms_torchconf_versions[pool->setup.torch.version]
                       : NULL,
        .is_recorded = run->source.is_recorded};
    return with_segments
               ? show_segments(shown, kind != MS_POOL_TORCH, arena, fault)
               : MS_OK;
}

static ms_alloc_leak_shown show_leak(const ms_alloc_leaks *leaks, uint32_t g)
{
    const ms_alloc_group *group = &leaks->groups[g];
    return (ms_alloc_leak_shown){
        .site = group->site == MS_NONE ? NULL : leaks->sites[group->site],
        .request_bytes = group->bytes,
        .stream = group->stream,
        .levels = ms_alloc_leaks_levels(leaks, g),
        .n = leaks->n_points};
}

static ms_err show_leaks(ms_alloc_sheet *sheet, ms_arena *arena,
                         ms_fault *fault)
{
    if (sheet->leaks == NULL)
        return MS_OK;
    uint32_t n = sheet->leaks->n_found;
    sheet->grown = ms_arena_take(arena, n, sizeof *sheet->grown);
    if (sheet->grown == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        sheet->grown[i] = show_leak(sheet->leaks, sheet->leaks->found[i]);
    return MS_OK;
}

static ms_err show_run(const ms_alloc_run *run, bool with_segments,
                       ms_arena *arena, ms_alloc_sheet *sheet, ms_fault *fault)
{
    *sheet = (ms_alloc_sheet){
        .memsim = MS_VERSION, .run = run, .first = &run->pools[0]};
    sheet->pools = ms_arena_take(arena, run->n_pools, sizeof *sheet->pools);
    if (sheet->pools == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < run->n_pools; i++)
        MS_TRY(show_pool(run, &run->pools[i], with_segments, arena,
                         &sheet->pools[i], fault));
    return MS_OK;
}

ms_err ms_alloc_data_json(const ms_alloc_run *run, ms_text *text,
                          ms_fault *fault)
{
    ms_alloc_sheet sheet;
    MS_TRY(show_run(run, true, text->arena, &sheet, fault));
    sheet.leaks = run->leaks;
    MS_TRY(show_leaks(&sheet, text->arena, fault));
    ms_keys_write(&ms_alloc_keys, &sheet, text);
    ms_text_add(text, "\n");
    return MS_OK;
}

ms_err ms_alloc_data_traces(const ms_alloc_traces *traces, ms_text *text,
                            ms_fault *fault)
{
    ms_alloc_sheet sheet = {
        .memsim = MS_VERSION, .leaks = traces->leaks, .traces = traces};
    sheet.of = ms_arena_take(text->arena, traces->n, sizeof *sheet.of);
    if (sheet.of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < traces->n; i++)
        MS_TRY(show_run(&traces->runs[i], false, text->arena, &sheet.of[i],
                        fault));
    MS_TRY(show_leaks(&sheet, text->arena, fault));
    ms_keys_write(&ms_alloc_keys_traces, &sheet, text);
    ms_text_add(text, "\n");
    return MS_OK;
}
