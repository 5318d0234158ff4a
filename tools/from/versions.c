/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/versions.h"
#include "tools/from/references.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key of the file that some versions have. */
typedef struct span {
    const ms_keyversion *row;
    uint32_t pair;
} span;

typedef struct reader {
    ms_facts *facts;
    const ms_format *format;
    const char *prefix; /* of the keys that are the format's */
    ms_pairs *pairs;
    span *spans;
    uint32_t n;
    /* The file's version, NULL: none is known, and the key that gives it;
     * MS_NONE: its absence does. */
    const char *version;
    uint32_t by;
    bool declared;
    ms_fault *fault;
} reader;

/* ---- versions ------------------------------------------------------------ */

int ms_versions_compare(const char *a, const char *b)
{
    size_t word = strcspn(a, "0123456789"), other = strcspn(b, "0123456789");
    if (word != other || memcmp(a, b, word) != 0)
        return word != other ? (word > other) - (word < other)
                             : memcmp(a, b, word);
    for (a += word, b += other; *a != '\0' || *b != '\0';) {
        char *end_a, *end_b;
        unsigned long left = strtoul(a, &end_a, 10);
        unsigned long right = strtoul(b, &end_b, 10);
        if (left != right)
            return left < right ? -1 : 1;
        a = end_a + (*end_a != '\0');
        b = end_b + (*end_b != '\0');
    }
    return 0;
}

static bool is_declaration(const ms_keyversion *row)
{
    return row->since != NULL &&
           strcmp(row->since, MS_KEYVERSION_DECLARED) == 0;
}

static bool is_before(const reader *r, const ms_keyversion *row)
{
    return r->version != NULL && row->until != NULL &&
           ms_versions_compare(row->until, r->version) <= 0;
}

static bool is_behind(const reader *r, const ms_keyversion *row)
{
    return r->declared && row->since != NULL && !is_declaration(row) &&
           ms_versions_compare(row->since, r->version) > 0;
}

/* ---- the keys of a file -------------------------------------------------- */

/* The pair's key as the tables have it; NULL: it is not the format's. */
static const char *key_of(const reader *r, const ms_pair *pair)
{
    size_t n = strlen(r->prefix);
    if (strcmp(pair->value, "null") == 0 ||
        strncmp(pair->key, r->prefix, n) != 0)
        return NULL;
    return ms_formatkeys_strip(r->format, pair->key + n);
}

/* The row that a key with this value has; NULL: all versions have it. */
static const ms_keyversion *row_of(const reader *r, const char *key,
                                   const char *value)
{
    for (uint32_t i = 0; i < ms_keyversions_n; i++) {
        const ms_keyversion *row = &ms_keyversions[i];
        bool known = false;
        if (row->absent != NULL && !is_declaration(row))
            continue;
        if (strcmp(row->format, r->format->name) != 0 ||
            !ms_formatkeys_match(row->key, key))
            continue;
        ms_formatkeys_value(r->facts->arena, row->values, value, &known);
        if (known)
            return row;
    }
    return NULL;
}

static ms_err find_spans(reader *r)
{
    r->spans =
        ms_arena_take(r->facts->arena, r->pairs->n + 1, sizeof *r->spans);
    if (r->spans == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t i = 0; i < r->pairs->n; i++) {
        const char *key = key_of(r, &r->pairs->all[i]);
        const ms_keyversion *row =
            key != NULL ? row_of(r, key, r->pairs->all[i].value) : NULL;
        if (row != NULL)
            r->spans[r->n++] = (span){row, i};
    }
    return MS_OK;
}

/* The version that the file declares, if the format has a key for that, which
 * may stand at the root, too. */
static void find_declared(reader *r, const ms_keyversion *row)
{
    r->declared = true;
    r->version = row->absent;
    r->by = MS_NONE;
    for (uint32_t i = 0; i < r->pairs->n; i++) {
        const ms_pair *pair = &r->pairs->all[i];
        const char *key = key_of(r, pair);
        if (key == NULL || strcmp(key, row->key) != 0)
            key = ms_formatkeys_strip(r->format, pair->key);
        if (strcmp(key, row->key) != 0 || strcmp(pair->value, "null") == 0)
            continue;
        r->version = pair->value;
        r->by = i;
        return;
    }
}

