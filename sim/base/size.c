/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/base/size.h"

#include <stdio.h>
#include <string.h>

typedef struct unit {
    const char *name;
    uint64_t bytes;
} unit;

static const unit units[] = {
    {"B", 1},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
};

#define N_UNITS (sizeof units / sizeof units[0])
#define MAX_DECIMALS 6u

static bool read_digit(const char *at, uint64_t *value)
{
    if (*at < '0' || *at > '9')
        return false;
    return !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, (uint64_t)(*at - '0'), value);
}

bool ms_size_decimal(const char *text, ms_decimal *number)
{
    const char *at = text;
    *number = (ms_decimal){.scale = 1};
    while (read_digit(at, &number->whole))
        at++;
    bool some = at > text;
    if (*at == '.') {
        at++;
        for (uint32_t n = 0; n < MAX_DECIMALS; n++, at++) {
            if (!read_digit(at, &number->fraction))
                break;
            number->scale *= 10;
        }
        some = some && number->scale > 1;
    }
    number->end = at;
    return some && (*at < '0' || *at > '9');
}

bool ms_size_whole(const ms_decimal *number, uint64_t scale, uint64_t *value)
{
    uint64_t part = number->fraction * scale / number->scale;
    return !__builtin_mul_overflow(number->whole, scale, value) &&
           !__builtin_add_overflow(*value, part, value);
}

static const unit *find_unit(const char *name)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* The hint for "80G", "80g" or "80gib", with both units that may be meant. */
static ms_err fail_unit(const char *text, const char *where,
                        const ms_decimal *number, ms_fault *fault)
{
    char hint[160] = "write it as 80GiB, 80GB or in plain bytes";
    const char *prefix = strchr("KMGT", upper(*number->end));
    uint64_t binary = 0, si = 0;
    if (*number->end != '\0' && prefix != NULL) {
        char name[2][4] = {{*prefix, 'i', 'B', 0}, {*prefix, 'B', 0, 0}};
        int length = (int)(number->end - text);
        if (ms_size_whole(number, find_unit(name[0])->bytes, &binary) &&
            ms_size_whole(number, find_unit(name[1])->bytes, &si)) {
            char counts[2][MS_SIZE_COUNT];
            ms_size_count(binary, counts[0]);
            ms_size_count(si, counts[1]);
            snprintf(hint, sizeof hint,
                     "did you mean %.*s%s (%s bytes) or %.*s%s (%s bytes)?",
                     length, text, name[0], counts[0], length, text, name[1],
                     counts[1]);
        }
    }
    return ms_fail(fault, MS_EUSAGE, where, hint, "\"%s\" has no known unit",
                   text);
}

ms_err ms_size_bytes(const char *text, const char *where, uint64_t *bytes,
                     ms_fault *fault)
{
    static const char hint[] = "write it as 80GiB, 80GB or in plain bytes";
    ms_decimal number;
    if (!ms_size_decimal(text, &number))
        return ms_fail(fault, MS_EUSAGE, where, hint,
                       "\"%s\" is not a memory size", text);
    uint64_t scale = 1;
    if (*number.end != '\0') {
        const unit *found = find_unit(number.end);
        if (found == NULL)
            return fail_unit(text, where, &number, fault);
        scale = found->bytes;
    }
    if (scale == 1 && number.scale > 1)
        return ms_fail(fault, MS_EUSAGE, where, hint,
                       "\"%s\" is not a whole number of bytes", text);
    if (!ms_size_whole(&number, scale, bytes) || *bytes > INT64_MAX)
        return ms_fail(fault, MS_EUSAGE, where, NULL,
                       "\"%s\" is 2^63 bytes or more", text);
    return MS_OK;
}

void ms_size_count(uint64_t n, char text[MS_SIZE_COUNT])
{
    char digits[24];
    size_t length =
        (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = text;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

void ms_size_exact(uint64_t bytes, char text[MS_SIZE_COUNT])
{
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (bytes > 0 && bytes % 1024 == 0 && i + 1 < 5) {
        bytes /= 1024;
        i++;
    }
    snprintf(text, MS_SIZE_COUNT, "%llu%s", (unsigned long long)bytes,
             names[i]);
}
