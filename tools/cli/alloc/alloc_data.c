/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc --json: statistics and segments at the end. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/cli/commands.h"

#include <string.h>

static void put_number(ms_text *text, const char *key, uint64_t value)
{
    ms_text_add(text, ", \"%s\": ", key);
    ms_text_u64(text, value);
}

static void put_word(ms_text *text, const char *key, const char *word)
{
    ms_text_add(text, ", \"%s\": ", key);
    ms_text_json(text, word);
}

static void put_stat(ms_text *text, const ms_torch_stat *stat)
{
    ms_text_add(text, "{\"current\": ");
    ms_text_u64(text, stat->current);
    put_number(text, "peak", stat->peak);
    put_number(text, "allocated", stat->allocated);
    put_number(text, "freed", stat->freed);
    ms_text_put(text, "}", 1);
}

/* TensorFlow frees what other streams use when they are past it: in use is what
 * is active. */
static void put_bfc_stats(const ms_torch_stats *stats,
                          const ms_pool_stats *told, ms_text *text)
{
    const ms_torch_stat *active =
        &stats->of[MS_TORCH_ACTIVE_BYTES][MS_TORCH_ALL];
    const ms_torch_stat *reserved =
        &stats->of[MS_TORCH_RESERVED_BYTES][MS_TORCH_ALL];
    put_number(text, "num_allocs",
               stats->of[MS_TORCH_ALLOCATION][MS_TORCH_ALL].allocated);
    put_number(text, "bytes_in_use", active->current);
    put_number(text, "peak_bytes_in_use", active->peak);
    put_number(text, "bytes_reserved", reserved->current);
    put_number(text, "peak_bytes_reserved", reserved->peak);
    put_number(text, "bytes_limit", told->limit_bytes);
}

/* Of a heap: torch's names where the number is the same, and TensorFlow's
 * (tf.config.experimental.get_memory_info, AllocatorStats) for what is its. */
static void put_heap_stats(const ms_alloc_pool *pool, ms_text *text)
{
    const ms_pool *of = pool->follow.play.pool;
    ms_torch_stats stats;
    ms_pool_stats told;
    ms_torchview_stats(of, &stats);
    ms_pool_tell(of, &told);
    ms_text_add(text, ",\n     \"stats\": {");
    for (uint32_t i = 0, n = 0; i < MS_TORCH_N_MEASURES; i++) {
        if (i == MS_TORCH_INACTIVE_SPLIT || i == MS_TORCH_INACTIVE_SPLIT_BYTES)
            continue;
        ms_text_add(text, "%s\n      \"%s.all\": ", n++ > 0 ? "," : "",
                    ms_torchview_measures[i]);
        put_stat(text, &stats.of[i][MS_TORCH_ALL]);
    }
    ms_text_add(text, ",\n      \"num_alloc_retries\": ");
    ms_text_u64(text, stats.retries);
    put_number(text, "num_ooms", stats.ooms);
    put_number(text, "num_device_alloc", stats.device_allocs);
    put_number(text, "num_device_free", stats.device_frees);
    put_number(text, "touched_bytes", told.touched_bytes);
    put_number(text, "largest_alloc_size", told.largest_bytes);
    put_number(text, "largest_free_block_bytes", told.largest_idle_bytes);
    if (pool->as.heap.kind == MS_POOL_BFC)
        put_bfc_stats(&stats, &told, text);
    if (pool->as.heap.kind == MS_POOL_CONTIGUOUS) {
        put_number(text, "moves", told.moves);
        put_number(text, "copies", told.copies);
        put_number(text, "moved_bytes", told.moved_bytes);
    }
    ms_text_put(text, "}", 1);
}

