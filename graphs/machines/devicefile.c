/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/devicefile.h"
#include "graphs/json/fields.h"
#include "graphs/json/json.h"
#include "graphs/machines/devicecurves.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME 64u
#define FILE_VERSION 1
#define GIB 1073741824.0
/* As NCCL's logs have them: eight GPUs on a switch, and over PCIe. */
#define NVLINK_CHANNELS 24u
#define PCIE_CHANNELS 2u
#define LARGE 8192.0 /* sides of a large product */
/* Of a tile of 128 x 128: to begin and to end, by the fit for the L40S
 * (gemm_fit.py); FLOPs of an element of k; an H100's, which hides more. */
#define TILE_S 2.5e-6
#define TILE_FLOPS (2 * 128 * 128.0)
#define MOST_DEPTH 150.0

/* ---- the keys of a file -------------------------------------------------- */

#define MOST 1000000000
#define RATE(key, text)                                                        \
    {                                                                          \
        .name = (key), .type = MS_FLOAT, .low = 0, .high = MOST,               \
        .help = (text)                                                         \
    }
#define DEFAULT_RATE(key, value, text)                                         \
    {                                                                          \
        .name = (key), .type = MS_FLOAT, .fallback.f = (value), .low = 0,      \
        .high = MOST, .help = (text)                                           \
    }
#define NEEDED(key, text)                                                      \
    {                                                                          \
        .name = (key), .type = MS_FLOAT, .required = true, .low = 0,           \
        .high = MOST, .help = (text)                                           \
    }
#define COUNT(key, value, most, text)                                          \
    {                                                                          \
        .name = (key), .type = MS_INT, .fallback.i = (value), .low = 1,        \
        .high = (most), .help = (text)                                         \
    }
#define SHARE(key, value, text)                                                \
    {                                                                          \
        .name = (key), .type = MS_FLOAT, .fallback.f = (value), .low = 0,      \
        .high = 1, .help = (text)                                              \
    }

