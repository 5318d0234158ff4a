/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far a long run has come, as one line of a terminal. */

#include "tools/points/points.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define QUIET_NS (NS_PER_S / 2)
#define BETWEEN_NS (NS_PER_S / 10)

uint64_t ms_progress_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

void ms_progress_open(ms_progress *progress, bool quiet, bool to_terminal,
                      uint64_t from, uint64_t total)
{
    *progress = (ms_progress){.wanted = !quiet && !to_terminal &&
                                        isatty(STDERR_FILENO) == 1,
                              .from = from,
                              .total = total,
                              .start_ns = ms_progress_now_ns()};
}

/* Blanks hide the rest of a longer line before; terminals without escape
 * sequences know \r. */
static void put_line(ms_progress *progress, const char *line, int length)
{
    int rest = (int)progress->width - length;
    fprintf(stderr, "\r%s%*s", line, rest > 0 ? rest : 0, "");
    if (rest > 0)
        fprintf(stderr, "\r%s", line);
    progress->width = (uint32_t)length;
}

static void format_left(double seconds, char *text, size_t size)
{
    if (seconds < 100)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

void ms_progress_show(ms_progress *progress, uint64_t done)
{
    char line[160], left[32];
    if (!progress->wanted)
        return;
    uint64_t now = ms_progress_now_ns(), since = now - progress->start_ns;
    if (since < QUIET_NS || now - progress->shown_ns < BETWEEN_NS ||
        done == progress->from)
        return;
    double rate = (double)(done - progress->from) * 1e9 / (double)since;
    format_left((double)(progress->total - done) / rate, left, sizeof left);
    int length = snprintf(line, sizeof line, "%s of %s points, %.*f/s, %s left",
                          ms_quantity_count(done).s,
                          ms_quantity_count(progress->total).s,
                          rate < 10 ? 1 : 0, rate, left);
    int most = (int)ms_screen_columns(STDERR_FILENO) - 1;
    if (length > most)
        line[length = most] = '\0';
    put_line(progress, line, length);
    progress->shown_ns = now;
}

void ms_progress_clear(ms_progress *progress)
{
    if (progress->width > 0)
        put_line(progress, "", 0);
    progress->width = 0;
}
