/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_REFERENCES_H
#define MS_REFERENCES_H

/* Values that are made of others, as OmegaConf has them (its documentation,
 * "Variable interpolation"):
 *
 *     variables:
 *       max_seq_len: 2048
 *     max_seq_len: ${variables.max_seq_len}        2048
 *     run_name: mpt-${max_seq_len}                 mpt-2048
 *     model:
 *       d_model: 4096
 *       ffn: ${.d_model}                           4096, of the same mapping
 *     more: ${model}                               more.d_model, more.ffn
 *
 * A key that is not there, a circle, and what a resolver gives (${oc.env:GPUS})
 * are warned of with their line, and read as if the key were absent; but what a
 * resolver gives to a key that does not matter. */

#include "tools/from/facts.h"

/* Resolves them where the format has them. */
ms_err ms_references_resolve(ms_facts *facts, const ms_format *format,
                             ms_pairs *pairs, ms_fault *fault);

#endif
