/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/program.h"
#include "sim/report.h"

#include <string.h>

const char *const ms_names_category[MS_N_CATEGORIES] = {
    [MS_PARAMETERS] = "parameters",   [MS_OPTIMIZER_STATE] = "optimizer_state",
    [MS_GRADIENTS] = "gradients",     [MS_INPUTS] = "inputs",
    [MS_ACTIVATIONS] = "activations", [MS_TEMPORARIES] = "temporaries",
    [MS_WORKSPACE] = "workspace",     [MS_COMMUNICATION] = "communication",
};

const char *const ms_names_pass[MS_N_PASSES] = {
    [MS_FORWARD] = "forward",
    [MS_LOSS] = "loss",
    [MS_GRAD_INPUT] = "grad_input",
    [MS_GRAD_WEIGHT] = "grad_weight",
    [MS_ACCUMULATE] = "accumulate",
    [MS_STEP] = "step",
    [MS_RECOMPUTE] = "recompute",
    [MS_START] = "start",
    [MS_COPY] = "copy",
};

const char *const ms_names_phase[MS_N_PHASES] = {
    [MS_PHASE_FORWARD] = "forward",
    [MS_PHASE_LOSS] = "loss",
    [MS_PHASE_BACKWARD] = "backward",
    [MS_PHASE_OPTIMIZER] = "optimizer",
};

const char *const ms_names_best[] = {[MS_BEST_NONE] = NULL,
                                     [MS_BEST_ALL_ORDERS] = "all_orders",
                                     [MS_BEST_CUT_POINTS] = "cut_points",
                                     [MS_BEST_PERSISTENT] = "persistent",
                                     [MS_BEST_TRIED] = "tried"};
const char *const ms_names_status[] = {
    [MS_FITS] = "ok",
    [MS_OVER] = "over",
    [MS_OUT_OF_MEMORY] = "out_of_memory",
    [MS_INFEASIBLE] = "infeasible",
};

const char *const ms_names_place[MS_N_PLACES] = {
    [MS_HERE] = "here",     [MS_PENDING] = "pending", [MS_GONE] = "gone",
    [MS_HOST] = "host",     [MS_NVME] = "nvme",       [MS_SHARD] = "shard",
    [MS_PACKED] = "packed",
};

const char *const ms_names_pool[MS_N_POOLS] = {
    [MS_DEVICE_POOL] = "device",
    [MS_HOST_POOL] = "host",
    [MS_NVME_POOL] = "nvme",
};

const char *const ms_names_stream[MS_N_STREAMS] = {
    [MS_STREAM_COMPUTE] = "compute",
    [MS_STREAM_H2D] = "h2d",
    [MS_STREAM_D2H] = "d2h",
    [MS_STREAM_COMM] = "comm",
    [MS_STREAM_OUTER] = "outer",
    [MS_STREAM_HOST] = "host",
    [MS_STREAM_NVME_READ] = "nvme-read",
    [MS_STREAM_NVME_WRITE] = "nvme-write",
    [MS_STREAM_NEXT] = "next",
    [MS_STREAM_BEFORE] = "before",
};

const char *const ms_names_home[MS_N_HOMES] = {
    [MS_HOME_STREAM] = "stream",
    [MS_HOME_COMPUTE] = "compute",
    [MS_HOME_REDUCE] = "reduce",
    [MS_HOME_CAST] = "cast",
};

const char *const ms_names_mark[MS_N_MARKS] = {
    [MS_MARK_START] = "start",
    [MS_MARK_BEFORE_LOSS] = "before_loss",
    [MS_MARK_AFTER_FORWARD] = "after_forward",
    [MS_MARK_AFTER_BACKWARD] = "after_backward",
    [MS_MARK_END] = "end",
};

const char *const ms_names_task_unit[MS_N_TASK_UNITS] = {
    [MS_TASK_NS] = "ns", [MS_TASK_FLOPS] = "flops", [MS_TASK_BYTES] = "bytes"};

/* A copy belongs to the phase in which it is issued.  Taken alone it counts as
 * backward, because that is where ops wait for copies. */
static const ms_phase phase_of[MS_N_PASSES] = {
    [MS_FORWARD] = MS_PHASE_FORWARD,     [MS_LOSS] = MS_PHASE_LOSS,
    [MS_GRAD_INPUT] = MS_PHASE_BACKWARD, [MS_GRAD_WEIGHT] = MS_PHASE_BACKWARD,
    [MS_ACCUMULATE] = MS_PHASE_BACKWARD, [MS_STEP] = MS_PHASE_OPTIMIZER,
    [MS_RECOMPUTE] = MS_PHASE_BACKWARD,  [MS_START] = MS_PHASE_FORWARD,
    [MS_COPY] = MS_PHASE_BACKWARD,
};

ms_phase ms_names_phase_of(ms_pass pass)
{
    return phase_of[pass];
}

#define LONGEST 63u

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    if (a >= 'A' && a <= 'Z')
        a = (char)(a - 'A' + 'a');
    if (b >= 'A' && b <= 'Z')
        b = (char)(b - 'A' + 'a');
    return a == b;
}

/* Damerau-Levenshtein distance (optimal string alignment): insert, delete,
 * replace, swap neighbours; case costs nothing.  Both words have at most
 * LONGEST bytes. */
static uint32_t distance(const char *a, uint32_t n, const char *b, uint32_t m)
{
    uint32_t rows[3][LONGEST + 1];
    for (uint32_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3];
        const uint32_t *second = rows[(i + 1) % 3];
        row[0] = i;
        for (uint32_t j = 1; j <= m; j++) {
            uint32_t replace = above[j - 1] + !same(a[i - 1], b[j - 1]);
            row[j] = least(replace, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
                same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* How many characters the two begin with alike. */
static uint32_t alike(const char *a, const char *b)
{
    uint32_t n = 0;
    while (a[n] != '\0' && b[n] != '\0' && same(a[n], b[n]))
        n++;
    return n;
}

const char *ms_names_nearest(const char *word, const char *const *words,
                             size_t n)
{
    size_t length = strnlen(word, LONGEST + 1);
    if (length > LONGEST)
        return NULL;
    uint32_t best = length < 5 ? 2 : 3; /* the first distance that is too far */
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = strnlen(words[i], LONGEST + 1);
        if (other > LONGEST)
            continue;
        uint32_t far =
            distance(word, (uint32_t)length, words[i], (uint32_t)other);
        bool begins = far == best && nearest != NULL &&
                      alike(word, words[i]) > alike(word, nearest);
        if (far < best || begins) {
            best = far;
            nearest = words[i];
        }
    }
    return nearest;
}
