/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists keys for "memsim help json". */

#include "tools/results/keys/keys.h"
#include "tools/terminal/screen.h"

#define INDENT 36u
#define MOST_OBJECTS 64u

typedef struct told {
    const ms_keys *keys[MOST_OBJECTS];
    uint32_t n;
} told;

static bool is_told(told *all, const ms_keys *keys)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->keys[i] == keys)
            return true;
    if (all->n < MOST_OBJECTS)
        all->keys[all->n++] = keys;
    return false;
}

static void help_of(const ms_keys *keys, const char *prefix, told *all,
                    ms_text *text)
{
    ms_text label = {.arena = text->arena};
    for (uint32_t i = 0; i < keys->n; i++) {
        ms_key row;
        const ms_key *key = &row;
        if (!ms_keys_order(keys, i, NULL, &row) || key->help == NULL)
            continue;
        ms_text_add(&label, "%s%s%s", label.length == 0 ? "  " : ", ", prefix,
                    key->name);
        if (*key->help == '\0')
            continue;
        text->failed |= label.failed;
        if (!text->failed)
            ms_screen_fill(text, INDENT, label.bytes, key->help);
        label = (ms_text){.arena = text->arena};
        if (key->of == NULL || is_told(all, key->of))
            continue;
        const char *inner =
            ms_arena_format(text->arena, "%s%s%s.", prefix, key->name,
                            key->type == MS_KEY_OBJECTS ? "[]" : "");
        text->failed |= inner == NULL;
        if (inner != NULL)
            help_of(key->of, inner, all, text);
    }
}

/* The keys of a run are explained once, where the run itself is explained. */
void ms_keys_help(const ms_keys *keys, ms_text *text)
{
    told all = {.keys = {&ms_keys_run}, .n = 1};
    help_of(keys, "", &all, text);
}
