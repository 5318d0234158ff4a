/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_MODELWIDTH_H
#define MS_MODELWIDTH_H

/* A model's hidden_size, on which Hugging Face's "auto" values of DeepSpeed
 * depend, from its config.json or a built-in model's text; and the built-in
 * model that a name of Hugging Face means. */

#include "sim/base/base.h"

/* width 0: it does not say, or cannot be read (which the command itself
 * tells).  Fails for lack of memory alone. */
ms_err ms_modelwidth_find(const char *model, ms_arena *arena, uint64_t *width,
                          ms_fault *fault);
/* "meta-llama/Meta-Llama-3-8B": llama-3-8b; a folder or file that is there
 * stays as it is.  NULL: neither. */
const char *ms_modelwidth_named(const char *name);

#endif
