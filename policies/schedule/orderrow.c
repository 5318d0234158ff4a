/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/orderrow.h"

bool ms_orderrow_is_v(ms_order order)
{
    return order == MS_ORDER_ZB_V || order == MS_ORDER_V_HALF ||
           order == MS_ORDER_V_MIN || order == MS_ORDER_DUALPIPEV;
}

static uint32_t stage_of(const ms_orderrow *w, uint32_t chunk)
{
    uint32_t p = w->size->ranks;
    if (ms_orderrow_is_v(w->order) && chunk == 1)
        return 2 * p - 1 - w->rank;
    return chunk * p + w->rank;
}

void ms_orderrow_put(ms_orderrow *row, ms_turn_kind kind, uint32_t chunk,
                     uint32_t micro_batch)
{
    ms_schedule *schedule = row->schedule;
    uint32_t *n = &schedule->turn_at[row->rank + 1];
    schedule->turns[(*n)++] = (ms_turn){.stage = stage_of(row, chunk),
                                        .micro_batch = micro_batch,
                                        .kind = (uint8_t)kind};
}

void ms_orderrow_next(ms_orderrow *row, ms_turn_kind kind, uint32_t chunk)
{
    uint32_t micro_batch = row->done[chunk][kind]++;
    if (micro_batch < row->size->micro_batches)
        ms_orderrow_put(row, kind, chunk, micro_batch);
}
