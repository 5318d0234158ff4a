/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "settings" of a result: what every number of it depends on. */

#include "tools/job/lengths.h"

static void json_value(const ms_field *field, const char *value, ms_text *text)
{
    if (field->type == MS_INT || field->type == MS_FLOAT ||
        field->type == MS_BOOL)
        ms_text_add(text, "%s", value);
    else
        ms_text_json(text, value);
}

static void json_defaults(const ms_job *job, ms_text *text)
{
    const char *between = "";
    ms_text_add(text, "\"defaults\": [");
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        if (!ms_settings_is_default(job, row))
            continue;
        ms_text_add(text, "%s\"%s.%s\"", between, ms_training_group(row),
                    ms_training_fields[row].name);
        between = ", ";
    }
    if (!job->device_given) {
        ms_text_add(text, "%s\"device\"", between);
        between = ", ";
    }
    if (!job->allocator_given)
        ms_text_add(text, "%s\"allocator\"", between);
    ms_text_add(text, "]");
}

/* Those that are given. */
static void json_capacities(const ms_job *job, ms_text *text)
{
    static const char *const keys[] = {"memory", "host_memory", "nvme"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint64_t bytes = ms_settings_capacity(job, keys[i]);
        if (bytes == 0)
            continue;
        ms_text_add(text, "\"%s\": ", keys[i]);
        ms_text_u64(text, bytes);
        ms_text_add(text, ", ");
    }
}

static void json_fields(const ms_job *job, const ms_training *training,
                        ms_text *text)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        const ms_field *field = &ms_training_fields[row];
        ms_label value = {""};
        ms_text_add(text, "\"%s.%s\": ", ms_training_group(row), field->name);
        ms_training_value(training, row, value.s, sizeof value.s);
        json_value(field, value.s, text);
        ms_text_add(text, ", ");
    }
    for (uint32_t i = 0; i < job->n_overrides; i++) {
        const char *key =
            ms_arena_format(text->arena, "model.%s", job->overrides[i].key);
        ms_text_json(text, key != NULL ? key : "");
        text->failed |= key == NULL;
        ms_text_add(text, ": ");
        ms_text_json(text, job->overrides[i].value);
        ms_text_add(text, ", ");
    }
}

void ms_settings_json(const ms_job *job, const ms_training *training,
                      ms_text *text)
{
    ms_text_add(text, "{");
    json_fields(job, training, text);
    ms_text_add(text, "\"device\": ");
    ms_text_json(text, job->device->name);
    ms_text_add(text, ", \"gpus\": ");
    if (job->gpus > 0)
        ms_text_u64(text, job->gpus);
    else
        ms_text_add(text, "null");
    if (job->global_batch > 0) {
        ms_text_add(text, ", \"global_batch\": ");
        ms_text_u64(text, job->global_batch);
    }
    ms_text_add(text, ", \"book\": \"%s\", ",
                job->book_device ? "device" : "host");
    ms_text_add(text, "\"wall\": %s, ", job->wall ? "true" : "false");
    json_capacities(job, text);
    ms_text_add(text, "\"allocator\": ");
    ms_text_json(text, ms_settings_allocator(job));
    ms_text_add(text, ", ");
    if (job->steps > 0) {
        ms_text_add(text, "\"steps\": ");
        ms_text_u64(text, job->steps);
        ms_text_add(text, ", ");
    }
    if (job->lengths != NULL) {
        ms_text_add(text, "\"lengths\": ");
        ms_text_json(text, job->lengths->words);
        ms_text_add(text, ", ");
    }
    json_defaults(job, text);
    ms_text_add(text, "}");
}
