/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DEVICE_H
#define MS_GRAPHS_DEVICE_H

/* The devices that a step runs on. */

#include "graphs/field.h"
#include "graphs/machines/kernelkinds.h"
#include "sim/replay/collective.h"

/* machines/times/producttime.h. */
#define MS_N_TILES 4u
typedef struct ms_product_rates {
    double start_ns; /* of a kernel alone, its launch in a graph included */
    double depth;    /* in elements of k */
    double memory_share, sharpness;
    double tile_share[MS_N_TILES]; /* of the peak; 0: it is not used */
    double fp8_depth, fp8_share;   /* in fp8; of tile_share */
    double grouped_share;          /* of a product's rate that groups reach */
} ms_product_rates;

/* machines/times/memorytime.h. */
typedef struct ms_memory_rates {
    double cache_bytes;  /* the last cache before the memory */
    double stream_share; /* of hbm_bytes_per_s that long streams reach */
    double lookup_share; /* that lookups of rows reach */
} ms_memory_rates;

/* Rates are what the device file says (graphs/devices/, made of the project's
 * hardware table; each row names its source).  Efficiency curves give the
 * share of the peak that an op of a given size reaches. */
typedef struct ms_device {
    const char *name, *alias, *source; /* alias "": none */
    uint64_t memory_bytes;             /* what the driver shows to PyTorch */
    uint64_t context_bytes;            /* CUDA context and kernels */
    uint64_t context_eager_bytes;      /* not loaded lazily; 0: not known */
    /* Of other builds of CUDA, overheads.h; 0: not known. */
    uint64_t context_11_3_bytes, context_11_7_bytes, context_station_bytes;
    uint64_t context_station_cudnn_bytes; /* on top, with convolutions */
    double cudnn_share;                   /* cudnn.h */
    uint64_t cudnn_from_bytes;
    uint64_t nccl_bytes; /* NCCL without buffers */
    uint32_t nccl_channels;
    uint64_t cublas_workspace_bytes; /* per thread that runs matmuls */
    uint32_t multiprocessors, threads_per_multiprocessor;
    uint64_t launch_ns, kernel_ns; /* host issue; shortest kernel */
    uint64_t queued_ns; /* shortest that the host queued; less: kernel_ns */
    double host_share;  /* hostcode.h: of what a DGX H100's host takes */
    double hbm_bytes_per_s;
    double fp32_flops, tf32_flops, half_flops; /* dense peak */
    double fp8_flops;                          /* 0: it has none */
    double h2d_bytes_per_s, d2h_bytes_per_s;
    double nvlink_bytes_per_s;  /* per GPU and direction; 0: PCIe only */
    double network_bytes_per_s; /* between nodes, per GPU and direction */
    double peer_bytes_per_s;    /* as ms_links', printed */
    uint32_t gpus_per_node;
    double nvls_share; /* as ms_links' */
    const ms_curve *curves;
    uint32_t n_curves;
    const ms_curve *memory_curves[MS_N_MEMORY_KINDS]; /* kerneltime.h; NULL:
                                                         the default's shape */
    bool has_memory_curves;
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: not known */
    const char *host_memory_source;         /* of both; or NULL */
    double thread_bytes_per_s; /* of the host's memory that one thread moves */
    /* Of a node, shared by its GPUs. */
    double dram_bytes_per_s, nvme_read_bytes_per_s, nvme_write_bytes_per_s;
    uint64_t nvme_latency_ns, nvme_block_bytes;
    uint32_t nvme_depth, nvme_threads; /* of each rank's requests */
    double pageable_share;   /* of h2d and d2h that pageable copies reach */
    uint64_t fault_ns;       /* of unified memory; 0: the link is coherent */
    uint32_t one_memory;     /* 1: CPU and GPU share it, nothing is copied */
    double matmul_share;     /* of the dense peak that large products reach */
    double fp8_matmul_share; /* those in fp8 */
    uint32_t compute_capability; /* CUDA's times 10; 0: not known */
    ms_product_rates product;
    ms_memory_rates memory;
    double attention_share[4]
                          [2]; /* of half_flops: by kernel, forward and back */
    double fp32_share;        /* of fp32_flops that large fp32 products reach */
    double convolution_share; /* of that, that convolutions in fp32 do */
    double step_share;     /* of a product's rates alone that a step's reach */
    double step_2_0_share; /* with older libraries; 0: as step_share */
} ms_device;
/* The built-in ones, by name: their names, and their files as they are in
 * graphs/devices/. */
typedef struct ms_device_text {
    const char *name, *alias, *json; /* alias "": none */
} ms_device_text;
extern const ms_device_text ms_devices[];
extern const uint32_t ms_devices_n;
/* A row of ms_devices, read once: it stays for the life of the process.  NULL:
 * out of memory.  Any thread may call. */
const ms_device *ms_devicerows_at(uint32_t row);
/* Set-up of one copy between memories; a modelling default. */
#define MS_COPY_NS 10000u
/* What each of so many ranks that work side by side has of its node's memory
 * and disk. */
double ms_device_share(const ms_device *device, uint32_t ranks);
/* Bytes that each of them reads and writes of that memory with so many threads;
 * 0 threads: enough for all of its part. */
double ms_device_host_rate(const ms_device *device, uint32_t ranks,
                           uint32_t threads);
/* Bytes that each of them reads from its node's disk, or writes to it: its part
 * of the rate, unless its queue holds less than that takes.  A request is on
 * its way for the latency and as long as its block takes alone, and
 * nvme_depth of each of nvme_threads are on their way at once (the bounds of
 * Denning and Buzen 1978; DeepSpeed's "aio": block_size, queue_depth,
 * intra_op_parallelism). */
double ms_device_disk_rate(const ms_device *device, uint32_t ranks, bool write);
/* By name or alias; MS_EUSAGE with did-you-mean. */
ms_err ms_device_find(const char *name, const ms_device **device,
                      ms_fault *fault);
/* The same, or a file: what has a slash or ends in ".json".  It has the keys of
 * graphs/devices/ (ms_devicefile_fields), "like": another device's name stands
 * for those that it leaves out; MS_EINPUT with line and column. */
ms_err ms_device_read(const char *name, ms_arena *arena,
                      const ms_device **device, ms_fault *fault);
extern const ms_field ms_devicefile_fields[];
extern const uint32_t ms_devicefile_n_fields;
/* Those of the node around it, keys of the same file. */
extern const ms_field ms_devicefile_node_fields[];
extern const uint32_t ms_devicefile_n_node_fields;

#endif
