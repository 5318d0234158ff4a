/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPTIMIZER_H
#define MS_GRAPHS_OPTIMIZER_H

/* Private to graphs/: the optimizer of a step under construction, and what its
 * files do for autograd and lowering.
 *
 *     ms_optimstates_make(trace);    .grad, masters and states exist
 *     ms_autograd_run(trace, loss);  steps in backward, if asked for
 *     ms_optimstep_step(trace);      the ops of the step
 *
 * Of a parameter its row says all (ms_parameter); here is what the parameters
 * have in common.  Storages are rows of the trace, which are numbered anew with
 * it (lowering/numbering.h). */

#include "graphs/trace/stepsettings.h"
#include "graphs/trace/tensors.h"
#include "sim/shape.h"

/* Pinned buffers of an optimizer step on the disk: DeepSpeed doubles them to
 * pipeline. */
#define MS_MOST_SLOTS 2u
/* bitsandbytes' maps: of signed codes, and of unsigned ones. */
#define MS_MOST_MAPS 2u

/* A storage with its home elsewhere than on the device. */
typedef struct ms_home {
    uint32_t storage;
    uint8_t pool;
    uint64_t far_bytes; /* ms_graph.storage_far_bytes */
    uint8_t memory;     /* ms_graph.hosted.of */
} ms_home;

/* Invariants: updates has two rows, that of the optimizer and the one for the
 * parameters that it does not choose, from ms_optimstates_make on, or is NULL
 * without an optimizer; each home is of another storage; slots are pinned
 * storages that the host's step uses in turn, none where nothing lies on a
 * disk. */
typedef struct ms_optimizer_state {
    struct ms_read_update *updates;
    struct ms_step *stepper; /* of the steps in backward, once open */
    ms_home *homes;
    uint32_t n_homes, homes_capacity;
    /* hostblocks.c: flat buffers under way, by role; of 16-bit gradients */
    uint64_t flat_bytes[6], flat_elements[6];
    uint32_t host_blocks_capacity;
    uint64_t swap_elements; /* of a buffer of DeepSpeed's swapper; 0: none */
    uint32_t slots[MS_MOST_SLOTS], n_slots; /* pinned buffers of the step */
    uint32_t maps[MS_MOST_MAPS], n_maps;    /* code maps of 8-bit states */
    uint32_t step_order; /* a storage of no bytes: copies in turn; or NONE */
    uint32_t buckets;    /* copies of all gradients, or NONE */
} ms_optimizer_state;

/* ---- parts.c ------------------------------------------------------------- */

/* Sets every parameter's part. */
void ms_parts_split(ms_trace *trace);
/* Does a parameter's part depend on the others'?  Then: each has all of it. */
bool ms_parts_are_stretches(const ms_shape *shape);
void ms_parts_join(ms_trace *trace);
/* Are gradients summed over ranks, or go through the code that does it? */
static inline bool ms_parts_are_reduced(const ms_shape *shape)
{
    return shape->data_ranks > 1 || shape->copies_parts;
}
/* .grad exists all through the step: not where each part of it ends with its
 * update; a bucket that it lies in stays. */
bool ms_parts_hold_gradients(const ms_step_settings *settings);
/* layerwise.c: are whole matrices on ranks?  Then deals them: part 0 is another
 * rank's. */
bool ms_layerwise_is(const ms_step_settings *settings);
void ms_layerwise_split(ms_trace *trace);
/* Is the part of a weight fp32 and its own master copy? */
bool ms_parts_are_masters(const ms_trace *trace);
/* It has no states to share or to update. */
bool ms_parts_is_frozen(const ms_trace *trace, const ms_parameter *parameter);
/* What its part takes in fp32, as its own master copy; 0: it is none.  To be
 * asked before ids are final. */
uint64_t ms_parts_master_bytes(const ms_trace *trace,
                               const ms_parameter *parameter);
/* storage has its home in pool, and takes so many bytes there (0: as many as on
 * the device). */
void ms_parts_home(ms_trace *trace, uint32_t storage, uint8_t pool,
                   uint64_t far_bytes);
