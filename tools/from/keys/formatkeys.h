/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FORMATKEYS_H
#define MS_FORMATKEYS_H

/* What the keys of a format mean: a table for each.  A row says which fact
 * (tools/from/facts.h) a key tells, or why it matters though memsim does not
 * have it; keys that matter neither for memory nor for time are a list of their
 * own.  What is in neither is told as unknown.
 *
 *     {"zero_optimization.stage", "policy.deepspeed", .fallback = "0"},
 *     {"zero_optimization.overlap_comm", "policy.deepspeed.overlap_comm",
 *      "true=1|false=0", .when = "zero_optimization.stage=1|2|3"},
 *     {"torch_compile", .harmless = "false",
 *      .warns = "memsim has its launches: --set training.launch=compiled"},
 *
 * so that {"zero_optimization": {"stage": 2, "overlap_comm": true}} is the
 * facts policy.deepspeed = 2 and policy.deepspeed.overlap_comm = 1.  A key may
 * have several rows, each a fact.
 *
 *     deepspeedkeys.c     ds_config.json
 *     acceleratekeys.c    Accelerate's YAML
 *     fsdpkeys.c          its fsdp_config, which others have, too
 *     trainerkeys.c       training_args.json of Transformers
 *     torchtitankeys.c    train_config.toml
 *     megatronkeys.c      Megatron-LM's arguments
 *     axolotlkeys.c, llamafactorykeys.c
 *     foundrykeys.c       llm-foundry's YAML
 *     composerkeys.c      its fsdp_config
 *     keyversions.c       what versions of these formats have otherwise */

#include "sim/base/base.h"

typedef struct ms_formatkey {
    /* A * stands for anything.  "": no key, so that the fallback always
     * holds. */
    const char *key;
    /* The fact; NULL: none.  With a + behind it several join with /. */
    const char *to;
    /* "theirs=ours|...", compared without case; "" on the right: the value
     * tells nothing; "theirs" alone stays as it is; "*=ours": any other, and @
     * in ours is theirs.  NULL: the value stays as it is. */
    const char *values;
    const char *fallback; /* their value where the key is absent or null */
    /* "key=a|b" of the same file, several with & between them: elsewhere the
     * key has no effect there. */
    const char *when;
    const char *harmless; /* "a|b": with these values it does not matter */
    /* it matters, and why it is not followed */
    const char *warns;
    bool words; /* the value is words between commas or blanks, each a fact */
} ms_formatkey;

typedef struct ms_format {
    const char *name;  /* "DeepSpeed" */
    const char *file;  /* what such files are called */
    const char *marks; /* "a|b=value": keys that tell the format */
    const ms_formatkey *keys;
    uint32_t n_keys;
    const char *const *passed; /* keys that do not matter, up to NULL */
    const char *strips;        /* what its keys may begin with besides */
    /* What becomes of a value "auto" that no other file tells; NULL: the word
     * is like others. */
    const char *autos;
    bool refers; /* ${key} in a value is another's (tools/from/references.h) */
    /* Keys that begin so are those of another format. */
    struct ms_format_inner {
        const char *prefix;
        const struct ms_format *format;
    } inner[2];
} ms_format;

/* What a key was called, or meant, in some versions of a format: such keys are
 * read as those that say the same now, which is told, and files that mix
 * versions are warned of (tools/from/versions.h).
 *
 *     {"torchtitan", "training.batch_size", .until = "2025-06",
 *      .now = "training.local_batch_size"}
 *     {"DeepSpeed", "zero_optimization.cpu_offload", "true=cpu|false=none",
 *      .until = "0.3.16", .now = "zero_optimization.offload_optimizer.device"}
 *     {"FSDP", "limit_all_gathers", .until = "2", .note = "it has no effect"}
 */
typedef struct ms_keyversion {
    const char *format, *key; /* a * stands for anything */
    /* The row is about these values, as those of ms_formatkey; NULL: all. */
    const char *values;
    /* The versions that have it: from since on, before until; NULL: no bound.
     * MS_KEYVERSION_DECLARED: the key's value is the file's version. */
    const char *since, *until;
    const char
        *now; /* a * is what the key's stands for; NULL: the key itself */
    const char *note;
    /* The value in a file of these versions that does not have the key, if it
     * has the key beside (NULL: in any).  Of key "" it is that of the fact
     * `now`, since their code does what the note says. */
    const char *absent, *beside;
} ms_keyversion;

#define MS_KEYVERSION_DECLARED "="

extern const ms_keyversion ms_keyversions[];
extern const uint32_t ms_keyversions_n;

/* ---- formatkeys.c: what the texts of the tables say ---------------------- */

/* Is the key as the pattern says, in which * stands for anything? */
bool ms_formatkeys_match(const char *pattern, const char *key);
/* The key without what the format's keys may begin with. */
const char *ms_formatkeys_strip(const ms_format *format, const char *key);
/* Is the key on the list of those that do not matter? */
bool ms_formatkeys_is_passed(const ms_format *format, const char *key);
/* Is the value one of "a|b", whatever its case? */
bool ms_formatkeys_one_of(const char *words, const char *value);
/* Ours for theirs by "theirs=ours|..."; *known is false where they do not have
 * the value, which is then what comes back.  NULL: out of memory. */
const char *ms_formatkeys_value(ms_arena *arena, const char *values,
                                const char *value, bool *known);

extern const ms_format ms_deepspeedkeys_format, ms_acceleratekeys_format,
    ms_fsdpkeys_format, ms_trainerkeys_format, ms_torchtitankeys_format,
    ms_megatronkeys_format, ms_axolotlkeys_format, ms_llamafactorykeys_format,
    ms_foundrykeys_format, ms_composerkeys_format;

#endif
