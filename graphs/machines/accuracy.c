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

/* Images were timed on one card alone; what is of sequences of any length holds
 * no images. */
const ms_accuracy ms_accuracy_rows[MS_ACCURACY_ROWS] = {
    {"a100-40gb-sxm", MS_FLASH, 4096, 14, 2.4, 17.5},
    {"a100-40gb-sxm", MS_FLASH, MS_ACCURACY_ANY, 22, 1.5, 17.5},
    {"a100-80gb-sxm", MS_FLASH, 1024, 5, 6.2, 19.9},
    {"a100-80gb-sxm", MS_FLASH, 4096, 9, 2.7, 6.5},
    {"a100-80gb-sxm", MS_FLASH, 16384, 6, 3.1, 5.7},
    {"a100-80gb-sxm", MS_FLASH, LONG, 8, 1.9, 2.7},
    {"a100-80gb-sxm", MS_FLASH, MS_ACCURACY_ANY, 28, 2.6, 8.3},
    {"a100-80gb-sxm", MS_KORTHIKANTI, 1024, 110, 6.9, 15.3},
    {"a100-80gb-sxm", MS_KORTHIKANTI, MS_ACCURACY_ANY, 113, 6.8, 14.8},
    {"h100-80gb-sxm", MS_FLASH, 4096, 8, 2.0, 8.7},
    {"h100-80gb-sxm", MS_FLASH, MS_ACCURACY_ANY, 16, 2.4, 7.8},
    {"rtx3090-24gb", MS_FLASH, 0, 26, 7.4, 32.0},
};

static const ms_accuracy *find(const char *device, int64_t kernels,
                               uint64_t tokens)
{
    for (uint32_t i = 0; i < MS_ACCURACY_ROWS; i++) {
        const ms_accuracy *row = &ms_accuracy_rows[i];
        if (row->kernels == kernels && row->tokens == tokens &&
            strcmp(row->device, device) == 0)
            return row;
    }
    return NULL;
}

const ms_accuracy *ms_accuracy_find(const char *device, int64_t kernels,
                                    uint64_t tokens)
{
    const ms_accuracy *row = find(device, kernels, ms_accuracy_range(tokens));
    return row != NULL || tokens == 0 ? row
                                      : find(device, kernels, MS_ACCURACY_ANY);
}
