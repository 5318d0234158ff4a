/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAP_H
#define MS_POLICIES_SWAP_H

/* Private to the swap files: a swap under way from one program to the next.
 * Each way to swap is one row of the table in swap.c.  A way with a fixed
 * rule is asked before and after each run of a unit, and adds calls; a way
 * that measures writes the program itself (swapplan.h). */

#include "policies/common/saved.h"
#include "sim/expand/hostplace.h"
#include "sim/names.h"
#include "sim/program.h"

/* Rows of the parameter table. */
enum {
    MS_SWAP_SAVE_ON_CPU,
    MS_SWAP_VDNN,
    MS_SWAP_TE,
    MS_SWAP_TORCHTUNE,
    MS_SWAP_TRL,
    MS_SWAP_CHECKPOINTS,
    MS_SWAP_LAYERS,
    MS_SWAP_MEGATRON,
    MS_SWAP_CAPUCHIN,
    MS_SWAP_BELADY,
    MS_SWAP_SUPERNEURONS,
    MS_SWAP_AUTO,
    MS_SWAP_MIN,
    MS_SWAP_PREFETCH,
    MS_SWAP_INFLIGHT,
    MS_SWAP_MODULES,
    MS_SWAP_FRACTION,
    MS_SWAP_RECOMPUTE,
    MS_SWAP_BUDGET,
    MS_SWAP_PIN,
    MS_SWAP_IMPL,
    MS_SWAP_TO,
    MS_SWAP_N_PARAMS
};

enum { MS_SWAP_IMPL_IDEAL, MS_SWAP_IMPL_DEEPSPEED };

enum { MS_SWAP_TO_HOST, MS_SWAP_TO_NVME, MS_SWAP_TO_GDS };

enum { MS_SWAP_VDNN_ALL, MS_SWAP_VDNN_CONV, MS_SWAP_VDNN_DYN };

enum {
    MS_SWAP_RECOMPUTE_COST,
    MS_SWAP_RECOMPUTE_SPEED,
    MS_SWAP_RECOMPUTE_MEMORY,
    MS_SWAP_RECOMPUTE_NONE
};

/* What comes back together, before the backward of unit `last`. */
typedef struct ms_swap_group {
    uint32_t set; /* MS_NOTHING: it never left */
    uint32_t last;
} ms_swap_group;

/* A turn of a rank: neighbouring runs of one stage on one micro-batch, all
 * forward or all backward.  Without a pipeline the stage is the model. */
typedef struct ms_swap_turn {
    uint32_t call;        /* of its first run */
    uint32_t first, last; /* the stage's units */
    uint32_t next;    /* the rank's next turn that begins a backward, or NONE */
    uint32_t forward; /* of that stage and micro-batch, before it, or NONE */
    bool waits;       /* forward: another backward comes before its own */
    bool second;      /* of a backward in halves: all of it is here by then */
    uint32_t reached, sent; /* swapgroups.c, of a backward: groups from reached
                               on have begun, from sent on were sent for */
} ms_swap_turn;

typedef struct ms_swap {
    const ms_policy_context *context;
    const ms_program *from; /* the program as it was */
    ms_saved saved;
    ms_program *program; /* the new one */
    ms_arena *arena;
    ms_fault *fault;
    const ms_policy_value *values;
    uint64_t min_bytes; /* the smallest tensor that moves */
    uint8_t *replayed;  /* per storage: does a replay read it? */
    bool convolutions;  /* vDNN: only the inputs of units that convolve */
    uint32_t te;        /* blocks that leave */

    /* vdnn.c: per unit, the next one below it whose input leaves, and the next
     * that convolves, or MS_NONE; of this backward, inputs from unit
     * `sent_for` on were. */
    uint32_t *leaves_below, *convolves_below, sent_for;

    /* swapturns.c */
    uint32_t n_turns;
    ms_swap_turn *turns; /* in the order of their calls */
    uint32_t *turn_of;   /* per call of from: of a run its turn */

    /* swapgroups.c */
    uint32_t n_groups, ahead; /* a group is sent for so many groups early */
    ms_swap_group *groups;    /* their last rises */
    uint32_t *group_at; /* per unit: the first group whose last is it or behind
                           it */
    ms_move_call coming_how; /* of the copies in */

    /* megatron.c: a forward that its own backward follows keeps a stage's last
     * group; the n-th group out waits for the n - in_flight-th; 0: no wait. */
    bool last_stays;
    uint32_t in_flight;

    /* torchtune.c: sets that leave, in order, CSR by the unit that they leave
     * with: the first leaving_before[unit] of its when it begins.  Per unit,
     * the saves that come to the program's hooks, and
     * how many have when the last that is packed does; per set that leaves,
     * which tensor it is of all that came in this forward; how many came, and
     * how many of the sets were waited for. */
    uint32_t *leaving, *leaving_at, *leaving_before;
    uint32_t *saves, *packed, *leaving_id;
    uint32_t came, waited;
} ms_swap;

