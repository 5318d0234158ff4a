/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Simulates a step that nets_torch.py measured, and computes the columns of
 * nets.tsv from it. */
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORTH_A_LOOK 1024u /* bytes; smaller allocations are scalars */

static bool is_backward(uint8_t pass)
{
    return pass == MS_RECOMPUTE || pass == MS_GRAD_INPUT ||
           pass == MS_GRAD_WEIGHT || pass == MS_ACCUMULATE;
}

/* Hashes (FNV-1a) the decimal sizes of backward's allocations, one a line. */
static uint64_t hash_backward(const ms_result *result, uint64_t *n)
{
    const ms_plan *plan = result->plan;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    *n = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        const ms_row *row = &plan->row[r];
        char line[32];
        bool counts = is_backward(plan->op[row->op].pass) ||
                      truth_is_state(result->plan, row->op);
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
         truth_larger(peak[MS_PHASE_FORWARD], peak[MS_PHASE_LOSS]) - start},
        {"allocations", n},
        {"hash", hash},
    };
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        truth_compare(group, truth_cell(table, row, "case"),
                      quantities[i].column,
                      truth_number(table, row, quantities[i].column),
                      quantities[i].memsim);
}

/* ---- built-in networks --------------------------------------------------- */

/* Reads the options in what follows the batch in a case's name: s35 is the
 * sequence; w32 and l16 are numbers of the model's config. */
static void options_of(const char *name, char options[128])
{
    static const struct {
        char letter;
        const char *option;
    } letters[] = {{'b', "--batch "},
                   {'s', "--sequence "},
                   {'w', "--set model.width="},
                   {'l', "--set model.latent="}};
    size_t used = 0;
    options[0] = '\0';
    for (const char *at = strrchr(name, '_') + 1; *at != '\0';) {
        size_t i = 0, digits = strspn(at + 1, "0123456789");
        while (letters[i].letter != *at)
            ck_assert_uint_lt(++i, sizeof letters / sizeof *letters);
        used += (size_t)snprintf(options + used, 128 - used, "%s%.*s ",
                                 letters[i].option, (int)digits, at + 1);
        at += 1 + digits;
    }
}

const ms_result *truth_builtin(const char *name)
{
    char options[128];
    options_of(name, options);
    return truth_run("%.*s %s --optimizer sgd --kernels eager --precision fp32 "
                     "--framework torch-1.13 --set training.device=cpu",
                     (int)(strrchr(name, '_') - name), name, options);
}
