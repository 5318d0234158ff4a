/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one file that knows libyaml, which allocates behind it. */

#include "tools/from/pairs/pairs.h"

#include <string.h>

#ifdef MS_WITH_YAML

#include <yaml.h>

typedef struct reader {
    yaml_parser_t parser;
    ms_pairs *pairs;
    ms_fault *fault;
} reader;

/* libyaml counts characters; a place here is a byte: of its line, and as many
 * bytes from there. */
static size_t place(const reader *r, yaml_mark_t mark)
{
    const char *bytes = r->pairs->source.bytes;
    size_t at = 0, line = 0, length = r->pairs->source.length;
    for (; at < length && line < mark.line; at++)
        line += bytes[at] == '\n';
    return mark.column < length - at ? at + mark.column : length;
}

static ms_err fail_syntax(const reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem != NULL ? p->problem : "no YAML";
    size_t at = p->problem_mark.index > 0 ? place(r, p->problem_mark)
                                          : p->problem_offset;
    if (p->error == YAML_MEMORY_ERROR)
        return ms_fail_nomem(r->fault);
    return ms_pairs_fail(r->pairs, at, r->fault,
                         "is the file whole, and indented by blanks?", "%s%s%s",
                         problem, p->context != NULL ? " " : "",
                         p->context != NULL ? p->context : "");
}

static ms_err next(reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? MS_OK : fail_syntax(r);
}

/* YAML 1.1's booleans and nulls, as PyYAML reads them, are words of ours; 1_000
 * is a number. */
