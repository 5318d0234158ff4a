/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_LAWS_ASSERTS_H
#define MS_TESTS_LAWS_ASSERTS_H

/* The message of a law that fails: the seed of the trial (laws_seed), the
 * condition and, with HOLDS, the place, in printf's format. */

#include "tests/differ.h"
#include "tests/laws/laws.h"

#include <check.h>
#include <stdio.h>

#define LAW(condition)                                                         \
    ck_assert_msg(condition, "seed %llu: %s", (unsigned long long)laws_seed,   \
                  #condition)

#define HOLDS(condition, ...)                                                  \
    do {                                                                       \
        if (!(condition)) {                                                    \
            char what_[256];                                                   \
            snprintf(what_, sizeof what_, __VA_ARGS__);                        \
            ck_abort_msg("seed %llu: %s: %s", (unsigned long long)laws_seed,   \
                         #condition, what_);                                   \
        }                                                                      \
    } while (0)

/* Two texts that are the same. */
#define SAME_TEXT(got, expected)                                               \
    do {                                                                       \
        const char *why_ = differ_texts(#got, got, expected);                  \
        ck_assert_msg(why_ == NULL, "seed %llu: %s",                           \
                      (unsigned long long)laws_seed, why_);                    \
    } while (0)

/* A call that must succeed; its fault is in the file's variable "fault". */
#define MUST(call)                                                             \
    do {                                                                       \
        if ((call) != MS_OK)                                                   \
            ck_abort_msg("seed %llu: %s: %s", (unsigned long long)laws_seed,   \
                         fault.where, fault.what);                             \
    } while (0)

#endif
