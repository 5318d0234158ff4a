/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FROM_H
#define MS_FROM_H

/* The user's own settings: --from FILE, several times.  Files of other
 * programs become options of memsim, as if they had been typed before the
 * others, so that every command works with them as it does with those.
 *
 *     $ cat ds_config.json
 *     {"zero_optimization": {"stage": 3, "overlap_comm": true},
 *      "train_micro_batch_size_per_gpu": "auto", "steps_per_print": 10}
 *     $ cat training_args.json
 *     {"per_device_train_batch_size": 2, "bf16": true, ...}
 *     $ memsim run ./config.json --gpus 8 --from ds_config.json --from
 *           training_args.json
 *
 *     formats.h   text -> pairs (pairs.h), and which format they are of
 *     keys/       pairs -> facts, a table per format (keys/formatkeys.h)
 *     references.h  ${key} in a value is the value of that key
 *     versions.h  keys of older versions by their names now
 *     facts.h     batch.micro = 2 of training_args.json:1, for which
 *                 ds_config.json:2 has "auto"; policy.deepspeed = 3
 *     compose.h   facts -> options
 *
 *     memsim run ./config.json --gpus 8 --batch 2 --precision bf16-mixed ...
 *         -p deepspeed:3,overlap_comm=1
 *
 * steps_per_print is on the list of keys that do not matter; a key on no list,
 * and one that matters and that memsim does not have, is told. */

#include "tools/options/options.h"

typedef struct ms_from_file {
    const char *path, *format;
} ms_from_file;

/* What is said of it; n_files is 0 where there is no --from. */
typedef struct ms_from {
    const char *command; /* that which was understood */
    ms_from_file *files;
    const char *const *told, *const *warnings;
    uint32_t n_files, n_told, n_warnings;
} ms_from;

/* Puts what the files say before the other arguments, and takes --from out of
 * them; name: the command's.  Faults: MS_EINPUT with file:line:column for what
 * is cut off, of no known format, or contradicts another file; MS_ESYSTEM;
 * MS_EUSAGE for YAML in a build without libyaml. */
ms_err ms_from_expand(const char *name, uint16_t command, ms_arena *arena,
                      ms_arguments *arguments, ms_from *from, ms_fault *fault);
/* The same as JSON: {"files": [...], "command": ..., "told": [...],
 * "warnings": [...]}. */
void ms_from_json(const ms_from *from, ms_text *text);

#endif
