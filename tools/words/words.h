/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_WORDS_H
#define MS_TOOLS_WORDS_H

/* Words about a run that several commands tell. */

#include "tools/job/job.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

typedef struct ms_summary {
    const ms_job *job;
    const ms_arguments *arguments;
    const ms_result *result;
    const char *policy; /* canonical spelling */
    const ms_style *style;
    ms_arena *arena;
} ms_summary;

/* "batch 8 x 1024 tokens in 4 micro-batches on each of 2 GPUs = 16 sequences,
 * 16,384 tokens a step, bf16-mixed, adamw"; times: the sign of multiplication.
 */
void ms_setupwords_put(const ms_result *result, const char *times,
                       ms_text *text);
/* poolwords.c: what a real pool reserves, and what of it is idle. */
void ms_poolwords_put(const ms_report *report, ms_text *words);
/* Of the usual pool only what it cannot do: nothing where all is well. */
void ms_poolwords_brief(const ms_report *report, ms_text *words);
/* A line per step where steps have lengths of their own; then what it means. */
void ms_poolwords_steps(const ms_summary *summary, ms_text *text);
/* Percent of what steps 1 to n of a rank reserve at most that is beyond the
 * most that any of them allocates: shorter steps do not make it seem more. */
double ms_poolwords_fragmentation(const ms_pooled *pooled, uint8_t rank,
                                  uint32_t n);
/* "1024", "8x1024" or "8x": of step, from 1. */
ms_label ms_poolwords_length(const ms_pooled *pooled, uint32_t step);
/* devicewords.c.  "h100-80gb-sxm, 79.18 GiB less 0.49 GiB for the CUDA
 * context".
 */
void ms_devicewords_device(const ms_job *job, const ms_report *report,
                           ms_text *text);
/* What nvidia-smi would show, by what it is of. */
void ms_devicewords_put(const ms_job *job, const ms_result *result,
                        ms_text *text);
/* The last line of a run: the same as one number. */
void ms_devicewords_last(const ms_result *result, ms_text *text);
/* room.c: what is to spare, or which memory is too small and by how much.
 * "host memory", "disk", by ms_pool_kind. */
extern const char *const ms_room_names[MS_N_POOLS];
/* "headroom 40.38 GiB (51.0 %)", "over capacity by 12.30 GiB". */
void ms_room_subtitle(const ms_report *report, ms_text *text);
/* "fits, 40.38 GiB (51.0 %) to spare", "does not fit: ...". */
void ms_room_verdict(const ms_report *report, ms_text *text);
/* "; out of memory at 1.2 s in the forward pass, ...", if it is. */
void ms_room_first_over(const ms_result *result, ms_text *words);

#endif
