/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What leaves goes on to the disk: to=nvme by way of host memory, as ZeRO-
 * Infinity's section 5.1.2 lets checkpoints; to=gds straight from the device's
 * memory, as SSDTrain's kvikio does (Wu et al., arXiv 2408.10013).  On the way
 * back by way of the host there are two hops: a tensor's read from the disk is
 * issued with the copy in of the tensor before it, so that both links work. */
#include "policies/common/profile.h"
#include "policies/swap/swap.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/program.h"

void ms_swapdisk_aim(const ms_swap *w, ms_call *call)
{
    int64_t to = w->values[MS_SWAP_TO].number;
    if (call->verb != MS_MOVE || to == MS_SWAP_TO_HOST)
        return;
    if (call->move.to == MS_HOST)
        call->move.to = MS_NVME;
    call->move.straight = to == MS_SWAP_TO_GDS;
}

static uint64_t link_ns(uint64_t bytes, double rate, uint64_t copy_ns)
{
    double ns = rate > 0 ? (double)bytes / rate * 1e9 : 0;
    return copy_ns + (uint64_t)(ns + 0.5);
}

uint64_t ms_swapdisk_copy_ns(const ms_swap *w, uint64_t bytes, bool in)
{
    const ms_expand_opts *opts = w->context->opts;
    int64_t to = w->values[MS_SWAP_TO].number;
    uint64_t host_ns = ms_profile_copy_ns(opts, bytes, in);
    uint64_t disk_ns = link_ns(
        bytes, in ? opts->nvme_read_bytes_per_s : opts->nvme_write_bytes_per_s,
        opts->copy_ns);
    uint64_t slower_ns = host_ns > disk_ns ? host_ns : disk_ns;
    if (to == MS_SWAP_TO_HOST)
        return host_ns;
    /* A copy in waits for its read; a copy out and the write of the one before
     * run side by side, so that the slower of the two counts. */
    return in && to == MS_SWAP_TO_NVME ? host_ns + disk_ns : slower_ns;
}

/* ---- one copy ahead ------------------------------------------------------ */

typedef struct walker {
    ms_swap *swap;
    ms_program made;
    uint32_t first_set; /* of the way's own */
    uint8_t *away;      /* per rank, frame and storage */
} walker;

static bool moves(const walker *w, const ms_call *call, uint8_t place)
{
    return call->verb == MS_MOVE && call->move.to == place &&
           call->set >= w->first_set && call->set < w->made.n_sets;
}

static uint8_t *away_of(const walker *w, const ms_call *call)
{
    size_t frame = (size_t)call->rank * w->made.n_frames + call->frame;
    return w->away + frame * w->swap->context->graph->n_storages;
}

static void mark(walker *w, const ms_call *call)
{
    bool out = moves(w, call, MS_NVME);
    if (!out && !moves(w, call, MS_HERE))
        return;
    uint8_t *away = away_of(w, call);
    for (uint32_t i = w->made.set_at[call->set];
         i < w->made.set_at[call->set + 1]; i++)
        away[w->made.set_item[i]] = out;
}

static bool is_away(const walker *w, const ms_call *call)
{
    const uint8_t *away = away_of(w, call);
    for (uint32_t i = w->made.set_at[call->set];
         i < w->made.set_at[call->set + 1]; i++)
        if (!away[w->made.set_item[i]])
            return false;
    return true;
}

/* The rank's next copy in, if all of it is on the disk by now. */
static const ms_call *next_in(const walker *w, uint32_t i)
{
    const ms_program *old = w->swap->program;
    for (uint32_t k = i + 1; k < old->n_calls; k++) {
        const ms_call *next = &old->calls[k];
        if (moves(w, next, MS_HERE))
            return next->rank == old->calls[i].rank && is_away(w, next) ? next
                                                                        : NULL;
    }
    return NULL;
}

ms_err ms_swapdisk_ahead(ms_swap *swap)
{
    const ms_program *old = swap->program;
    walker w = {.swap = swap, .first_set = swap->from->n_sets};
    size_t frames = (size_t)old->n_ranks * old->n_frames;
    if (swap->values[MS_SWAP_TO].number != MS_SWAP_TO_NVME)
        return MS_OK;
    w.away = ms_arena_take(swap->arena,
                           frames * swap->context->graph->n_storages, 1);
    if (w.away == NULL)
        return ms_fail_nomem(swap->fault);
    MS_TRY(ms_program_fork(old, swap->arena, &w.made, swap->fault));
    for (uint32_t i = 0; i < old->n_calls; i++) {
        const ms_call *call = &old->calls[i], *next;
        MS_TRY(ms_program_add(&w.made, *call, swap->arena, swap->fault));
        mark(&w, call);
        next = moves(&w, call, MS_HERE) ? next_in(&w, i) : NULL;
        if (next == NULL)
            continue;
        ms_call read = *next;
        read.move = (ms_move_call){.to = MS_HOST};
        MS_TRY(ms_program_add(&w.made, read, swap->arena, swap->fault));
    }
    *swap->program = w.made;
    return MS_OK;
}
