/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The canonical spelling of a spec. */
#include "policies/order.h"
#include "sim/base/size.h"

#include <string.h>

/* The word of this index, joined with '/' to those before it. */
static void print_word(const char *words, int64_t index, bool joined,
                       ms_text *text)
{
    for (; index > 0; index--)
        words = strchr(words, '|') + 1;
    if (joined)
        ms_text_put(text, "/", 1);
    ms_text_put(text, words, strcspn(words, "|"));
}

static void print_words(const char *words, int64_t bits, ms_text *text)
{
    bool joined = false;
    for (int64_t index = 0; bits >> index > 0; index++) {
        if (!(bits >> index & 1))
            continue;
        print_word(words, index, joined, text);
        joined = true;
    }
}

static void print_value(const ms_param *param, const ms_policy_value *value,
                        ms_text *text)
{
    if (param->type == MS_PARAM_FLAG || !param->bare)
        ms_text_add(text, "%s", param->name);
    if (param->type == MS_PARAM_FLAG)
        return;
    if (!param->bare)
        ms_text_put(text, "=", 1);
    if (param->type == MS_PARAM_INT) {
        ms_text_i64(text, value->number);
    } else if (param->type == MS_PARAM_SIZE) {
        char size[MS_SIZE_COUNT];
        ms_size_exact((uint64_t)value->number, size);
        ms_text_add(text, "%s", size);
    } else if (param->type == MS_PARAM_NAMES ||
               param->type == MS_PARAM_NUMBERS ||
               param->type == MS_PARAM_INTS) {
        ms_text_add(text, "%s", value->text);
    } else if (param->type == MS_PARAM_WORDS) {
        print_words(param->words, value->number, text);
    } else {
        print_word(param->words, value->number, false, text);
    }
}

static void print_item(const struct ms_spec_item *item, ms_text *text)
{
    char separator = ':';
    const ms_policy *policy = item->policy;
    ms_text_add(text, "%s", ms_policy_written(item));
    for (uint32_t i = 0; i < policy->n_params; i++) {
        if (item->is_variant && i == policy->variant_at) {
            ms_text_add(text, "%c%s", separator, policy->variant_by);
            separator = ',';
        }
        if (!item->values[i].given)
            continue;
        ms_text_put(text, &separator, 1);
        print_value(&policy->params[i], &item->values[i], text);
        separator = ',';
    }
}

/* A policy without hooks changes nothing: it is not printed beside others. */
char *ms_spec_print(const ms_spec *spec, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    for (uint32_t i = 0; i < spec->n; i++) {
        if (!ms_order_has_hook(spec->items[i].policy))
            continue;
        if (text.length > 0)
            ms_text_put(&text, "+", 1);
        print_item(&spec->items[i], &text);
    }
    if (text.length == 0)
        ms_text_put(&text, "none", 4);
    return text.failed ? NULL : text.bytes;
}