static const char *plain(ms_arena *arena, const char *text, size_t length)
{
    static const struct {
        const char *word, *means;
    } rows[] = {{"true", "true"},   {"True", "true"},   {"TRUE", "true"},
                {"yes", "true"},    {"Yes", "true"},    {"YES", "true"},
                {"on", "true"},     {"On", "true"},     {"ON", "true"},
                {"false", "false"}, {"False", "false"}, {"FALSE", "false"},
                {"no", "false"},    {"No", "false"},    {"NO", "false"},
                {"off", "false"},   {"Off", "false"},   {"OFF", "false"},
                {"", "null"},       {"~", "null"},      {"null", "null"},
                {"Null", "null"},   {"NULL", "null"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strlen(rows[i].word) == length &&
            memcmp(rows[i].word, text, length) == 0)
            return rows[i].means;
    char *copy = ms_arena_text(arena, text, length);
    if (copy == NULL || *copy < '0' || *copy > '9' ||
        strspn(copy, "0123456789_") < length)
        return copy;
    char *to = copy;
    for (const char *from = copy; *from != '\0'; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    return copy;
}

static const char *scalar(const reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return plain(r->pairs->arena, text, length);
    return ms_arena_text(r->pairs->arena, text, length);
}

static ms_err add_node(reader *r, yaml_event_t *event, const char *key,
                       uint32_t depth);

/* The members of a mapping, whose start was read. */
static ms_err add_mapping(reader *r, const char *key, size_t start,
                          uint32_t depth)
{
    yaml_event_t event;
    for (bool any = false;; any = true) {
        MS_TRY(next(r, &event));
        bool ends = event.type == YAML_MAPPING_END_EVENT;
        bool is_name = event.type == YAML_SCALAR_EVENT;
        size_t at = place(r, event.start_mark);
        const char *inner =
            !is_name ? ""
                     : ms_pairs_key(r->pairs->arena, key,
                                    (const char *)event.data.scalar.value,
                                    event.data.scalar.length);
        yaml_event_delete(&event);
        if (ends)
            return any || *key == '\0' ? MS_OK
                                       : ms_pairs_add(r->pairs, key, "{}",
                                                      start, false, r->fault);
        if (inner == NULL)
            return ms_fail_nomem(r->fault);
        if (!is_name)
            return ms_pairs_fail(r->pairs, at, r->fault, NULL,
                                 "a key of settings is a word");
        MS_TRY(next(r, &event));
        MS_TRY(add_node(r, &event, inner, depth + 1));
    }
}

/* The elements of a sequence: its scalars become one value. */
static ms_err add_sequence(reader *r, const char *key, size_t at,
                           uint32_t depth)
{
    yaml_event_t event;
    ms_text text = {.arena = r->pairs->arena};
    const char *comma = "";
    for (uint32_t i = 0;; i++) {
        MS_TRY(next(r, &event));
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        if (event.type == YAML_SCALAR_EVENT) {
            const char *value = scalar(r, &event);
            yaml_event_delete(&event);
            if (value == NULL)
                return ms_fail_nomem(r->fault);
            ms_text_add(&text, "%s%s", comma, value);
            comma = ",";
            continue;
        }
        const char *inner = ms_arena_format(r->pairs->arena, "%s.%u", key, i);
        if (inner == NULL) {
            yaml_event_delete(&event);
            return ms_fail_nomem(r->fault);
        }
        MS_TRY(add_node(r, &event, inner, depth + 1));
    }
    if (text.failed)
        return ms_fail_nomem(r->fault);
    return ms_pairs_add(r->pairs, key, text.bytes != NULL ? text.bytes : "", at,
                        false, r->fault);
}

/* The event is this function's to delete. */
static ms_err add_node(reader *r, yaml_event_t *event, const char *key,
                       uint32_t depth)
{
    size_t at = place(r, event->start_mark);
    yaml_event_type_t type = event->type;
    const char *value = type == YAML_SCALAR_EVENT ? scalar(r, event) : NULL;
    yaml_event_delete(event);
    if (depth > MS_PAIRS_DEPTH)
        return ms_pairs_fail(r->pairs, at, r->fault, NULL,
                             "nested more than %u levels deep", MS_PAIRS_DEPTH);
    if (type == YAML_SCALAR_EVENT)
        return ms_pairs_add(r->pairs, key, value, at, false, r->fault);
    if (type == YAML_MAPPING_START_EVENT)
        return add_mapping(r, key, at, depth);
    if (type == YAML_SEQUENCE_START_EVENT)
        return add_sequence(r, key, at, depth);
    return ms_pairs_fail(r->pairs, at, r->fault, "write the value out",
                         "\"%.60s\": aliases are not followed", key);
}

/* One document, whose root is a mapping. */
static ms_err read_document(reader *r)
{
    yaml_event_t event;
    for (;;) {
        MS_TRY(next(r, &event));
        yaml_event_type_t type = event.type;
        size_t at = place(r, event.start_mark);
        yaml_event_delete(&event);
        if (type == YAML_MAPPING_START_EVENT)
            break;
        if (type != YAML_STREAM_START_EVENT &&
            type != YAML_DOCUMENT_START_EVENT)
            return ms_pairs_fail(r->pairs, at, r->fault, NULL,
                                 "settings are keys and values: KEY: VALUE");
    }
    MS_TRY(add_mapping(r, "", 0, 0));
    for (;;) {
        MS_TRY(next(r, &event));
        yaml_event_type_t type = event.type;
        size_t at = place(r, event.start_mark);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return MS_OK;
        if (type == YAML_DOCUMENT_START_EVENT)
            return ms_pairs_fail(r->pairs, at, r->fault,
                                 "give each in a file of its own",
                                 "there is a second document");
    }
}

bool ms_yamlpairs_is_there(void)
{
    return true;
}

ms_err ms_yamlpairs_read(ms_pairs *pairs, ms_fault *fault)
{
    reader r = {.pairs = pairs, .fault = fault};
    if (!yaml_parser_initialize(&r.parser))
        return ms_fail_nomem(fault);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser,
                                 (const unsigned char *)pairs->source.bytes,
                                 pairs->source.length);
    ms_err err = read_document(&r);
    yaml_parser_delete(&r.parser);
    return err;
}

#else

bool ms_yamlpairs_is_there(void)
{
    return false;
}

ms_err ms_yamlpairs_read(ms_pairs *pairs, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, pairs->source.name,
                   "install libyaml-dev and build again, or give the settings "
                   "as JSON",
                   "this build reads no YAML: libyaml was not there");
}

#endif
