/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct reader {
    ms_facts *facts;
    const ms_format *format;
    const char *prefix; /* of the keys that are the format's */
    ms_pairs *pairs;
    ms_fault *fault;
} reader;

/* ---- lines --------------------------------------------------------------- */

ms_err ms_facts_say(ms_facts *facts, ms_facts_lines *lines, ms_fault *fault,
                    const char *format, ...)
{
    char line[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    lines->all = ms_arena_grow(facts->arena, lines->all, &lines->capacity,
                               lines->n + 1, sizeof *lines->all);
    char *copy = ms_arena_text(facts->arena, line, strlen(line));
    if (lines->all == NULL || copy == NULL)
        return ms_fail_nomem(fault);
    lines->all[lines->n++] = copy;
    return MS_OK;
}

static ms_err warn(const reader *r, const ms_pair *pair, const char *why)
{
    return ms_facts_say(r->facts, &r->facts->warnings, r->fault,
                        "%s:%u: %s=%.120s: %s", r->pairs->source.name,
                        ms_pairs_line(r->pairs, pair->at), ms_pairs_name(pair),
                        ms_pairs_value(pair), why);
}

/* ---- facts --------------------------------------------------------------- */

bool ms_facts_is_said(const ms_fact *fact)
{
    return fact != NULL && fact->pair != NULL;
}

const ms_fact *ms_facts_find(const ms_facts *facts, const char *to)
{
    for (uint32_t i = 0; i < facts->n; i++)
        if (strcmp(facts->all[i].to, to) == 0)
            return &facts->all[i];
    return NULL;
}

const char *ms_facts_value(const ms_facts *facts, const char *to)
{
    const ms_fact *fact = ms_facts_find(facts, to);
    return fact != NULL ? fact->value : NULL;
}

const char *ms_facts_place(const ms_facts *facts, const ms_fact *fact)
{
    const char *place =
        fact->pair == NULL
            ? ms_arena_format(facts->arena, "the default of %s",
                              fact->format->name)
            : ms_arena_format(facts->arena, "%s:%u", fact->pairs->source.name,
                              ms_pairs_line(fact->pairs, fact->pair->at));
    return place != NULL ? place : "";
}

ms_err ms_facts_fail(const ms_fact *fact, ms_fault *fault, const char *hint,
                     const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (fact->pair == NULL)
        return ms_fail(fault, MS_EINPUT, fact->pairs->source.name, hint, "%s",
                       what);
    return ms_pairs_fail(fact->pairs, fact->pair->at, fault, hint, "%s", what);
}

ms_err ms_facts_number(const ms_facts *facts, const char *to, uint64_t *number,
                       ms_fault *fault)
{
    const ms_fact *fact = ms_facts_find(facts, to);
    char *end;
    *number = 0;
    if (fact == NULL)
        return MS_OK;
    *number = strtoull(fact->value, &end, 10);
    if (*fact->value >= '0' && *fact->value <= '9' && *end == '\0' &&
        *number > 0 && *number <= UINT32_MAX)
        return MS_OK;
    const char *hint = strchr(fact->value, '$') != NULL
                           ? "a variable that only the shell knows: write its "
                             "value"
                           : NULL;
    return ms_facts_fail(fact, fault, hint,
                         "\"%.40s\" is not a whole number from 1", fact->value);
}

static bool same(const char *a, const char *b)
{
    char *end_a, *end_b;
    double left = strtod(a, &end_a), right = strtod(b, &end_b);
    if (strcasecmp(a, b) == 0)
        return true;
    return *a != '\0' && *b != '\0' && *end_a == '\0' && *end_b == '\0' &&
           !(left < right || left > right);
}

static ms_err push(ms_facts *facts, ms_fact **list, uint32_t *n,
                   uint32_t *capacity, const ms_fact *fact, ms_fault *fault)
{
    ms_fact *all =
        ms_arena_grow(facts->arena, *list, capacity, *n + 1, sizeof *all);
    if (all == NULL)
        return ms_fail_nomem(fault);
    *list = all;
    all[(*n)++] = *fact;
    return MS_OK;
}

static ms_err contradict(const ms_facts *facts, const ms_fact *old,
                         const ms_fact *new, ms_fault *fault)
{
    char hint[256];
    snprintf(hint, sizeof hint, "%s says %s=%.60s; let one of the two say it",
             ms_facts_place(facts, old), ms_pairs_name(old->pair),
             ms_pairs_value(old->pair));
    return ms_facts_fail(new, fault, hint, "%s=%.60s contradicts another %s",
                         ms_pairs_name(new->pair), ms_pairs_value(new->pair),
                         old->pairs == new->pairs ? "key" : "file");
}

/* Two values of a fact whose name ends in + stand side by side. */
static ms_err join(const reader *r, ms_fact *old, const ms_fact *new)
{
    old->value =
        ms_arena_format(r->facts->arena, "%s/%s", old->value, new->value);
    return old->value != NULL ? MS_OK : ms_fail_nomem(r->fault);
}

static ms_err add(const reader *r, const char *to, const char *value,
                  const ms_pair *pair)
{
    ms_facts *facts = r->facts;
    size_t length = strlen(to);
    bool joins = to[length - 1] == '+';
    ms_fact new = {.to = ms_arena_text(facts->arena, to, length - joins),
                   .value = value,
                   .pairs = r->pairs,
                   .pair = pair,
                   .format = r->format};
    if (new.to == NULL || value == NULL)
        return ms_fail_nomem(r->fault);
    if (strcmp(to, "file") == 0)
        return push(facts, &facts->files, &facts->n_files,
                    &facts->files_capacity, &new, r->fault);
    for (uint32_t i = 0; i < facts->n; i++) {
        ms_fact *old = &facts->all[i];
        if (strcmp(old->to, new.to) != 0)
            continue;
        if (new.pair == NULL)
            return MS_OK;
        if (joins && old->pair != NULL)
            return join(r, old, &new);
        if (old->pair != NULL && !same(old->value, value))
            return contradict(facts, old, &new, r->fault);
        if (old->pair == NULL)
            *old = new;
        return MS_OK;
    }
    return push(facts, &facts->all, &facts->n, &facts->capacity, &new,
                r->fault);
}

ms_err ms_facts_default(ms_facts *facts, const ms_format *format,
                        ms_pairs *pairs, const char *to, const char *value,
                        ms_fault *fault)
{
    reader r = {facts, format, "", pairs, fault};
    return add(&r, to, value, NULL);
}

/* ---- rows ---------------------------------------------------------------- */

/* The pair of a key of the format, under its prefix or, where it is not there,
 * at the root; NULL: it is absent or null. */
static const ms_pair *pair_of(const reader *r, const char *key)
{
    size_t n = strlen(r->prefix);
    const ms_pair *root = NULL;
    for (uint32_t i = 0; i < r->pairs->n; i++) {
        const ms_pair *pair = &r->pairs->all[i];
        if (strcmp(pair->value, "null") == 0)
            continue;
        if (strncmp(pair->key, r->prefix, n) == 0 &&
            strcmp(ms_formatkeys_strip(r->format, pair->key + n), key) == 0)
            return pair;
        if (strcmp(ms_formatkeys_strip(r->format, pair->key), key) == 0 &&
            n > 0)
            root = pair;
    }
    return root;
}

static const char *fallback_of(const ms_format *format, const char *key)
{
    for (uint32_t i = 0; i < format->n_keys; i++)
        if (strcmp(format->keys[i].key, key) == 0 &&
            format->keys[i].fallback != NULL)
            return format->keys[i].fallback;
    return "";
}

/* Does the file say "key=a|b"? */
static bool says(const reader *r, const char *condition, size_t length)
{
    char key[96], words[256];
    size_t n = strcspn(condition, "=");
    snprintf(key, sizeof key, "%.*s", (int)n, condition);
    snprintf(words, sizeof words, "%.*s", (int)(length - n - 1),
             condition + n + 1);
    const ms_pair *pair = pair_of(r, key);
    return ms_formatkeys_one_of(
        words, pair != NULL ? pair->value : fallback_of(r->format, key));
}

/* Does the file say all that the row needs? */
static bool holds(const reader *r, const ms_formatkey *row)
{
    for (const char *at = row->when; at != NULL;) {
        size_t n = strcspn(at, "&");
        if (!says(r, at, n))
            return false;
        at = at[n] == '&' ? at + n + 1 : NULL;
    }
    return true;
}

static ms_err take_value(const reader *r, const ms_formatkey *row,
                         const char *value, const ms_pair *pair)
{
    bool known = false;
    const char *ours =
        ms_formatkeys_value(r->facts->arena, row->values, value, &known);
    char why[320];
    if (ours == NULL)
        return ms_fail_nomem(r->fault);
    if (known)
        return *ours == '\0' ? MS_OK : add(r, row->to, ours, pair);
    snprintf(why, sizeof why, "this value is not had; %s is taken for it",
             "memsim's default");
    return pair != NULL ? warn(r, pair, why) : MS_OK;
}

#define BETWEEN_WORDS "[], \t"

static ms_err take_words(const reader *r, const ms_formatkey *row,
                         const ms_pair *pair)
{
    for (const char *at = pair->value; *at != '\0';) {
        size_t n = strcspn(at, BETWEEN_WORDS);
        const char *word = ms_arena_text(r->facts->arena, at, n);
        if (word == NULL)
            return ms_fail_nomem(r->fault);
        if (n > 0)
            MS_TRY(take_value(r, row, word, pair));
        at += n;
        at += strspn(at, BETWEEN_WORDS);
    }
    return MS_OK;
}

static ms_err take_row(const reader *r, const ms_formatkey *row,
                       const ms_pair *pair)
{
    ms_facts *facts = r->facts;
    if (!holds(r, row) || (row->harmless != NULL &&
                           ms_formatkeys_one_of(row->harmless, pair->value)))
        return MS_OK;
    if (row->to == NULL)
        return row->warns != NULL ? warn(r, pair, row->warns) : MS_OK;
    if (r->format->autos != NULL && strcmp(pair->value, "auto") == 0) {
        ms_fact fact = {row->to, "auto", r->pairs, pair, r->format};
        return push(facts, &facts->autos, &facts->n_autos,
                    &facts->autos_capacity, &fact, r->fault);
    }
    return row->words ? take_words(r, row, pair)
                      : take_value(r, row, pair->value, pair);
}

/* Null, or a mapping without members of which the row says nothing. */
static bool is_empty(const ms_formatkey *row, const char *value)
{
    return strcmp(value, "null") == 0 ||
           (strcmp(value, "{}") == 0 &&
            (row->values == NULL || strstr(row->values, value) == NULL));
}

/* *is_known: a row has the key, or it does not matter. */
static ms_err take_pair(const reader *r, const ms_pair *pair, const char *key,
                        bool *is_known)
{
    *is_known = false;
    for (uint32_t i = 0; i < r->format->n_keys; i++) {
        if (!ms_formatkeys_match(r->format->keys[i].key, key))
            continue;
        *is_known = true;
        if (!is_empty(&r->format->keys[i], pair->value))
            MS_TRY(take_row(r, &r->format->keys[i], pair));
    }
    if (*is_known && pair->maybe)
        MS_TRY(
            warn(r, pair,
                 "it hangs on an if of the script that memsim cannot decide; "
                 "it is read as if that held"));
    *is_known = *is_known || ms_formatkeys_is_passed(r->format, key);
    return MS_OK;
}

static ms_err take_fallbacks(const reader *r)
{
    for (uint32_t i = 0; i < r->format->n_keys; i++) {
        const ms_formatkey *row = &r->format->keys[i];
        if (row->fallback == NULL || !holds(r, row) ||
            (*row->key != '\0' && pair_of(r, row->key) != NULL))
            continue;
        MS_TRY(take_value(r, row, row->fallback, NULL));
    }
    return MS_OK;
}

/* The keys under the prefix that no one has read so far. */
static ms_err take_format(const reader *r)
{
    size_t n = strlen(r->prefix);
    bool any = n == 0;
    for (uint32_t i = 0; i < r->pairs->n; i++) {
        ms_pair *pair = &r->pairs->all[i];
        bool is_known;
        if (pair->read || strncmp(pair->key, r->prefix, n) != 0)
            continue;
        any = true;
        MS_TRY(take_pair(r, pair, ms_formatkeys_strip(r->format, pair->key + n),
                         &is_known));
        pair->read = is_known;
    }
    return any ? take_fallbacks(r) : MS_OK;
}

ms_err ms_facts_read(ms_facts *facts, const ms_format *format, ms_pairs *pairs,
                     ms_fault *fault)
{
    reader r = {facts, format, "", pairs, fault};
    MS_TRY(take_format(&r));
    for (uint32_t i = 0; i < 2 && format->inner[i].prefix != NULL; i++) {
        reader inner = {facts, format->inner[i].format, format->inner[i].prefix,
                        pairs, fault};
        if (*inner.prefix == '\0') /* the rest of the file is all of that */
            return ms_facts_read(facts, inner.format, pairs, fault);
        MS_TRY(take_format(&inner));
    }
    for (uint32_t i = 0; i < pairs->n; i++) {
        if (pairs->all[i].read || pairs->all[i].named ||
            ms_formatkeys_one_of("null|{}", pairs->all[i].value))
            continue;
        pairs->all[i].read = true;
        MS_TRY(warn(&r, &pairs->all[i],
                    "memsim does not know this key; whether it matters is for "
                    "you to say"));
    }
    return MS_OK;
}

/* ---- auto ---------------------------------------------------------------- */

/* What transformers' trainer_config_finalize makes of the model's width, in
 * tenths of its square or of itself. */
static uint64_t from_width(const char *to, uint64_t hidden)
{
    static const struct {
        const char *to;
        uint64_t tenths;
        bool is_square;
    } rows[] = {{"policy.deepspeed.reduce_bucket_size", 10, true},
                {"policy.deepspeed.prefetch_bucket_size", 9, true},
                {"policy.deepspeed.param_persistence_threshold", 100, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].to, to) == 0 && hidden > 0 && hidden < 1u << 24)
            return hidden * (rows[i].is_square ? hidden : 1) * rows[i].tenths /
                   10;
    return 0;
}

