/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorts what is saved for backward by how long it waits, into classes of
 * equal width. */

#include "tools/cli/explain/idletimes.h"
#include "policies/common/policy.h"
#include "sim/machine.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>

#define MOST_WIDTHS 6u /* about so many classes are made */

ms_err ms_idletimes_find(const ms_job *job, const ms_result *result,
                         ms_arena *arena, ms_idletimes *saved, ms_fault *fault)
{
    const ms_rank_report *rank = &result->report->ranks[result->report->told];
    ms_expand_opts rates = ms_stepmachine_rates(job->device, &result->shape);
    ms_idle_links links = {rates.d2h_bytes_per_s, rates.h2d_bytes_per_s,
                           rates.copy_ns};
    ms_idle_tensor *list;
    uint32_t n;
    *saved = (ms_idletimes){.links = links};
    if (result->training.device == 1)
        /* the step runs on the host, and no link leads away */
        saved->links = links = (ms_idle_links){0};
    MS_TRY(ms_idle_list(result->line, rank->rank, &links, arena, &list, &n,
                        fault));
    saved->is_marked = rank->saved_for_backward_bytes != MS_NO_LEVEL;
    return ms_idletimes_sort(list, n, arena, saved, fault);
}

/* ---- classes ------------------------------------------------------------- */

/* Rounds a width to 1, 2 or 5 times a power of ten. */
static uint64_t width_of(uint64_t longest_ns)
{
    static const uint64_t steps[] = {1, 2, 5};
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10)
        for (int i = 0; i < 3; i++)
            if (longest_ns / MOST_WIDTHS < steps[i] * power)
                return steps[i] * power;
    return longest_ns;
}

static void add(ms_idletimes_class *to, const ms_idle_tensor *it)
{
    to->bytes += it->bytes;
    to->tensors++;
    to->uses += it->uses;
    to->alone_bytes += it->alone ? it->bytes : 0;
    to->hidden_bytes += it->together ? it->bytes : 0;
}

static uint64_t idle_ns(const ms_idle_tensor *it)
{
    return it->to_ns - it->from_ns;
}

/* The longest time that half of the bytes wait at least, found by bisection;
 * bytes is not 0. */
static uint64_t half_ns(const ms_idle_tensor *list, uint32_t n, uint64_t bytes)
{
    uint64_t low = 0, high = UINT64_MAX / 2;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2, longer = 0;
        for (uint32_t i = 0; i < n; i++)
            longer += idle_ns(&list[i]) >= middle ? list[i].bytes : 0;
        if (longer >= bytes - bytes / 2)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The longest wait sets the width of the classes.  What nothing reads again may
 * wait for longer: it is counted in the last class. */
ms_err ms_idletimes_sort(const ms_idle_tensor *list, uint32_t n,
                         ms_arena *arena, ms_idletimes *saved, ms_fault *fault)
{
    uint64_t longest_ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].uses > 0 && idle_ns(&list[i]) > longest_ns)
            longest_ns = idle_ns(&list[i]);
        add(&saved->all, &list[i]);
    }
    uint64_t width_ns = width_of(longest_ns);
    saved->n = n > 0 ? (uint32_t)(longest_ns / width_ns) + 1 : 0;
    saved->of = ms_arena_take(arena, saved->n + 1u, sizeof *saved->of);
    if (saved->of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < saved->n; i++) {
        saved->of[i].from_ns = i * width_ns;
        saved->of[i].to_ns = (i + 1) * width_ns;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = idle_ns(&list[i]) / width_ns;
        add(&saved->of[at < saved->n ? at : saved->n - 1], &list[i]);
    }
    if (saved->all.bytes > 0)
        saved->half_ns = half_ns(list, n, saved->all.bytes);
    return MS_OK;
}

/* ---- text ---------------------------------------------------------------- */

/* Writes the limits of a class, which are whole numbers in the unit of the
 * width. */
static void put_span(const ms_idletimes_class *class, ms_text *text)
{
    static const struct {
        const char *name;
        uint64_t size;
    } units[] = {{"s", 1000000000}, {"ms", 1000000}, {"µs", 1000}, {"ns", 1}};
    uint64_t width_ns = class->to_ns - class->from_ns;
    char words[64];
    int i = 0;
    while (width_ns < units[i].size)
        i++;
    snprintf(words, sizeof words, "%llu to %llu %s",
             (unsigned long long)(class->from_ns / units[i].size),
             (unsigned long long)(class->to_ns / units[i].size), units[i].name);
    int wide = units[i].size == 1000 ? 16 : 15; /* in bytes: the µ takes two */
    ms_text_add(text, "%*s%-*s", (int)MS_TEXTLINES_INDENT, "", wide, words);
}

static void put_class(const ms_idletimes *saved,
                      const ms_idletimes_class *class, ms_text *text)
{
    uint64_t like = saved->all.bytes;
    uint64_t tenths = (class->uses * 10 + class->tensors / 2) / class->tensors;
    double share = 100.0 * (double)class->bytes / (double)like;
    put_span(class, text);
    ms_text_add(text, "%11s", ms_quantity_size_as(class->bytes, like).s);
    ms_text_add(text, "%7u.%u %%", (unsigned)(share * 10.0 + 0.5) / 10,
                (unsigned)(share * 10.0 + 0.5) % 10);
    ms_text_add(text, "%9u%5llu.%llu", class->tensors,
                (unsigned long long)(tenths / 10),
                (unsigned long long)(tenths % 10));
    if (saved->links.out_bytes_per_s > 0)
        ms_text_add(text, "%14s",
                    ms_quantity_size_as(class->hidden_bytes, like).s);
    ms_text_add(text, "\n");
}

static void put_head(const ms_idletimes *saved, ms_text *text)
{
    const ms_idletimes_class *all = &saved->all;
    ms_text words = {.arena = text->arena};
    ms_text_add(&words, "%s in %s tensors wait for backward",
                ms_quantity_size(all->bytes).s,
                ms_quantity_count(all->tensors).s);
    if (saved->half_ns > 0)
        ms_text_add(&words, ", half of the bytes for %s or longer",
                    ms_quantity_time(saved->half_ns).s);
    if (saved->links.out_bytes_per_s > 0 && saved->half_ns > 0)
        ms_text_add(&words,
                    "; the link could take %s of them out and bring them back "
                    "meanwhile",
                    ms_quantity_size_as(all->hidden_bytes, all->bytes).s);
    ms_textlines_put("saved:", MS_TEXTLINES_INDENT, &words, text);
}

void ms_idletimes_put(const ms_idletimes *saved, ms_text *text)
{
    bool has_link = saved->links.out_bytes_per_s > 0;
    if (saved->all.tensors == 0)
        return;
    put_head(saved, text);
    if (saved->n < 2)
        return;
    size_t from = text->length;
    ms_text_add(text, "%*s%-15s%11s%11s%9s%7s%s\n", (int)MS_TEXTLINES_INDENT,
                "", "waiting for", "bytes", "share", "tensors", "reads",
                has_link ? "  out and back" : "");
    for (uint32_t i = 0; i < saved->n; i++)
        if (saved->of[i].tensors > 0)
            put_class(saved, &saved->of[i], text);
    ms_narrow_table(text, from);
}
