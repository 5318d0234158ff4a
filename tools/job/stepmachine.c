/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/device.h"
#include "graphs/machines/communicators.h"
#include "graphs/machines/hostcode.h"
#include "graphs/machines/overheads.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"

/* What a collective's kernels hold of the multiprocessors, in thousandths:
 * Calculon's systems (calculon-ai/calculon systems/a100_80g.json,
 * h100_80g.json: "processor_usage") have 0.15 for NVLink and 0.02 for
 * InfiniBand, the network on which the ranks of the collective meet.  NCCL
 * drives PCIe by few channels as it does a network; no source has a figure of
 * its own. */
#define HELD_BY_NVLINK 150u
#define HELD_BY_NETWORK 20u
#define WHOLE 1000u /* of a resource */

static ms_machine machine_of(const ms_job *job, const ms_result *result,
                             const ms_outside *outside)
{
    const ms_training *training = &result->training;
    const ms_device *device = job->device;
    bool cpu = training->device == 1;
    return (ms_machine){
        .launch_ns = cpu ? 0 : device->launch_ns,
        .capacity_bytes =
            job->memory_bytes > 0 ? job->memory_bytes : device->memory_bytes,
        .context_bytes = outside->kernels_bytes + outside->nccl_bytes +
                         outside->deepep_bytes + outside->userbuffers_bytes,
        .outside = *outside,
        .peak_flops = cpu ? 0 : ms_precisions_peak_flops(training, device),
        .split_ranks = result->shape.tensor_ranks,
        .data_ranks = result->shape.data_ranks,
        .book_device = job->book_device,
        .wall = job->wall,
        .unmerged = job->unmerged,
        .node_ranks = device->gpus_per_node,
        .host_memory_bytes = job->host_memory_bytes > 0
                                 ? job->host_memory_bytes
                                 : device->host_memory_bytes,
        .nvme_bytes =
            job->nvme_bytes > 0 ? job->nvme_bytes : device->nvme_bytes,
        .host = {.saves = result->shape.saves},
    };
}

/* The rates that one rank has while all of them work. */
ms_expand_opts ms_stepmachine_rates(const ms_device *device,
                                    const ms_shape *shape)
{
    uint32_t ranks = ms_shape_ranks(shape);
    ms_expand_opts opts = {
        .h2d_bytes_per_s = device->h2d_bytes_per_s,
        .d2h_bytes_per_s = device->d2h_bytes_per_s,
        .copy_ns = MS_COPY_NS,
        .pageable_share = device->pageable_share,
        .host_bytes_per_s =
            ms_device_host_rate(device, ranks, shape->offload.threads),
        .nvme_read_bytes_per_s = ms_device_disk_rate(device, ranks, false),
        .nvme_write_bytes_per_s = ms_device_disk_rate(device, ranks, true),
        .hbm_bytes_per_s = device->hbm_bytes_per_s,
        .flops_per_s = device->half_flops};
    ms_communicators_make(device, shape, opts.groups);
    return opts;
}

/* The part of the host memory's bandwidth that a copy at this rate takes. */
static uint16_t part_of(double rate, double whole)
{
    if (whole <= 0)
        return 0; /* the bandwidth is not known */
    return (uint16_t)(rate < whole ? rate / whole * WHOLE : WHOLE);
}

static void set_memory_demands(const ms_expand_opts *opts, double whole,
                               ms_machine *machine)
{
    const double rates[MS_N_STREAMS] = {
        [MS_STREAM_H2D] = opts->h2d_bytes_per_s,
        [MS_STREAM_D2H] = opts->d2h_bytes_per_s,
        [MS_STREAM_HOST] = opts->host_bytes_per_s,
        [MS_STREAM_NVME_READ] = opts->nvme_read_bytes_per_s,
        [MS_STREAM_NVME_WRITE] = opts->nvme_write_bytes_per_s};
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        machine->demand[s][MS_HOST_DRAM].shared = part_of(rates[s], whole);
}

/* Which streams slow each other. H2D and D2H have one direction of the link
 * each; without NVLink the collectives of a node use both directions. Copies
 * and the host's work share the rank's part of the host memory's bandwidth
 * (whole).
 */
static void set_demands(const ms_expand_opts *opts, double whole,
                        ms_machine *machine)
{
    const ms_group *data = &opts->groups[MS_GROUP_DATA];
    ms_demand *comm = machine->demand[MS_STREAM_COMM];
    bool in_node = data->ranks <= data->node_ranks;
    bool links = data->links.nvlink || data->links.peer_bytes_per_s > 0;
    machine->demand[MS_STREAM_COMPUTE][MS_MULTIPROCESSORS].shared = WHOLE;
    machine->demand[MS_STREAM_H2D][MS_LINK_IN].shared = WHOLE;
    machine->demand[MS_STREAM_D2H][MS_LINK_OUT].shared = WHOLE;
    comm[MS_MULTIPROCESSORS].held =
        in_node && links ? HELD_BY_NVLINK : HELD_BY_NETWORK;
    machine->demand[MS_STREAM_OUTER][MS_MULTIPROCESSORS].held = HELD_BY_NETWORK;
    for (uint32_t s = MS_STREAM_NEXT; s <= MS_STREAM_BEFORE; s++) {
        machine->demand[s][MS_MULTIPROCESSORS].held = HELD_BY_NETWORK;
        machine->demand[s][MS_MESSAGES_OUT].shared = WHOLE;
    }
    if (in_node && !links)
        comm[MS_LINK_IN].shared = comm[MS_LINK_OUT].shared = WHOLE;
    set_memory_demands(opts, whole, machine);
}

/* Paging is booked by device time. */
static void set_paging(const ms_expand_opts *opts, ms_result *result)
{
    ms_machine *machine = result->machine;
    machine->paging = result->shape.paging;
    machine->h2d_bytes_per_s = opts->h2d_bytes_per_s;
    machine->d2h_bytes_per_s = opts->d2h_bytes_per_s;
    machine->book_device |= machine->paging.page_bytes > 0;
}

ms_err ms_stepmachine_find(const ms_job *job, ms_expand_opts *opts,
                           ms_result *result, ms_fault *fault)
{
    bool paged = result->shape.paging.page_bytes > 0;
    ms_outside outside;
    *opts = ms_stepmachine_rates(job->device, &result->shape);
    opts->uses = job->book_device || job->uses || paged;
    MS_TRY(ms_overheads_find(job->device, &result->training, &result->shape,
                             result->graph, &outside, fault));
    *result->machine = machine_of(job, result, &outside);
    result->machine->stage_stride = opts->groups[MS_GROUP_PIPELINE].stride;
    MS_TRY(ms_hostcode_check(&result->training, &result->shape, fault));
    result->machine->recorded = ms_hostcode_recorded(&result->training);
    if (result->training.device != 1) /* a CPU's ops are its own */
        ms_hostcode_fill(job->device, &result->training, &result->shape,
                         result->graph, result->machine->framework_ns);
    if (paged && job->wall)
        return ms_fail(fault, MS_EUSAGE, "--wall", "leave it out",
                       "with uvm pages go where memory is full, no op waits "
                       "for others");
    set_paging(opts, result);
    if (result->training.device != 1) /* a CPU has one stream */
        set_demands(
            opts,
            ms_device_host_rate(job->device, ms_shape_ranks(&result->shape), 0),
            result->machine);
    return MS_OK;
}
