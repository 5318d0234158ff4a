/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/training.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "tools/job/globalbatch.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/words/words.h"

void ms_setupwords_put(const ms_result *result, const char *times,
                       ms_text *text)
{
    const ms_training *training = &result->training;
    if (result->model.nodes != NULL) {
        ms_text_add(text, "%u measured nodes", result->graph->n_ops);
        return;
    }
    if (result->model.measured) {
        ms_text_add(text, "%u measured stages", result->model.n_layers);
        return;
    }
    ms_text_add(text, "batch %lld", (long long)training->batch);
    if (result->model.sequence_input)
        ms_text_add(text, " %s %lld tokens", times,
                    (long long)training->sequence);
    if (result->shape.micro_batches > 1)
        ms_text_add(text, " in %u micro-batches", result->shape.micro_batches);
    if (result->report != NULL && result->report->repeats > 0)
        ms_text_add(text, " (%u of them alike and not on the timeline)",
                    result->report->repeats);
    ms_globalbatch_words(result, text);
    ms_text_add(text, ", %s, %s", ms_settings_value(training, "precision").s,
                training->optimizer == MS_NO_OPTIMIZER
                    ? "no optimizer"
                    : ms_settings_value(training, "optimizer").s);
}

void ms_setupwords_gpus(uint32_t gpus, ms_text *title)
{
    if (gpus > 1)
        ms_text_add(title, " on %u GPUs, per GPU", gpus);
}

void ms_setupwords_measured(const ms_result *result, ms_text *text)
{
    ms_text_add(text, "bytes and times are the file's: no launches, no "
                      "optimizer, no caching allocator");
    if (result->model.nodes != NULL)
        ms_text_add(text, "; a node runs where all that it reads is there, and "
                          "all that it makes beside what is there");
}
