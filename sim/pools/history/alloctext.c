/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one line of an allocation trace. */
#include "sim/pools/history/alloctrace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const ms_alloctrace_spot *spot;
    const char *line, *at;
    size_t length;
    ms_fault *fault;
} reader;

/* ---- faults -------------------------------------------------------------- */

static ms_err fail_hint(const reader *r, const char *hint, const char *what,
                        const char *word, size_t length)
{
    size_t offset = (size_t)(word - r->line);
    char where[sizeof r->fault->where];
    ms_fail_quote(r->fault, r->line, r->length, offset);
    snprintf(where, sizeof where, "%.200s:%" PRIu32 ":%zu", r->spot->name,
             r->spot->line, offset + 1);
    if (length > 60)
        length = 60;
    return ms_fail(r->fault, MS_EINPUT, where, hint, "%s\"%.*s\"", what,
                   (int)length, word);
}

static size_t word_length(const reader *r)
{
    return strcspn(r->at, " \t\r");
}

static ms_err fail(const reader *r, const char *what)
{
    return fail_hint(r, NULL, what, r->at, word_length(r));
}

/* ---- words --------------------------------------------------------------- */

static void skip_blanks(reader *r)
{
    r->at += strspn(r->at, " \t\r");
}

static ms_err read_number(reader *r, const char *what, uint64_t *n)
{
    const char *c = r->at;
    *n = 0;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(*n, UINT64_C(10), n) ||
            __builtin_add_overflow(*n, (uint64_t)(*c - '0'), n))
            return fail(r, "a number over 64 bits: ");
    if (c == r->at || c != r->at + word_length(r))
        return fail(r, what);
    r->at = c;
    skip_blanks(r);
    return MS_OK;
}

static ms_err read_fraction(reader *r, double *f)
{
    size_t length = word_length(r);
    char *end = NULL;
    if (length > 0 && strspn(r->at, "0123456789.e-") == length)
        *f = strtod(r->at, &end);
    if (end != r->at + length || !(*f >= 0 && *f <= 1))
        return fail(r, "expected a number from 0 to 1, not ");
    r->at = end;
    skip_blanks(r);
    return MS_OK;
}

/* ---- the line ------------------------------------------------------------ */

/* Which words follow the letter of a line; a word in a small letter may be left
 * out. */
static const struct {
    char kind;
    const char *words;
} kinds[] = {
    {'a', "IBs"}, {'f', "I"}, {'r', "IS"}, {'w', "Sn"}, {'c', "Sn"}, {'e', ""},
    {'m', "F"},   {'x', "V"}, {'b', "B"},  {'P', ""},   {'s', ""},
};

static ms_err read_word(reader *r, char word, ms_alloctext_op *op)
{
    bool left_out = *r->at == '\0';
    switch (word) {
    case 'I':
        return read_number(r, "expected an id, not ", &op->id);
    case 'B':
        return read_number(r, "expected bytes, not ", &op->bytes);
    case 's':
        if (left_out)
            return MS_OK;
        return read_number(r, "expected a stream, not ", &op->stream);
    case 'S':
        return read_number(r, "expected a stream, not ", &op->stream);
    case 'n':
        if (left_out)
            return MS_OK;
        return read_number(r, "expected a count, not ", &op->n);
    case 'F':
        return read_fraction(r, &op->fraction);
    default:
        op->value = r->at;
        r->at += strlen(r->at);
        return MS_OK;
    }
}

static ms_err read_op(reader *r, ms_alloctext_op *op)
{
    char letter = word_length(r) == 1 ? *r->at : '\0';
    const char *words = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (letter != '\0' && kinds[i].kind == letter)
            words = kinds[i].words;
    if (words == NULL)
        return fail_hint(r,
                         "a malloc, f free, r record_stream, w work, c "
                         "complete, e empty_cache,\nm fraction, x settings, b "
                         "base, P reset peaks, s snapshot",
                         "unknown operation ", r->at, word_length(r));
    op->kind = letter;
    op->n = letter == 'c' ? UINT64_MAX : 1;
    r->at++;
    skip_blanks(r);
    for (; *words != '\0'; words++)
        MS_TRY(read_word(r, *words, op));
    return *r->at == '\0' ? MS_OK : fail(r, "too many words: ");
}

