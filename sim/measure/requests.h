/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_REQUESTS_H
#define MS_SIM_REQUESTS_H

/* What a step asks an allocator for, request by request. */

#include "sim/base/base.h"
#include "sim/names.h"
#include "sim/nouns.h"

/* FREE_LATER: freed by the host while other streams still use it; COMPLETED
 * when they have passed it and an allocation is about to look (or never: the
 * step ends before). */
typedef enum ms_request_kind {
    MS_REQUEST_ALLOC,
    MS_REQUEST_FREE,
    MS_REQUEST_FREE_LATER,
    MS_REQUEST_COMPLETED
} ms_request_kind;
typedef struct ms_request {
    uint64_t t_ns;
    uint32_t row;
    uint8_t kind;
} ms_request;
/* Of the device pool of one rank, in booking order.  Rows of no bytes never
 * reach an allocator, nor do rows that lie in the block of another row
 * (ms_active_asked). */
ms_err ms_requests_list(const ms_timeline *line, const ms_machine *machine,
                        uint16_t rank, ms_arena *arena, ms_request **list,
                        uint32_t *n, ms_fault *fault);
/* active.c: the streams that must pass a row before its memory is free, a bit
 * each; the stream whose own it is; and the handle, for PyTorch's pool, of the
 * stream whose memory it is (ms_block_home): above MS_N_STREAMS - 1, of one
 * that has no queue of its own here. */
ms_streams ms_active_foreign(const ms_plan *plan, const ms_row *row);
uint8_t ms_active_home(const ms_plan *plan, const ms_row *row);
uint64_t ms_active_memory(const ms_plan *plan, const ms_row *row);
/* The bytes that a real pool is asked for when a row is made; 0: it lies in the
 * block of another one. */
uint64_t ms_active_asked(const ms_plan *plan, const ms_row *row);

#endif
