/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --allocator: one parser for the commands that take it. */

#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

#define WHERE "--allocator"

/* ---- "torch,version=2.4,max_split_size_mb=64" ---------------------------- */

static ms_err fail_word(const char *what, const char *word, size_t length,
                        const char *hint, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, WHERE, hint, "%s \"%.*s\"", what,
                   (int)(length < 80 ? length : 80), word);
}

static int find_word(const char *const *words, int n, const char *word,
                     size_t length)
{
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return i;
    return -1;
}

static ms_err read_fraction(ms_allocator *pool, const char *value,
                            size_t length, ms_fault *fault)
{
    char word[32], *end = word;
    if (length > 0 && length < sizeof word) {
        memcpy(word, value, length);
        word[length] = '\0';
        if (strspn(word, "0123456789.e-") == length)
            pool->fraction = strtod(word, &end);
    }
    if (end != word + length || !(pool->fraction > 0 && pool->fraction <= 1))
        return fail_word("fraction: expected a number over 0, at most 1, not",
                         value, length, NULL, fault);
    return MS_OK;
}

/* One "key=value"; what is not memsim's goes to PyTorch's options. */
static ms_err read_part(ms_allocator *pool, ms_text *conf, const char *part,
                        size_t length, ms_fault *fault)
{
    size_t key = strcspn(part, "=:,");
    const char *value = part + key + 1;
    if (key >= length)
        return fail_word("expected option=value, not", part, length, NULL,
                         fault);
    size_t rest = length - key - 1;
    if (key == 7 && memcmp(part, "version", 7) == 0) {
        pool->version =
            find_word(ms_torch_versions, MS_TORCH_N_VERSIONS, value, rest);
        return pool->version >= 0
                   ? MS_OK
                   : fail_word("version: expected 1.13, 2.1, 2.4 or 2.11, not",
                               value, rest, NULL, fault);
    }
    if (key == 2 && memcmp(part, "va", 2) == 0) {
        pool->policy =
            find_word(ms_torch_policies, MS_TORCH_N_POLICIES, value, rest);
        return pool->policy >= 0
                   ? MS_OK
                   : fail_word("va: expected down, bump or firstfit, not",
                               value, rest, NULL, fault);
    }
    if (key == 8 && memcmp(part, "fraction", 8) == 0)
        return read_fraction(pool, value, rest, fault);
    ms_text_add(conf, "%s%.*s:%.*s", conf->length > 0 ? "," : "", (int)key,
                part, (int)rest, value);
    return MS_OK;
}

/* Parts end at commas, but not inside [ ]. */
ms_err ms_allocator_read(const char *spec, ms_arena *arena, ms_allocator *pool,
                         ms_fault *fault)
{
    size_t at = strcspn(spec, ",");
    ms_text conf = {.arena = arena};
    *pool =
        (ms_allocator){.spec = spec, .conf = "", .version = -1, .policy = -1};
    pool->exact = strcmp(spec, "exact") == 0;
    if (pool->exact)
        return MS_OK;
    if (find_word((const char *const[]){"torch"}, 1, spec, at) != 0)
        return fail_word("unknown allocator", spec, at,
                         "\"memsim help traces\" tells of those there are",
                         fault);
    while (spec[at] == ',') {
        size_t begin = ++at;
        for (int depth = 0; spec[at] != '\0'; at++) {
            if (spec[at] == ',' && depth == 0)
                break;
            depth += (spec[at] == '[') - (spec[at] == ']');
        }
        MS_TRY(read_part(pool, &conf, spec + begin, at - begin, fault));
    }
    if (conf.failed)
        return ms_fail_nomem(fault);
    if (conf.length > 0)
        pool->conf = conf.bytes;
    return MS_OK;
}

ms_err ms_allocator_setup(const ms_allocator *allocator,
                          ms_torch_version version, ms_pooled_setup *setup,
                          ms_fault *fault)
{
    ms_torch_setup *torch = &setup->torch;
    *setup = (ms_pooled_setup){.fraction = allocator->fraction};
    ms_torch_setup_init(torch, 0);
    torch->version = allocator->version >= 0
                         ? (ms_torch_version)allocator->version
                         : version;
    if (allocator->policy >= 0)
        torch->policy = (ms_torch_policy)allocator->policy;
    return ms_torchconf_parse(allocator->conf, WHERE, MS_EUSAGE, torch->version,
                              &torch->options, fault);
}
