/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/plans.h"
#include "sim/pools/place/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CAPACITY 1048576u
#define MOST_BYTES (1u << 20) /* of a file */
#define MOST_STEPS UINT64_C(100000000)

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static size_t read_file(char letter, char *bytes)
{
    char path[4096];
    const char *truth = getenv("MEMSIM_TRUTH");
    snprintf(path, sizeof path, "%s/placement/minimalloc/%c.%u.csv",
             truth != NULL ? truth : "", letter, CAPACITY);
    FILE *file = truth != NULL ? fopen(path, "rb") : NULL;
    if (file == NULL)
        return 0;
    size_t length = fread(bytes, 1, MOST_BYTES - 1, file);
    fclose(file);
    return length;
}

static bool search(const ms_placement_list *list, ms_arena *arena, double *ns)
{
    const ms_placeexact_limits limits = {.most_steps = MOST_STEPS};
    ms_placeexact_result result;
    ms_fault fault = {0};
    uint64_t *offsets =
        ms_arena_take(arena, (size_t)list->n + 1, sizeof *offsets);
    double from = cpu_ns();
    if (offsets == NULL ||
        ms_placeexact_search(list->buffers, list->n, CAPACITY, &limits, arena,
                             offsets, &result, &fault) != MS_OK)
        return false;
    *ns = cpu_ns() - from;
    return result.answer == MS_PLACEEXACT_FOUND;
}

bool bench_plans_search(char letter, double *ns)
{
    ms_arena arena = {0};
    ms_placement_list list;
    ms_fault fault = {0};
    char *bytes = ms_arena_take(&arena, MOST_BYTES, 1);
    size_t length = bytes != NULL ? read_file(letter, bytes) : 0;
    bool found = length > 0 &&
                 ms_placecsv_read("buffers.csv", bytes, length, &arena, &list,
                                  &fault) == MS_OK &&
                 search(&list, &arena, ns);
    ms_arena_free(&arena);
    return found;
}
