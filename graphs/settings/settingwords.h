/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SETTINGWORDS_H
#define MS_SETTINGWORDS_H

/* What people call the settings of ms_training_fields and their values, in the
 * words of PyTorch, Transformers, DeepSpeed and others (sim/base/words.h).
 *
 *     row = ms_settingwords_key("training", "batch_size");  row->means: "batch"
 *     ms_settingwords_value(&field, "bfloat16")             "bf16"
 */

#include "sim/base/words.h"

struct ms_field;

extern const ms_words ms_settingwords_keys;   /* of: the group */
extern const ms_words ms_settingwords_values; /* of: the field, or its words */

/* The row of a key that the group has not, or NULL.  means is a key of the
 * group, or of another ("lora.rank"). */
const ms_word *ms_settingwords_key(const char *group, const char *key);
/* The word of the field that the value is, or NULL: answered tells what
 * else (the row, or NULL). */
const char *ms_settingwords_value(const struct ms_field *field,
                                  const char *value, const ms_word **answered,
                                  char *room, size_t size);

#endif
