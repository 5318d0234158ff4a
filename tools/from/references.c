/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/from/references.h"

#include <stdio.h>
#include <string.h>

/* A value that grows beyond this is no setting. */
#define LONGEST 4096u

typedef enum state { OPEN, UNDER_WAY, DONE, FAILED } state;

typedef struct reader {
    ms_facts *facts;
    const ms_format *format;
    ms_pairs *pairs;
    state *states; /* of the first n pairs; those behind them are done */
    uint32_t n, depth;
    const char *why; /* the value under way cannot be resolved; or NULL */
    bool is_resolver;
    ms_fault *fault;
} reader;

static ms_err resolve_pair(reader *r, uint32_t i);
static ms_err expand(reader *r, uint32_t of, const char *text, size_t length,
                     const char **out);

static state state_of(const reader *r, uint32_t i)
{
    return i < r->n ? r->states[i] : DONE;
}

/* ---- keys ---------------------------------------------------------------- */

/* ".x" is of the mapping that the pair is in, "..x" of the one around it. */
static const char *absolute(const reader *r, uint32_t of, const char *name)
{
    const char *key = r->pairs->all[of].key;
    size_t length = strlen(key), dots = strspn(name, ".");
    for (size_t i = 0; i < dots; i++)
        while (length > 0 && key[--length] != '.')
            ;
    if (dots == 0 || length == 0)
        return name + dots;
    return ms_arena_format(r->pairs->arena, "%.*s.%s", (int)length, key,
                           name + dots);
}

static uint32_t find(const reader *r, const char *key)
{
    const ms_pair *pair = ms_pairs_find(r->pairs, key);
    return pair != NULL ? (uint32_t)(pair - r->pairs->all) : MS_NONE;
}

static bool is_under(const char *key, const char *mapping)
{
    size_t n = strlen(mapping);
    return strncmp(key, mapping, n) == 0 && key[n] == '.';
}

/* ---- values -------------------------------------------------------------- */

/* The value of the key, as the text of the pair `of` needs it. */
static ms_err value_of(reader *r, uint32_t of, const char *name,
                       const char **out)
{
    const char *key = absolute(r, of, name);
    *out = "";
    if (key == NULL)
        return ms_fail_nomem(r->fault);
    uint32_t i = find(r, key);
    if (i != MS_NONE && state_of(r, i) == OPEN)
        MS_TRY(resolve_pair(r, i));
    r->is_resolver = strchr(name, ':') != NULL;
    if (r->is_resolver)
        r->why = "only OmegaConf's resolver knows that";
    else if (i == MS_NONE)
        r->why = "there is no such key";
    else if (state_of(r, i) == UNDER_WAY)
        r->why = "this goes round in a circle";
    else if (state_of(r, i) == FAILED)
        r->why = "what it refers to has no value";
    else
        *out = r->pairs->all[i].value;
    if (i != MS_NONE)
        r->pairs->all[i].named = true;
    return MS_OK;
}

