/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which of several traces allocates most, and what it holds that the one that
 * allocates least lacks. */

#include "sim/pools/history/alloctrace.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/recordings/recordedfile.h"

uint64_t ms_alloc_traces_peak(const ms_alloc_run *run, uint32_t pool,
                              ms_torch_measure measure)
{
    return run->pools[pool].stats.of[measure][MS_TORCH_ALL].peak;
}

static void find_extremes(ms_alloc_traces *t)
{
    for (uint32_t i = 1; i < t->n; i++) {
        const ms_alloc_run *run = &t->runs[i];
        uint64_t peak = ms_alloc_traces_peak(run, 0, MS_TORCH_ALLOCATED_BYTES);
        uint64_t reserved =
            ms_alloc_traces_peak(run, 0, MS_TORCH_RESERVED_BYTES);
        if (peak > ms_alloc_traces_peak(&t->runs[t->highest], 0,
                                        MS_TORCH_ALLOCATED_BYTES))
            t->highest = i;
        if (peak < ms_alloc_traces_peak(&t->runs[t->lowest], 0,
                                        MS_TORCH_ALLOCATED_BYTES))
            t->lowest = i;
        if (reserved > ms_alloc_traces_peak(&t->runs[t->most_reserved], 0,
                                            MS_TORCH_RESERVED_BYTES))
            t->most_reserved = i;
    }
    t->gap = (int64_t)(ms_alloc_traces_peak(&t->runs[t->highest], 0,
                                            MS_TORCH_ALLOCATED_BYTES) -
                       ms_alloc_traces_peak(&t->runs[t->lowest], 0,
                                            MS_TORCH_ALLOCATED_BYTES));
}

/* Only of the two the allocations are needed again: they are read again, so
 * that of any number of traces there is never more than that in memory. */
ms_err ms_alloc_traces_compare(ms_alloc_traces *traces, ms_arena *arena,
                               ms_fault *fault)
{
    find_extremes(traces);
    const ms_alloc_run *both[2] = {&traces->runs[traces->lowest],
                                   &traces->runs[traces->highest]};
    if (traces->lowest == traces->highest) {
        traces->without = "all allocate the same at their peaks";
        return MS_OK;
    }
    for (int s = 0; s < 2; s++)
        if (!ms_recordedfile_is(both[s]->source.path)) {
            traces->without = "what makes the difference is told of recorded "
                              "histories in files";
            return MS_OK;
        }
    for (int s = 0; s < 2; s++) {
        MS_TRY(ms_recordedside_read(both[s]->source.path, arena,
                                    &traces->sides[s], fault));
        MS_TRY(ms_side_measure(&traces->sides[s], arena, fault));
    }
    return ms_pairings_find(traces->sides, arena, &traces->pairs, fault);
}
