/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words for the device's memory and for what the process takes of it. */

#include "graphs/training.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <stddef.h>

void ms_devicewords_device(const ms_job *job, const ms_report *report,
                           ms_text *text)
{
    ms_text_add(text, "%s, %s%s", job->device->name,
                ms_quantity_size(report->capacity_bytes).s,
                job->memory_bytes > 0 ? " (--memory)" : "");
    uint64_t nccl_bytes = report->outside.nccl_bytes;
    uint64_t deepep_bytes = report->outside.deepep_bytes;
    uint64_t own_bytes = report->outside.userbuffers_bytes;
    uint64_t rest =
        report->context_bytes - nccl_bytes - deepep_bytes - own_bytes;
    if (report->context_bytes > 0)
        ms_text_add(text, " less %s for the CUDA context",
                    ms_quantity_size_as(rest, report->capacity_bytes).s);
    if (deepep_bytes > 0)
        ms_text_add(
            text, ", %s for DeepEP",
            ms_quantity_size_as(deepep_bytes, report->capacity_bytes).s);
    if (own_bytes > 0)
        ms_text_add(text, ", %s for %s",
                    ms_quantity_size_as(own_bytes, report->capacity_bytes).s,
                    report->outside.exchanged_through);
    if (nccl_bytes > 0)
        ms_text_add(text, " and %s for NCCL",
                    ms_quantity_size_as(nccl_bytes, report->capacity_bytes).s);
}

/* Says which CUDA build's context is counted, where it is not the default. */
static void put_build(const ms_training *training, ms_text *text)
{
    char word[32];
    if (training->cuda_loading == 1)
        ms_text_add(text, ", eager");
    if (training->cuda == 0)
        return;
    ms_training_value(training, offsetof(ms_training, cuda) / sizeof(int64_t),
                      word, sizeof word);
    ms_text_add(text, ", CUDA %s", word);
}

/* The share of the reserved bytes that is allocated, and what of it cuBLAS
 * holds: nvidia-smi cannot tell these apart. */
static void put_parts(const ms_result *result, ms_text *text)
{
    const ms_report *report = result->report;
    uint32_t n;
    uint64_t libraries_bytes = ms_measure_libraries(result->graph, &n);
    const char *between = " (";
    if (report->pooled != NULL) {
        const ms_peak *peak = &report->ranks[report->worst].peak;
        ms_text_add(
            text, " (%s allocated",
            ms_quantity_size_as(peak->allocated_bytes, ms_capacity_used(report))
                .s);
        between = ", of it ";
    }
    if (libraries_bytes > 0)
        ms_text_add(text, "%s%u cuBLAS workspace%s, %s", between, n,
                    n == 1 ? "" : "s", ms_quantity_size(libraries_bytes).s);
    if (report->pooled != NULL || libraries_bytes > 0)
        ms_text_add(text, ")");
}

/* Who tells what a process has of the device: one that is not known to be
 * NVIDIA's has a tool of its own. */
static const char *teller(const ms_job *job)
{
    return job->device->compute_capability > 0 ? "nvidia-smi" : "the driver";
}

static unsigned long long mib_of(uint64_t bytes)
{
    return (bytes >> 20) + (bytes % (1u << 20) > 0);
}

void ms_devicewords_put(const ms_job *job, const ms_result *result,
                        ms_text *text)
{
    const ms_report *report = result->report;
    const ms_outside *outside = &report->outside;
    uint64_t used_bytes = ms_capacity_used(report);
    if (result->training.device == 1) {
        ms_text_add(text, "grows by about %llu MiB", mib_of(used_bytes));
        return;
    }
    ms_text_add(
        text, "%s (%s: %llu MiB) = %s reserved", ms_quantity_size(used_bytes).s,
        teller(job), mib_of(used_bytes),
        ms_quantity_size_as(used_bytes - report->context_bytes, used_bytes).s);
    put_parts(result, text);
    ms_text_add(text, " + %s context and kernels (device %s",
                ms_quantity_size_as(outside->kernels_bytes, used_bytes).s,
                job->device->name);
    put_build(&result->training, text);
    ms_text_add(text, ")");
    if (outside->nccl_bytes > 0)
        ms_text_add(text, " + %s NCCL (%u communicator%s of %u channels)",
                    ms_quantity_size_as(outside->nccl_bytes, used_bytes).s,
                    outside->communicators,
                    outside->communicators == 1 ? "" : "s", outside->channels);
    if (outside->deepep_bytes > 0)
        ms_text_add(text, " + %s DeepEP",
                    ms_quantity_size_as(outside->deepep_bytes, used_bytes).s);
    if (outside->userbuffers_bytes > 0)
        ms_text_add(
            text, " + %s %s",
            ms_quantity_size_as(outside->userbuffers_bytes, used_bytes).s,
            outside->exchanged_through);
}
