/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of a row of memsim sweep: columns of its CSV, members of its JSON.
 * The order is that of the columns; those that are optional were not in the
 * files of memsim 0.1.0. */

#include "sim/names.h"
#include "sim/report.h"
#include "tools/results/rows.h"

static const char varied[] = "^(training|graph|model)\\."
                             "|^(device|gpus|global_batch|memory|host_memory|"
                             "nvme|allocator|steps|lengths)$";

#define ROW(kind, member) MS_KEYS_AT(kind, ms_sweep_row, member)

/* A point that was refused or is infeasible has no numbers. */
static bool has_numbers(const void *of)
{
    const ms_sweep_row *row = of;
    return row->has_numbers;
}

static bool is_judged(const void *of)
{
    const ms_sweep_row *row = of;
    return row->has_numbers && row->fits_known;
}

static const ms_key row_rows[] = {
    {.name = "point",
     .type = MS_KEY_COUNT,
     ROW(U64, point),
     .help = "from 1, counted over the whole product of the grids; then their "
             "keys (training.batch, ...) in their order: memory in bytes, "
             "devices by name"},
    {.name = "policy",
     .type = MS_KEY_TEXT,
     ROW(TEXT, policy),
     .help = "canonical spelling"},
    {.name = "status",
     .type = MS_KEY_WORD,
     ROW(TEXT, status),
     .words = "refused",
     .names = ms_names_status,
     .n_names = MS_INFEASIBLE + 1,
     .help = "ok, over, out_of_memory, infeasible or refused"},
    {.name = "message",
     .type = MS_KEY_TEXT,
     ROW(TEXT, message),
     .null = true,
     .help = "why it is infeasible or refused, where memory ran out, or which "
             "memory of a node is too small"},
    {.name = "peak_allocated_bytes",
     .type = MS_KEY_COUNT,
     ROW(U64, peak_allocated_bytes),
     .there = has_numbers,
     .null = true,
     .help = ""},
    {.name = "peak_reserved_bytes",
     .type = MS_KEY_COUNT,
     ROW(U64, peak_reserved_bytes),
     .there = has_numbers,
     .null = true,
     .help = "of the highest rank"},
    {.name = "fits",
     .type = MS_KEY_BOOL,
     ROW(BOOL, fits),
     .there = is_judged,
     .null = true,
     .help = "as run says it; null (in CSV nothing) where the point went "
             "through no pool and run's would: --allocator torch tells"},
    {.name = "step_ns",
     .type = MS_KEY_COUNT,
     ROW(U64, step_ns),
     .there = has_numbers,
     .null = true,
     .help = ""},
    {.name = "recompute_ns",
     .type = MS_KEY_COUNT,
     ROW(U64, recompute_ns),
     .there = has_numbers,
     .null = true,
     .help = ""},
    {.name = "stall_ns",
     .type = MS_KEY_COUNT,
     ROW(U64, stall_ns),
     .there = has_numbers,
     .null = true,
     .help = "as in run"},
    {.name = "exposed_comm_ns",
     .type = MS_KEY_COUNT,
     ROW(U64, exposed_comm_ns),
     .there = has_numbers,
     .null = true,
     .help = ""},
    {.name = "tokens_per_second",
     .type = MS_KEY_NUMBER,
     ROW(RATE, tokens_per_second),
     .there = has_numbers,
     .null = true,
     .help = "as in run"},
    {.name = "host_peak_bytes",
     .type = MS_KEY_COUNT,
     ROW(U64, host_peak_bytes),
     .there = has_numbers,
     .null = true,
     .help = ""},
    {.name = "host_reserved_peak_bytes",
     .type = MS_KEY_COUNT,
     ROW(U64, host_reserved_peak_bytes),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "as in run"},
    {.name = "model",
     .type = MS_KEY_TEXT,
     ROW(TEXT, model),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = ""},
    {.name = "setup",
     .type = MS_KEY_TEXT,
     ROW(TEXT, setup),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "batch, precision, optimizer, device: what a figure says"},
    {.name = "job_gpus",
     .type = MS_KEY_COUNT,
     ROW(U64, job_gpus),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "that share the step"},
    {.name = "job_batch",
     .type = MS_KEY_COUNT,
     ROW(U64, job_batch),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "samples of all of them"},
    {.name = "capacity_bytes",
     .type = MS_KEY_COUNT,
     ROW(U64, capacity_bytes),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "of the device"},
    {.name = "context_bytes",
     .type = MS_KEY_COUNT,
     ROW(U64, context_bytes),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "of it what CUDA and NCCL take"},
    {.name = "fits_exact",
     .type = MS_KEY_BOOL,
     ROW(BOOL, fits_exact),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "with bare lifetimes, as --allocator exact has them"},
    {.name = "replayed_because",
     .type = MS_KEY_TEXT,
     ROW(TEXT, replayed_because),
     .there = has_numbers,
     .null = true,
     .optional = true,
     .help = "why such a point is replayed event by event; null: summaries of "
             "its calls tell it, once they are proven by a replay (JSON only)"},
};
const ms_keys ms_keys_row = {
    .name = "row", .rows = row_rows, .n = MS_KEYS_N(row_rows), .any = varied};
