/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/pairs/wordbranches.h"

#include <stdlib.h>
#include <string.h>

/* ---- conditions ---------------------------------------------------------- */

static ms_branch of(bool holds)
{
    return holds ? MS_BRANCH_TAKEN : MS_BRANCH_SKIPPED;
}

/* Does only the shell know what it is? */
static bool is_open(const char *word)
{
    return strpbrk(word, "$`*?") != NULL ||
           strlen(word) + 1 == MS_WORDBRANCHES_LENGTH;
}

static ms_branch compare(const char *a, const char *verb, const char *b)
{
    static const char *const verbs[] = {"-eq", "-ne", "-lt",
                                        "-le", "-gt", "-ge"};
    char *end_a, *end_b;
    if (is_open(a) || is_open(b))
        return MS_BRANCH_UNDECIDED;
    if (strcmp(verb, "=") == 0 || strcmp(verb, "==") == 0)
        return of(strcmp(a, b) == 0);
    if (strcmp(verb, "!=") == 0)
        return of(strcmp(a, b) != 0);
    long left = strtol(a, &end_a, 10), right = strtol(b, &end_b, 10);
    if (end_a == a || *end_a != '\0' || end_b == b || *end_b != '\0')
        return MS_BRANCH_UNDECIDED;
    const bool holds[] = {left == right, left != right,
                          left<right, left <= right, left> right,
                          left >= right};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verb, verbs[i]) == 0)
            return of(holds[i]);
    return MS_BRANCH_UNDECIDED;
}

static ms_branch decide(const ms_wordbranches *b)
{
    const char *first = b->words[0], *last = b->n > 0 ? b->words[b->n - 1] : "";
    bool one = strcmp(first, "[") == 0 && strcmp(last, "]") == 0;
    bool two = strcmp(first, "[[") == 0 && strcmp(last, "]]") == 0;
    if (b->odd || b->n > MS_WORDBRANCHES_WORDS || !(one || two))
        return MS_BRANCH_UNDECIDED;
    if (b->n == 5)
        return compare(b->words[1], b->words[2], b->words[3]);
    if (b->n != 4 || is_open(b->words[2]))
        return MS_BRANCH_UNDECIDED;
    if (strcmp(b->words[1], "-z") == 0)
        return of(b->words[2][0] == '\0');
    return strcmp(b->words[1], "-n") == 0 ? of(b->words[2][0] != '\0')
                                          : MS_BRANCH_UNDECIDED;
}

static void take_condition(ms_wordbranches *b, const char *word, bool begins)
{
    b->odd = b->odd || (begins && b->n > 0);
    if (b->n < MS_WORDBRANCHES_WORDS) {
        size_t n = strlen(word);
        n = n < MS_WORDBRANCHES_LENGTH ? n : MS_WORDBRANCHES_LENGTH - 1;
        memcpy(b->words[b->n], word, n);
        b->words[b->n][n] = '\0';
        b->n++;
    } else {
        b->odd = true;
    }
}

/* ---- branches ------------------------------------------------------------ */

static void push(ms_wordbranches *b, ms_branch now)
{
    if (b->depth < MS_WORDBRANCHES_DEPTH) {
        b->open[b->depth].now = now;
        b->open[b->depth].before = MS_BRANCH_SKIPPED;
    }
    b->depth++;
}

/* The next branch of the innermost if, whose condition says so. */
static void choose(ms_wordbranches *b, ms_branch holds)
{
    if (b->depth == 0 || b->depth > MS_WORDBRANCHES_DEPTH)
        return;
    ms_branch *now = &b->open[b->depth - 1].now;
    ms_branch *before = &b->open[b->depth - 1].before;
    if (*before == MS_BRANCH_TAKEN)
        *now = MS_BRANCH_SKIPPED;
    else if (*before == MS_BRANCH_UNDECIDED && holds == MS_BRANCH_TAKEN)
        *now = MS_BRANCH_UNDECIDED;
    else
        *now = holds;
    if (holds < *before)
        *before = holds;
}

bool ms_wordbranches_take(ms_wordbranches *b, const char *word, bool begins)
{
    if (b->asks && begins && strcmp(word, "then") == 0) {
        b->asks = false;
        choose(b, decide(b));
        return true;
    }
    if (b->asks) {
        take_condition(b, word, begins);
        return true;
    }
    if (!begins)
        return false;
    if (strcmp(word, "if") == 0 || strcmp(word, "elif") == 0) {
        if (word[0] == 'i')
            push(b, MS_BRANCH_UNDECIDED);
        b->asks = true;
        b->odd = false;
        b->n = 0;
        return true;
    }
    if (strcmp(word, "else") == 0)
        choose(b, MS_BRANCH_TAKEN);
    else if (strcmp(word, "case") == 0)
        push(b, MS_BRANCH_UNDECIDED);
    else if (strcmp(word, "fi") == 0 || strcmp(word, "esac") == 0)
        b->depth -= b->depth > 0;
    else
        return false;
    return true;
}

ms_branch ms_wordbranches_state(const ms_wordbranches *b)
{
    ms_branch state = b->depth > MS_WORDBRANCHES_DEPTH ? MS_BRANCH_UNDECIDED
                                                       : MS_BRANCH_TAKEN;
    for (uint32_t i = 0; i < b->depth && i < MS_WORDBRANCHES_DEPTH; i++)
        if (b->open[i].now > state)
            state = b->open[i].now;
    return state;
}