const ms_field ms_devicefile_fields[] = {
    NEEDED("memory_gib", "memory that the driver shows to PyTorch, GiB"),
    NEEDED("hbm_gbps", "rate of that memory, GB/s"),
    NEEDED("fp32_tflops", "fp32 products, TFLOP/s"),
    NEEDED("half_tflops", "16-bit products, dense, TFLOP/s"),
    DEFAULT_RATE("tf32_tflops", 0, "tf32 products; default: as fp32_tflops"),
    DEFAULT_RATE("half_matmul_tflops", 0,
                 "that large 16-bit products reach; default: 0.65 of "
                 "half_tflops"),
    RATE("fp8_tflops", "8-bit floating point products, dense, TFLOP/s; 0: "
                       "none"),
    DEFAULT_RATE("fp8_matmul_tflops", 0,
                 "that large ones reach; default: the share that 16-bit ones "
                 "do"),
    {.name = "compute_capability",
     .type = MS_INT,
     .low = 0,
     .high = 999,
     .help = "CUDA's, times 10: 90 for Hopper, 100 for Blackwell; 0: not "
             "known"},
    DEFAULT_RATE("context_mib", 500, "CUDA context and kernels, MiB"),
    DEFAULT_RATE("context_eager_mib", 0,
                 "the same where CUDA_MODULE_LOADING=EAGER, MiB; 0: not known"),
    RATE("context_11_3_mib", "with torch 1.10 for CUDA 11.3; 0: not known"),
    RATE("context_11_7_mib", "with torch 1.13 for CUDA 11.7; 0: not known"),
    RATE("context_station_mib", "on GPUMemNet's DGX Station; 0: not known"),
    RATE("context_station_cudnn_mib", "there, cuDNN's kernels besides"),
    RATE("cudnn_share", "workspace of cuDNN's gradients of weights, over the "
                        "bytes of input and output; 0: none"),
    RATE("cudnn_from_mib", "where these are as much or more, MiB"),
    DEFAULT_RATE("nccl_mib", 1024, "what NCCL takes besides buffers, MiB"),
    {.name = "nccl_channels",
     .type = MS_INT,
     .low = 0,
     .high = 1024,
     .help = "channels of a communicator; 0: 24 with NVLink, else 2"},
    {.name = "cublas_workspace_bytes",
     .type = MS_INT,
     .fallback.i = 8519680,
     .low = 0,
     .high = MOST,
     .help = "workspace of the matrix library, bytes; what "
             "CUBLAS_WORKSPACE_CONFIG adds up to"},
    COUNT("multiprocessors", 108, 65536, "multiprocessors"),
    COUNT("threads_per_multiprocessor", 2048, 65536,
          "threads that one of them holds"),
    DEFAULT_RATE("launch_us", 5, "host time of a launch, us"),
    DEFAULT_RATE("host_share", 1,
                 "time of the framework's code on the host, of a DGX H100's"),
    DEFAULT_RATE("kernel_us", 1.5, "shortest kernel, us"),
    RATE("queued_us", "the same where the host queued it, and no graph; less: "
                      "as kernel_us"),
    {.name = "cache_mib",
     .type = MS_FLOAT,
     .fallback.f = 32,
     .low = 1,
     .high = MOST,
     .help = "the last cache before that memory (L2), MiB"},
    SHARE("stream_share", 0.85, "of hbm_gbps that pointwise ops reach"),
    SHARE("lookup_share", 0.2, "that lookups of rows of a table reach"),
    DEFAULT_RATE("product_start_us", 2.5, "shortest matrix product, us"),
    DEFAULT_RATE("product_depth", 0,
                 "what a tile of a product takes to begin and to end, as so "
                 "many elements of k; default: 2.5 us, at most 150"),
    SHARE("product_memory_share", 0.8, "of hbm_gbps that products reach"),
    DEFAULT_RATE("product_sharpness", 3.5,
                 "how far products and what they move go side by side: 1 not "
                 "at all"),
    SHARE("product_256x128", 0, "of the peak by tiles of 256 x 128; 0: unused"),
    SHARE("product_128x128", 0, "default: as half_matmul_tflops"),
    SHARE("product_128x64", 0, "default: 0.95 of product_128x128"),
    SHARE("product_64x64", 0, "default: 0.9 of product_128x128"),
    DEFAULT_RATE("fp8_depth", 0, "as product_depth, in fp8; default: as long"),
    SHARE("fp8_share", 0,
          "of such shares that tiles in fp8 reach; default: by "
          "fp8_matmul_tflops"),
    SHARE("grouped_share", 0.7,
          "of a product's rate that grouped products (experts) reach"),
    SHARE("flash1_forward", 0.38, "of the peak by FlashAttention 1"),
    SHARE("flash1_backward", 0.24, "the same in backward"),
    SHARE("flash2_forward", 0.63, "by FlashAttention 2"),
    SHARE("flash2_backward", 0.63, "the same in backward"),
    SHARE("flash3_forward", 0.63, "by FlashAttention 3"),
    SHARE("flash3_backward", 0.63, "the same in backward"),
    SHARE("efficient_forward", 0.38, "by xFormers' attention"),
    SHARE("efficient_backward", 0.24, "the same in backward"),
    SHARE("fp32_share", 0.9, "of fp32_tflops that large fp32 products reach"),
    DEFAULT_RATE("convolution_share", 0.97,
                 "of what these reach, what convolutions in fp32 do"),
    SHARE("step_share", 1,
          "of the rates of a product alone that those of a step reach (power, "
          "cold caches)"),
    SHARE("step_2_0_share", 0,
          "the same with the libraries of PyTorch 2.0 to 2.3, and before; 0: "
          "as step_share"),
    DEFAULT_RATE("h2d_gbps", 24, "pinned copies to the device, GB/s"),
    DEFAULT_RATE("d2h_gbps", 24, "pinned copies to the host, GB/s"),
    SHARE("pageable_share", 0.4, "of these rates that pageable copies reach"),
    DEFAULT_RATE("fault_us", 45,
                 "a far fault of unified memory, us; 0: the link is coherent"),
    {.name = "one_memory",
     .type = MS_INT,
     .low = 0,
     .high = 1,
     .help = "1: CPU and GPU share one memory, to which nothing is copied"},
};
#define N_FIELDS (sizeof ms_devicefile_fields / sizeof *ms_devicefile_fields)
const uint32_t ms_devicefile_n_fields = N_FIELDS;

