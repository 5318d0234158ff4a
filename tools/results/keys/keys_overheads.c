/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a run that no tensor of the model takes. */
#include "sim/report.h"
#include "tools/results/sheet.h"

#define SHEET(kind, member) MS_KEYS_AT(kind, ms_sheet, member)
#define REPORT(kind, member)                                                   \
    MS_KEYS_VIA(ms_sheet, report), MS_KEYS_AT(kind, ms_report, member)

static bool is_deep(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->outside.deepep_bytes > 0;
}

static bool is_overlapped(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->report->outside.userbuffers_bytes > 0;
}

static const ms_key overheads_rows[] = {
    {.name = "context_and_kernels_bytes",
     .type = MS_KEY_COUNT,
     REPORT(U64, outside.kernels_bytes),
     MS_KEYS_MUST,
     .help = "CUDA context and the kernels loaded with it"},
    {.name = "nccl_bytes",
     .type = MS_KEY_COUNT,
     REPORT(U64, outside.nccl_bytes),
     MS_KEYS_MUST,
     .help = "NCCL's kernels, and buffers of its communicators"},
    {.name = "nccl_communicators",
     .type = MS_KEY_COUNT,
     REPORT(U32, outside.communicators),
     MS_KEYS_MUST},
    {.name = "nccl_channels",
     .type = MS_KEY_COUNT,
     REPORT(U32, outside.channels),
     MS_KEYS_MUST},
    {.name = "deepep_bytes",
     .type = MS_KEY_COUNT,
     REPORT(U64, outside.deepep_bytes),
     .there = is_deep,
     .optional = true,
     .help = "buffers of DeepEP (expert:E,dispatch=deepep)"},
    {.name = "userbuffers_bytes",
     .type = MS_KEY_COUNT,
     REPORT(U64, outside.userbuffers_bytes),
     .there = is_overlapped,
     .optional = true,
     .help = "what exchanges beside products go through (tensor:T,sp,overlap): "
             "Transformer Engine's userbuffers, or torch's symmetric memory"},
    {.name = "library_workspaces_bytes",
     .type = MS_KEY_COUNT,
     SHEET(U64, libraries_bytes),
     MS_KEYS_SKIP,
     .help = "what cuBLAS keeps in the pool; part of allocated"},
    {.name = "library_workspaces",
     .type = MS_KEY_COUNT,
     SHEET(U32, n_libraries),
     MS_KEYS_SKIP,
     .help = "how many these are: one per thread that multiplies"}};
const ms_keys ms_keys_overheads = MS_KEYS_OBJECT("overheads", overheads_rows);
