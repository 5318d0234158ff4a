/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The optimizer step where the optimizer's state lies: in the host's memory or
 * on its disk (graphs/states.md 4).
 *
 *     tile 0:  adam on the host --> weights to the device
 *     tile 1:           adam on the host --> weights to the device ...
 *
 * The host updates at the rate of its memory, the state is read and written
 * once: with an fp32 gradient 28 bytes per element (DeepSpeed's cpu_adam, the
 * table of ZeRO-Offload's section 5.1 gives 93 to 127 GB/s).  On the disk a
 * tile is read into a pinned buffer, updated there and written back.
 *
 * Clipping (training.clip_norm) needs the norm of all gradients first.  torch's
 * clip_grad_norm_ takes it where they lie and scales them there: a pass over
 * the host's memory and one that writes, or a pass over the disk before that of
 * the update.  DeepSpeed always has a norm: each part's on the device, in fp64,
 * before it leaves, and the host always unscales (runtime/zero/
 * stage_1_and_2.py, set_norm_for_param_grad_in_gpu, unscale_and_clip_grads;
 * stage3.py, _constant_buffered_norm2, 250 million elements at a time).
 *
 * Delayed (ZeRO-Offload, section 5.2), the host updates beside the next step's
 * forward and backward, with the gradients that the step before has left:
 * those of this step arrive in buffers of their own, and the new weights leave
 * tile by tile when backward has read the old ones.  DeepSpeed's ZenFlow does
 * so with overlap_step, in another process: policies/share/zenflow.h. */
#include "graphs/ops/ops.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#define STATE_BYTES 4u /* fp32 */
#define NORM_BYTES 8u  /* fp64 */
#define NORM_ELEMENTS UINT64_C(250000000)

typedef struct host_step {
    ms_trace *trace;
    const ms_offload *offload;
    uint32_t ranks;      /* that share a node's memory and disk */
    double rate;         /* of work on its memory, bytes a second */
    uint32_t first, end; /* parameters of the tile under way */
    uint64_t elements;   /* elements that this rank updates in it */
    uint32_t n_tiles;    /* tiles so far */
    uint32_t item_bytes; /* of an element of a state */
    uint32_t order; /* a storage of no bytes that each copy touches, so that
                       copies run in order */
} host_step;

/* ---- ops ----------------------------------------------------------------- */

/* Opens an op on a stream; the caller then touches its inputs. */
static void begin(host_step *h, const char *name, uint8_t stream)
{
    h->trace->layer = MS_NONE;
    ms_trace_begin(h->trace, name);
    if (!h->trace->err)
        h->trace->graph->op_stream[h->trace->graph->n_ops - 1] = stream;
}

/* Closes the op: it reads and writes so many bytes, at this rate. */
static void end(host_step *h, uint64_t read, uint64_t written, double rate,
                uint64_t latency_ns)
{
    ms_graph *g = h->trace->graph;
    if (h->trace->err)
        return;
    uint32_t op = g->n_ops - 1;
    uint64_t slower = read > written ? read : written;
    bool memory = g->op_stream[op] == MS_STREAM_HOST;
    bool link =
        g->op_stream[op] == MS_STREAM_H2D || g->op_stream[op] == MS_STREAM_D2H;
    if (link && (h->offload->pageable || ms_offload_is_apart(h->offload)))
        rate *= h->trace->settings->device->pageable_share;
    uint64_t bytes = memory ? read + written : slower;
    double ns = rate > 0 ? (double)bytes / rate * 1e9 : 0;
    g->op_read_bytes[op] = read;
    g->op_write_bytes[op] = written;
    g->op_ns[op] = latency_ns + (uint64_t)(ns + 0.5);
}

static void touch(host_step *h, uint32_t storage)
{
    if (storage != MS_NONE)
        ms_trace_read_storage(h->trace, storage, 0);
}

static void touch_states(host_step *h, const ms_parameter *parameter)
{
    touch(h, parameter->master);
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        touch(h, parameter->state[i]);
}

static uint32_t states_of(const ms_parameter *parameter)
{
    uint32_t n = parameter->master != MS_NONE ? 1 : 0;
    for (uint32_t i = 0; i < MS_MOST_STATES; i++)
        n += parameter->state[i] != MS_NONE ? 1 : 0;
    return n;
}

/* The bytes of all states of the tile. */
static uint64_t state_bytes(const host_step *h)
{
    uint64_t bytes = 0;
    for (uint32_t p = h->first; p < h->end; p++)
        if (h->trace->parameters[p].far)
            bytes += (uint64_t)h->item_bytes *
                     states_of(&h->trace->parameters[p]) *
                     h->trace->parameters[p].part;
    return bytes;
}

static uint64_t weight_bytes(const host_step *h)
{
    return h->elements * (ms_parts_are_masters(h->trace)
                              ? STATE_BYTES
                              : ms_dtypes_bytes[h->trace->trained_dtype]);
}

static bool has_gradient(const host_step *h, uint32_t p)
{
    const ms_parameter *it = &h->trace->parameters[p];
    return it->far && it->grad_storage != MS_NONE;
}

static uint64_t gradient_bytes(const host_step *h)
{
    uint32_t bytes = h->offload->gradient_bytes;
    if (ms_offload_fetches(h->offload)) /* cast on the device, copy_ of torch */
        bytes = h->item_bytes;
    if (bytes == 0)
        bytes = ms_parts_are_masters(h->trace)
                    ? STATE_BYTES
                    : ms_dtypes_bytes[h->trace->grad_dtype];
    /* DeepSpeed's stage 3 keeps gradients in 16 bits beside those in fp32; the
     * update reads those in fp32. */
    return h->elements * (bytes > STATE_BYTES ? STATE_BYTES : bytes);
}

/* ---- a tile -------------------------------------------------------------- */

static uint32_t slot_of(const host_step *h)
{
    const ms_trace *trace = h->trace;
    return trace->optimizer->n_slots > 0
               ? trace->optimizer->slots[h->n_tiles % trace->optimizer->n_slots]
               : MS_NONE;
}

/* Reads the tile's state from the disk into its buffer, or writes it back. */
static void move_states(host_step *h, bool back)
{
    const ms_device *device = h->trace->settings->device;
    uint64_t bytes = state_bytes(h);
    bool gradients = !back && h->offload->gradients == MS_NVME_POOL;
    bytes += gradients ? gradient_bytes(h) : 0;
    begin(h, back ? "write_states" : "read_states",
          back ? MS_STREAM_NVME_WRITE : MS_STREAM_NVME_READ);
    touch(h, slot_of(h));
    if (!back && !h->offload->reads_ahead)
        touch(h, h->order);
    for (uint32_t p = h->first; p < h->end; p++) {
        if (!h->trace->parameters[p].far)
            continue;
        touch_states(h, &h->trace->parameters[p]);
        if (gradients && has_gradient(h, p))
            touch(h, h->trace->parameters[p].grad_storage);
    }
    if (back && !h->offload->writes_behind)
        touch(h, h->order);
    end(h, bytes, bytes, ms_device_disk_rate(device, h->ranks, back),
        MS_COPY_NS);
}

/* The storage to which the update writes a weight whose home is elsewhere. */
static uint32_t new_weight(const ms_parameter *parameter)
{
    return parameter->next != MS_NONE ? parameter->next : parameter->storage;
}

/* ZenFlow's process then clones the weights, and copies the clone to where the
 * other process reads them (ops/adam/zenflow_cpu_adam.py, _parallel_step): so
 * many bytes are read, and as many are written. */
static uint64_t twice_bytes(const host_step *h)
{
    return ms_offload_is_apart(h->offload) ? 2 * STATE_BYTES * h->elements : 0;
}

/* The update itself.  What has its home on the disk is in the buffer by now. */
static void update(host_step *h)
{
    ms_trace *trace = h->trace;
    bool at_home = h->offload->parameters != MS_DEVICE_POOL;
    bool on_disk = h->offload->gradients == MS_NVME_POOL;
    uint64_t states = state_bytes(h), twice = twice_bytes(h);
    uint64_t written = states + twice + (at_home ? weight_bytes(h) : 0);
    uint64_t read = states + twice + gradient_bytes(h);
    if (at_home && ms_parts_are_masters(trace))
        read += weight_bytes(h);
    begin(h, "cpu_adam", MS_STREAM_HOST);
    touch(h, slot_of(h));
    touch(h, h->order);
    for (uint32_t p = h->first; p < h->end; p++) {
        const ms_parameter *it = &trace->parameters[p];
        if (!it->far)
            continue;
        if (it->host_grad != MS_NONE)
            touch(h, it->host_grad);
        else if (has_gradient(h, p) && !on_disk)
            touch(h, it->grad_storage);
        if (h->trace->optimizer->n_slots == 0)
            touch_states(h, it);
        if (h->offload->parameters == MS_HOST_POOL)
            touch(h, new_weight(it));
    }
    end(h, read, written, h->rate, 0);
    if (!trace->err)
        trace->graph->op_flops[trace->graph->n_ops - 1] =
            11.0 * (double)h->elements;
}

/* ---- clipping ------------------------------------------------------------ */

static bool is_deepspeed(const ms_offload *offload)
{
    return offload->engine == MS_ENGINE_DEEPSPEED;
}

/* Does the host need the norm of gradients that have left the device? */
static bool clips_offloaded(const ms_step_settings *settings)
{
    const ms_offload *offload = &settings->shape->offload;
    return offload->gradients != MS_DEVICE_POOL && !is_deepspeed(offload) &&
           settings->training->clip_norm > 0;
}

static void touch_gradients(host_step *h)
{
    for (uint32_t p = h->first; p < h->end; p++) {
        const ms_parameter *it = &h->trace->parameters[p];
        if (it->host_grad != MS_NONE)
            touch(h, it->host_grad);
        else if (it->grad_storage != MS_NONE)
            touch(h, it->grad_storage);
    }
}

/* A pass of the host's cores over the gradients of the tile; with scales it
 * writes them, too. */
static void pass_over(host_step *h, const char *name, bool scales)
{
    uint64_t bytes = gradient_bytes(h);
    begin(h, name, MS_STREAM_HOST);
    touch(h, slot_of(h));
    if (h->offload->gradients != MS_NVME_POOL)
        touch_gradients(h);
    end(h, bytes, scales ? bytes : 0, h->rate, 0);
    if (!h->trace->err)
        h->trace->graph->op_flops[h->trace->graph->n_ops - 1] =
            (scales ? 1.0 : 2.0) * (double)h->elements;
}

/* Reads the gradients of a tile from the disk for their norm alone. */
static void norm_of_tile(host_step *h)
{
    bool disk = h->offload->gradients == MS_NVME_POOL;
    uint64_t bytes = gradient_bytes(h);
    if (h->elements == 0)
        return;
    if (disk) {
        begin(h, "read_gradients", MS_STREAM_NVME_READ);
        touch(h, slot_of(h));
        touch_gradients(h);
        end(h, bytes, bytes,
            ms_device_disk_rate(h->trace->settings->device, h->ranks, false),
            MS_COPY_NS);
    }
    pass_over(h, "aten::linalg_vector_norm", false);
    if (!disk)
        pass_over(h, "aten::mul_", true);
    h->n_tiles++;
    h->elements = 0;
}

/* DeepSpeed takes the norm of each part while it is on the device; the scalar
 * lives until the step. */
static uint32_t norm_of_part(ms_trace *trace, ms_parameter *it)
{
    bool parts = trace->settings->shape->shared == MS_SHARED_PARAMETERS;
    uint64_t item_bytes = ms_dtypes_bytes[trace->grad_dtype];
    uint64_t n = parts && it->owned > NORM_ELEMENTS ? NORM_ELEMENTS : it->owned;
    trace->layer = it->layer;
    it->due_first = trace->graph->n_ops;
    ms_trace_begin(trace, "aten::linalg_vector_norm");
    ms_trace_read_storage(trace, it->grad_storage, it->part * item_bytes);
    uint32_t copy = ms_trace_make_storage(trace, "copy", n * NORM_BYTES);
    uint32_t norm = ms_trace_make_storage(trace, "norm", NORM_BYTES);
    ms_trace_end(trace, 2 * (double)it->part, false);
    ms_trace_drop_storage(trace, copy);
    it->due_end = trace->graph->n_ops;
    if (!trace->err)
        trace->graph->op_stream[it->due_first] = MS_STREAM_COMM;
    return norm;
}

/* Touches what holds the new weights of the tile on the host. */
static void touch_masters(host_step *h)
{
    touch(h, slot_of(h));
    for (uint32_t p = h->first; p < h->end && h->trace->optimizer->n_slots == 0;
         p++)
        if (h->trace->parameters[p].far)
            touch(h, h->trace->parameters[p].master);
}

static void touch_weights(host_step *h)
{
    for (uint32_t p = h->first; p < h->end; p++)
        if (h->trace->parameters[p].far)
            touch(h, new_weight(&h->trace->parameters[p]));
}

/* torchao's copies of weights queue behind those of all gradients. */
static void touch_last_gradient(host_step *h)
{
    for (uint32_t p = 0; p < h->trace->n_parameters; p++)
        if (h->offload->step == MS_HOST_ARRIVALS && has_gradient(h, p)) {
            touch(h, h->trace->parameters[p].grad_storage);
            return;
        }
}

/* The new weights, which the host has cast, travel to where the weights have
 * their home. */
static void send_weights(host_step *h)
{
    const ms_device *device = h->trace->settings->device;
    uint64_t bytes = weight_bytes(h);
    uint8_t home = h->offload->parameters;
    if (home == MS_HOST_POOL)
        return;
    bool disk = home == MS_NVME_POOL;
    begin(h, disk ? "write_weights" : "copy_weights",
          disk ? MS_STREAM_NVME_WRITE : MS_STREAM_H2D);
    touch_masters(h);
    touch_weights(h);
    touch(h, h->order);
    touch_last_gradient(h);
    end(h, bytes, bytes,
        disk ? ms_device_disk_rate(device, h->ranks, true)
             : device->h2d_bytes_per_s,
        MS_COPY_NS);
}

/* In DeepSpeed's stages 1 and 2 the fp32 weights of the partition travel, and
 * the device casts them. */
static void send_masters(host_step *h)
{
    ms_trace *trace = h->trace;
    uint64_t bytes = h->elements * STATE_BYTES;
    begin(h, "copy_master", MS_STREAM_H2D);
    touch_masters(h);
    uint32_t copy = ms_trace_make_storage(trace, "fp32_partition", bytes);
    end(h, bytes, bytes, trace->settings->device->h2d_bytes_per_s, MS_COPY_NS);
    ms_trace_begin(trace, "aten::copy_");
    ms_trace_read_storage(trace, copy, bytes);
    touch_weights(h);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            weight_bytes(h);
    ms_trace_end(trace, 0, false);
    ms_trace_drop_storage(trace, copy);
}

/* Megatron copies parameter by parameter without blocking, so that torch casts
 * on the device what has come as fp32 (hybrid_optimizer.py,
 * param_copy_back_gpu_hook; ATen/native/cuda/Copy.cu,
 * copy_requires_temporaries). */
static void send_each_master(host_step *h)
{
    host_step one = *h;
    for (uint32_t p = h->first; p < h->end && !h->trace->err; p++) {
        if (!h->trace->parameters[p].far)
            continue;
        one.first = p;
        one.end = p + 1;
        one.elements = h->trace->parameters[p].part;
        send_masters(&one);
    }
}

/* Megatron fetches the gradients when the step begins, torchao each when it is
 * there (the copies are queued after backward).  In a delayed step those
 * that are on the device leave when the step ends, tile by tile behind the
 * update. */
static void fetch_gradients(host_step *h)
{
    const ms_device *device = h->trace->settings->device;
    uint64_t bytes = gradient_bytes(h);
    begin(h, "copy_gradients", MS_STREAM_D2H);
    for (uint32_t p = h->first; p < h->end; p++)
        if (has_gradient(h, p)) {
            touch(h, h->trace->parameters[p].grad_storage);
            touch(h, h->trace->parameters[p].host_grad);
        }
    end(h, bytes, bytes, device->d2h_bytes_per_s, MS_COPY_NS);
}

/* Are gradients scaled just before the update?  ZenFlow does it when the step
 * has them, before it hands them over (policies/share/zenflow.c). */
static bool unscales(const host_step *h)
{
    if (is_deepspeed(h->offload))
        return !ms_offload_is_apart(h->offload);
    return clips_offloaded(h->trace->settings) &&
           h->offload->gradients == MS_NVME_POOL;
}

static void run_tile(host_step *h)
{
    bool disk = h->trace->optimizer->n_slots > 0;
    if (h->elements == 0)
        return;
    if (ms_offload_fetches(h->offload) ||
        (h->offload->delayed && h->offload->gradients == MS_DEVICE_POOL))
        fetch_gradients(h);
    if (disk)
        move_states(h, false);
    if (unscales(h))
        pass_over(h, "aten::mul_", true);
    update(h);
    if (h->offload->step == MS_HOST_WHOLE)
        send_masters(h);
    else if (h->offload->engine == MS_ENGINE_MEGATRON &&
             ms_optimstates_is_mixed(h->trace))
        send_each_master(h);
    else
        send_weights(h);
    if (disk)
        move_states(h, true);
    h->n_tiles++;
    h->elements = 0;
}

/* ---- the step ------------------------------------------------------------ */

static void open_step(host_step *h)
{
    const ms_trace *trace = h->trace;
    h->offload = &trace->settings->shape->offload;
    h->ranks = ms_shape_ranks(trace->settings->shape);
    h->rate = ms_device_host_rate(trace->settings->device, h->ranks,
                                  h->offload->threads);
    h->order = trace->optimizer->step_order;
    h->item_bytes = h->offload->engine == MS_ENGINE_TORCHAO &&
                            !ms_optimstates_is_mixed(trace)
                        ? ms_dtypes_bytes[trace->trained_dtype]
                        : STATE_BYTES;
}

void ms_hoststep_send(ms_trace *trace, const uint32_t *grads)
{
    host_step h = {.trace = trace};
    open_step(&h);
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        const ms_parameter *it = &trace->parameters[p];
        uint64_t bytes = it->part * ms_dtypes_bytes[trace->trained_dtype];
        if (grads[p] == MS_NONE)
            continue;
        ms_trace_begin(trace, "aten::_to_copy");
        ms_trace_read_storage(trace, it->master, it->part * STATE_BYTES);
        uint32_t cast = ms_trace_make_storage(trace, "weight_cast", bytes);
        ms_trace_end(trace, 0, false);
        begin(&h, "copy_weights", MS_STREAM_D2H);
        touch(&h, cast);
        touch(&h, it->storage);
        end(&h, bytes, bytes, trace->settings->device->d2h_bytes_per_s,
            MS_COPY_NS);
        ms_trace_drop_storage(trace, cast);
    }
}

