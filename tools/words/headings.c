/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts that the set-ups of several runs share, for the heading of a figure
 * that compares them. */

#include "tools/cli/run/figures.h"

#include <string.h>

/* A set-up in words, such as "batch 8 x 2048 tokens in 2 micro-batches on each
 * of 64 GPUs = 512 sequences, 1,048,576 tokens a step, adamw", is cut at these
 * separators into parts. A figure draws the sign of multiplication for " x ".
 */
static const struct {
    const char *words, *drawn;
} between[] = {{", ", ", "},
               {" in ", " in "},
               {" x ", " \u00d7 "},
               {" on each of ", " on each of "}};
#define N_BETWEEN (sizeof between / sizeof between[0])

/* The index of the separator that words begins with, or N_BETWEEN. */
static size_t between_at(const char *words)
{
    size_t i = 0;
    while (i < N_BETWEEN &&
           strncmp(words, between[i].words, strlen(between[i].words)) != 0)
        i++;
    return i;
}

static const char *part_end(const char *part)
{
    while (*part != '\0' && between_at(part) == N_BETWEEN)
        part++;
    return part;
}

static const char *part_after(const char *end)
{
    size_t i = between_at(end);
    return i < N_BETWEEN ? end + strlen(between[i].words) : end;
}

static bool has_part(const char *setup, const char *part, size_t length)
{
    for (const char *end; *setup != '\0'; setup = part_after(end)) {
        end = part_end(setup);
        if ((size_t)(end - setup) == length && memcmp(setup, part, length) == 0)
            return true;
    }
    return false;
}

static bool all_have(const char *const *setups, uint32_t n, const char *part,
                     size_t length)
{
    for (uint32_t i = 0; i < n; i++)
        if (setups[i] != setups[0] && !has_part(setups[i], part, length))
            return false;
    return true;
}

void ms_headings_common(const char *const *setups, uint32_t n, ms_text *text)
{
    const char *end, *part = n > 0 ? setups[0] : "", *before = "";
    for (; *part != '\0'; part = part_after(end)) {
        end = part_end(part);
        size_t length = (size_t)(end - part), next = between_at(end);
        if (all_have(setups, n, part, length)) {
            ms_text_add(text, "%s", text->length > 0 ? before : "");
            ms_text_put(text, part, length);
        }
        before = next < N_BETWEEN ? between[next].drawn : "";
    }
}
