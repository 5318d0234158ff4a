/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/laws/hall.h"
#include "tools/options/options.h"

#include <string.h>

ms_fault hall_fault;

void hall_open(uint16_t command, const char *const *words, const char *label,
               hall *h)
{
    uint32_t n = 0;
    while (words[n] != NULL)
        n++;
    memset(h, 0, sizeof *h);
    hall_fault = (ms_fault){.caret = -1};
    HALL_MUST(label, ms_options_parse(command, words, n, &h->keep,
                                      &h->arguments, &hall_fault));
    HALL_MUST(label, ms_points_open(&h->points, &hall_fault));
}

void hall_close(hall *h)
{
    ms_points_close(&h->points);
    ms_arena_free(&h->trial);
    ms_arena_free(&h->keep);
}
