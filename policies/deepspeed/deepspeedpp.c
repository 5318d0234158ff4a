/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ZeRO++'s quantized gradients (qgZ; Wang et al. 2023): where the ranks are on
 * several nodes, each gradient is summed by two all-to-alls instead of a
 * reduce-scatter (deepspeedai/DeepSpeed
 * deepspeed/runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce):
 *
 *     quantized    int4 values and fp32 scales of all of it
 *     exchanged    the same, from the ranks of the node
 *     requantized  their sum, one of as many parts as the node has ranks
 *     received     the same, from the ranks in this place of the other nodes
 *     dequantized  in 16 bits, to be summed into this rank's part
 *
 * Each is freed when the next gradient's is bound to the same Python variable.
 * The kernel that sums the last takes no time of its own. */
#include "policies/deepspeed/deepspeed.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/program.h"

enum { QUANTIZED, EXCHANGED, REQUANTIZED, RECEIVED, DEQUANTIZED, N_BUFFERS };
static const char *const names[N_BUFFERS] = {
    "quantized", "exchanged", "requantized", "received", "dequantized"};

#define SCALE_BYTES 4u /* fp32 */

/* Tensors of one dimension, and what does not divide, are reduce-scattered. */
static bool is_quantized(const ms_deepspeed_writer *w,
                         const ms_deepspeed_row *it)
{
    return w->graph->storage_width[it->weight] > 0 &&
           it->elements % (2 * (uint64_t)w->ranks) == 0;
}

/* Values of four bits, and the scales of their groups: as many groups as the
 * longer of the first two dimensions, at least one for each rank. */
static void measure(const ms_deepspeed_writer *w, const ms_deepspeed_row *it,
                    uint64_t bytes[N_BUFFERS])
{
    uint64_t local = w->node_ranks, groups = w->ranks;
    uint32_t width = w->graph->storage_width[it->weight];
    if (width > groups)
        groups = width;
    bytes[QUANTIZED] = it->elements / 2 + SCALE_BYTES * groups;
    bytes[EXCHANGED] = bytes[QUANTIZED];
    bytes[REQUANTIZED] =
        it->elements / local / 2 + SCALE_BYTES * (groups / local);
    bytes[RECEIVED] = bytes[REQUANTIZED];
    bytes[DEQUANTIZED] = it->elements / local * w->item_bytes;
}

/* A new one, then the old one goes. */
static ms_err renew(ms_deepspeed_writer *w, const ms_call *like, uint32_t which,
                    uint64_t bytes, uint32_t *buffers)
{
    uint32_t old = buffers[which];
    bool overlap = w->how->overlap;
    MS_TRY(ms_deepspeedcalls_take(
        w, like,
        (ms_buffer){.name = names[which],
                    .bytes = bytes,
                    .category = MS_COMMUNICATION,
                    .stream = overlap ? MS_STREAM_COMM : MS_STREAM_COMPUTE},
        &buffers[which]));
    return old != MS_NONE ? ms_deepspeedcalls_give(w, like, old) : MS_OK;
}

/* One hop: into the buffer `from`, all-to-all. */
static ms_err hop(ms_deepspeed_writer *w, const ms_call *like, uint32_t set,
                  uint32_t from, const uint64_t *bytes, uint32_t *buffers)
{
    bool last = from == REQUANTIZED;
    bool ahead = w->how->overlap;
    ms_reduce_call sum = {.to = last ? MS_SHARD : MS_HERE,
                          .group = last ? MS_GROUP_ACROSS : MS_GROUP_NODE,
                          .exchange = true};
    MS_TRY(renew(w, like, from, bytes[from], buffers));
    MS_TRY(ms_deepspeedcalls_move(
        w, like, set, buffers[from],
        (ms_move_call){.to = MS_PACKED, .ahead = ahead}));
    MS_TRY(renew(w, like, from + 1, bytes[from + 1], buffers));
    MS_TRY(ms_deepspeedcalls_reduce(w, like, set, buffers[from + 1], sum));
    if (w->how->overlap)
        return MS_OK;
    return ms_deepspeedcalls_wait(w, like, set,
                                  last ? MS_NONE : buffers[from + 1]);
}

static ms_err reduce_tensor(ms_deepspeed_writer *w, const ms_call *like,
                            ms_deepspeed_row *it, uint32_t *buffers)
{
    uint64_t bytes[N_BUFFERS];
    measure(w, it, bytes);
    if (it->set == MS_NOTHING)
        MS_TRY(ms_program_add_set(w->program, &it->grad, 1, w->arena, &it->set,
                                  w->fault));
    MS_TRY(hop(w, like, it->set, QUANTIZED, bytes, buffers));
    MS_TRY(hop(w, like, it->set, REQUANTIZED, bytes, buffers));
    return renew(w, like, DEQUANTIZED, bytes[DEQUANTIZED], buffers);
}

ms_err ms_deepspeedpp_reduce(ms_deepspeed_writer *w, const ms_call *like)
{
    uint32_t *in = w->in, n = w->n_in, buffers[N_BUFFERS];
    for (uint32_t b = 0; b < N_BUFFERS; b++)
        buffers[b] = MS_NONE;
    w->n_in = 1; /* reduce-scattered alone */
    for (uint32_t i = 0; i < n; i++) {
        ms_deepspeed_row *it = &w->rows[in[i]];
        w->in = in + i;
        MS_TRY(is_quantized(w, it) ? reduce_tensor(w, like, it, buffers)
                                   : ms_deepspeedreduce_listed(w, like));
    }
    w->in = in;
    w->n_in = n;
    for (uint32_t b = 0; b < N_BUFFERS; b++)
        if (buffers[b] != MS_NONE)
            MS_TRY(ms_deepspeedcalls_give(w, like, buffers[b]));
    return MS_OK;
}
