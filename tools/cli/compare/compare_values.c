/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/compare/compare.h"

#include <string.h>

const ms_rank_report *ms_compare_values_rank(const ms_variant *variant)
{
    const ms_report *report = &variant->record.report;
    return &report->ranks[report->told];
}

uint64_t ms_compare_values_of(const ms_variant *variant, uint32_t row)
{
    uint64_t value;
    const char *rank = (const char *)ms_compare_values_rank(variant);
    memcpy(&value, rank + ms_compare_rows[row].offset, sizeof value);
    return value;
}
