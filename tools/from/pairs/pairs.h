/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PAIRS_H
#define MS_PAIRS_H

/* A file of settings as a flat list of keys and values, whatever its syntax:
 *
 *     {"zero_optimization": {"stage": 3},      zero_optimization.stage   3
 *      "betas": [0.9, 0.95]}                   betas 0.9,0.95
 *
 *     fsdp_config:                             fsdp_config.fsdp_version  2
 *       fsdp_version: 2
 *
 *     [training]                               training.seq_len          8192
 *     seq_len = 8_192
 *
 *     GPUS=8                                   $GPUS                     8
 *     torchrun pretrain_gpt.py --bf16 \        bf16                      true
 *         --seq-length 4096                    seq-length                4096
 *
 * Values are texts: true, false and null, numbers as they are written (without
 * underscores), the scalars of a list with commas between them, {} for a
 * mapping of YAML without members.  Members of objects in a list have its index
 * in their key (datasets.0.path).
 *
 *     jsonpairs.c  JSON       yamlpairs.c  YAML, by libyaml
 *     tomlpairs.c  a strict subset of TOML
 *     wordpairs.c  the words of a command line, in a text or a shell script */

#include "sim/base/base.h"

#define MS_PAIRS_MAX_BYTES (UINT64_C(1) << 20)
#define MS_PAIRS_DEPTH 32u

typedef struct ms_pair {
    const char *key, *value;
    /* What the file has instead, where these are its words now; or NULL. */
    const char *old_key, *old_value;
    size_t at;  /* of the key (JSON, YAML: of the value) in the text */
    bool read;  /* a row of a table has dealt with it */
    bool named; /* another value is made of it (references.h) */
    bool maybe; /* a script says it if something holds that is not known */
} ms_pair;

typedef struct ms_pairs {
    ms_quote source; /* name: the path; offset 0 */
    ms_arena *arena;
    ms_pair *all;
    uint32_t n, capacity;
} ms_pairs;

/* Each appends what the text of pairs->source says.  Faults: MS_EINPUT with
 * file:line:column; MS_EUSAGE (YAML) where the build has no libyaml. */
ms_err ms_jsonpairs_read(ms_pairs *pairs, ms_fault *fault);
ms_err ms_yamlpairs_read(ms_pairs *pairs, ms_fault *fault);
ms_err ms_tomlpairs_read(ms_pairs *pairs, ms_fault *fault);
ms_err ms_wordpairs_read(ms_pairs *pairs, ms_fault *fault);
/* Is there a YAML reader in this build? */
bool ms_yamlpairs_is_there(void);

/* ---- pairs.c ------------------------------------------------------------- */

/* Appends one.  A key that is there already is a fault, unless the last one
 * wins (again). */
ms_err ms_pairs_add(ms_pairs *pairs, const char *key, const char *value,
                    size_t at, bool again, ms_fault *fault);
/* The key and the value as the file has them. */
const char *ms_pairs_name(const ms_pair *pair);
const char *ms_pairs_value(const ms_pair *pair);
/* NULL: there is no such key. */
const ms_pair *ms_pairs_find(const ms_pairs *pairs, const char *key);
/* The line of a place, from 1. */
uint32_t ms_pairs_line(const ms_pairs *pairs, size_t at);
/* "outer.inner"; inner alone where outer is empty.  NULL: out of memory. */
const char *ms_pairs_key(ms_arena *arena, const char *outer, const char *inner,
                         size_t length);
/* Fails at a place of the text. */
ms_err ms_pairs_fail(const ms_pairs *pairs, size_t at, ms_fault *fault,
                     const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
