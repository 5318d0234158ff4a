/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/accuracy.h"
#include "graphs/kernels/kernels.h"

#include <string.h>

#define LONG (UINT64_MAX - 1)

const uint64_t ms_accuracy_ranges[MS_ACCURACY_RANGES] = {1024, 4096, 16384,
                                                         LONG};

uint64_t ms_accuracy_range(uint64_t tokens)
{
    uint32_t i = 0;
    while (tokens > ms_accuracy_ranges[i] && i + 1 < MS_ACCURACY_RANGES)
        i++;
    return tokens == 0 ? 0 : ms_accuracy_ranges[i];
}

static const ms_accuracy *find_time(const char *device, int64_t kernels,
                                    uint64_t tokens)
{
    for (uint32_t i = 0; i < ms_accuracyrows_n_times; i++) {
        const ms_accuracy_times *row = &ms_accuracyrows_times[i];
        if (row->kernels == kernels && row->tokens == tokens &&
            strcmp(row->device, device) == 0)
            return &row->of;
    }
    return NULL;
}

const ms_accuracy *ms_accuracy_time(const char *device, int64_t kernels,
                                    uint64_t tokens)
{
    bool split = tokens == MS_ACCURACY_SPLIT;
    const ms_accuracy *of =
        find_time(device, kernels, split ? tokens : ms_accuracy_range(tokens));
    /* Images were timed on one card alone; what is of sequences of any length
     * holds no images. */
    return of != NULL || tokens == 0 || split
               ? of
               : find_time(device, kernels, MS_ACCURACY_ANY);
}

ms_accuracy_library ms_accuracy_whose(int64_t kernels,
                                      ms_accuracy_library divided, bool split)
{
    if (divided == MS_ACCURACY_FSDP || divided == MS_ACCURACY_DEEPSPEED)
        return divided;
    if (kernels == MS_NANOTRON)
        return MS_ACCURACY_NANOTRON;
    if (kernels == MS_MEGATRON)
        return split ? MS_ACCURACY_MEGATRON_SPLIT : MS_ACCURACY_MEGATRON;
    return divided;
}

static const ms_accuracy *find_peak(ms_accuracy_library library, uint64_t again)
{
    for (uint32_t i = 0; i < ms_accuracyrows_n_peaks; i++) {
        const ms_accuracy_peaks *row = &ms_accuracyrows_peaks[i];
        if (row->library == library && row->again == again)
            return &row->of;
    }
    return NULL;
}

const ms_accuracy *ms_accuracy_peak(ms_accuracy_library library, bool again)
{
    const ms_accuracy *of = find_peak(library, again);
    return of != NULL ? of : find_peak(library, MS_ACCURACY_ANY);
}
