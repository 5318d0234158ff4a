/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "graphs/machines/accuracy.h"
#include "plots/page/htmlpage.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/report/report.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <string.h>

#define LEAST_MFU 0.001 /* less is not told */

/* A list of pairs under way. */
typedef struct pairs {
    ms_text *text;
    ms_arena *arena;
    uint32_t n;
} pairs;

static void put_pair(pairs *list, const char *name, const char *words)
{
    ms_text_add(list->text, "%s[", list->n++ > 0 ? "," : "");
    ms_text_json(list->text, name);
    ms_text_add(list->text, ",");
    ms_text_json(list->text, words);
    ms_text_add(list->text, "]");
}

static void put_words(pairs *list, const char *name, const ms_text *words)
{
    list->text->failed |= words->failed;
    if (!words->failed && words->length > 0)
        put_pair(list, name, words->bytes);
}

static void put_string(const char *key, const char *value, ms_text *text)
{
    ms_text_add(text, "\"%s\":", key);
    ms_text_json(text, value);
    ms_text_add(text, ",");
}

/* ---- numbers ------------------------------------------------------------- */

static void put_numbers(const ms_report_page *page, ms_text *text)
{
    const ms_report *report = &page->variant->record.report;
    const ms_rank_report *rank = &report->ranks[report->told];
    pairs list = {.text = text, .arena = page->arena};
    ms_text tokens = {.arena = page->arena}, mfu = tokens;
    ms_text_add(text, "\"numbers\":[");
    put_pair(&list, "Peak reserved",
             ms_quantity_size(rank->peak.reserved_bytes).s);
    put_pair(&list, "Peak allocated",
             ms_quantity_size(rank->peak.allocated_bytes).s);
    if (report->capacity_bytes > 0)
        put_pair(&list, "nvidia-smi shows",
                 ms_quantity_size(ms_capacity_used(report)).s);
    put_pair(&list, "Step", ms_quantity_time(rank->time.step_ns).s);
    if (report->tokens_per_second >= 1)
        ms_text_add(&tokens, "%s tokens/s",
                    ms_quantity_count((uint64_t)report->tokens_per_second).s);
    put_words(&list, "Throughput", &tokens);
    if (report->mfu >= LEAST_MFU)
        ms_text_add(&mfu, "%.1f %%", 100 * report->mfu);
    put_words(&list, "MFU", &mfu);
    ms_text_add(text, "],");
}

/* ---- accuracy ------------------------------------------------------------ */

static void put_error(uint64_t percent, uint64_t runs, const ms_accuracy *of,
                      ms_text *words)
{
    if (runs == 0) {
        ms_text_add(words, "not held against any measured run of this kind");
        return;
    }
    ms_text_add(words, "within %u %% on %u measured runs of this kind",
                (unsigned)percent, (unsigned)runs);
    if (of != NULL)
        ms_text_add(words, ", %.1f %% at the median", of->median_percent);
}

static void put_accuracy(const ms_report_page *page, ms_text *text)
{
    const ms_variant *variant = page->variant;
    const ms_report *report = &variant->record.report;
    const ms_rank_report *rank = &report->ranks[report->told];
    pairs list = {.text = text, .arena = page->arena};
    ms_text time = {.arena = page->arena}, peak = time;
    put_error(rank->time.error_percent, rank->time.measured_runs,
              variant->result.accuracy, &time);
    put_error(rank->peak.error_percent, rank->peak.measured_runs,
              variant->result.peak_accuracy, &peak);
    ms_text_add(text, "\"accuracy\":[");
    put_words(&list, "Step time", &time);
    put_words(&list, "Peak of memory", &peak);
    ms_text_add(text, "],");
}

/* ---- what was assumed ---------------------------------------------------- */