/* Where the reference that begins at text ends; 0: nowhere. */
static size_t end_of(const char *text, size_t length)
{
    size_t depth = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '$' && i + 1 < length && text[i + 1] == '{')
            depth++;
        else if (text[i] == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

static ms_err add_reference(reader *r, uint32_t of, const char *text,
                            size_t length, ms_text *to)
{
    const char *name, *value;
    MS_TRY(expand(r, of, text + 2, length - 3, &name));
    if (r->why != NULL)
        return MS_OK;
    MS_TRY(value_of(r, of, name, &value));
    ms_text_add(to, "%s", value);
    if (to->length > LONGEST)
        r->why = "this value has no end";
    return MS_OK;
}

/* The text with the values of what it refers to.  r->why is set where one has
 * none. */
static ms_err expand(reader *r, uint32_t of, const char *text, size_t length,
                     const char **out)
{
    ms_text words = {.arena = r->pairs->arena};
    *out = "";
    if (++r->depth > MS_PAIRS_DEPTH)
        r->why = "this leads on and on";
    for (size_t i = 0; i < length && r->why == NULL;) {
        size_t n = text[i] == '$' && i + 1 < length && text[i + 1] == '{'
                       ? end_of(text + i, length - i)
                       : 0;
        if (n > 0)
            MS_TRY(add_reference(r, of, text + i, n, &words));
        else
            ms_text_put(&words, text + i, 1);
        i += n > 0 ? n : 1;
    }
    r->depth--;
    if (words.failed)
        return ms_fail_nomem(r->fault);
    *out = words.bytes != NULL ? words.bytes : "";
    return MS_OK;
}

/* ---- pairs --------------------------------------------------------------- */

/* Is the value one reference to a mapping?  *mapping: its key; or NULL. */
static ms_err find_mapping(reader *r, uint32_t of, const char **mapping)
{
    const char *text = r->pairs->all[of].value, *name;
    size_t length = strlen(text);
    *mapping = NULL;
    if (strncmp(text, "${", 2) != 0 || end_of(text, length) != length)
        return MS_OK;
    MS_TRY(expand(r, of, text + 2, length - 3, &name));
    const char *key = r->why == NULL ? absolute(r, of, name) : "";
    r->why = NULL;
    r->is_resolver = false;
    if (key == NULL)
        return ms_fail_nomem(r->fault);
    if (*key == '\0' || find(r, key) != MS_NONE ||
        is_under(r->pairs->all[of].key, key))
        return MS_OK;
    for (uint32_t i = 0; i < r->pairs->n; i++)
        if (is_under(r->pairs->all[i].key, key))
            *mapping = key;
    return MS_OK;
}

static ms_err copy_mapping(reader *r, uint32_t of, const char *mapping)
{
    const char *key = r->pairs->all[of].key;
    size_t at = r->pairs->all[of].at;
    r->pairs->all[of].value = "{}";
    for (uint32_t i = 0; i < r->pairs->n; i++) {
        const char *member = r->pairs->all[i].key;
        if (!is_under(member, mapping))
            continue;
        if (state_of(r, i) == OPEN)
            MS_TRY(resolve_pair(r, i));
        r->pairs->all[i].named = true;
        const char *inner = ms_arena_format(r->pairs->arena, "%s%s", key,
                                            member + strlen(mapping));
        MS_TRY(ms_pairs_add(r->pairs, inner, r->pairs->all[i].value, at, false,
                            r->fault));
    }
    return MS_OK;
}

static ms_err tell(const reader *r, const ms_pair *pair)
{
    if (r->is_resolver && ms_formatkeys_is_passed(r->format, pair->key))
        return MS_OK;
    return ms_facts_say(
        r->facts, &r->facts->warnings, r->fault,
        "%s:%u: %s=%.60s: %s; it is read as absent", r->pairs->source.name,
        ms_pairs_line(r->pairs, pair->at), pair->key, pair->value, r->why);
}

static ms_err resolve_scalar(reader *r, uint32_t i, const char *text)
{
    const char *value;
    MS_TRY(expand(r, i, text, strlen(text), &value));
    if (r->why != NULL)
        MS_TRY(tell(r, &r->pairs->all[i]));
    r->states[i] = r->why != NULL ? FAILED : DONE;
    r->pairs->all[i].value = r->why != NULL ? "null" : value;
    return MS_OK;
}

/* Of a pair that is open; no other is in doubt then. */
static ms_err resolve_pair(reader *r, uint32_t i)
{
    const char *text = r->pairs->all[i].value, *mapping = NULL;
    r->states[i] = UNDER_WAY;
    r->depth++;
    r->why = NULL;
    r->is_resolver = false;
    if (strstr(text, "${") != NULL) {
        MS_TRY(find_mapping(r, i, &mapping));
        MS_TRY(mapping != NULL ? copy_mapping(r, i, mapping)
                               : resolve_scalar(r, i, text));
    }
    if (r->states[i] == UNDER_WAY)
        r->states[i] = DONE;
    r->depth--;
    r->why = NULL;
    return MS_OK;
}

ms_err ms_references_resolve(ms_facts *facts, const ms_format *format,
                             ms_pairs *pairs, ms_fault *fault)
{
    reader r = {.facts = facts,
                .format = format,
                .pairs = pairs,
                .n = pairs->n,
                .fault = fault};
    if (!format->refers || pairs->n == 0)
        return MS_OK;
    r.states = ms_arena_take(pairs->arena, pairs->n, sizeof *r.states);
    if (r.states == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < r.n; i++)
        if (r.states[i] == OPEN)
            MS_TRY(resolve_pair(&r, i));
    return MS_OK;
}