static void find_version(reader *r)
{
    for (uint32_t i = 0; i < ms_keyversions_n; i++)
        if (strcmp(ms_keyversions[i].format, r->format->name) == 0 &&
            is_declaration(&ms_keyversions[i])) {
            find_declared(r, &ms_keyversions[i]);
            return;
        }
    for (uint32_t i = 0; i < r->n; i++) {
        const char *since = r->spans[i].row->since;
        if (since == NULL ||
            (r->version != NULL && ms_versions_compare(since, r->version) <= 0))
            continue;
        r->version = since;
        r->by = r->spans[i].pair;
    }
}

/* ---- what is told -------------------------------------------------------- */

/* Which versions the row's are: "before 2", "2 or later", or both bounds. */
static const char *versions_of(const reader *r, const ms_keyversion *row)
{
    ms_arena *arena = r->facts->arena;
    const char *words =
        row->since == NULL ? ms_arena_format(arena, "before %s", row->until)
        : row->until == NULL
            ? ms_arena_format(arena, "%s or later", row->since)
            : ms_arena_format(arena, "%s to %s", row->since, row->until);
    return words != NULL ? words : "";
}

/* What the file's version is known by. */
static const char *evidence_of(const reader *r)
{
    ms_arena *arena = r->facts->arena;
    const ms_pair *by = r->by != MS_NONE ? &r->pairs->all[r->by] : NULL;
    const char *words =
        by == NULL
            ? ms_arena_format(arena, "a file without \"version\" is of %s",
                              r->version)
            : ms_arena_format(arena, "%s=%.40s (line %u) is of %s%s",
                              ms_pairs_name(by), ms_pairs_value(by),
                              ms_pairs_line(r->pairs, by->at), r->version,
                              r->declared ? "" : " or later");
    return words != NULL ? words : "";
}

/* What becomes of the key; NULL: nothing is to be said. */
static const char *end_of(const reader *r, const span *s, const char *became)
{
    return became != NULL
               ? ms_arena_format(r->facts->arena, "it is read as %s", became)
               : s->row->note;
}

static ms_err tell_mixed(const reader *r, const span *s, const char *became)
{
    const ms_pair *pair = &r->pairs->all[s->pair];
    const char *end = end_of(r, s, became);
    return ms_facts_say(
        r->facts, &r->facts->warnings, r->fault,
        "%s:%u: %s=%.60s is of %s %s, but %s: %s", r->pairs->source.name,
        ms_pairs_line(r->pairs, pair->at), ms_pairs_name(pair),
        ms_pairs_value(pair), r->format->name, versions_of(r, s->row),
        evidence_of(r), end != NULL ? end : "it is read all the same");
}

/* A key that turns nothing on is read in silence, and one of the version that
 * the file declares. */
static ms_err tell_old(const reader *r, const span *s, const char *became)
{
    const ms_pair *pair = &r->pairs->all[s->pair];
    const char *end = end_of(r, s, became);
    if (end == NULL || s->row->until == NULL ||
        (became == NULL && r->declared) ||
        ms_formatkeys_one_of("false|0", ms_pairs_value(pair)))
        return MS_OK;
    return ms_facts_say(r->facts, &r->facts->told, r->fault,
                        "%s:%u: %s is of %s %s: %s", r->pairs->source.name,
                        ms_pairs_line(r->pairs, pair->at), ms_pairs_name(pair),
                        r->format->name, versions_of(r, s->row), end);
}

/* ---- renaming ------------------------------------------------------------ */

/* The key that says the same now, with what a * stands for. */
static const char *now_of(const reader *r, const ms_keyversion *row,
                          const char *key)
{
    const char *from = strchr(row->key, '*'), *to = strchr(row->now, '*');
    if (from == NULL || to == NULL)
        return ms_arena_format(r->facts->arena, "%s%s", r->prefix, row->now);
    size_t before = (size_t)(from - row->key), after = strlen(from + 1);
    return ms_arena_format(
        r->facts->arena, "%s%.*s%.*s%s", r->prefix, (int)(to - row->now),
        row->now, (int)(strlen(key) - before - after), key + before, to + 1);
}

