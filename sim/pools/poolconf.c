/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options of the pools that are not PyTorch's. */
#include "sim/base/size.h"
#include "sim/pools/pool.h"

#include <stdlib.h>
#include <string.h>

#define HINT "\"memsim help traces\" lists the options"

const ms_poolconf_row ms_poolconf_rows[] = {
    {MS_POOL_BFC, "allow_growth", "true|false",
     "take regions as they are needed, from 2 MiB on, each twice as large "
     "(TF_FORCE_GPU_ALLOW_GROWTH); "
     "false (TensorFlow's default): one region of the limit at the first "
     "request"},
    {MS_POOL_BFC, "garbage_collection", "true|false",
     "give empty regions back before failing (true; "
     "TF_ENABLE_GPU_GARBAGE_COLLECTION)"},
    {MS_POOL_BFC, "per_process_gpu_memory_fraction", "F",
     "the limit as a part of the device"},
    {MS_POOL_BFC, "limit", "SIZE",
     "the limit of all regions; without one it is all that the device has "
     "left, of which TensorFlow itself keeps some 5 % back for the system"},
    {MS_POOL_BUDDY, "size", "SIZE",
     "the arena, a power of two; without it the arena doubles when it has to"},
    {MS_POOL_BUDDY, "min", "SIZE", "the smallest block, a power of two (512)"},
    {MS_POOL_CONTIGUOUS, "size", "SIZE",
     "the buffer; without it the buffer gets longer by what is missing"},
};
const uint32_t ms_poolconf_n_rows =
    sizeof ms_poolconf_rows / sizeof ms_poolconf_rows[0];

static ms_err fail_value(const char *name, const char *expected,
                         const char *value, const char *where, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, where, HINT,
                   "%s: expected %s, not \"%.80s\"", name, expected, value);
}

static ms_err read_bool(const char *name, const char *value, const char *where,
                        bool *into, ms_fault *fault)
{
    *into = strcmp(value, "true") == 0;
    if (*into || strcmp(value, "false") == 0)
        return MS_OK;
    return fail_value(name, "true or false", value, where, fault);
}

static ms_err read_fraction(const char *name, const char *value,
                            const char *where, double *into, ms_fault *fault)
{
    char *end = NULL;
    size_t length = strlen(value);
    if (length > 0 && strspn(value, "0123456789.e-") == length)
        *into = strtod(value, &end);
    if (end == NULL || *end != '\0' || !(*into > 0 && *into <= 1))
        return fail_value(name, "a number over 0, at most 1", value, where,
                          fault);
    return MS_OK;
}

static ms_err read_size(const char *name, const char *value, const char *where,
                        bool power, uint64_t *into, ms_fault *fault)
{
    (void)where; /* the text of the size is the place */
    MS_TRY(ms_size_bytes(value, name, into, fault));
    if (*into == 0 || *into > MS_TORCH_MOST_BYTES)
        return fail_value(name, "1 to 2^50 bytes", value, where, fault);
    if (power && (*into & (*into - 1)) != 0)
        return fail_value(name, "a power of two", value, where, fault);
    return MS_OK;
}

static ms_err set_bfc(ms_heap_options *options, const char *name,
                      const char *value, const char *where, ms_fault *fault)
{
    bool on = true;
    if (strcmp(name, "allow_growth") == 0)
        return read_bool(name, value, where, &options->allow_growth, fault);
    if (strcmp(name, "per_process_gpu_memory_fraction") == 0)
        return read_fraction(name, value, where, &options->fraction, fault);
    if (strcmp(name, "limit") == 0)
        return read_size(name, value, where, false, &options->limit_bytes,
                         fault);
    MS_TRY(read_bool(name, value, where, &on, fault));
    options->no_collection = !on;
    return MS_OK;
}

static bool is_known(uint8_t kind, const char *name)
{
    for (uint32_t i = 0; i < ms_poolconf_n_rows; i++)
        if (ms_poolconf_rows[i].kind == kind &&
            strcmp(ms_poolconf_rows[i].name, name) == 0)
            return true;
    return false;
}

/* "expected size=, min= ...", of the kind's rows. */
static ms_err fail_name(uint8_t kind, const char *name, const char *where,
                        ms_fault *fault)
{
    char words[160] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < ms_poolconf_n_rows; i++) {
        const ms_poolconf_row *row = &ms_poolconf_rows[i];
        size_t n = strlen(row->name);
        if (row->kind != kind || length + n + 4 > sizeof words)
            continue;
        if (length > 0)
            words[length++] = ',', words[length++] = ' ';
        memcpy(words + length, row->name, n + 1);
        length += n;
    }
    return ms_fail(fault, MS_EUSAGE, where, HINT,
                   "%s has no option \"%.40s\"; it has %s", ms_pool_types[kind],
                   name, words);
}

ms_err ms_poolconf_set(ms_heap_options *options, const char *name,
                       const char *value, const char *where, ms_fault *fault)
{
    if (!is_known(options->kind, name))
        return fail_name(options->kind, name, where, fault);
    if (options->kind == MS_POOL_BFC)
        return set_bfc(options, name, value, where, fault);
    if (strcmp(name, "min") == 0)
        return read_size(name, value, where, true, &options->least_bytes,
                         fault);
    return read_size(name, value, where, options->kind == MS_POOL_BUDDY,
                     &options->size_bytes, fault);
}
