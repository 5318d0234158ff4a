/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help on the settings of other programs, from the tables that read them. */

#include "tools/cli/help/help.h"
#include "tools/from/formats.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <string.h>

#define INDENT 12u

static void put_name(ms_text *words, const char *name)
{
    ms_text_add(words, "%s%s", words->length > 0 ? ", " : "", name);
}

/* Was the key of row i named before? */
static bool is_again(const ms_format *format, uint32_t i)
{
    return i > 0 && strcmp(format->keys[i].key, format->keys[i - 1].key) == 0;
}

/* A paragraph of keys: those that tell a fact, or those that only warn. */
static void put_keys(const ms_format *format, bool tells, const char *label,
                     ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t i = 0; i < format->n_keys; i++) {
        const ms_formatkey *row = &format->keys[i];
        if (*row->key != '\0' && (row->to != NULL) == tells &&
            (tells || row->warns != NULL) && !is_again(format, i))
            put_name(&words, row->key);
    }
    text->failed |= words.failed;
    if (words.length > 0)
        ms_screen_fill(text, INDENT, label, words.bytes);
}

static void put_passed(const ms_format *format, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t i = 0; format->passed[i] != NULL; i++)
        put_name(&words, format->passed[i]);
    text->failed |= words.failed;
    if (words.length > 0)
        ms_screen_fill(text, INDENT, "  passed: ", words.bytes);
}

/* Keys that have another name now, with the versions that do not have them any
 * more. */
static void put_older(const ms_format *format, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t i = 0; i < ms_keyversions_n; i++) {
        const ms_keyversion *row = &ms_keyversions[i];
        if (strcmp(row->format, format->name) == 0 && row->until != NULL &&
            row->absent == NULL)
            ms_text_add(&words, "%s%s (%s)", words.length > 0 ? ", " : "",
                        row->key, row->until);
    }
    text->failed |= words.failed;
    if (words.length > 0)
        ms_screen_fill(text, INDENT, "  before: ", words.bytes);
}

static void put_format(const ms_format *format, ms_text *text)
{
    ms_text marks = {.arena = text->arena};
    for (const char *w = format->marks; *w != '\0';) {
        size_t n = strcspn(w, "|");
        ms_text_add(&marks, "%s%.*s", marks.length > 0 ? ", " : "", (int)n, w);
        w += n + (w[n] == '|');
    }
    text->failed |= marks.failed;
    ms_text_add(text, "\n%s: %s\n", format->name, format->file);
    if (marks.length > 0)
        ms_screen_fill(text, INDENT, "  marks: ", marks.bytes);
    put_keys(format, true, "  read: ", text);
    put_keys(format, false, "  warned: ", text);
    put_passed(format, text);
    put_older(format, text);
}

void ms_help_from_write(ms_text *text)
{
    static const char *const lines[] = {
        "--from FILE takes settings that you have for another program, in "
        "several files if",
        "need be, beside MODEL:",
        "",
        "    memsim run ./config.json --gpus 8 --from ds_config.json --from "
        "training_args.json",
        "",
        "The format is told by the keys, whatever the file is called.  What is "
        "understood is",
        "printed as a command of memsim (standard error; \"from\" of --json), "
        "and each key that",
        "matters and is not had, or that memsim does not know, as a warning.  "
        "\"auto\" is taken",
        "from another file.  What you type stands over the files; a policy "
        "that you type takes",
        "the place of theirs of its kind and joins the others.  Files that "
        "contradict each other",
        "are refused.  A model that the file names, or describes, needs no "
        "MODEL.  How many GPUs",
        "there are, some files do not say: --gpus.  What llm-foundry's values "
        "are made of",
        "(${variables.max_seq_len}) is looked up first.  Megatron-LM's "
        "arguments describe a GPT,",
        "with experts and latent attention where they say so, or T5; that it "
        "is BERT, only a",
        "script that calls pretrain_bert.py says.",
        "",
        "marks: the keys that tell the format; read: those that become "
        "options; warned: those",
        "that matter and that memsim does not have; passed: those that matter "
        "neither for memory",
        "nor for time; before: those that versions before the one in brackets "
        "have, which are",
        "read as what says the same now, or warned of beside keys of later "
        "versions; * stands",
        "for anything.",
        NULL};
    ms_textlines_lines(lines, text);
    for (uint32_t i = 0; i < ms_formats_n; i++)
        put_format(ms_formats_all[i], text);
    put_format(&ms_fsdpkeys_format, text);
    put_format(&ms_composerkeys_format, text);
}