/* Named as in torch.cuda.memory_stats(). */
static void put_torch_stats(const ms_alloc_pool *pool, ms_text *text)
{
    ms_torch_stats stats;
    bool old = pool->setup.torch.version == MS_TORCH_V1_13;
    ms_torchview_stats(pool->follow.play.pool, &stats);
    ms_text_add(text, ",\n     \"stats\": {");
    for (uint32_t i = 0; i < MS_TORCH_N_MEASURES; i++)
        for (uint32_t s = 0; s < MS_TORCH_N_SCOPES; s++) {
            if (old && i == MS_TORCH_REQUESTED_BYTES)
                continue;
            ms_text_add(text, "%s\n      \"%s.%s\": ", i + s > 0 ? "," : "",
                        ms_torchview_measures[i], ms_torchview_scopes[s]);
            put_stat(text, &stats.of[i][s]);
        }
    ms_text_add(text, ",\n      \"oversize_allocations\": ");
    put_stat(text, &stats.oversize_allocations);
    ms_text_add(text, ",\n      \"oversize_segments\": ");
    put_stat(text, &stats.oversize_segments);
    ms_text_add(text, ",\n      \"num_alloc_retries\": ");
    ms_text_u64(text, stats.retries);
    put_number(text, "num_ooms", stats.ooms);
    put_number(text, "num_device_alloc", stats.device_allocs);
    put_number(text, "num_device_free", stats.device_frees);
    ms_text_add(text, ", \"max_split_size\": ");
    if (stats.max_split_bytes == UINT64_MAX)
        ms_text_add(text, "-1}");
    else {
        ms_text_u64(text, stats.max_split_bytes);
        ms_text_add(text, "}");
    }
}

/* Named as in torch.cuda.memory_snapshot(). */
static void put_segment(const ms_torch_segment_view *segment, bool heap,
                        ms_text *text)
{
    ms_text_add(text, "\n      {\"address\": ");
    ms_text_u64(text, segment->address);
    put_number(text, "total_size", segment->bytes);
    put_number(text, "stream", segment->stream);
    if (heap)
        ms_text_add(text, ", \"segment_type\": null");
    else
        put_word(text, "segment_type", segment->small ? "small" : "large");
    put_number(text, "allocated_size", segment->allocated_bytes);
    put_number(text, "active_size", segment->active_bytes);
    put_number(text, "requested_size", segment->requested_bytes);
    ms_text_add(text, ", \"is_expandable\": %s, \"blocks\": [",
                segment->expandable ? "true" : "false");
    for (uint32_t i = 0; i < segment->n_blocks; i++) {
        const ms_torch_block_view *block = &segment->blocks[i];
        ms_text_add(text, "%s\n       {\"address\": ", i > 0 ? "," : "");
        ms_text_u64(text, block->address);
        put_number(text, "size", block->bytes);
        put_number(text, "requested_size", block->requested_bytes);
        put_word(text, "state", ms_torchview_states[block->state]);
        ms_text_put(text, "}", 1);
    }
    ms_text_add(text, "]}");
}

static void put_recorded(const ms_allocfollow *follow, ms_text *text)
{
    const ms_allocfollow_result *result = &follow->result;
    ms_text_add(text, ",\n     \"recorded\": ");
    if (!follow->given) {
        ms_text_add(text, "null");
        return;
    }
    ms_text_add(text, "{\"events\": ");
    ms_text_u64(text, result->n_addresses);
    put_number(text, "segment_events", result->n_answers);
    put_number(text, "blocks", result->n_blocks);
    put_number(text, "differences", result->n_different);
    ms_text_put(text, "}", 1);
}

