/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_BENCH_TIMES_H
#define MS_BENCH_TIMES_H

/* The times of the runs of one figure, and how they are printed. */

#include <stddef.h>

#define BENCH_TIMES_MOST 51

struct bench_times {
    size_t n;
    double ns[BENCH_TIMES_MOST];
};

double bench_times_now_ns(void);  /* CPU time of this process */
double bench_times_wall_ns(void); /* for processes that it starts */
/* Prints the best and the median as a member of a JSON object, in units of
 * `per` ns. */
void bench_times_print(const char *name, struct bench_times *times, double per);

#endif
