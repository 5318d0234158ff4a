/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what an option of PyTorch's allocator would change: the step goes
 * through a pool with each of them. */

#include "tools/advice/pooltries.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <string.h>

/* Above this the tries would take longer than the run. */
#define MAX_OPS 1000000u

/* The options that PyTorch's documentation recommends (sim/pools/README.md 13).
 */
static const struct {
    const char *key, *value;
} options[] = {{"expandable_segments", "True"},
               {"max_split_size_mb", "128"},
               {"roundup_power2_divisions", "8"}};
#define N_OPTIONS (sizeof options / sizeof options[0])

/* A version of the pool that does not have the option refuses it; then it is
 * left out. */
static ms_err attempt(const ms_pooltries_task *task, const char *spec,
                      ms_arena *scratch, ms_result *tried, ms_fault *fault)
{
    ms_allocator allocator;
    ms_job job = *task->job;
    *tried = *task->result;
    job.allocator = &allocator;
    job.uses = job.addresses = false;
    MS_TRY(ms_allocator_read(spec, scratch, &allocator, fault));
    return ms_jobway_step(&job, scratch, tried, fault);
}

static ms_err try_option(const ms_pooltries_task *task, size_t i,
                         ms_arena *arena, ms_pooltries *tries, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_fault own = {.caret = -1};
    ms_result tried;
    const char *words =
        ms_arena_format(arena, "%s=%s", options[i].key, options[i].value);
    const char *spec =
        ms_arena_format(arena, "%s,%s=%s", task->job->allocator->spec,
                        options[i].key, options[i].value);
    if (words == NULL || spec == NULL)
        return ms_fail_nomem(fault);
    ms_err err = attempt(task, spec, &scratch, &tried, &own);
    if (err == MS_OK) {
        const ms_report *report = tried.report;
        tries->of[tries->n++] = (struct ms_pooltry){
            .words = words,
            .reserved_bytes =
                report->ranks[task->result->report->told].peak.reserved_bytes,
            .is_lacking = report->pooled->oom};
    }
    ms_arena_free(&scratch);
    return ms_fail_but_refusal(err, &own, fault);
}

ms_err ms_pooltries_find(const ms_pooltries_task *task, ms_arena *arena,
                         ms_pooltries *tries, ms_fault *fault)
{
    const ms_allocator *allocator = task->job->allocator;
    *tries = (ms_pooltries){0};
    if (allocator == NULL || strncmp(allocator->spec, "torch", 5) != 0 ||
        task->result->plan->n_ops > MAX_OPS)
        return MS_OK;
    for (size_t i = 0; i < N_OPTIONS && tries->n < MS_POOLTRIES_MOST; i++)
        if (strstr(allocator->conf, options[i].key) == NULL)
            MS_TRY(try_option(task, i, arena, tries, fault));
    return MS_OK;
}

static void put_gap(uint64_t now_bytes, uint64_t then_bytes, ms_text *words)
{
    if (then_bytes < now_bytes)
        ms_text_add(words, "%s less",
                    ms_quantity_size(now_bytes - then_bytes).s);
    else if (then_bytes > now_bytes)
        ms_text_add(words, "%s more",
                    ms_quantity_size(then_bytes - now_bytes).s);
    else
        ms_text_add(words, "as much");
}

void ms_pooltries_put(const ms_pooltries *tries, const ms_report *report,
                      ms_text *words)
{
    const ms_peak *peak = &report->ranks[report->told].peak;
    ms_poolwords_put(report, words);
    for (uint32_t i = 0; i < tries->n; i++) {
        ms_text_add(words, "%s%s ", i == 0 ? "; reserved with " : ", ",
                    tries->of[i].words);
        put_gap(peak->reserved_bytes, tries->of[i].reserved_bytes, words);
        if (tries->of[i].is_lacking)
            ms_text_add(words, " (out of memory)");
    }
}