ms_alloc_held ms_alloc_data_held(const ms_alloc_run *run)
{
    const ms_recording *recording = &run->source.recording;
    ms_alloc_held held = {0};
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

static void put_held(const ms_alloc_run *run, ms_text *text)
{
    ms_alloc_held held = ms_alloc_data_held(run);
    if (!run->source.is_recorded)
        return;
    ms_text_add(text, ",\n \"held_at_start\": {\"blocks\": ");
    ms_text_u64(text, held.blocks);
    put_number(text, "bytes", held.bytes);
    put_number(text, "reserved_bytes", held.reserved_bytes);
    ms_text_add(text, ", \"anew\": %s}", run->anew ? "true" : "false");
}

static ms_err put_pool(const ms_alloc_run *run, const ms_alloc_pool *pool,
                       ms_text *text, ms_fault *fault)
{
    const ms_allocplay *play = &pool->follow.play;
    bool heap = pool->as.heap.kind != MS_POOL_TORCH;
    ms_torch_snapshot snapshot;
    MS_TRY(ms_torchview_snapshot(play->pool, text->arena, &snapshot, fault));
    ms_text_add(text, "    {\"allocator\": ");
    ms_text_json(text, pool->as.spec);
    put_word(text, "kind", ms_pool_types[pool->as.heap.kind]);
    if (heap)
        ms_text_add(text, ", \"version\": null");
    else
        put_word(text, "version",
                 ms_torchconf_versions[pool->setup.torch.version]);
    put_word(text, "va",
             pool->setup.torch.policy == MS_TORCH_GIVEN
                 ? "recorded"
                 : ms_torch_policies[pool->setup.torch.policy]);
    ms_text_add(text, ",\n     \"operations\": ");
    ms_text_u64(text, play->n_ops);
    put_number(text, "allocations", play->n_allocs);
    put_number(text, "out_of_memory", play->n_oom);
    ms_text_add(text, ", \"first_out_of_memory_line\": ");
    if (play->n_oom > 0)
        ms_text_u64(text, play->first_oom);
    else
        ms_text_add(text, "null");
    put_number(text, "device_used_bytes", ms_torchview_device_used(play->pool));
    if (run->source.is_recorded)
        put_recorded(&pool->follow, text);
    if (heap)
        put_heap_stats(pool, text);
    else
        put_torch_stats(pool, text);
    ms_text_add(text, ",\n     \"segments\": [");
    for (uint32_t i = 0; i < snapshot.n_segments; i++) {
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_segment(&snapshot.segments[i], heap, text);
    }
    ms_text_add(text, "]}");
    return MS_OK;
}

static void put_leak(const ms_alloc_run *run, uint32_t g, ms_text *text)
{
    const ms_alloc_leaks *leaks = run->leaks;
    const ms_alloc_group *group = &leaks->groups[g];
    const ms_alloc_level *levels = ms_alloc_leaks_levels(leaks, g);
    ms_text_add(text, "\n   {\"site\": ");
    if (group->site != MS_NONE) {
        ms_text_json(text, run->source.recording.sites[group->site]);
    } else {
        ms_text_add(text, "null");
        put_number(text, "request_bytes", group->bytes);
        put_number(text, "stream", group->stream);
    }
    ms_text_add(text, ", \"alive\": [");
    for (uint32_t k = 0; k < leaks->n_points; k++) {
        ms_text_add(text, "%s", k > 0 ? ", " : "");
        ms_text_u64(text, levels[k].count);
    }
    ms_text_add(text, "], \"bytes\": [");
    for (uint32_t k = 0; k < leaks->n_points; k++) {
        ms_text_add(text, "%s", k > 0 ? ", " : "");
        ms_text_u64(text, levels[k].bytes);
    }
    ms_text_add(text, "]}");
}

/* Of what grows: levels at each of the steps. */
static void put_leaks(const ms_alloc_run *run, ms_text *text)
{
    static const char *const by[] = {"step", "reset", "period"};
    const ms_alloc_leaks *leaks = run->leaks;
    ms_text_add(text, ",\n \"leaks\": {\"steps\": %u", leaks->n_points);
    put_word(text, "steps_by", by[leaks->by]);
    ms_text_add(text, ", \"period_allocations\": ");
    if (leaks->by == MS_ALLOC_PERIOD)
        ms_text_u64(text, leaks->period);
    else
        ms_text_add(text, "null");
    ms_text_add(text, ", \"groups\": [");
    for (uint32_t i = 0; i < leaks->n_found; i++) {
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_leak(run, leaks->found[i], text);
    }
    ms_text_add(text, "]}");
}

ms_err ms_alloc_data_json(const ms_alloc_run *run, ms_text *text,
                          ms_fault *fault)
{
    ms_text_add(text, "{\"schema_version\": 1, \"memsim\": \"%s\"", MS_VERSION);
    put_word(text, "trace", run->source.name);
    put_number(text, "device_bytes", run->pools[0].setup.torch.total_bytes);
    put_number(text, "base_bytes", run->pools[0].setup.torch.base_bytes);
    put_word(text, "conf", run->head.conf);
    put_held(run, text);
    ms_text_add(text, ",\n \"allocators\": [\n");
    for (uint32_t i = 0; i < run->n_pools; i++) {
        MS_TRY(put_pool(run, &run->pools[i], text, fault));
        ms_text_add(text, "%s\n", i + 1 < run->n_pools ? "," : "");
    }
    ms_text_add(text, " ]");
    if (run->leaks != NULL)
        put_leaks(run, text);
    ms_text_add(text, "}\n");
    return MS_OK;
}
