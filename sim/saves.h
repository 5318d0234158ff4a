/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_SAVEDENDS_H
#define MS_SIM_SAVEDENDS_H

/* What autograd's nodes save, save by save, and hooks that take each save
 * elsewhere (torch.autograd.graph.saved_tensors_hooks).  The references of a
 * graph's storages are these, folded; hooks see each of them.
 *
 *     y = a * a       two saves of a's storage: two copies out, two back
 *     y = x @ w.t()   the saves are x and a view of the parameter w
 * */

#include <stdbool.h>
#include <stdint.h>

typedef struct ms_save {
    uint64_t bytes; /* of the tensor, which may be a view of its storage */
    uint32_t storage;
    uint32_t node;        /* autograd node */
    uint32_t op;          /* forward op behind which it is saved */
    uint32_t first, last; /* backward ops of the node: it asks for the tensor
                             before the first, lets go of it after the last */
    bool is_parameter;    /* itself, no view of it */
    bool is_handed_on;    /* the node writes gradients over it: it lasts until
                             they end */
} ms_save;

/* Saves of forward ops [0, ops) are packed: copied to the host; before their
 * node runs they are unpacked, each to memory of its own, which goes after it.
 * Saves of units that a checkpoint runs again are left to the checkpoint's own
 * hooks. */
typedef struct ms_hooks {
    bool used;
    bool skips_parameters; /* parameters themselves are passed over */
    bool once;             /* so are views of them, and later saves of a tensor
                              that is packed: they keep it where it is */
    bool pageable;         /* host memory is not pinned, the host waits */
    bool waits;            /* the host waits for copies out of pinned memory */
    uint32_t stash;        /* 0: copies on the compute stream; else on a stream
                              of their own: before save k leaves, those up to
                              k - stash are waited for and let go; the first
                              node that unpacks finds the rest here */
    uint32_t ops;
    uint64_t min_bytes; /* smaller tensors are passed over */
} ms_hooks;

/* Tensors leave one after another, numbered from 1: those up to this one are
 * waited for and let go before tensor id leaves. */
static inline uint32_t ms_hooks_oldest(const ms_hooks *hooks, uint32_t id)
{
    return id > hooks->stash ? id - hooks->stash : 0;
}
/* hooks.c: do they pack this save? */
bool ms_hooks_packs(const ms_hooks *hooks, const ms_save *save);

#endif
