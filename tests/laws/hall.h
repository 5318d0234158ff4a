/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_HALL_H
#define MS_TESTS_HALL_H

/* What a command has before it does anything: its arguments, two arenas and
 * the points that it runs.
 *
 *     const char *const words[] = {"gpt2", "-p", policy, NULL};
 *     hall h;
 *     hall_open(MS_FOR_RUN, words, policy, &h);
 *     HALL_MUST(policy, ms_settings_read(&h.arguments, &h.keep, &job,
 *                                        &hall_fault));
 *     hall_close(&h);
 */

#include "tests/tests.h"
#include "tools/cli/compare/compare.h"
#include "tools/options/options.h"

typedef struct hall {
    ms_arena keep, trial;
    ms_points points;
    ms_arguments arguments;
} hall;

extern ms_fault hall_fault; /* of the last call that failed */

/* The call must succeed; the label names the case in the message. */
#define HALL_MUST(label, call)                                                 \
    ck_assert_msg((call) == MS_OK, "%s: %s: %s", label, hall_fault.where,      \
                  hall_fault.what)

/* The words after the command's name; the last one is NULL. */
void hall_open(uint16_t command, const char *const *words, const char *label,
               hall *h);
void hall_close(hall *h);

#endif