const ms_field ms_devicefile_node_fields[] = {
    COUNT("gpus_per_node", 8, 65536, "GPUs of a node"),
    RATE("nvlink_gbps", "links within a node, per GPU and direction, GB/s; "
                        "0: PCIe"),
    RATE("peer_gbps", "link of each pair where no switch joins them, GB/s"),
    SHARE("nvls_share", 0, "of the links where the switch reduces (NVLS)"),
    DEFAULT_RATE("network_gbps", 12.5,
                 "between nodes, per GPU and direction, GB/s"),
    DEFAULT_RATE("dram_gbps", 100, "host memory of a node, GB/s"),
    DEFAULT_RATE("thread_gbps", 19.5,
                 "that one thread reads and writes of it, GB/s"),
    RATE("host_memory_gib", "host memory of a node, GiB; 0: not known"),
    DEFAULT_RATE("nvme_read_gbps", 10, "NVMe of a node, GB/s"),
    DEFAULT_RATE("nvme_write_gbps", 5, "NVMe of a node, GB/s"),
    DEFAULT_RATE("nvme_latency_us", 100, "of a request alone, us"),
    COUNT("nvme_block_kib", 1024, 1048576,
          "bytes of a request, KiB (DeepSpeed's aio.block_size)"),
    COUNT("nvme_queue_depth", 8, 65536, "requests of a thread at once"),
    COUNT("nvme_threads", 1, 4096,
          "threads of a rank that ask (aio.intra_op_parallelism)"),
    RATE("nvme_gib", "NVMe of a node, GiB; 0: not known"),
};
#define N_NODE_FIELDS                                                          \
    (sizeof ms_devicefile_node_fields / sizeof *ms_devicefile_node_fields)
const uint32_t ms_devicefile_n_node_fields = N_NODE_FIELDS;