void ms_hoststep_norms(ms_trace *trace)
{
    const ms_offload *offload = &trace->settings->shape->offload;
    uint32_t n = trace->n_parameters;
    if (offload->gradients == MS_DEVICE_POOL || !is_deepspeed(offload))
        return;
    uint32_t *norms = ms_arena_take_raw(trace->scratch, n + 1, sizeof *norms);
    if (!norms) {
        trace->err = ms_fail_nomem(trace->fault);
        return;
    }
    for (uint32_t p = 0; p < n; p++)
        norms[p] = MS_NONE;
    for (uint32_t p = n; p-- > 0 && !trace->err;)
        if (trace->parameters[p].grad_storage != MS_NONE)
            norms[p] = norm_of_part(trace, &trace->parameters[p]);
    trace->layer = MS_NONE;
    ms_trace_begin(trace, "aten::_local_scalar_dense"); /* item() of each */
    for (uint32_t p = 0; p < n; p++)
        if (norms[p] != MS_NONE)
            ms_trace_read_storage(trace, norms[p], NORM_BYTES);
    ms_trace_end(trace, 0, false);
    for (uint32_t p = 0; p < n; p++)
        ms_trace_drop_storage(trace, norms[p]);
}

void ms_hoststep_clip(ms_trace *trace)
{
    host_step h = {.trace = trace};
    if (!clips_offloaded(trace->settings))
        return;
    open_step(&h);
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        bool disk = h.offload->gradients == MS_NVME_POOL;
        if (trace->parameters[p].grad_storage != MS_NONE)
            h.elements += trace->parameters[p].part;
        h.end = p + 1;
        if (!disk || !ms_hosttiles_is_full(h.offload, h.elements))
            continue;
        norm_of_tile(&h);
        h.first = p + 1;
    }
    norm_of_tile(&h);
}

/* Gradients come from the last parameter to the first. */
static void run_backwards(host_step *h)
{
    for (uint32_t p = h->trace->n_parameters; p-- > 0 && !h->trace->err;) {
        h->first = p;
        h->end = p + 1;
        h->elements =
            h->trace->parameters[p].far ? h->trace->parameters[p].part : 0;
        run_tile(h);
    }
}

void ms_hoststep_run(ms_trace *trace)
{
    host_step h = {.trace = trace};
    if (trace->settings->shape->offload.optimizer == MS_DEVICE_POOL)
        return;
    open_step(&h);
    if (h.offload->step == MS_HOST_ARRIVALS) {
        run_backwards(&h);
        return;
    }
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        if (trace->parameters[p].far)
            h.elements += trace->parameters[p].part;
        h.end = p + 1;
        if (!ms_hosttiles_is_full(h.offload, h.elements))
            continue;
        run_tile(&h);
        h.first = p + 1;
    }
    run_tile(&h);
}
