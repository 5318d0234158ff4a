/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RESULTS_H
#define MS_TOOLS_RESULTS_H

/* Saved results: what run --json and compare --json print, read back.
 *
 *     results.c        files, documents in them, what is no result
 *     results/         the report, as it is printed
 *     resultwords.c    its settings and its text
 *     values.c         values of JSON with their kinds
 */

#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/results/keys/values.h"

/* Reads a file (or standard input: "-") with the object of a run, several of
 * them one after the other (JSON Lines), or a comparison; gives the runs in
 * order. Variants of a comparison that were refused are among them. A record
 * whose object has no timeline has ranks NULL and no layers. Faults: MS_EINPUT
 * with the place, for what is no result, has another schema version, is
 * incomplete, or has numbers that contradict each other; MS_ESYSTEM. */
ms_err ms_results_read(const char *path, ms_arena *arena, ms_record **records,
                       uint32_t *n, ms_fault *fault);
/* The same for a text that was read already; it ends with a NUL. */
ms_err ms_results_read_text(const ms_quote *text, ms_arena *arena,
                            ms_record **records, uint32_t *n, ms_fault *fault);
/* Is the object's schema_version the one that is read? Fault: MS_EINPUT. */
ms_err ms_results_version(const ms_values *values, uint32_t object);
/* *ours: was the file written by memsim, be it a result or something of which
 * ms_results_read says what it is? False for a model, for what cannot be read,
 * and for standard input. MS_ENOMEM. */
ms_err ms_results_ours(const char *path, bool *ours, ms_fault *fault);
/* The same for a text that was read already. */
ms_err ms_results_ours_text(const ms_quote *text, bool *ours, ms_fault *fault);
/* Is it a file of such results? False for a model, for what cannot be read, and
 * for standard input, of which nothing is read. */
bool ms_results_is(const char *path);

/* ---- resultwords.c ------------------------------------------------------- */

ms_err ms_resultwords_read(const ms_values *values, uint32_t object,
                           ms_record *record);
/* The value of a setting of a record that was read, or NULL. */
const char *ms_resultwords_setting(const ms_record *record, const char *key);

#endif