/* Where a row's value goes and its unit there: bytes, ns, per second. */
typedef enum target_type { REAL, LONG, SHORT } target_type;
typedef struct target {
    size_t offset;
    double unit;
    target_type type;
} target;
static const target targets[] = {
    {offsetof(ms_device, memory_bytes), GIB, LONG},
    {offsetof(ms_device, hbm_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, fp32_flops), 1e12, REAL},
    {offsetof(ms_device, half_flops), 1e12, REAL},
    {offsetof(ms_device, tf32_flops), 1e12, REAL},
    {offsetof(ms_device, matmul_share), 1, REAL}, /* TFLOP/s until derive */
    {offsetof(ms_device, fp8_flops), 1e12, REAL},
    {offsetof(ms_device, fp8_matmul_share), 1, REAL}, /* likewise */
    {offsetof(ms_device, compute_capability), 1, SHORT},
    {offsetof(ms_device, context_bytes), 1048576.0, LONG},
    {offsetof(ms_device, context_eager_bytes), 1048576.0, LONG},
    {offsetof(ms_device, context_11_3_bytes), 1048576.0, LONG},
    {offsetof(ms_device, context_11_7_bytes), 1048576.0, LONG},
    {offsetof(ms_device, context_station_bytes), 1048576.0, LONG},
    {offsetof(ms_device, context_station_cudnn_bytes), 1048576.0, LONG},
    {offsetof(ms_device, cudnn_share), 1, REAL},
    {offsetof(ms_device, cudnn_from_bytes), 1048576.0, LONG},
    {offsetof(ms_device, nccl_bytes), 1048576.0, LONG},
    {offsetof(ms_device, nccl_channels), 1, SHORT},
    {offsetof(ms_device, cublas_workspace_bytes), 1, LONG},
    {offsetof(ms_device, multiprocessors), 1, SHORT},
    {offsetof(ms_device, threads_per_multiprocessor), 1, SHORT},
    {offsetof(ms_device, launch_ns), 1e3, LONG},
    {offsetof(ms_device, host_share), 1, REAL},
    {offsetof(ms_device, kernel_ns), 1e3, LONG},
    {offsetof(ms_device, queued_ns), 1e3, LONG},
    {offsetof(ms_device, memory.cache_bytes), 1048576.0, REAL},
    {offsetof(ms_device, memory.stream_share), 1, REAL},
    {offsetof(ms_device, memory.lookup_share), 1, REAL},
    {offsetof(ms_device, product.start_ns), 1e3, REAL},
    {offsetof(ms_device, product.depth), 1, REAL},
    {offsetof(ms_device, product.memory_share), 1, REAL},
    {offsetof(ms_device, product.sharpness), 1, REAL},
    {offsetof(ms_device, product.tile_share[0]), 1, REAL},
    {offsetof(ms_device, product.tile_share[1]), 1, REAL},
    {offsetof(ms_device, product.tile_share[2]), 1, REAL},
    {offsetof(ms_device, product.tile_share[3]), 1, REAL},
    {offsetof(ms_device, product.fp8_depth), 1, REAL},
    {offsetof(ms_device, product.fp8_share), 1, REAL},
    {offsetof(ms_device, product.grouped_share), 1, REAL},
    {offsetof(ms_device, attention_share[0][0]), 1, REAL},
    {offsetof(ms_device, attention_share[0][1]), 1, REAL},
    {offsetof(ms_device, attention_share[1][0]), 1, REAL},
    {offsetof(ms_device, attention_share[1][1]), 1, REAL},
    {offsetof(ms_device, attention_share[2][0]), 1, REAL},
    {offsetof(ms_device, attention_share[2][1]), 1, REAL},
    {offsetof(ms_device, attention_share[3][0]), 1, REAL},
    {offsetof(ms_device, attention_share[3][1]), 1, REAL},
    {offsetof(ms_device, fp32_share), 1, REAL},
    {offsetof(ms_device, convolution_share), 1, REAL},
    {offsetof(ms_device, step_share), 1, REAL},
    {offsetof(ms_device, step_2_0_share), 1, REAL},
    {offsetof(ms_device, h2d_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, d2h_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, pageable_share), 1, REAL},
    {offsetof(ms_device, fault_ns), 1e3, LONG},
    {offsetof(ms_device, one_memory), 1, SHORT},
};
_Static_assert(sizeof targets / sizeof *targets == N_FIELDS,
               "a target for each row");
static const target node_targets[] = {
    {offsetof(ms_device, gpus_per_node), 1, SHORT},
    {offsetof(ms_device, nvlink_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, peer_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, nvls_share), 1, REAL},
    {offsetof(ms_device, network_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, dram_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, thread_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, host_memory_bytes), GIB, LONG},
    {offsetof(ms_device, nvme_read_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, nvme_write_bytes_per_s), 1e9, REAL},
    {offsetof(ms_device, nvme_latency_ns), 1e3, LONG},
    {offsetof(ms_device, nvme_block_bytes), 1024, LONG},
    {offsetof(ms_device, nvme_depth), 1, SHORT},
    {offsetof(ms_device, nvme_threads), 1, SHORT},
    {offsetof(ms_device, nvme_bytes), GIB, LONG},
};
_Static_assert(sizeof node_targets / sizeof *node_targets == N_NODE_FIELDS,
               "a target for each row");

