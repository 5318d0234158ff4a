/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ways to checkpoint that policies/checkpoint has, each with a few of its
 * numbers. */
#include "tools/cli/front/front.h"

#include <inttypes.h>

/* Which numbers of 1 to n blocks. */
typedef enum numbers {
    NO_NUMBER,
    POWERS,   /* 2, 4, 8 ... below n */
    FEW,      /* 2, 3, 4 */
    QUARTERS, /* a quarter, a half, three quarters of n */
    ROOT      /* of n: the next whole number above */
} numbers;

static const struct {
    const char *spec, *family; /* %u: the number */
    numbers of;
} rows[] = {
    {"checkpoint:none", "none", NO_NUMBER},
    {"checkpoint:full", "full", NO_NUMBER},
    {"checkpoint:sqrt", "sqrt", NO_NUMBER},
    {"checkpoint:every=%u", "every", POWERS},
    {"checkpoint:each=%u", "each", FEW},
    {"checkpoint:first=%u", "first", QUARTERS},
    {"checkpoint:sequential=%u", "sequential", POWERS},
    {"checkpoint:chen", "chen", NO_NUMBER},
    {"checkpoint:nested=%u/1", "nested", ROOT},
    {"checkpoint:recursive", "recursive", NO_NUMBER},
    {"checkpoint:revolve=%u", "revolve", POWERS},
    {"checkpoint:mincut", "mincut", NO_NUMBER},
    {"checkpoint:knapsack,share=50", "knapsack", NO_NUMBER},
    {"checkpoint:knapsack,share=10", "knapsack", NO_NUMBER},
    {"checkpoint:selective", "selective", NO_NUMBER},
    {"checkpoint:sac", "sac", NO_NUMBER},
    {"checkpoint:save=aten.mm", "save", NO_NUMBER},
    {"checkpoint:save=aten.addmm", "save", NO_NUMBER},
    {"checkpoint:save=aten.convolution", "save", NO_NUMBER},
    {"checkpoint:modules=core_attn", "modules", NO_NUMBER},
    {"checkpoint:modules=mlp", "modules", NO_NUMBER},
    {"checkpoint:modules=moe", "modules", NO_NUMBER},
    {"checkpoint:modules=layernorm", "modules", NO_NUMBER},
    {"checkpoint:modules=core_attn/mlp/layernorm", "modules", NO_NUMBER},
    {"checkpoint:modules=core_attn/moe/layernorm", "modules", NO_NUMBER},
};

/* Number i of the row, or 0. */
static uint32_t number_of(numbers of, uint32_t i, uint32_t n)
{
    uint32_t root = 1, power = i < 16 ? 2u << i : 0;
    if (of == POWERS)
        return power < n ? power : 0;
    if (of == FEW)
        return i < 3 && i + 2 <= n ? i + 2 : 0;
    if (of == QUARTERS)
        return i < 3 ? n * (i + 1) / 4 : 0;
    while (root * root < n)
        root++;
    return i == 0 ? root : 0;
}

ms_err ms_strategies_list(uint32_t n, ms_arena *arena, ms_strategy *list,
                          uint32_t most, uint32_t *n_found, ms_fault *fault)
{
    *n_found = 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bool plain = rows[r].of == NO_NUMBER;
        uint32_t before = 0, number;
        for (uint32_t i = 0; *n_found < most; i++) {
            number = plain ? i == 0 : number_of(rows[r].of, i, n);
            if (number == 0)
                break;
            if (number == before) /* of few blocks */
                continue;
            before = number;
            const char *spec =
                plain ? rows[r].spec
                      : ms_arena_format(arena, rows[r].spec, number);
            if (spec == NULL)
                return ms_fail_nomem(fault);
            list[(*n_found)++] = (ms_strategy){spec, rows[r].family};
        }
    }
    return MS_OK;
}

ms_err ms_strategies_online(uint64_t peak_bytes, ms_arena *arena,
                            ms_strategy *list, uint32_t *n_found,
                            ms_fault *fault)
{
    static const char *const heuristics[] = {"dtr",  "eq",  "esize", "local",
                                             "msps", "lru", "size"};
    static const uint64_t less[MS_STRATEGIES_BUDGETS] = {8, 4, 2};
    *n_found = 0;
    for (size_t h = 0; h < sizeof heuristics / sizeof *heuristics; h++)
        for (size_t i = 0; i < MS_STRATEGIES_BUDGETS; i++) {
            const char *spec = ms_arena_format(
                arena, "dtr:h=%s,budget=%" PRIu64, heuristics[h],
                peak_bytes - peak_bytes / less[i]);
            if (spec == NULL)
                return ms_fail_nomem(fault);
            list[(*n_found)++] = (ms_strategy){spec, "dtr"};
        }
    return MS_OK;
}
