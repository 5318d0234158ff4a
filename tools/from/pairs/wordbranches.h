/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_WORDBRANCHES_H
#define MS_WORDBRANCHES_H

/* Which branches of a shell script's if and case are taken, as far as the words
 * say it: [ 1 -gt 2 ], [[ "$DTYPE" == fp8 ]], [ -z "" ].  What depends on
 * files, commands or variables that the script does not set stays undecided.
 *
 *     ms_wordbranches b = {0};
 *     words of commands, each with whether it begins one:
 *         if (ms_wordbranches_take(&b, word, true))  it was the shell's
 *     ms_wordbranches_state(&b)                      MS_BRANCH_SKIPPED */

#include "sim/base/base.h"

typedef enum ms_branch {
    MS_BRANCH_TAKEN,
    MS_BRANCH_UNDECIDED,
    MS_BRANCH_SKIPPED
} ms_branch;

#define MS_WORDBRANCHES_DEPTH 16u
#define MS_WORDBRANCHES_WORDS 6u
#define MS_WORDBRANCHES_LENGTH 80u

typedef struct ms_wordbranches {
    /* Of each if or case that is open: the branch that is read, and whether one
     * of its branches has been taken. */
    struct {
        ms_branch now, before;
    } open[MS_WORDBRANCHES_DEPTH];
    uint32_t depth; /* may be more than are kept: those are undecided */
    bool asks;      /* words of a condition come */
    bool odd;       /* it is more than one test */
    uint32_t n;     /* of its words */
    char words[MS_WORDBRANCHES_WORDS][MS_WORDBRANCHES_LENGTH];
} ms_wordbranches;

/* Takes a word, whose variables are known values or still $NAME; false: it is
 * none of the shell's own, and belongs to the command that is read. */
bool ms_wordbranches_take(ms_wordbranches *b, const char *word, bool begins);
ms_branch ms_wordbranches_state(const ms_wordbranches *b);

#endif
