/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A mutator that keeps JSON well formed: it replaces a number or a string by
 * another one, or drops or doubles an item of a list.  Every other mutation
 * is left to libFuzzer, which breaks the syntax soon enough. */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_TOKENS 4096u

typedef struct token {
    size_t at, length;
} token;

static token tokens[MOST_TOKENS];
static uint32_t state;

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t most,
                               unsigned seed);

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static bool is_number(uint8_t c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* Finds the numbers, or the strings, of a text. */
static uint32_t find_tokens(const uint8_t *bytes, size_t length, bool strings)
{
    uint32_t n = 0;
    for (size_t i = 0; i < length && n < MOST_TOKENS; i++) {
        size_t end = i;
        if (bytes[i] == '"') {
            for (end++; end < length && bytes[end] != '"';)
                end++;
            end++;
        } else {
            while (end < length && is_number(bytes[end]))
                end++;
        }
        if (end > length || end == i)
            continue;
        if ((bytes[i] == '"') == strings)
            tokens[n++] = (token){i, end - i};
        i = end - 1;
    }
    return n;
}

static size_t replace(uint8_t *bytes, size_t length, size_t most, token old,
                      const char *by, size_t by_length)
{
    if (length - old.length + by_length > most)
        return length;
    memmove(bytes + old.at + by_length, bytes + old.at + old.length,
            length - old.at - old.length);
    memcpy(bytes + old.at, by, by_length);
    return length - old.length + by_length;
}

static size_t mutate_token(uint8_t *bytes, size_t length, size_t most)
{
    static const char *const numbers[] = {
        "0", "1", "2", "3",          "4",   "5",
        "7", "8", "9", "16",         "-1",  "-2",
        "6", "7", "1", "1073741824", "1.5", "1152921504606846976"};
    bool strings = random_below(3) == 0;
    uint32_t n = find_tokens(bytes, length, strings);
    char word[64];
    if (n == 0)
        return length;
    token old = tokens[random_below(n)], other = tokens[random_below(n)];
    if (!strings && random_below(2) == 0) {
        const char *by =
            numbers[random_below(sizeof numbers / sizeof numbers[0])];
        return replace(bytes, length, most, old, by, strlen(by));
    }
    if (other.length > sizeof word)
        return length;
    memcpy(word, bytes + other.at, other.length);
    return replace(bytes, length, most, old, word, other.length);
}

/* The end of the value that begins at i. */
static size_t value_end(const uint8_t *bytes, size_t length, size_t i)
{
    int depth = 0;
    for (; i < length; i++) {
        if (bytes[i] == '[' || bytes[i] == '{')
            depth++;
        if (depth == 0 && (bytes[i] == ',' || bytes[i] == ']'))
            return i;
        if (bytes[i] == ']' || bytes[i] == '}')
            depth--;
    }
    return length;
}

/* Drops or doubles what stands between two commas. */
static size_t mutate_item(uint8_t *bytes, size_t length, size_t most)
{
    size_t start = length > 0 ? random_below((uint32_t)length) : 0;
    while (start < length && bytes[start] != ',')
        start++;
    size_t end = start < length ? value_end(bytes, length, start + 1) : length;
    if (end >= length)
        return length;
    if (random_below(2) == 0) {
        memmove(bytes + start, bytes + end, length - end);
        return length - (end - start);
    }
    if (length + end - start > most)
        return length;
    memmove(bytes + end, bytes + start, length - start);
    return length + end - start;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t most,
                               unsigned seed)
{
    state = seed;
    if (random_below(3) == 0)
        return LLVMFuzzerMutate(bytes, length, most);
    for (uint32_t i = random_below(4) + 1; i > 0; i--)
        length = random_below(4) == 0 ? mutate_item(bytes, length, most)
                                      : mutate_token(bytes, length, most);
    return length;
}
