/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads objects of saved JSON back, by the rows of their keys. */

#include "graphs/json/json.h"
#include "sim/report.h"
#include "tools/results/keys/keys.h"

#include <assert.h>
#include <string.h>

static const ms_json_node *node_of(const ms_values *values, uint32_t row)
{
    return &values->json->nodes[row];
}

/* ---- one value ----------------------------------------------------------- */

/* Reads a whole number up to `most`; JSON's null is read as `null`. */
static ms_err read_count(const ms_values *values, uint32_t row,
                         const ms_key *key, uint64_t most, uint64_t *number)
{
    *number = key->held == MS_HELD_SOME ? 0 : most;
    if (key->null && node_of(values, row)->kind == MS_JSON_NULL)
        return MS_OK;
    MS_TRY(ms_values_u64(values, row, number));
    return *number < most ? MS_OK
                          : ms_json_fail(values->json, row, values->fault, NULL,
                                         "the number is too large");
}

static ms_err read_double(const ms_values *values, uint32_t row, double *number)
{
    const ms_json_node *node = node_of(values, row);
    if (node->kind != MS_JSON_NULL && node->kind != MS_JSON_INT &&
        node->kind != MS_JSON_FLOAT)
        return ms_values_wrong(values, row, "a number");
    *number = node->kind == MS_JSON_NULL  ? -1.0
              : node->kind == MS_JSON_INT ? (double)node->value.i
                                          : node->value.f;
    return *number >= 0.0 || node->kind == MS_JSON_NULL
               ? MS_OK
               : ms_json_fail(values->json, row, values->fault, NULL,
                              "a rate below 0");
}

static ms_err read_words(const ms_values *values, uint32_t row,
                         const ms_key *key, const char **words)
{
    *words = NULL;
    if (key->null && node_of(values, row)->kind == MS_JSON_NULL)
        return MS_OK;
    return ms_values_name(values, row, words);
}

/* Reads a word as its index in a table of names; null changes nothing. */
static ms_err read_name(const ms_values *values, uint32_t row,
                        const ms_key *key, void *at)
{
    uint32_t which;
    if (key->null && node_of(values, row)->kind == MS_JSON_NULL)
        return MS_OK;
    MS_TRY(ms_values_word(values, row, key->names, key->n_names, &which));
    if (key->held == MS_HELD_U8)
        *(uint8_t *)at = (uint8_t)which;
    else
        memcpy(at, &which, sizeof which);
    return MS_OK;
}

static ms_err read_number(const ms_values *values, uint32_t row,
                          const ms_key *key, void *at)
{
    static const uint64_t most[] = {[MS_HELD_U64] = MS_NO_LEVEL,
                                    [MS_HELD_SOME] = MS_NO_LEVEL,
                                    [MS_HELD_U32] = MS_NONE,
                                    [MS_HELD_U16] = UINT16_MAX + 1u,
                                    [MS_HELD_U8] = UINT8_MAX + 1u};
    uint64_t number;
    MS_TRY(read_count(values, row, key, most[key->held], &number));
    uint32_t narrow = (uint32_t)number;
    uint16_t narrower = (uint16_t)number;
    if (key->held == MS_HELD_U8)
        *(uint8_t *)at = (uint8_t)number;
    else if (key->held == MS_HELD_U16)
        memcpy(at, &narrower, sizeof narrower);
    else if (key->held == MS_HELD_U32)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &number, sizeof number);
    return MS_OK;
}

static ms_err read_held(const ms_values *values, uint32_t row,
                        const ms_key *key, void *at)
{
    const ms_json_node *node = node_of(values, row);
    switch (key->held) {
    case MS_HELD_BOOL:
        MS_TRY(ms_values_kind(values, row, MS_JSON_BOOL));
        memcpy(at, &node->value.b, sizeof(bool));
        return MS_OK;
    case MS_HELD_I64:
        MS_TRY(ms_values_kind(values, row, MS_JSON_INT));
        memcpy(at, &node->value.i, sizeof node->value.i);
        return MS_OK;
    case MS_HELD_FLOPS:
    case MS_HELD_RATE:
        return read_double(values, row, at);
    case MS_HELD_TEXT:
        return read_words(values, row, key, at);
    default:
        assert(key->held != MS_HELD_NOT && key->held != MS_HELD_JSON);
        return read_number(values, row, key, at);
    }
}

/* ---- arrays and objects -------------------------------------------------- */

static ms_err check(const ms_values *values, uint32_t row, const ms_key *key,
                    const void *of, const void *value)
{
    const char *wrong = key->wrong != NULL ? key->wrong(of, value) : NULL;
    return wrong == NULL ? MS_OK
                         : ms_json_fail(values->json, row, values->fault,
                                        "was the file edited?", "%s", wrong);
}

static ms_err read_list(const ms_values *values, uint32_t row,
                        const ms_key *key, const void *of)
{
    const ms_json *json = values->json;
    ms_key_list list = key->list(of);
    char *at = list.first;
    assert(list.n == json->nodes[row].value.n);
    for (uint32_t node = ms_json_first(json, row); node != MS_NONE;
         node = json->nodes[node].next, at += list.stride) {
        if (key->type == MS_KEY_OBJECTS)
            MS_TRY(ms_keys_read(values, node, key->of, at));
        else
            MS_TRY(ms_values_u64(values, node, (uint64_t *)(void *)at));
        MS_TRY(check(values, node, key, of, at));
    }
    return MS_OK;
}

