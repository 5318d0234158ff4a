/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_VERSIONS_H
#define MS_VERSIONS_H

/* Files of whatever version of their format, by the rows of ms_keyversions
 * (keys/formatkeys.h).  Keys that have other names now are read as those:
 *
 *     [training]                              line 2
 *     batch_size = 4                          line 3
 *     tensor_parallel_degree = 2              line 4
 *
 *     titan.toml:3: training.batch_size is of torchtitan before 2025-06: it is
 *         read as training.local_batch_size=4
 *
 * What no one version has side by side is a warning that names both:
 *
 *     accelerate.yaml:9: fsdp_config.fsdp_limit_all_gathers=true is of FSDP
 *         before 2, but fsdp_config.fsdp_version=2 (line 5) is of 2: it has no
 *         effect
 *
 * A file's version is what its format's key of versions says, or else the
 * newest that one of its keys begins with. */

#include "tools/from/facts.h"

/* Resolves references (references.h), renames the keys, tells what is to be
 * told, and reads them (ms_facts_read). */
ms_err ms_versions_read(ms_facts *facts, const ms_format *format,
                        ms_pairs *pairs, ms_fault *fault);
/* < 0: a is the older one.  "core 0.4" is behind "3.0", "0.10" behind "0.9". */
int ms_versions_compare(const char *a, const char *b);

#endif