/* The columns of the graph that say so, once ids are final. */
ms_err ms_parts_columns(ms_trace *trace);

/* ---- hosttiles.c --------------------------------------------------------- */

/* Which parameters the host updates. */
void ms_hosttiles_choose(ms_trace *trace);
/* Is a tile of so many elements full, so that the next parameter begins
 * another? */
bool ms_hosttiles_is_full(const ms_offload *offload, uint64_t elements);
/* Storages of the host's step: pinned buffers of the disk's tiles.  Then how
 * large they are, which is told by all parameters, and where. */
void ms_hosttiles_buffers(ms_trace *trace);
void ms_hosttiles_home_buffers(ms_trace *trace);

/* ---- hoststep.c ---------------------------------------------------------- */

/* Its ops (after those of the device's step). */
void ms_hoststep_run(ms_trace *trace);
/* Before all of the step: norms that DeepSpeed takes as gradients are reduced;
 * training.clip_norm of gradients that do not lie on the device. */
void ms_hoststep_norms(ms_trace *trace);
void ms_hoststep_clip(ms_trace *trace);
/* The device has updated master copies: weights that lie in host memory are
 * cast and copied there; grads: MS_NONE for a parameter that is passed over. */
void ms_hoststep_send(ms_trace *trace, const uint32_t *grads);

/* ---- flatstep.c ---------------------------------------------------------- */

/* MS_EUSAGE for settings that DeepSpeed's step does not know. */
ms_err ms_flatstep_check(ms_trace *trace);
/* The backward begins, after its first op: .grad ends; and it ends: .grad is
 * added to the sum.  Nothing to do without one. */
void ms_flatstep_clear(ms_trace *trace);
void ms_flatstep_add(ms_trace *trace);
/* The ops of a flat step (shape.flat_step); held: per parameter an update that
 * was found before it, or MS_NONE; NULL: none was. */
void ms_flatstep_run(ms_trace *trace, uint32_t *held);

/* ---- optimstates.c ------------------------------------------------------- */

/* .grad and optimizer state of every parameter (before backward). */
void ms_optimstates_make(ms_trace *trace);
/* The parameters or their parts are others than when their states were made:
 * these have their sizes, and so has what all gradients lie in. */
void ms_optimstates_fit(ms_trace *trace);
/* The same of homes, if there are any: all are found anew.  False: the host
 * would update others than states were made for, or there is no memory. */
bool ms_optimstates_home(ms_trace *trace);
/* 16-bit weights with an fp32 master copy? */
bool ms_optimstates_is_mixed(const ms_trace *trace);

/* ---- clip.c -------------------------------------------------------------- */

/* The ops of training.clip_norm, if it is set. */
void ms_clip_run(ms_trace *trace);

/* ---- wholegrads.c -------------------------------------------------------- */

/* Finds the parameters that each of the ranks that split layers has whole, and
 * of whose gradient each has a part. */
void ms_wholegrads_find(ms_trace *trace);
/* Sums these gradients, before the step: Megatron. */
void ms_wholegrads_sum(ms_trace *trace);
/* Where torch sums it in backward: the gradient of p, which is complete, is
 * another tensor then. */
void ms_wholegrads_in_backward(ms_trace *trace, ms_parameter *p);
/* Where it does in the step: of what is there per parameter, its .grad or
 * MS_NONE, the sums stand for what is partial, until they are dropped. */
void ms_wholegrads_take(ms_trace *trace, uint32_t *grads);
void ms_wholegrads_drop(ms_trace *trace, const uint32_t *grads);

/* ---- optimcheck.c -------------------------------------------------------- */

/* MS_EUSAGE where the optimizer is not known in this setting. */
ms_err ms_optimcheck_settings(const ms_trace *trace);

/* ---- optimstep.c --------------------------------------------------------- */

/* The ops of the step (after backward). */
void ms_optimstep_step(ms_trace *trace);
/* Those of the parameter whose .grad has just been made, which then ends
 * (register_post_accumulate_grad_hook); nothing to do unless
 * training.optimizer_in_backward says so. */
void ms_optimstep_in_backward(ms_trace *trace, uint32_t parameter);

#endif