/* Facts that compose.h works out from others. */
static bool follows(const char *to)
{
    return strcmp(to, "batch.global") == 0;
}

static ms_err settle(ms_facts *facts, const ms_fact *of, uint64_t hidden,
                     ms_fault *fault)
{
    const ms_fact *other = ms_facts_find(facts, of->to);
    const char *place = ms_facts_place(facts, of),
               *key = ms_pairs_name(of->pair);
    uint64_t number = from_width(of->to, hidden);
    if (other != NULL && other->pairs != of->pairs)
        return ms_facts_say(facts, &facts->told, fault,
                            "%s: %s is \"auto\": %s, %s", place, key,
                            other->value, ms_facts_place(facts, other));
    if (follows(of->to) || (other != NULL && other->pair != NULL))
        return MS_OK;
    if (number == 0)
        return ms_facts_say(facts, &facts->warnings, fault, "%s: %s=auto: %s",
                            place, key, of->format->autos);
    ms_fact fact = *of;
    fact.value = ms_arena_format(facts->arena, "%" PRIu64, number);
    if (fact.value == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(push(facts, &facts->all, &facts->n, &facts->capacity, &fact, fault));
    return ms_facts_say(
        facts, &facts->told, fault,
        "%s: %s is \"auto\": %s, from the model's width %" PRIu64, place, key,
        fact.value, hidden);
}

ms_err ms_facts_settle(ms_facts *facts, uint64_t hidden, ms_fault *fault)
{
    for (uint32_t i = 0; i < facts->n_autos; i++)
        MS_TRY(settle(facts, &facts->autos[i], hidden, fault));
    return MS_OK;
}
