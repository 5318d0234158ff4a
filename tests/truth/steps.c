/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step that nets_torch.py measured: the columns of nets.tsv. */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>

#define WORTH_A_LOOK 1024u /* bytes; smaller allocations are scalars */

static bool is_backward(uint8_t pass)
{
    return pass == MS_RECOMPUTE || pass == MS_GRAD_INPUT ||
           pass == MS_GRAD_WEIGHT || pass == MS_ACCUMULATE;
}

/* FNV-1a over the decimal sizes of backward's allocations, a line each. */
static uint64_t hash_backward(const ms_result *result, uint64_t *n)
{
    const ms_plan *plan = &result->plan;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    *n = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        const ms_row *row = &plan->row[r];
        char line[32];
        bool counts = is_backward(plan->op[row->op].pass) ||
                      truth_is_state(&result->plan, row->op);
        if (!counts || row->bytes < WORTH_A_LOOK ||
            row->category == MS_WORKSPACE)
            continue;
        snprintf(line, sizeof line, "%" PRIu64 "\n", row->bytes);
        for (const char *c = line; *c != '\0'; c++)
            hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
        (*n)++;
    }
    return hash;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void truth_step(const char *group, const truth_table *table, uint32_t row,
                const ms_result *result)
{
    const ms_rank_report *rank = truth_rank(result);
    const uint64_t *level = rank->levels, *peak = rank->phase_peaks;
    uint64_t start = level[MS_MARK_START], n;
    uint64_t hash = hash_backward(result, &n);
    const struct {
        const char *column;
        uint64_t memsim;
    } quantities[] = {
        {"static_bytes", start},
        {"saved_bytes", rank->saved_for_backward_bytes},
        {"live_after_fwd_rel", level[MS_MARK_BEFORE_LOSS] - start},
        {"live_after_loss_rel", level[MS_MARK_AFTER_FORWARD] - start},
        {"live_after_bwd_rel", level[MS_MARK_AFTER_BACKWARD] - start},
        {"bwd_peak_rel_no_ws", peak[MS_PHASE_BACKWARD] - start},
        {"fwd_peak_rel_no_ws",
         larger(peak[MS_PHASE_FORWARD], peak[MS_PHASE_LOSS]) - start},
        {"allocations", n},
        {"hash", hash},
    };
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        truth_compare(group, truth_cell(table, row, "case"),
                      quantities[i].column,
                      truth_number(table, row, quantities[i].column),
                      quantities[i].memsim);
}