/* What is of one GPU, and what is of the node around it: keys of one file. */
static const struct table {
    const ms_field *fields;
    const target *targets;
    uint32_t n;
} tables[] = {
    {ms_devicefile_fields, targets, N_FIELDS},
    {ms_devicefile_node_fields, node_targets, N_NODE_FIELDS},
};
#define N_TABLES (sizeof tables / sizeof *tables)

/* Beside them: what is no number, and where numbers are from. */
static const char *const extra[] = {
    "memsim_device",
    "name",
    "alias",
    "like",
    "allreduce_curves",
    "collective_curves",
    "memory_curves",
    "source",
    "memory_source",
    "context_source",
    "context_eager_source",
    "contexts_source",
    "cudnn_source",
    "nccl_source",
    "overhead_source",
    "host_share_source",
    "stream_source",
    "product_source",
    "fp8_product_source",
    "attention_source",
    "fp32_source",
    "convolution_source",
    "step_source",
    "multiprocessor_source",
    "half_matmul_source",
    "fp8_source",
    "host_source",
    "nvlink_source",
    "network_source",
    "dram_source",
    "thread_source",
    "pageable_source",
    "unified_source",
    "nvme_source",
    "host_memory_source",
    "peer_source",
    "nvls_source",
    "curve_source",
    "collective_curve_source",
    "memory_curve_source",
};
#define N_EXTRA (sizeof extra / sizeof *extra)
#define N_KEYS (N_FIELDS + N_NODE_FIELDS + N_EXTRA)
_Static_assert(N_KEYS <= MS_FIELDS_MAX, "raise MS_FIELDS_MAX");
_Static_assert(N_FIELDS <= 64 && N_NODE_FIELDS <= 64, "given is 64 bits");

static void put(ms_device *device, const struct table *table, uint32_t row,
                ms_value value)
{
    const target *to = &table->targets[row];
    char *at = (char *)device + to->offset;
    double given =
        table->fields[row].type == MS_INT ? (double)value.i : value.f;
    double number = given * to->unit;
    uint64_t whole = (uint64_t)number;
    uint32_t few = (uint32_t)whole;
    if (to->type == REAL)
        memcpy(at, &number, sizeof number);
    else if (to->type == LONG)
        memcpy(at, &whole, sizeof whole);
    else
        memcpy(at, &few, sizeof few);
}

/* ---- a file -------------------------------------------------------------- */

ms_err ms_devicefile_text(const ms_devicefile *r, const char *key,
                          const char **text)
{
    uint32_t node = ms_json_find(&r->json, 0, key);
    if (node == MS_NONE)
        return MS_OK;
    if (r->json.nodes[node].kind != MS_JSON_STRING)
        return ms_json_fail(&r->json, node, r->fault, NULL,
                            "\"%s\" must be a string, not %s", key,
                            ms_json_kind_name(&r->json, node));
    *text = r->json.nodes[node].value.s;
    return MS_OK;
}

/* Reports print the name. */
static bool printable(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isprint((unsigned char)name[i]))
            return false;
    return length > 0 && length <= MAX_NAME;
}

/* "name", or the file's without folder and ending. */
static ms_err read_name(const ms_devicefile *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = NULL;
    MS_TRY(ms_devicefile_text(r, "name", &name));
    if (name != NULL && !printable(name))
        return ms_json_fail(
            &r->json, ms_json_find(&r->json, 0, "name"), r->fault, NULL,
            "\"name\" must have 1 to %u printable characters", MAX_NAME);
    r->device->name = name;
    if (name != NULL)
        return MS_OK;
    path = slash != NULL ? slash + 1 : path;
    size_t length = strlen(path);
    if (length > 5 && strcmp(path + length - 5, ".json") == 0)
        length -= 5;
    name = ms_arena_text(r->arena, path, length);
    if (name == NULL)
        return ms_fail_nomem(r->fault);
    r->device->name = printable(name) ? name : "device";
    return MS_OK;
}

