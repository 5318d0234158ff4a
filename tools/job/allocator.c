/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads --allocator, for all commands that take it. */

#include "tools/job/allocator.h"
#include "policies/common/policy.h"
#include "sim/pools/place/placement.h"
#include "sim/pools/steps/pooled.h"

#include <stdio.h>
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

/* Writes the kinds of allocators: "there are exact, torch, ...". */
static void list_kinds(char words[80])
{
    size_t length = (size_t)snprintf(words, 80, "there are exact");
    for (uint32_t i = 0; i <= MS_POOL_N_TYPES; i++)
        length += (size_t)snprintf(words + length, 80 - length, ", %s",
                                   ms_pool_types[i]);
}

static ms_err fail_kind(const char *spec, size_t length, ms_fault *fault)
{
    char words[80], hint[160];
    list_kinds(words);
    snprintf(hint, sizeof hint, "%s (memsim help traces)", words);
    return fail_word("unknown allocator", spec, length, hint, fault);
}

static ms_err read_va(ms_allocator *pool, const char *value, size_t length,
                      ms_fault *fault)
{
    pool->policy =
        find_word(ms_torch_policies, MS_TORCH_N_POLICIES, value, length);
    return pool->policy >= 0
               ? MS_OK
               : fail_word("va: expected down, bump or firstfit, not", value,
                           length, MS_ALLOCATOR_HINT, fault);
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
                         value, length, MS_ALLOCATOR_HINT, fault);
    return MS_OK;
}

/* Reads one "key=value". What is no option of memsim's is collected for
 * PyTorch's own reader, in the form that PYTORCH_CUDA_ALLOC_CONF has. */
static ms_err read_part(ms_allocator *pool, ms_text *conf, const char *part,
                        size_t length, ms_fault *fault)
{
    size_t key = strcspn(part, "=:,");
    const char *value = part + key + 1;
    if (key >= length)
        return fail_word("expected option=value, not", part, length,
                         "e.g. torch,max_split_size_mb=64", fault);
    size_t rest = length - key - 1;
    if (key == 7 && memcmp(part, "version", 7) == 0) {
        pool->version =
            find_word(ms_torchconf_versions, MS_TORCH_N_VERSIONS, value, rest);
        return pool->version >= 0
                   ? MS_OK
                   : fail_word("version: expected 1.13, 2.1, 2.4 or 2.11, not",
                               value, rest, MS_ALLOCATOR_HINT, fault);
    }
    if (key == 2 && memcmp(part, "va", 2) == 0) {
        return read_va(pool, value, rest, fault);
    }
    if (key == 8 && memcmp(part, "fraction", 8) == 0)
        return read_fraction(pool, value, rest, fault);
    ms_text_add(conf, "%s%.*s:%.*s", conf->length > 0 ? "," : "", (int)key,
                part, (int)rest, value);
    return MS_OK;
}

static ms_err read_order(ms_allocator *pool, const char *value, ms_fault *fault)
{
    uint32_t order = 0;
    while (order < MS_PLACEMENT_N_RULES &&
           strcmp(value, ms_placement_rows[order].name) != 0)
        order++;
    pool->heap.order = (uint8_t)order;
    if (order < MS_PLACEMENT_N_RULES || strcmp(value, "best") == 0)
        return MS_OK;
    return ms_fail(
        fault, MS_EUSAGE, WHERE,
        strcmp(value, "exact") == 0
            ? "order=best; memsim alloc takes order=exact"
            : "\"memsim help traces\" lists them",
        strcmp(value, "exact") == 0
            ? "a step is not searched for its lowest plan (\"%.80s\")"
            : "unknown order \"%.80s\"",
        value);
}

/* Reads one "key=value" of a kind other than torch. */
static ms_err read_heap_part(ms_allocator *pool, const char *part,
                             size_t length, ms_arena *arena, ms_fault *fault)
{
    char *name = ms_arena_text(arena, part, length);
    if (name == NULL)
        return ms_fail_nomem(fault);
    char *value = strchr(name, '=');
    if (value == NULL)
        return fail_word("expected option=value, not", part, length,
                         MS_ALLOCATOR_HINT, fault);
    *value++ = '\0';
    if (pool->heap.kind == MS_POOL_ARENA) {
        if (strcmp(name, "order") == 0)
            return read_order(pool, value, fault);
        return fail_word("arena of a step has order=, not", part, length,
                         "e.g. torch,max_split_size_mb=64", fault);
    }
    if (pool->heap.kind == MS_POOL_BFC && strcmp(name, "va") == 0)
        return read_va(pool, value, strlen(value), fault);
    return ms_poolconf_set(&pool->heap, name, value, WHERE, fault);
}

/* Options are separated by commas, except inside the brackets of a PyTorch
 * list. */
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
    int kind = find_word(ms_pool_types, MS_POOL_N_TYPES + 1, spec, at);
    if (kind < 0)
        return fail_kind(spec, at, fault);
    pool->heap.kind = (uint8_t)kind;
    while (spec[at] == ',') {
        size_t begin = ++at;
        for (int depth = 0; spec[at] != '\0'; at++) {
            if (spec[at] == ',' && depth == 0)
                break;
            depth += (spec[at] == '[') - (spec[at] == ']');
        }
        if (kind == MS_POOL_TORCH)
            MS_TRY(read_part(pool, &conf, spec + begin, at - begin, fault));
        else
            MS_TRY(
                read_heap_part(pool, spec + begin, at - begin, arena, fault));
    }
    if (conf.failed)
        return ms_fail_nomem(fault);
    if (conf.length > 0)
        pool->conf = conf.bytes;
    if (kind != MS_POOL_TORCH)
        pool->fraction = pool->heap.fraction;
    return MS_OK;
}

const char *ms_allocator_name(const ms_allocator *allocator)
{
    return allocator == NULL ? "exact" : allocator->spec;
}

ms_err ms_allocator_setup(const ms_allocator *allocator,
                          ms_torch_version version, ms_pooled_setup *setup,
                          ms_fault *fault)
{
    ms_torch_setup *torch = &setup->torch;
    *setup = (ms_pooled_setup){.fraction = allocator->fraction,
                               .heap = allocator->heap};
    ms_torch_setup_init(torch, 0);
    torch->version = allocator->version >= 0
                         ? (ms_torch_version)allocator->version
                         : version;
    if (allocator->policy >= 0)
        torch->policy = (ms_torch_policy)allocator->policy;
    return ms_torchconf_parse(allocator->conf, WHERE, MS_EUSAGE, torch->version,
                              &torch->options, fault);
}
