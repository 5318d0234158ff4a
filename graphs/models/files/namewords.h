/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_NAMEWORDS_H
#define MS_NAMEWORDS_H

/* Other names of the built-in devices and models: as nvidia-smi prints them, as
 * Hugging Face names them, in capitals and with other dashes
 * (sim/base/words.h).
 *
 *     ms_namewords_device("NVIDIA GeForce RTX 4090", ...)   rtx4090-24gb
 *     ms_namewords_model("Meta-Llama-3-8B-Instruct", ...)   llama-3-8b */

#include "sim/base/words.h"

struct ms_builtin;

extern const ms_words ms_namewords_devices, ms_namewords_models;

/* The built-in one that is meant, a row of ms_devices, or MS_NONE and what to
 * do about it. */
uint32_t ms_namewords_device(const char *name, char *hint, size_t size);
/* The same of models; or NULL. */
const struct ms_builtin *ms_namewords_model(const char *name, char *hint,
                                            size_t size);
/* What to do about a path that cannot be read and looks like an id of Hugging
 * Face, "meta-llama/Llama-3-8B"; "" for others. */
void ms_namewords_id(const char *path, char *hint, size_t size);

#endif