/* What a built-in device is also called; null: nothing. */
static ms_err read_alias(const ms_devicefile *r)
{
    uint32_t node = ms_json_find(&r->json, 0, "alias");
    r->device->alias = "";
    if (node == MS_NONE || r->json.nodes[node].kind == MS_JSON_NULL)
        return MS_OK;
    return ms_devicefile_text(r, "alias", &r->device->alias);
}

static ms_err read_version(const ms_devicefile *r)
{
    uint32_t node = ms_json_find(&r->json, 0, "memsim_device");
    if (node == MS_NONE || (r->json.nodes[node].kind == MS_JSON_INT &&
                            r->json.nodes[node].value.i == FILE_VERSION))
        return MS_OK;
    return ms_json_fail(&r->json, node, r->fault, NULL,
                        "\"memsim_device\" must be %d", FILE_VERSION);
}

/* The peak in TFLOP/s: as it is written, where it is. */
static double peak_of(const char *key, const ms_value *values, uint64_t given,
                      double flops)
{
    uint32_t row = ms_fields_find(ms_devicefile_fields, N_FIELDS, key);
    return (given >> row & 1) != 0 ? values[row].f : flops / 1e12;
}

/* What a tile takes to begin and to end is a latency, as long on an L40S as on
 * an A100.  Large products reach what is printed of them, but for that. */
static void derive_product(ms_device *device)
{
    double *share = device->product.tile_share;
    double rate = device->matmul_share * device->half_flops /
                  (double)device->multiprocessors;
    if (device->product.depth <= 0)
        device->product.depth =
            fmax(1, fmin(MOST_DEPTH, TILE_S * rate / TILE_FLOPS));
    double large = device->matmul_share * (1 + device->product.depth / LARGE);
    if (device->product.fp8_depth <= 0)
        device->product.fp8_depth =
            device->product.depth *
            fmax(1, device->fp8_flops / device->half_flops);
    if (device->product.fp8_share <= 0)
        device->product.fp8_share =
            fmin(1, device->fp8_matmul_share / device->matmul_share);
    if (share[1] <= 0)
        share[1] = large < 1 ? large : 1;
    if (share[2] <= 0)
        share[2] = 0.95 * share[1];
    if (share[3] <= 0)
        share[3] = 0.9 * share[1];
}

/* Numbers that are not given follow from others. */
static void derive(ms_device *device, const ms_value *values, uint64_t given)
{
    uint32_t matmul =
        ms_fields_find(ms_devicefile_fields, N_FIELDS, "half_matmul_tflops");
    uint32_t fp8 =
        ms_fields_find(ms_devicefile_fields, N_FIELDS, "fp8_matmul_tflops");
    if (device->nccl_channels == 0)
        device->nccl_channels =
            device->nvlink_bytes_per_s > 0 ? NVLINK_CHANNELS : PCIE_CHANNELS;
    if (device->tf32_flops <= 0)
        device->tf32_flops = device->fp32_flops;
    if ((given >> matmul & 1) != 0)
        device->matmul_share /=
            peak_of("half_tflops", values, given, device->half_flops);
    else if (device->matmul_share <= 0)
        device->matmul_share = 0.65;
    if ((given >> fp8 & 1) != 0 && device->fp8_flops > 0)
        device->fp8_matmul_share /=
            peak_of("fp8_tflops", values, given, device->fp8_flops);
    else if (device->fp8_matmul_share <= 0)
        device->fp8_matmul_share = device->matmul_share;
    derive_product(device);
}

/* Rates and shares are divisors: none may be 0, except where 0 says "none", nor
 * so small that times leave their range. */
