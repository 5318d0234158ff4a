/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HELDFREES_H
#define MS_SIM_HELDFREES_H

/* Private to sim/replay: frees of a rank whose completion other streams hold
 * up, each with what its owner wants to know of it (a row, bytes).
 *
 * A free waits for what is issued on these streams by then.  It stands in the
 * queue of the one that holds it up longest: a stream's ops end one behind the
 * other, so that frees that come later complete later, too, and the next of all
 * is the first of the heads.
 *
 *     held->tail_ns[op.stream] = op.end_ns;            an op is issued
 *     ms_heldfrees_push(held, items, n++, streams, bytes);
 *     while (held->first_ns <= host_ns)                the host looks
 *         now_bytes -= ms_heldfrees_pop(held, items); */

#include "sim/base/base.h"
#include "sim/names.h"

typedef struct ms_heldfrees_item {
    uint64_t t_ns; /* when the streams have passed */
    uint64_t what;
    uint32_t next; /* on its stream, or MS_NONE */
} ms_heldfrees_item;

typedef struct ms_heldfrees {
    uint64_t tail_ns[MS_N_STREAMS]; /* end of what is issued */
    struct ms_heldfrees_queue {
        uint32_t first, last; /* items */
    } queue[MS_N_STREAMS];
    uint32_t holding;  /* streams whose queue is not empty, as bits */
    uint64_t first_ns; /* when the first of all completes; UINT64_MAX: none */
    uint32_t first;    /* and on which stream */
} ms_heldfrees;

/* Of these streams the one whose tail ends last; of equal ones the first. */
static inline uint32_t ms_heldfrees_longest(const ms_heldfrees *held,
                                            uint32_t streams)
{
    uint32_t last = (uint32_t)__builtin_ctz(streams);
    for (uint32_t left = streams & (streams - 1); left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        if (held->tail_ns[s] > held->tail_ns[last])
            last = s;
    }
    return last;
}

/* Item i waits for these streams (one bit each; not 0). */
static inline void ms_heldfrees_push(ms_heldfrees *held,
                                     ms_heldfrees_item *items, uint32_t i,
                                     uint32_t streams, uint64_t what)
{
    uint32_t s = ms_heldfrees_longest(held, streams);
    uint64_t t_ns = held->tail_ns[s];
    struct ms_heldfrees_queue *queue = &held->queue[s];
    items[i] = (ms_heldfrees_item){t_ns, what, MS_NONE};
    if (held->holding >> s & 1u)
        items[queue->last].next = i;
    else
        queue->first = i;
    queue->last = i;
    held->holding |= 1u << s;
    if (t_ns < held->first_ns) {
        held->first_ns = t_ns;
        held->first = s;
    }
}

/* Takes the first of all, which there is: what it is. */
static inline uint64_t ms_heldfrees_pop(ms_heldfrees *held,
                                        const ms_heldfrees_item *items)
{
    struct ms_heldfrees_queue *queue = &held->queue[held->first];
    const ms_heldfrees_item *item = &items[queue->first];
    queue->first = item->next;
    if (queue->first == MS_NONE)
        held->holding &= ~(1u << held->first);
    held->first_ns = UINT64_MAX;
    for (uint32_t left = held->holding; left != 0; left &= left - 1) {
        uint32_t s = (uint32_t)__builtin_ctz(left);
        uint64_t t_ns = items[held->queue[s].first].t_ns;
        if (t_ns >= held->first_ns)
            continue;
        held->first_ns = t_ns;
        held->first = s;
    }
    return item->what;
}

#endif
