/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FACTS_H
#define MS_FACTS_H

/* What files of settings tell, in words of memsim.  A fact has a name and a
 * value; most names are settings of memsim or parts of a policy, the others are
 * put together by compose.h:
 *
 *     training.optimizer = adamw       --optimizer adamw
 *     policy.deepspeed = 3             -p deepspeed:3,overlap_comm=1
 *     policy.deepspeed.overlap_comm = 1
 *     batch.micro = 2, batch.accumulate = 4      --batch 8 -p microbatch:4
 *
 * A fact that a file gives stands over a default of a format; two files that
 * give different values are a fault that names both places. */

#include "tools/from/keys/formatkeys.h"
#include "tools/from/pairs/pairs.h"

typedef struct ms_fact {
    const char *to, *value;
    const ms_pairs *pairs;
    const ms_pair *pair; /* NULL: a default of the format */
    const ms_format *format;
} ms_fact;

/* What is said to the user, each without a line's end. */
typedef struct ms_facts_lines {
    const char **all;
    uint32_t n, capacity;
} ms_facts_lines;

typedef struct ms_facts {
    ms_arena *arena;
    ms_fact *all;
    uint32_t n, capacity;
    ms_fact *autos; /* of values "auto": value is "auto" */
    uint32_t n_autos, autos_capacity;
    ms_fact *files; /* other files that these name */
    uint32_t n_files, files_capacity;
    ms_facts_lines told, warnings;
} ms_facts;

/* Reads the keys of a file by its format's table. */
ms_err ms_facts_read(ms_facts *facts, const ms_format *format, ms_pairs *pairs,
                     ms_fault *fault);
/* To be called behind the last file: says which file's value each "auto" has.
 * hidden: the model's width, on which three of DeepSpeed's depend; 0: it is not
 * known. */
ms_err ms_facts_settle(ms_facts *facts, uint64_t hidden, ms_fault *fault);
/* NULL: nothing tells it. */
const ms_fact *ms_facts_find(const ms_facts *facts, const char *to);
const char *ms_facts_value(const ms_facts *facts, const char *to);
/* The same as a whole number; 0 where it is not told. */
ms_err ms_facts_number(const ms_facts *facts, const char *to, uint64_t *number,
                       ms_fault *fault);
/* Does it stand in a file? */
bool ms_facts_is_said(const ms_fact *fact);
/* "ds_config.json:12", or "the default of Transformers". */
const char *ms_facts_place(const ms_facts *facts, const ms_fact *fact);
/* MS_EINPUT at the fact's place. */
ms_err ms_facts_fail(const ms_fact *fact, ms_fault *fault, const char *hint,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds what the format's code does where no key says otherwise; before the
 * file is read, it stands in the place of the format's own fallback. */
ms_err ms_facts_default(ms_facts *facts, const ms_format *format,
                        ms_pairs *pairs, const char *to, const char *value,
                        ms_fault *fault);
/* Adds a line; MS_ENOMEM. */
ms_err ms_facts_say(ms_facts *facts, ms_facts_lines *lines, ms_fault *fault,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
