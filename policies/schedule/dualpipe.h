/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_DUALPIPE_H
#define MS_DUALPIPE_H

/* Private to policies/schedule: DualPipe (DeepSeek-AI 2024, arXiv 2412.19437,
 * section 3.2.1) and DualPipeV, its cut-in-half (Qi et al. 2025), as
 * deepseek-ai/DualPipe@3da1bbea has them (dualpipe.py, dualpipev.py) and, of
 * DualPipeV, PyTorch's ScheduleDualPipeV.
 *
 * DualPipeV is a V: rank r of p has stages r and 2p - 1 - r.  In the middle a
 * forward of one chunk and a backward of the other are a pair.  DualPipe's
 * ranks have stages r and p - 1 - r of a model that is there twice, and half of
 * the micro-batches goes either way: a row of it is that of DualPipeV with half
 * of the ranks and of the micro-batches.
 *
 *     4 ranks, 8 micro-batches, DualPipeV, rank 3 (small: its second chunk)
 *     F0 f0 F1 f1 F2 f2 F3 f3 F4 b0 f4+B0 F5+b1 f5+B1 F6+b2 f6+B2 F7+b3 f7+B3
 *     b4 B4 b5 B5 i6 I6 i7 I7 w6 W6 w7 W7 */

#include "policies/schedule/orderrow.h"

/* MS_EUSAGE: ranks and micro-batches that it is not written for. */
ms_err ms_dualpipe_check(ms_order order, const ms_orders_size *size,
                         ms_fault *fault);
void ms_dualpipe_write(ms_orderrow *row);

#endif
