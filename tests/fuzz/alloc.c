/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes bytes as an allocation trace, or as a recorded history where they
 * begin with a brace or as a pickle does. What can be read goes through a
 * pool of each kind, whose invariants must hold. */
#include "sim/pools/history/alloctrace.h"
#include "sim/pools/pool.h"
#include "sim/pools/torch/torch.h"
#include "tests/fuzz/fuzz.h"
#include "tools/cli/alloc/alloc_keys.h"
#include "tools/cli/commands.h"

#include "sim/pools/place/placement.h"
#include "tools/recordings/recordings.h"

#include <string.h>

#define DEVICE_BYTES (UINT64_C(512) << 20)

static ms_err do_line(ms_allocplay *play, ms_alloctext_head *head,
                      const ms_alloctrace_spot *spot, const char *line,
                      size_t length, const ms_heap_options *heap,
                      const ms_keys_plan *csv, ms_fault *fault)
{
    ms_alloctext_op op;
    ms_allocplay_row row;
    ms_allocplay_line told;
    ms_torch_setup setup;
    ms_text text = {.arena = play->arena};
    MS_TRY(ms_alloctext_line(spot, line, length, &op, fault));
    if (op.kind == 0)
        return MS_OK;
    if (op.kind == '#')
        return ms_alloctext_header(spot, &op, play->arena, head, fault);
    if (play->pool == NULL) {
        uint64_t total = head->total_bytes;
        ms_torch_setup_init(&setup, total > 0 ? total : DEVICE_BYTES);
        setup.base_bytes = head->base_bytes;
        if (head->policy >= 0)
            setup.policy = (ms_torch_policy)head->policy;
        if (head->version >= 0)
            setup.version = (ms_torch_version)head->version;
        MS_TRY(ms_torchconf_parse(head->conf, spot->name, MS_EINPUT,
                                  setup.version, &setup.options, fault));
        MS_TRY(ms_allocplay_start(play, &(ms_pool_setup){setup, *heap},
                                  play->arena, fault));
    }
    MS_TRY(ms_allocplay_do(play, spot, &op, &row, fault));
    ms_allocplay_tell(play, &row, &told);
    ms_keys_write_line(csv, &told, &text);
    return MS_OK;
}

static ms_err read_text(char *bytes, size_t length, const ms_heap_options *heap,
                        ms_arena *arena, ms_fault *fault)
{
    ms_allocplay play = {.arena = arena};
    ms_alloctext_head head = {.conf = "", .policy = -1, .version = -1};
    ms_alloctrace_spot spot = {"fuzz", 1, 0};
    ms_err err = MS_OK;
    ms_keys_plan csv;
    if (!ms_keys_write_plan(&ms_alloc_keys_line, NULL, arena, &csv))
        return ms_fail_nomem(fault);
    for (size_t at = 0; at < length && err == MS_OK; spot.line++) {
        char *end = memchr(bytes + at, '\n', length - at);
        size_t n = end != NULL ? (size_t)(end - bytes) - at : length - at;
        bytes[at + n] = '\0';
        err = do_line(&play, &head, &spot, bytes + at, n, heap, &csv, fault);
        at += n + 1;
    }
    FUZZ_LAW(err != MS_OK || play.pool == NULL ||
             ms_torchview_check(play.pool) == NULL);
    return err;
}

static ms_err read_recording(const char *bytes, size_t length, bool given,
                             const ms_heap_options *heap, ms_arena *arena,
                             ms_fault *fault)
{
    ms_recording recording;
    ms_torch_setup setup;
    ms_allocfollow follow;
    ms_allocplay_row row;
    MS_TRY(bytes[0] == '{' ? ms_recording_read("fuzz", bytes, length, arena,
                                               &recording, fault)
                           : ms_snapshot_read("fuzz", bytes, length, arena,
                                              &recording, fault));
    ms_torch_setup_init(&setup, DEVICE_BYTES);
    if (given && heap->kind == MS_POOL_TORCH)
        setup.policy = MS_TORCH_GIVEN;
    setup.options.expandable = recording.expandable;
    MS_TRY(ms_allocfollow_start(&follow, &recording,
                                &(ms_pool_setup){setup, *heap},
                                (length & 1) != 0, arena, fault));
    for (bool more = true; more;)
        MS_TRY(ms_allocfollow_do(&follow, &row, &more, fault));
    FUZZ_LAW(heap->kind == MS_POOL_TORCH ||
             ms_torchview_check(follow.play.pool) == NULL);
    return ms_allocfollow_end(&follow, arena, fault);
}

/* In any plan, buffers that live at the same time must not overlap. */
static ms_err read_csv(const char *bytes, size_t length, ms_arena *arena,
                       ms_fault *fault)
{
    ms_placement_list list;
    uint64_t bound, height;
    MS_TRY(ms_placecsv_read("fuzz", bytes, length, arena, &list, fault));
    uint64_t *at = ms_arena_take(arena, list.n + 1, sizeof *at);
    const ms_placement_buffer *b = list.buffers;
    if (at == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_placement_bound(b, list.n, arena, &bound, fault));
    for (ms_placement_rule rule = 0; rule < MS_PLACEMENT_N_RULES; rule++) {
        MS_TRY(ms_placement_greedy(b, list.n, rule, at, &height, fault));
        FUZZ_LAW(height >= bound);
        for (uint32_t i = 1; i < list.n; i++)
            FUZZ_LAW(b[i].lower >= b[i - 1].upper ||
                     b[i - 1].lower >= b[i].upper ||
                     at[i] >= at[i - 1] + b[i - 1].bytes ||
                     at[i - 1] >= at[i] + b[i].bytes);
    }
    return MS_OK;
}

static void check_one(const uint8_t *bytes, size_t length, bool given,
                      const ms_heap_options *heap)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    char *copy = ms_arena_text(&arena, (const char *)bytes, length);
    ms_err err = MS_OK;
    if (copy != NULL && length > 0 && (copy[0] == '{' || copy[0] == '\x80'))
        err = read_recording(copy, length, given, heap, &arena, &fault);
    else if (copy != NULL && length > 3 && memcmp(copy, "id,", 3) == 0)
        err = read_csv(copy, length, &arena, &fault);
    else if (copy != NULL && !given)
        err = read_text(copy, length, heap, &arena, &fault);
    FUZZ_LAW(err == fault.err);
    ms_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const ms_heap_options heaps[] = {
        {.kind = MS_POOL_TORCH},
        {.kind = MS_POOL_BFC, .allow_growth = true},
        {.kind = MS_POOL_BUDDY},
        {.kind = MS_POOL_CONTIGUOUS},
        {.kind = MS_POOL_CONTIGUOUS, .size_bytes = 1000}};
    for (size_t i = 0; i < sizeof heaps / sizeof heaps[0]; i++)
        check_one(bytes, length, false, &heaps[i]);
    check_one(bytes, length, true, &heaps[0]);
    return 0;
}