typedef struct ms_swap_way {
    uint32_t row;          /* of the parameters: the choice */
    ms_host_memory memory; /* of the copies; 0: its own, of just their bytes */
    /* (optional) Marks the storages that stay where they are. */
    void (*stays)(const ms_swap *swap, uint8_t *stays);
    ms_err (*open)(ms_swap *swap); /* (optional) */
    ms_err (*around)(ms_swap *swap, const ms_call *call, bool before);
    ms_err (*write)(ms_swap *swap); /* instead of around */
    const char *alone; /* why it is for ranks that have all of the model; NULL:
                          it is not */
} ms_swap_way;

static inline bool ms_swap_is_forward(const ms_call *call)
{
    return call->verb == MS_RUN && call->run.pass == MS_FORWARD;
}

static inline bool ms_swap_is_backward(const ms_call *call)
{
    return call->verb == MS_RUN && call->run.pass != MS_FORWARD;
}

/* swapcalls.c: adds a call of this verb on a set, in the name of `like`. */
ms_err ms_swapcalls_move(ms_swap *swap, const ms_call *like, uint32_t set,
                         ms_move_call how);
ms_err ms_swapcalls_wait(ms_swap *swap, const ms_call *like, uint32_t set);
/* Copies the program, asking around before and after each run. */
ms_err ms_swapcalls_walk(ms_swap *swap,
                         ms_err (*around)(ms_swap *swap, const ms_call *call,
                                          bool before));

/* swapdisk.c: where the way goes, to=.  A MOVE of the way's to host memory or
 * back becomes one to the disk. */
void ms_swapdisk_aim(const ms_swap *swap, ms_call *call);
/* How long a copy out, or in, takes in all. */
uint64_t ms_swapdisk_copy_ns(const ms_swap *swap, uint64_t bytes, bool in);
/* Two hops ahead: the disk is read for the next copy in when one is issued. */
ms_err ms_swapdisk_ahead(ms_swap *swap);

/* swapturns.c: finds the turns of the program; that of one of its runs. */
ms_err ms_swapturns_find(ms_swap *swap);
ms_swap_turn *ms_swapturns_of(ms_swap *swap, const ms_call *run);

/* swapgroups.c: groups that come back so many groups ahead of their backward:
 * room for n, then (close) all are there.  To be sent before each run. */
ms_err ms_swapgroups_open(ms_swap *swap, uint32_t n, uint32_t ahead);
ms_err ms_swapgroups_close(ms_swap *swap);
ms_err ms_swapgroups_send(ms_swap *swap, const ms_call *call);
/* The set of a group that leaves behind this forward turn, or NOTHING. */
uint32_t ms_swapgroups_leaves(const ms_swap *swap, const ms_swap_turn *turn,
                              uint32_t group);

/* savecpu.c, vdnn.c, te.c, torchtune.c, megatron.c, swapcheckpoints.c: fixed
 * rules; streamedweights.c: of weights */
ms_err ms_savecpu_open(ms_swap *swap);
ms_err ms_savecpu_around(ms_swap *swap, const ms_call *call, bool before);
ms_err ms_vdnn_write(ms_swap *swap);
void ms_te_stays(const ms_swap *swap, uint8_t *stays);
ms_err ms_te_open(ms_swap *swap);
ms_err ms_te_around(ms_swap *swap, const ms_call *call, bool before);
ms_err ms_torchtune_open(ms_swap *swap);
ms_err ms_torchtune_open_trl(ms_swap *swap);
ms_err ms_torchtune_around(ms_swap *swap, const ms_call *call, bool before);
ms_err ms_streamedweights_shape(const ms_policy_context *context,
                                ms_shape *shape, ms_fault *fault);
ms_err ms_streamedweights_write(ms_swap *swap);
void ms_swapcheckpoints_stays(const ms_swap *swap, uint8_t *stays);
ms_err ms_swapcheckpoints_open(ms_swap *swap);
ms_err ms_swapcheckpoints_write(ms_swap *swap);
ms_err ms_megatron_open(ms_swap *swap);
ms_err ms_megatron_around(ms_swap *swap, const ms_call *call, bool before);

/* swaprules.c, swapauto.c: plans for a budget, from a measured step */
ms_err ms_swaprules_capuchin(ms_swap *swap);
ms_err ms_swaprules_belady(ms_swap *swap);
ms_err ms_swapauto_write(ms_swap *swap);

/* superneurons.c: a cache and recomputation */
ms_err ms_superneurons_write(ms_swap *swap);

#endif