/* Reads an object that has members for some of the names and no others. */
static ms_err read_some(const ms_values *values, uint32_t object,
                        const ms_key *key, char *at)
{
    const ms_json *json = values->json;
    for (uint32_t row = ms_json_first(json, object); row != MS_NONE;
         row = json->nodes[row].next) {
        const char *name = json->nodes[row].key;
        uint32_t i = 0;
        uint64_t number;
        while (i < key->n_names && strcmp(key->names[i], name) != 0)
            i++;
        if (i == key->n_names)
            return ms_json_fail_key(json, row, values->fault,
                                    "was it written by a newer memsim?",
                                    "unknown word \"%s\"", name);
        MS_TRY(ms_values_u64(values, row, &number));
        memcpy(at + i * sizeof number, &number, sizeof number);
    }
    return MS_OK;
}

/* Reads an object that has a member for each name. */
static ms_err read_named(const ms_values *values, uint32_t object,
                         const ms_key *key, const void *of, char *at)
{
    static const ms_key number = {.held = MS_HELD_U64};
    uint32_t row;
    for (uint32_t i = 0; i < key->n_names; i++) {
        const char *name = key->names[i];
        if (key->type != MS_KEY_NAMED) {
            MS_TRY(ms_values_any(values, object, name, &row));
            MS_TRY(read_number(values, row, &number, at));
            at += sizeof(uint64_t);
            continue;
        }
        MS_TRY(ms_values_member(values, object, name, MS_JSON_OBJECT, &row));
        MS_TRY(ms_keys_read(values, row, key->of, at));
        MS_TRY(check(values, row, key, of, at));
        at += key->of->size;
    }
    return MS_OK;
}

static char *place_of(const ms_key *key, void *of)
{
    char *at = of;
    if (key->via > 0)
        memcpy(&at, at + key->via - 1, sizeof at);
    return at + key->at;
}

/* Reads a value that has members of its own; room may allocate their place. */
static ms_err read_members(const ms_values *values, uint32_t row,
                           const ms_key *key, void *of)
{
    char *at = place_of(key, of);
    switch (key->type) {
    case MS_KEY_OBJECT:
        return ms_keys_read(values, row, key->of, at);
    case MS_KEY_SOME:
        return read_some(values, row, key, at);
    case MS_KEY_TABLE:
        return ms_keys_table_read(values, row, key, of, at);
    default:
        return read_named(values, row, key, of, at);
    }
}

static ms_err read_object(const ms_values *values, uint32_t row,
                          const ms_key *key, void *of)
{
    if (key->null && node_of(values, row)->kind == MS_JSON_NULL)
        return MS_OK;
    MS_TRY(ms_values_kind(values, row, MS_JSON_OBJECT));
    if (key->room != NULL && key->type != MS_KEY_TABLE)
        MS_TRY(key->room(values, row, of));
    MS_TRY(read_members(values, row, key, of));
    return key->type != MS_KEY_NAMED
               ? check(values, row, key, of, place_of(key, of))
               : MS_OK;
}

static ms_err read_key(const ms_values *values, uint32_t row, const ms_key *key,
                       void *of)
{
    switch (key->type) {
    /* its value was checked before anything else is read */
    case MS_KEY_VERSION:
        return MS_OK;
    case MS_KEY_OBJECTS:
    case MS_KEY_LEVELS:
        if (key->null && node_of(values, row)->kind == MS_JSON_NULL)
            return MS_OK;
        MS_TRY(ms_values_kind(values, row, MS_JSON_ARRAY));
        MS_TRY(key->room(values, row, of));
        return read_list(values, row, key, of);
    case MS_KEY_OBJECT:
    case MS_KEY_NAMED:
    case MS_KEY_COUNTS:
    case MS_KEY_SOME:
    case MS_KEY_TABLE:
        return read_object(values, row, key, of);
    case MS_KEY_WORD:
        return read_name(values, row, key, place_of(key, of));
    default:
        MS_TRY(read_held(values, row, key, place_of(key, of)));
        return check(values, row, key, of, place_of(key, of));
    }
}

ms_err ms_keys_read(const ms_values *values, uint32_t object,
                    const ms_keys *keys, void *of)
{
    MS_TRY(ms_values_kind(values, object, MS_JSON_OBJECT));
    if (keys->open != NULL)
        MS_TRY(keys->open(values, object, of));
    for (uint32_t i = 0; i < keys->n; i++) {
        const ms_key *key = &keys->rows[i];
        if (key->read == MS_KEY_SKIP)
            continue;
        if (key->read == MS_KEY_MAY &&
            ms_json_find(values->json, object, key->name) == MS_NONE)
            continue;
        uint32_t row;
        MS_TRY(ms_values_any(values, object, key->name, &row));
        MS_TRY(read_key(values, row, key, of));
    }
    return keys->close != NULL ? keys->close(values, object, of) : MS_OK;
}

ms_err ms_keys_read_one(const ms_values *values, uint32_t object,
                        const ms_keys *keys, const char *name, void *of)
{
    uint32_t i = 0, row;
    while (strcmp(keys->rows[i].name, name) != 0)
        i++;
    MS_TRY(ms_values_any(values, object, name, &row));
    return read_key(values, row, &keys->rows[i], of);
}
