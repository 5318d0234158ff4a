/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAPRECOMPUTE_H
#define MS_POLICIES_SWAPRECOMPUTE_H

/* Private to the swap files: what it takes to make a tensor again.  It is
 * collective (Capuchin, Peng et al., ASPLOS 2020): what is made on
 * the way to a tensor and used later, too, is kept, and is not made twice.
 *
 *     a -> b -> c, all of them made again; backward uses c, b, a
 *     c is needed: a, b and c are made, all three are there from then on
 *     a source of theirs in host memory comes back for c, too
 *
 * What was found is kept until something it rests on changes: a pick changes it
 * for its neighbours alone. */

#include "policies/swap/swapplan.h"

/* A tensor is made from a storage that is there: in the lists of both. */
typedef struct ms_swaprecompute_link {
    uint32_t tensor, storage;
    uint32_t source;        /* the storage's tensor, or MS_NONE */
    uint32_t next;          /* of the tensor's, or of those not in use */
    uint32_t ahead, behind; /* in the storage's list */
} ms_swaprecompute_link;

typedef struct ms_swaprecompute {
    /* Per tensor: */
    uint64_t *ns;      /* UINT64_MAX: it cannot be made */
    uint32_t *readers; /* how often those that are made again are made from it
                        */
    uint8_t *counts;   /* it is one of these */
    uint8_t *is_stale;
    uint32_t *stale, n_stale;
    /* The tensors by storage and micro-batch; per storage where they begin. */
    uint32_t *by_storage, *storage_at;
    uint32_t *of_tensor, *of_storage; /* first links, or MS_NONE */
    ms_swaprecompute_link *links;
    uint32_t n_links, capacity, unused;
} ms_swaprecompute;

/* The first time. */
ms_err ms_swaprecompute_open(ms_swapplan *plan);
/* Nothing is picked, nothing known. */
void ms_swaprecompute_begin(ms_swapplan *plan);
/* The last of the storage's tensors of the micro-batch, or MS_NONE. */
uint32_t ms_swaprecompute_tensor(const ms_swapplan *plan, uint32_t storage,
                                 uint32_t micro_batch);
/* When the tensor is needed next, from what is there then or is brought for it;
 * UINT64_MAX: it cannot be made. */
uint64_t ms_swaprecompute_ns(ms_swapplan *plan, uint32_t tensor);
/* Finds what is stale anew: ns and readers are as they would be if all of them
 * were, and so are the rates of ms_estimates_rate: bytes saved per nanosecond
 * of making a tensor again, and once more for each of its readers.  Faults:
 * MS_ENOMEM. */
ms_err ms_swaprecompute_refresh(ms_swapplan *plan);
/* The tensor's place, or what needs it, has changed. */
void ms_swaprecompute_changed(ms_swapplan *plan, uint32_t tensor);
/* It is made again: what it is made from, and what is made with it, is needed
 * then at the latest. */
void ms_swaprecompute_need(ms_swapplan *plan, uint32_t tensor);

#endif
