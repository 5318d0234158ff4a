/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_WORDS_H
#define MS_TOOLS_WORDS_H

/* Sentences about a run that several commands print. */

#include "tools/job/job.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

/* "batch 8 x 1024 tokens in 4 micro-batches on each of 2 GPUs = 16 sequences,
 * 16,384 tokens a step, bf16-mixed, adamw"; times is the sign of multiplication
 * ("x" in text, "\u00d7" in figures). */
void ms_setupwords_put(const ms_result *result, const char *times,
                       ms_text *text);
/* What a summary says of a model that was measured. */
void ms_setupwords_measured(const ms_result *result, ms_text *text);
/* " on 64 GPUs, per GPU"; nothing for one GPU or where the number is not known
 * (0). */
void ms_setupwords_gpus(uint32_t gpus, ms_text *title);
/* poolwords.c: what the allocator reserves, and how much of that is idle. */
void ms_poolwords_put(const ms_report *report, ms_text *words);
/* Only what stops or slows the run (out of memory, retries); adds nothing where
 * all is well. For runs with the default allocator. */
void ms_poolwords_brief(const ms_report *report, ms_text *words);
/* Percent of the reserved bytes that are not allocated; 0 where nothing is
 * reserved. */
double ms_poolwords_unused(uint64_t reserved_bytes, uint64_t allocated_bytes);
/* Percent of the most bytes that steps 1 to n of a rank reserve that is beyond
 * the most that any of these steps allocates. The maxima are over all the steps
 * so far, so that a short step after a long one does not look fragmented. */
double ms_poolwords_fragmentation(const ms_pooled *pooled, uint16_t rank,
                                  uint32_t n);
/* The size of a step (counted from 1): "1024" tokens, "8x1024" where batches
 * differ, too, or "8x" samples of a model without sequences. */
ms_label ms_poolwords_length(const ms_pooled *pooled, uint32_t step);
/* devicewords.c: "h100-80gb-sxm, 79.18 GiB less 0.49 GiB for the CUDA context".
 */
void ms_devicewords_device(const ms_job *job, const ms_report *report,
                           ms_text *text);
/* What nvidia-smi would show, as a sum: reserved, context, NCCL; of a CPU's
 * process by how much it grows. */
void ms_devicewords_put(const ms_job *job, const ms_result *result,
                        ms_text *text);
/* room.c: the verdict. The names are "device memory", "host memory", "disk", by
 * ms_pool_kind. */
extern const char *const ms_room_names[MS_N_POOLS];
/* "headroom 40.38 GiB (51.0 %)", "over capacity by 12.30 GiB". */
void ms_room_subtitle(const ms_report *report, ms_text *text);
/* "fits, 40.38 GiB (51.0 %) to spare", "does not fit: ...". */
void ms_room_verdict(const ms_report *report, ms_text *text);
/* "; out of memory at 1.2 s in the forward pass, ..."; nothing where it fits.
 */
void ms_room_first_over(const ms_result *result, ms_text *words);

#endif
