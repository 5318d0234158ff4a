/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opcodes: Lib/pickletools.py of Python describes each. */

#include "plots/traces/pickling.h"

#include <string.h>

#define BATCH 1000u /* items of one APPENDS, as in Python's pickle.py */

static void put(const ms_pickling *p, const char *bytes, size_t length)
{
    ms_text_put(p->text, bytes, length);
}

/* An opcode with so many bytes of a number, lowest first. */
static void put_op(const ms_pickling *p, char opcode, uint64_t value,
                   uint32_t n)
{
    char bytes[9] = {opcode};
    for (uint32_t i = 0; i < n; i++)
        bytes[1 + i] = (char)(value >> 8 * i & 0xff);
    put(p, bytes, 1 + n);
}

void ms_pickling_begin(const ms_pickling *p)
{
    put(p, "\x80\x02", 2);
}

void ms_pickling_end(const ms_pickling *p)
{
    put(p, ".", 1);
}

void ms_pickling_int(const ms_pickling *p, uint64_t value)
{
    if (value <= UINT8_MAX)
        put_op(p, 'K', value, 1);
    else if (value <= UINT16_MAX)
        put_op(p, 'M', value, 2);
    else if (value <= INT32_MAX)
        put_op(p, 'J', value, 4);
    else {
        /* LONG1 of eight bytes, signed: bytes and addresses are below 2^63. */
        put(p, "\x8a\x08", 2);
        put_op(p, (char)(value & 0xff), value >> 8, 7);
    }
}

void ms_pickling_minus_one(const ms_pickling *p)
{
    put_op(p, 'J', UINT32_MAX, 4);
}

void ms_pickling_float(const ms_pickling *p, double value)
{
    uint64_t bits; /* the first byte is the highest */
    memcpy(&bits, &value, sizeof bits);
    put_op(p, 'G', __builtin_bswap64(bits), 8);
}

void ms_pickling_bool(const ms_pickling *p, bool value)
{
    put(p, value ? "\x88" : "\x89", 1);
}

/* ---- texts --------------------------------------------------------------- */

void ms_pickling_text(const ms_pickling *p, const char *words)
{
    size_t length = strlen(words);
    put_op(p, 'X', length, 4);
    for (size_t i = 0; i < length;) {
        size_t n = ms_text_character(words + i);
        put(p, n > 0 ? words + i : "?", n > 0 ? n : 1);
        i += n > 0 ? n : 1;
    }
}

void ms_pickling_keep(ms_pickling *p, uint32_t *memo)
{
    uint32_t slot = p->n_memo++;
    *memo = slot + 1;
    if (slot <= UINT8_MAX)
        put_op(p, 'q', slot, 1);
    else
        put_op(p, 'r', slot, 4);
}

void ms_pickling_again(const ms_pickling *p, uint32_t memo)
{
    uint32_t slot = memo - 1;
    if (slot <= UINT8_MAX)
        put_op(p, 'h', slot, 1);
    else
        put_op(p, 'j', slot, 4);
}

void ms_pickling_word(ms_pickling *p, uint32_t *memo, const char *words)
{
    if (*memo > 0) {
        ms_pickling_again(p, *memo);
        return;
    }
    ms_pickling_text(p, words);
    ms_pickling_keep(p, memo);
}

/* ---- containers ---------------------------------------------------------- */

void ms_pickling_dict(const ms_pickling *p)
{
    put(p, "}(", 2);
}

void ms_pickling_dict_end(const ms_pickling *p)
{
    put(p, "u", 1);
}

void ms_pickling_zeros(const ms_pickling *p)
{
    put(p, "K\0K\0\x86", 5);
}

ms_pickling_list ms_pickling_list_begin(const ms_pickling *p)
{
    put(p, "]", 1);
    return (ms_pickling_list){0};
}

void ms_pickling_item(const ms_pickling *p, ms_pickling_list *list)
{
    if (list->n > 0 && list->n % BATCH == 0)
        put(p, "e", 1);
    if (list->n++ % BATCH == 0)
        put(p, "(", 1);
}

void ms_pickling_list_end(const ms_pickling *p, const ms_pickling_list *list)
{
    if (list->n > 0)
        put(p, "e", 1);
}