static void put_facts(const ms_report_page *page, ms_text *text)
{
    const ms_variant *variant = page->variant;
    const ms_record *record = &variant->record;
    const ms_result *result = &variant->result;
    pairs list = {.text = text, .arena = page->arena};
    ms_text model = {.arena = page->arena}, defaults = model, device = model,
            pool = model;
    ms_text_add(text, "\"facts\":[");
    ms_text_add(&model, "%s, %s parameters", record->model,
                ms_quantity_count(record->parameters).s);
    put_words(&list, "Model", &model);
    put_pair(&list, "Set-up", variant->setup);
    put_pair(&list, "Policy", variant->policy);
    put_pair(&list, "Device", variant->device);
    put_pair(&list, "Allocator", variant->allocator);
    if (result->graph != NULL) {
        ms_settings_defaults(&variant->job, &result->training, &defaults);
        if (result->training.device != 1)
            ms_devicewords_put(&variant->job, result, &device);
        if (result->report->pooled != NULL)
            ms_poolwords_put(result->report, &pool);
    }
    put_words(&list, "Defaults taken", &defaults);
    put_words(&list, "Device memory", &device);
    put_words(&list, "Pool", &pool);
    if (variant->file != NULL)
        put_pair(&list, "Read from", variant->file);
    ms_text_add(text, "],");
}

/* ---- the step ------------------------------------------------------------ */

/* A result without its timeline has no step. */
ms_err ms_report_variant_step(const ms_report_page *page,
                              const ms_pageshare *share, ms_text *text,
                              ms_fault *fault)
{
    const ms_variant *variant = page->variant;
    ms_pagestep step = {.record = &variant->record,
                        .rank = variant->record.report.told,
                        .line = variant->result.line,
                        .group_of = page->group_of,
                        .most = *share};
    ms_text_add(text, "\"step\":");
    if (variant->record.ranks == NULL) {
        ms_text_add(text, "null");
        return MS_OK;
    }
    return ms_pagestep_put(&step, text, fault);
}

/* ---- all of it ----------------------------------------------------------- */

static void put_command(const ms_report_page *page, ms_text *text)
{
    ms_text command = {.arena = page->arena};
    ms_text_add(text, "\"command\":");
    if (page->arguments == NULL) {
        ms_text_add(text, "null,");
        return;
    }
    ms_settings_command(page->arguments, "", &command);
    while (command.length > 0 && command.bytes[command.length - 1] == ' ')
        command.bytes[--command.length] = '\0';
    text->failed |= command.failed;
    ms_text_json(text, command.failed ? "" : command.bytes);
    ms_text_add(text, ",");
}

static void put_verdict(const ms_report_page *page, ms_text *text)
{
    const ms_report *report = &page->variant->record.report;
    ms_text verdict = {.arena = page->arena};
    ms_room_verdict(report, &verdict);
    text->failed |= verdict.failed;
    put_string("verdict", verdict.failed ? "" : verdict.bytes, text);
    ms_text_add(
        text, "\"fits\":%s,\"usable_bytes\":", report->fits ? "true" : "false");
    ms_text_u64(text, ms_capacity_usable(report));
    ms_text_add(text, ",");
}

static const char *known(const char *words, const char *else_words)
{
    return words != NULL ? words : else_words;
}

ms_err ms_report_variant_read(ms_report_page *page, ms_fault *fault)
{
    const ms_variant *variant = page->variant;
    const ms_record *record = &variant->record;
    ms_text *text = &page->head;
    put_string("name", variant->name, text);
    put_string("title", known(record->title, variant->name), text);
    if (variant->refused != NULL) {
        ms_text_add(text, "\"refused\":");
        ms_text_json(text, variant->refused);
        return MS_OK;
    }
    ms_text_add(text, "\"refused\":null,\"most_alive\":%u,",
                MS_REPORT_MOST_ALIVE);
    put_string("subtitle", known(record->subtitle, ""), text);
    put_verdict(page, text);
    put_command(page, text);
    put_numbers(page, text);
    put_accuracy(page, text);
    put_facts(page, text);
    return ms_report_peak_read(page, fault);
}
