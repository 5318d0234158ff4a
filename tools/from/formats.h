/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FORMATS_H
#define MS_FORMATS_H

/* The formats of settings that memsim reads, and which of them a file has: by
 * its content, whatever its name.  First the syntax: { begins JSON; words with
 * -- before them are a command line, unless a colon stands behind them; lines
 * KEY: are YAML; else it is TOML.  Then the format: that with the most of its
 * marks among the keys. */

#include "tools/from/facts.h"

extern const ms_format *const ms_formats_all[];
extern const uint32_t ms_formats_n;

/* Reads a file ("-": standard input) and tells its format.  MS_EINPUT: what is
 * cut off, no format's, or a model; MS_ESYSTEM. */
ms_err ms_formats_open(const char *path, ms_arena *arena, ms_pairs *pairs,
                       const ms_format **format, ms_fault *fault);
/* The same from bytes. */
ms_err ms_formats_read(const char *name, const char *bytes, size_t length,
                       ms_arena *arena, ms_pairs *pairs,
                       const ms_format **format, ms_fault *fault);

#endif
