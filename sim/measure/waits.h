/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_WAITS_H
#define MS_SIM_WAITS_H

/* Why a compute stream stands still, and what works beside it. */

#include "sim/base/base.h"
#include "sim/nouns.h"
#include "sim/timeline.h"

typedef enum ms_cause {
    MS_CAUSE_HOST,    /* the host had not issued it yet */
    MS_CAUSE_GATHER,  /* collectives: of parameters */
    MS_CAUSE_REDUCE,  /* of gradients */
    MS_CAUSE_MEETING, /* of activations, among ranks that split layers */
    MS_CAUSE_TO_DEVICE,
    MS_CAUSE_TO_HOST,
    MS_CAUSE_DISK,
    MS_CAUSE_HOST_WORK, /* of the host's cores, as an optimizer step there */
    MS_CAUSE_PACK,      /* copies within the device, into buffers and back */
    MS_CAUSE_RANK,      /* another rank's output had not arrived */
    MS_CAUSE_PAGES,     /* of unified memory */
    MS_CAUSE_MEMORY,    /* it was full (ms_machine.wall) */
    MS_CAUSE_IDLE,
    MS_N_CAUSES
} ms_cause;
extern const char *const ms_waits_names[MS_N_CAUSES]; /* "gather" */

/* What works beside the compute streams. */
typedef enum ms_link {
    MS_LINK_COMM,  /* collectives of the ranks that share states */
    MS_LINK_OUTER, /* of the groups that hold the same part (HSDP), of those
                      that split layers */
    MS_LINK_H2D,
    MS_LINK_D2H,
    MS_LINK_NVME_READ,
    MS_LINK_NVME_WRITE,
    MS_LINK_HOST, /* no link: the host's cores */
    MS_N_LINKS
} ms_link;
extern const char *const ms_waits_links[MS_N_LINKS]; /* "h2d", "nvme_read" */

/* A wait is attributed along the chain of ops that led to its end: the time
 * during which the op that ended it was under way is that op's; the time before
 * belongs to the op whose end let that one start, and so on, back to where the
 * stream became free.  Thus a copy that could start only when the disk had been
 * read leaves the time of the reading to the disk, and a host that waited for a
 * copy before it issued an op leaves its wait to the copy; a collective that
 * ran before the stream stood still has none of it. */
typedef struct ms_waits {
    const ms_timeline *line;
    uint32_t *before; /* per op: the one before it on its stream, or MS_NONE;
                         NULL where every op is on one stream */
    uint32_t *held;   /* per sync of the plan: the op that held the host there,
                         or MS_NONE; NULL: there are none */
    uint8_t *kind;    /* per op: ms_transfer_kind or MS_N_TRANSFERS; NULL: no
                         op moves anything */
} ms_waits;

/* A part of a wait, [from_ns, to_ns), and where the walk through it is. */
typedef struct ms_wait {
    uint64_t from_ns, to_ns;
    uint32_t by; /* the op that was under way, or MS_NONE */
    uint8_t cause;
    uint64_t free_ns; /* since when the stream waits */
    uint32_t last, next;
} ms_wait;

ms_err ms_waits_open(ms_waits *waits, const ms_timeline *line, ms_arena *arena,
                     ms_fault *fault);
/* The wait before an op on a stream that is free from free_ns on, and the one
 * at the end of a rank's step for the op that ends last.  Then next gives its
 * parts, the latest first, as long as there are any:
 *
 *     ms_wait wait = ms_waits_before(&waits, op, free_ns);
 *     while (ms_waits_next(&waits, &wait))
 *         sum[wait.cause] += wait.to_ns - wait.from_ns;
 */
ms_wait ms_waits_before(const ms_waits *waits, uint32_t op, uint64_t free_ns);
ms_wait ms_waits_after(const ms_waits *waits, uint32_t last, uint64_t free_ns);
bool ms_waits_next(const ms_waits *waits, ms_wait *wait);
/* Of op and last (or MS_NONE) the one that works until later: for
 * ms_waits_after.  Ops that take no time end with others. */
static inline uint32_t ms_waits_later(const ms_timeline *line, uint32_t op,
                                      uint32_t last)
{
    if (line->end_ns[op] == line->start_ns[op] ||
        (last != MS_NONE && line->end_ns[op] < line->end_ns[last]))
        return last;
    return op;
}

/* Of an op (MS_NONE: none): ms_transfer_kind or MS_N_TRANSFERS, ms_link or
 * MS_N_LINKS, and what a wait for it is. */
uint8_t ms_waits_kind(const ms_waits *waits, uint32_t op);
ms_link ms_waits_link(const ms_waits *waits, uint32_t op);
/* Is the op an update behind a reduction, on the reduction's queue, and no
 * collective of the step?  A wait for such an op is a wait for the optimizer.
 */
bool ms_waits_is_update(const ms_waits *waits, uint32_t op);
ms_cause ms_waits_cause(const ms_waits *waits, uint32_t op);

#endif
