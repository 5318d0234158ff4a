/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/overheads.h"
#include "graphs/machines/communicators.h"
#include "graphs/machines/cudnn.h"
#include "sim/shape.h"

#include <ctype.h>
#include <stdio.h>

/* A page of device memory, and a connection's receive buffers by protocol
 * (overheads.h). */
#define PAGE_BYTES (UINT64_C(2) << 20)
#define LL_BYTES UINT64_C(524288)
#define LL128_BYTES UINT64_C(4915200)
#define SIMPLE_BYTES (UINT64_C(4) << 20)
#define MOST_WORKSPACE_BYTES (INT64_C(1) << 40)

/* ---- cuBLAS -------------------------------------------------------------- */

/* ":12" at *text, which moves behind it. */
static bool read_number(const char **text, int64_t *number)
{
    const char *c = *text;
    *number = 0;
    if (*c++ != ':' || !isdigit((unsigned char)*c))
        return false;
    for (; isdigit((unsigned char)*c); c++) {
        *number = *number * 10 + (*c - '0');
        if (*number > MOST_WORKSPACE_BYTES)
            return false;
    }
    *text = c;
    return true;
}

bool ms_overheads_read_workspace(const char *text, int64_t *bytes)
{
    int64_t kib, count;
    *bytes = 0;
    do {
        if (!read_number(&text, &kib) || !read_number(&text, &count))
            return false;
        if (count > 0 && kib > (MOST_WORKSPACE_BYTES - *bytes) / 1024 / count)
            return false;
        *bytes += kib * count * 1024;
    } while (*text != '\0');
    return true;
}

uint64_t ms_overheads_workspace(const ms_device *device,
                                const ms_training *training)
{
    return training->cublas_workspace >= 0
               ? (uint64_t)training->cublas_workspace
               : device->cublas_workspace_bytes;
}

/* ---- NCCL ---------------------------------------------------------------- */

static uint32_t channels_of(const ms_device *device,
                            const ms_training *training)
{
    uint32_t most = (uint32_t)training->nccl_channels;
    return most > 0 && most < device->nccl_channels ? most
                                                    : device->nccl_channels;
}

/* What a channel takes for its connections to its neighbours in the ring; two
 * ranks have one neighbour each, others two. */
static uint64_t channel_bytes(const ms_training *training, uint32_t ranks)
{
    uint64_t simple = training->nccl_buffsize > 0
                          ? (uint64_t)training->nccl_buffsize
                          : SIMPLE_BYTES;
    uint64_t receive = LL_BYTES + LL128_BYTES + simple;
    uint64_t pages = (receive + PAGE_BYTES - 1) / PAGE_BYTES + 1;
    return pages * PAGE_BYTES * (ranks == 2 ? 1 : 2);
}

static void add_communicator(const ms_training *training, uint32_t ranks,
                             ms_outside *outside)
{
    if (ranks <= 1)
        return;
    outside->communicators++;
    outside->nccl_bytes += outside->channels * channel_bytes(training, ranks);
}

/* The groups of the job; what the code of exchanges between nodes adds is not
 * known. */
static void add_nccl(const ms_device *device, const ms_training *training,
                     const ms_shape *shape, ms_outside *outside)
{
    ms_group groups[MS_N_GROUP_ROLES];
    ms_communicators_make(device, shape, groups);
    outside->channels = channels_of(device, training);
    for (uint32_t role = 0; role < MS_N_GROUP_ROLES; role++)
        if (role != MS_GROUP_NODE && role != MS_GROUP_ACROSS)
            add_communicator(training, groups[role].ranks, outside);
    outside->nccl_bytes += device->nccl_bytes;
}

/* ---- all of it ----------------------------------------------------------- */

/* 0: not known. */
static uint64_t context_bytes(const ms_device *device,
                              const ms_training *training,
                              const ms_graph *graph)
{
    switch (training->cuda) {
    case MS_CUDA_11_3:
        return device->context_11_3_bytes;
    case MS_CUDA_11_7:
        return device->context_11_7_bytes;
    case MS_CUDA_STATION:
        return device->context_station_bytes +
               (ms_cudnn_convolves(graph) ? device->context_station_cudnn_bytes
                                          : 0);
    default:
        return training->cuda_loading == 1 ? device->context_eager_bytes
                                           : device->context_bytes;
    }
}

static ms_err fail_unknown(const ms_device *device, const ms_training *training,
                           ms_fault *fault)
{
    bool eager = training->cuda == MS_CUDA_DEVICE;
    char where[96];
    snprintf(where, sizeof where, "training.%s on %.60s",
             eager ? "cuda_loading" : "cuda", device->name);
    if (eager)
        return ms_fail(fault, MS_EUSAGE, where,
                       "say it in a file, --device FILE.json: {\"like\": "
                       "\"h100\", \"context_eager_mib\": 942}",
                       "what eager loading takes has been measured on a100 "
                       "and v100 only");
    return ms_fail(fault, MS_EUSAGE, where,
                   "say it in a file, --device FILE.json: {\"like\": "
                   "\"h100\", \"context_mib\": 922}",
                   "what this build takes has been measured on a100 only");
}

ms_err ms_overheads_find(const ms_device *device, const ms_training *training,
                         const ms_shape *shape, const ms_graph *graph,
                         ms_outside *outside, ms_fault *fault)
{
    bool own = training->cuda == MS_CUDA_DEVICE;
    *outside = (ms_outside){0};
    if (training->device == 1)
        return MS_OK;
    if (!own && training->cuda_loading == 1)
        return ms_fail(fault, MS_EUSAGE, "training.cuda_loading",
                       "leave one of the two out",
                       "training.cuda says how a build loads kernels");
    outside->kernels_bytes = context_bytes(device, training, graph);
    if (outside->kernels_bytes == 0 && (!own || training->cuda_loading == 1))
        return fail_unknown(device, training, fault);
    if (shape->data_ranks > 1 || shape->tensor_ranks > 1)
        add_nccl(device, training, shape, outside);
    outside->deepep_bytes = graph ? graph->library_bytes : 0;
    outside->userbuffers_bytes = graph ? graph->userbuffer_bytes : 0;
    outside->exchanged_through = graph ? graph->exchanged_through : NULL;
    return MS_OK;
}