/* A key that a declared version does not have stays what it is. */
static ms_err take_span(reader *r, const span *s)
{
    ms_pair *pair = &r->pairs->all[s->pair];
    const ms_keyversion *row = s->row;
    bool mixed = is_before(r, row) || is_behind(r, row), known = false;
    if (row->now == NULL || (mixed && r->declared))
        return mixed ? tell_mixed(r, s, NULL) : tell_old(r, s, NULL);
    const char *now = now_of(r, row, key_of(r, pair));
    const char *value =
        ms_formatkeys_value(r->facts->arena, row->values, pair->value, &known);
    const char *became =
        ms_arena_format(r->facts->arena, "%s=%.60s", now, value);
    if (now == NULL || value == NULL || became == NULL)
        return ms_fail_nomem(r->fault);
    MS_TRY(mixed ? tell_mixed(r, s, became) : tell_old(r, s, became));
    pair->old_value = ms_pairs_value(pair);
    pair->old_key = ms_pairs_name(pair);
    pair->key = now;
    pair->value = value;
    return MS_OK;
}

/* The key of the file that is older than the row's versions end; MS_NONE:
 * none is. */
static uint32_t older_than(const reader *r, const char *until)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->spans[i].row->until != NULL &&
            ms_versions_compare(r->spans[i].row->until, until) <= 0)
            return r->spans[i].pair;
    return MS_NONE;
}

/* What that version's code does, which no key of the file says. */
static ms_err take_code(reader *r, const ms_keyversion *row, const ms_pair *of)
{
    MS_TRY(ms_facts_say(r->facts, &r->facts->told, r->fault,
                        "%s:%u: a version of %s that has %s %s: %s=%s",
                        r->pairs->source.name, ms_pairs_line(r->pairs, of->at),
                        r->format->name, ms_pairs_name(of), row->note, row->now,
                        row->absent));
    return ms_facts_default(r->facts, r->format, r->pairs, row->now,
                            row->absent, r->fault);
}

/* What a file of that version means where it does not say. */
static ms_err take_absent(reader *r, const ms_keyversion *row)
{
    uint32_t by = older_than(r, row->until);
    const ms_pair *of = by != MS_NONE ? &r->pairs->all[by] : NULL;
    if (of == NULL || is_before(r, row) ||
        ms_pairs_find(r->pairs, row->key) != NULL ||
        (row->beside != NULL && ms_pairs_find(r->pairs, row->beside) == NULL))
        return MS_OK;
    if (*row->key == '\0')
        return take_code(r, row, of);
    MS_TRY(ms_facts_say(r->facts, &r->facts->told, r->fault,
                        "%s:%u: a version of %s that has %s has %s=%s by "
                        "default",
                        r->pairs->source.name, ms_pairs_line(r->pairs, of->at),
                        r->format->name, ms_pairs_name(of), row->key,
                        row->absent));
    return ms_pairs_add(r->pairs, row->key, row->absent, of->at, false,
                        r->fault);
}

static ms_err take_format(ms_facts *facts, const ms_format *format,
                          const char *prefix, ms_pairs *pairs, ms_fault *fault)
{
    reader r = {.facts = facts,
                .format = format,
                .prefix = prefix,
                .pairs = pairs,
                .by = MS_NONE,
                .fault = fault};
    MS_TRY(find_spans(&r));
    find_version(&r);
    for (uint32_t i = 0; i < r.n; i++)
        MS_TRY(take_span(&r, &r.spans[i]));
    for (uint32_t i = 0; i < ms_keyversions_n; i++)
        if (strcmp(ms_keyversions[i].format, format->name) == 0 &&
            ms_keyversions[i].absent != NULL &&
            !is_declaration(&ms_keyversions[i]))
            MS_TRY(take_absent(&r, &ms_keyversions[i]));
    return MS_OK;
}

static ms_err take_formats(ms_facts *facts, const ms_format *format,
                           const char *prefix, ms_pairs *pairs, ms_fault *fault)
{
    MS_TRY(take_format(facts, format, prefix, pairs, fault));
    for (uint32_t i = 0; i < 2 && format->inner[i].prefix != NULL; i++)
        MS_TRY(take_formats(facts, format->inner[i].format,
                            format->inner[i].prefix, pairs, fault));
    return MS_OK;
}

ms_err ms_versions_read(ms_facts *facts, const ms_format *format,
                        ms_pairs *pairs, ms_fault *fault)
{
    MS_TRY(ms_references_resolve(facts, format, pairs, fault));
    MS_TRY(take_formats(facts, format, "", pairs, fault));
    return ms_facts_read(facts, format, pairs, fault);
}