static ms_err check_number(const ms_devicefile *r, const struct table *table,
                           uint32_t row, double number)
{
    const ms_field *field = &table->fields[row];
    double unit = table->targets[row].unit;
    bool divides = unit >= 1e9 || unit <= 1;
    bool may_lack = !field->required && field->fallback.f <= 0;
    if (field->type != MS_FLOAT || !divides ||
        number >= MS_DEVICECURVES_LEAST || (may_lack && number == 0))
        return MS_OK;
    return ms_json_fail(&r->json, ms_json_find(&r->json, 0, field->name),
                        r->fault, field->help,
                        "\"%s\" must be at least %g, not %g", field->name,
                        MS_DEVICECURVES_LEAST, number);
}

/* Products do not run faster than the peak. */
static ms_err check_share(const ms_devicefile *r, double share,
                          const char *peak, const char *reached)
{
    if (share <= 1)
        return MS_OK;
    return ms_json_fail(&r->json, ms_json_find(&r->json, 0, reached), r->fault,
                        "see the data sheet, without sparsity",
                        "\"%s\" is above \"%s\"", reached, peak);
}

/* The keys that are not a table's own: of the other tables, and the rest. */
static uint32_t list_others(const struct table *table, const char **names)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_EXTRA; i++)
        names[n++] = extra[i];
    for (uint32_t t = 0; t < N_TABLES; t++)
        for (uint32_t i = 0; &tables[t] != table && i < tables[t].n; i++)
            names[n++] = tables[t].fields[i].name;
    return n;
}

static ms_err read_table(const ms_devicefile *r, const struct table *table,
                         bool like, ms_fields_values *out)
{
    const char *names[N_KEYS];
    const ms_fields keys = {.rows = table->fields,
                            .n = table->n,
                            .extra = names,
                            .n_extra = list_others(table, names),
                            .owner = "the device"};
    MS_TRY(ms_fields_read_object(&r->json, 0, &keys, r->arena, out, r->fault));
    if (!like)
        MS_TRY(ms_fields_require(&r->json, 0, &keys, out->given, r->fault));
    for (uint32_t i = 0; i < table->n; i++)
        if ((out->given >> i & 1) != 0)
            MS_TRY(check_number(r, table, i, out->values[i].f));
    for (uint32_t i = 0; i < table->n; i++)
        if ((out->given >> i & 1) != 0)
            put(r->device, table, i, out->values[i]);
        else if (!like)
            put(r->device, table, i, table->fields[i].fallback);
    return MS_OK;
}

static ms_err read_numbers(const ms_devicefile *r, bool like)
{
    ms_value values[N_FIELDS], node[N_NODE_FIELDS];
    ms_fields_values out = {.values = values}, of_node = {.values = node};
    MS_TRY(read_table(r, &tables[0], like, &out));
    MS_TRY(read_table(r, &tables[1], like, &of_node));
    derive(r->device, values, out.given);
    MS_TRY(check_share(r, r->device->matmul_share, "half_tflops",
                       "half_matmul_tflops"));
    return check_share(r, r->device->fp8_matmul_share, "fp8_tflops",
                       "fp8_matmul_tflops");
}

/* ---- the whole ----------------------------------------------------------- */

ms_err ms_devicefile_open(ms_devicefile *r, const char *path, const char *bytes,
                          size_t length)
{
    MS_TRY(ms_json_read(path, bytes, length, r->arena, &r->json, r->fault));
    if (r->json.nodes[0].kind != MS_JSON_OBJECT)
        return ms_json_fail(&r->json, 0, r->fault, NULL,
                            "a device must be an object, not %s",
                            ms_json_kind_name(&r->json, 0));
    return read_version(r);
}

ms_err ms_devicefile_read(const ms_devicefile *r, const char *path, bool like)
{
    ms_device *device = r->device;
    MS_TRY(read_numbers(r, like));
    MS_TRY(ms_devicecurves_read(r));
    MS_TRY(read_alias(r));
    MS_TRY(ms_devicefile_text(r, "host_memory_source",
                              &device->host_memory_source));
    device->source = path;
    MS_TRY(ms_devicefile_text(r, "source", &device->source));
    return read_name(r, path);
}
