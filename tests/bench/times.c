/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_times_now_ns(void)
{
    return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_times_wall_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_times_print(const char *name, struct bench_times *times, double per)
{
    qsort(times->ns, times->n, sizeof *times->ns, by_value);
    printf(",\n  \"%s\": {\"best\": %.3f, \"median\": %.3f, \"runs\": %zu}",
           name, times->ns[0] / per, times->ns[times->n / 2] / per, times->n);
}
