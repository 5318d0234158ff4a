/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Variants that the command line names, what figures call them, and that no two
 * are one. */

#include "tools/cli/compare/compare.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/options/options.h"

#include <string.h>

#define SHOWN 60 /* bytes of a name in a message */

/* ---- read ---------------------------------------------------------------- */

static ms_err fail_form(const char *text, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, "--variant",
                   "write it as --variant 'QLoRA: lora.rank=16 lora.base=nf4'",
                   "\"%.*s\" is not NAME: KEY=VALUE KEY=VALUE ...", SHOWN,
                   text);
}

static ms_err read_key(const ms_named *named, const char *word, size_t length,
                       ms_arena *arena, const char **key, ms_fault *fault)
{
    char hint[192];
    char *given = ms_arena_text(arena, word, length);
    if (given == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_grid_key(given, arena, key, fault));
    if (*key != NULL)
        return MS_OK;
    ms_grid_key_hint(given, hint, sizeof hint);
    return ms_fail(fault, MS_EUSAGE, "--variant", hint,
                   "\"%.*s\": unknown key \"%.*s\"", SHOWN, named->name, SHOWN,
                   given);
}

/* May it be said twice? */
static bool joins(const char *key)
{
    const ms_setting *row = ms_settings_table_find(key);
    return row != NULL && row->joins;
}

static ms_err read_setting(ms_named *named, const char *word, size_t length,
                           ms_arena *arena, ms_fault *fault)
{
    const char *sign = memchr(word, '=', length);
    if (sign == NULL || sign == word)
        return fail_form(word, fault);
    uint32_t i = named->n;
    MS_TRY(read_key(named, word, (size_t)(sign - word), arena, &named->keys[i],
                    fault));
    named->values[i] =
        ms_arena_text(arena, sign + 1, length - (size_t)(sign + 1 - word));
    if (named->values[i] == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(named->keys[j], named->keys[i]) == 0 &&
            !joins(named->keys[i]))
            return ms_fail(fault, MS_EUSAGE, "--variant",
                           "leave one of the two out",
                           "\"%.*s\" sets \"%s\" twice", SHOWN, named->name,
                           named->keys[i]);
    named->n++;
    return MS_OK;
}

/* Where the name ends: before ": ", or a colon at the end. */
static size_t name_length(const char *text)
{
    const char *end = strstr(text, ": ");
    size_t length = strlen(text);
    if (end != NULL)
        return (size_t)(end - text);
    return length > 0 && text[length - 1] == ':' ? length - 1 : 0;
}

ms_err ms_variants_named_read(const char *text, ms_arena *arena,
                              ms_named *named, ms_fault *fault)
{
    size_t length = name_length(text);
    if (length == 0)
        return fail_form(text, fault);
    *named = (ms_named){
        .name = ms_arena_text(arena, text, length),
        .keys = ms_arena_take(arena, strlen(text), sizeof *named->keys),
        .values = ms_arena_take(arena, strlen(text), sizeof *named->values)};
    if (named->name == NULL || named->keys == NULL || named->values == NULL)
        return ms_fail_nomem(fault);
    for (const char *word = text + length + 1; *word != '\0'; word += length) {
        word += strspn(word, " ");
        length = strcspn(word, " ");
        if (length > 0)
            MS_TRY(read_setting(named, word, length, arena, fault));
    }
    return MS_OK;
}

/* ---- applied ------------------------------------------------------------- */

ms_err ms_variants_named_put(const ms_named *named, ms_arena *arena,
                             ms_job *job, ms_fault *fault)
{
    for (uint32_t i = 0; i < named->n; i++) {
        ms_fault inner = {.caret = -1};
        ms_err err = ms_settings_put(job, named->keys[i], named->values[i],
                                     arena, &inner);
        if (err == MS_EUSAGE)
            return ms_fail(fault, MS_EUSAGE, "--variant", inner.hint,
                           "\"%.*s\": %s", SHOWN, named->name, inner.what);
        if (err != MS_OK) {
            *fault = inner;
            return err;
        }
    }
    return MS_OK;
}

ms_err ms_variants_named_check(const ms_named *named, const ms_grid *grid,
                               bool has_allocators, ms_fault *fault)
{
    for (uint32_t i = 0; i < named->n; i++) {
        const char *key = named->keys[i], *other = NULL;
        for (uint32_t a = 0; a < grid->n_axes; a++)
            if (strcmp(grid->axes[a].key, key) == 0)
                other = "--grid";
        if (has_allocators && strcmp(key, "allocator") == 0)
            other = "--allocators";
        if (other != NULL && !joins(key))
            return ms_fail(fault, MS_EUSAGE, "--variant",
                           "leave one of the two out",
                           "variant \"%.*s\" and %s both say \"%s\"", SHOWN,
                           named->name, other, key);
    }
    return MS_OK;
}

/* ---- no two are one ------------------------------------------------------ */

/* All that a variant's step follows from. */
static const char *all_of(const ms_variant *variant, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    ms_text_add(&text, "%s\n%s\n", variant->job.model, variant->policy);
    ms_settings_json(&variant->job, &variant->result.training, &text);
    if (text.failed)
        return NULL;
    char *defaults = strstr(text.bytes, "\"defaults\""); /* the last of it */
    if (defaults != NULL)
        *defaults = '\0';
    return text.bytes;
}

ms_err ms_variants_named_differ(const ms_comparison *c, ms_arena *arena,
                                ms_fault *fault)
{
    const char *all[MS_VARIANTS_MOST];
    for (uint32_t i = 0; i < c->n && i < MS_VARIANTS_MOST; i++) {
        const ms_variant *own = &c->variants[i];
        all[i] = NULL;
        if (own->file != NULL || own->refused != NULL)
            continue;
        all[i] = all_of(own, arena);
        if (all[i] == NULL)
            return ms_fail_nomem(fault);
        for (uint32_t j = 0; j < i; j++)
            if (all[j] != NULL && strcmp(all[i], all[j]) == 0)
                return ms_fail(fault, MS_EUSAGE, NULL,
                               "leave one of the two out, or let it differ",
                               "variants \"%.*s\" and \"%.*s\" equal each "
                               "other",
                               SHOWN, c->variants[j].name, SHOWN, own->name);
    }
    return MS_OK;
}

/* ---- what figures call them ---------------------------------------------- */

ms_err ms_variants_named_label(const ms_arguments *arguments, ms_comparison *c,
                               ms_fault *fault)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        if (arguments->given[i].option->id != MS_OPTION_LABEL)
            continue;
        if (n < c->n)
            c->variants[n].name = arguments->given[i].value;
        n++;
    }
    if (n == 0 || n == c->n)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--label",
                   "name each of them, in their order",
                   "there %s %u label%s for %u variants", n == 1 ? "is" : "are",
                   n, n == 1 ? "" : "s", c->n);
}
