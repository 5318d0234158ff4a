/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/json/spelling.h"

#include <string.h>

/* ---- escapes, which the scan has checked --------------------------------- */

static uint32_t hex4(const unsigned char *c)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t digit = c[i] <= '9' ? c[i] - 48u : (c[i] | 32u) - 97u + 10u;
        value = value * 16 + digit;
    }
    return value;
}

/* As UTF-8 (RFC 3629). */
static char *put_character(char *out, uint32_t code)
{
    uint32_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0x00, 0xC0, 0xE0, 0xF0};
    *out++ = (char)(lead[more] | code >> 6 * more);
    while (more-- > 0)
        *out++ = (char)(0x80 | (code >> 6 * more & 0x3F));
    return out;
}

/* The escape at *at, which is moved behind it; half a pair comes with the
 * other. */
static char *put_escape(char *out, const unsigned char **at)
{
    static const char meant[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    const unsigned char *c = *at + 1;
    if (*c != 'u') {
        size_t i = 0;
        while ((unsigned char)meant[i] != *c)
            i += 2;
        *at = c + 1;
        *out = meant[i + 1];
        return out + 1;
    }
    uint32_t code = hex4(c + 1);
    *at = c + 5;
    if (code >= 0xD800 && code <= 0xDFFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (hex4(*at + 2) - 0xDC00);
        *at += 6;
    }
    return put_character(out, code);
}

/* What is meant is never longer than how it is spelt. */
static const char *unescape(const ms_scan_text *text, ms_arena *arena)
{
    const unsigned char *at = text->first, *end = at + text->length;
    char *meant = ms_arena_take_raw(arena, text->length + 1, 1), *out = meant;
    if (meant == NULL)
        return NULL;
    while (at < end) {
        if (*at == '\\')
            out = put_escape(out, &at);
        else
            *out++ = (char)*at++;
    }
    *out = '\0';
    return meant;
}

const char *ms_spelling_text(const ms_scan_text *text, ms_arena *arena)
{
    if (text->escapes)
        return unescape(text, arena);
    return ms_arena_text(arena, (const char *)text->first, text->length);
}

/* ---- keys ---------------------------------------------------------------- */

/* FNV-1a with a final mix: the low bits pick the slot. */
static uint32_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
    return (uint32_t)(hash ^ hash >> 32);
}

/* The key, or the free place where it belongs. */
static struct ms_spelling_key *place_of(const ms_spelling *keys,
                                        const char *text, size_t length,
                                        uint32_t hash)
{
    uint32_t mask = keys->capacity - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        struct ms_spelling_key *key = &keys->keys[i];
        if (key->text == NULL || (key->hash == hash && key->length == length &&
                                  memcmp(key->text, text, length) == 0))
            return key;
    }
}

static bool make_room(ms_spelling *keys)
{
    ms_spelling more = *keys;
    if (keys->n < keys->capacity / 2)
        return true;
    more.capacity = keys->capacity == 0 ? 32 : 2 * keys->capacity;
    more.keys = ms_arena_take(keys->arena, more.capacity, sizeof *more.keys);
    if (more.keys == NULL)
        return false;
    for (uint32_t i = 0; i < keys->capacity; i++) {
        const struct ms_spelling_key *key = &keys->keys[i];
        if (key->text != NULL)
            *place_of(&more, key->text, key->length, key->hash) = *key;
    }
    ms_arena_drop(keys->arena, keys->keys);
    *keys = more;
    return true;
}

const char *ms_spelling_of_key(ms_spelling *keys, const ms_scan_text *text)
{
    const char *meant = (const char *)text->first;
    size_t length = text->length;
    if (!make_room(keys))
        return NULL;
    if (text->escapes) {
        meant = unescape(text, keys->arena);
        if (meant == NULL)
            return NULL;
        length = strlen(meant);
    }
    uint32_t hash = hash_of(meant, length);
    struct ms_spelling_key *key = place_of(keys, meant, length, hash);
    if (key->text != NULL)
        return key->text;
    *key = (struct ms_spelling_key){
        text->escapes ? meant : ms_arena_text(keys->arena, meant, length),
        (uint32_t)length, hash};
    keys->n += key->text != NULL;
    return key->text;
}