static void read_header(reader *r, ms_alloctext_op *op)
{
    op->kind = '#';
    r->at++;
    skip_blanks(r);
    size_t length = word_length(r);
    if (length < sizeof op->key)
        memcpy(op->key, r->at, length);
    r->at += length;
    skip_blanks(r);
    op->value = r->at;
}

ms_err ms_alloctext_line(const ms_alloctrace_spot *spot, const char *line,
                         size_t length, ms_alloctext_op *op, ms_fault *fault)
{
    reader r = {spot, line, line, length, fault};
    assert(line[length] == '\0');
    *op = (ms_alloctext_op){.line = line, .value = ""};
    if (strlen(line) != length)
        return fail_hint(&r, NULL, "a byte of zero: this is no text, after ",
                         line, strlen(line));
    skip_blanks(&r);
    if (*r.at == '\0')
        return MS_OK;
    if (*r.at == '#') {
        read_header(&r, op);
        return MS_OK;
    }
    return read_op(&r, op);
}

/* ---- headers ------------------------------------------------------------- */

enum { TOTAL, BASE, POLICY, CONF, VERSION, ORACLE };
static const char *const keys[] = {"total_bytes", "base_used", "va",
                                   "conf",        "version",   "oracle"};
#define N_KEYS (sizeof keys / sizeof keys[0])

static int find_word(const char *const *words, int n, const char *word)
{
    size_t length = strcspn(word, " \t\r");
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return i;
    return -1;
}

/* Finds the version that a text such as "PyTorch 2.4.0 + the 2.10/2.11 rule
 * changes" names; of several it is the last one. */
static int find_version(const char *text)
{
    int found = -1;
    for (int i = 0; i < MS_TORCH_N_VERSIONS; i++) {
        const char *at = strstr(text, ms_torchconf_versions[i]);
        size_t length = strlen(ms_torchconf_versions[i]);
        for (; at != NULL; at = strstr(at + 1, ms_torchconf_versions[i]))
            if ((at[length] < '0' || at[length] > '9') &&
                (at == text || at[-1] == ' ' || at[-1] == '/'))
                found = i;
    }
    return found;
}

static ms_err read_value(reader *r, int key, ms_arena *arena,
                         ms_alloctext_head *head)
{
    switch (key) {
    case TOTAL:
        return read_number(r, "expected bytes, not ", &head->total_bytes);
    case BASE:
        return read_number(r, "expected bytes, not ", &head->base_bytes);
    case POLICY:
        head->policy = find_word(ms_torch_policies, MS_TORCH_N_POLICIES, r->at);
        return head->policy >= 0
                   ? MS_OK
                   : fail(r, "expected down, bump or firstfit, not ");
    case CONF:
        head->conf = ms_arena_text(arena, r->at, strcspn(r->at, "\r"));
        return head->conf != NULL ? MS_OK : ms_fail_nomem(r->fault);
    case VERSION:
        head->version =
            find_word(ms_torchconf_versions, MS_TORCH_N_VERSIONS, r->at);
        return head->version >= 0
                   ? MS_OK
                   : fail(r, "expected 1.13, 2.1, 2.4 or 2.11, not ");
    default:
        head->version = find_version(r->at);
        return MS_OK;
    }
}

ms_err ms_alloctext_header(const ms_alloctrace_spot *spot,
                           const ms_alloctext_op *op, ms_arena *arena,
                           ms_alloctext_head *head, ms_fault *fault)
{
    int key = find_word(keys, N_KEYS, op->key);
    const char *line = op->line != NULL ? op->line : op->value;
    reader r = {spot, line, op->value, strlen(line), fault};
    if (key < 0)
        return MS_OK;
    MS_TRY(read_value(&r, key, arena, head));
    if (head->total_bytes > MS_TORCH_MOST_BYTES ||
        head->base_bytes > MS_TORCH_MOST_BYTES)
        return fail_hint(&r, NULL,
                         "a device of more than 2^50 bytes: ", op->value,
                         strlen(op->value));
    return MS_OK;
}
