/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_MEASURED_H
#define MS_TOOLS_MEASURED_H

/* What someone measured of a device, a row a shape, whatever file it came
 * from.
 *
 * A worked example.  The CSV
 *
 *     op,m,n,k,dtype,us
 *     gemm,4096,4096,4096,bf16,182.0
 *     gemm,4096,4096,4096,bf16,190.0
 *     gemm,8192,4096,4096,bf16,371.5
 *
 * gives two rows of the kind MS_RATE_PRODUCT: 4096^3 twice, 186.0 us at the
 * median, and 8192 x 4096 x 4096 once.  In the order of their FLOPs every other
 * row of a kind (and direction) is kept back: rates are fitted on the first,
 * and reported on both.
 *
 * Invariants, once ms_measured_settle has run: no two rows have one shape; rows
 * are in the order of their kinds, within one of their work; median_ns > 0. */

#include "graphs/device.h"
#include "graphs/machines/times/producttime.h"

/* What a device's file has rates of. */
typedef enum ms_rate_kind {
    MS_RATE_PRODUCT,
    MS_RATE_FP32_PRODUCT,
    MS_RATE_FLASH_1, /* in the order of ms_attention_code */
    MS_RATE_FLASH_2,
    MS_RATE_FLASH_3,
    MS_RATE_EFFICIENT,
    MS_RATE_POINTWISE, /* in the order of ms_memory_kind */
    MS_RATE_NORM,
    MS_RATE_SOFTMAX,
    MS_RATE_REDUCTION,
    MS_RATE_LOOKUP,
    MS_RATE_OPTIMIZER,
    MS_RATE_COPY,
    MS_RATE_TO_DEVICE, /* from pinned memory */
    MS_RATE_TO_HOST,
    MS_RATE_PAGEABLE, /* both ways */
    MS_RATE_ALL_REDUCE,
    MS_RATE_LAUNCH,
    MS_N_RATE_KINDS
} ms_rate_kind;
/* "products", "attention (flash 2)": for people; and "product", "flash2": the
 * words of a CSV and of --json. */
extern const char *const ms_measured_names[MS_N_RATE_KINDS];
extern const char *const ms_measured_words[MS_N_RATE_KINDS];

typedef struct ms_measured {
    const char *op;         /* as it was recorded */
    uint8_t kind;           /* ms_rate_kind */
    bool backward;          /* of attention */
    bool to_host;           /* of pageable copies */
    bool tensor;            /* of a product: by tensor cores */
    bool tf32;              /* of such a one */
    ms_product_shape shape; /* of a product; of attention n: keys that a query
                               sees on average, k: channels of a head */
    double flops, bytes;    /* bytes: read and written, or sent */
    uint32_t ranks;         /* of an all-reduce */
    double ns;              /* one sample; once settled the median */
    uint64_t count;         /* samples */
    double total_ns;        /* of all */
    bool is_kept_back;
} ms_measured;

/* What was recorded, but gives no row. */
typedef struct ms_untold {
    const char *name; /* of the op, or of the kernel */
    const char *why;
    uint64_t count;
    double ns; /* of all of them */
} ms_untold;

typedef struct ms_measurements {
    const char *source; /* the file's name */
    ms_arena *arena;
    ms_measured *rows;
    uint32_t n, capacity;
    ms_untold *untold; /* the longest first */
    uint32_t n_untold, untold_capacity;
    bool in_step; /* of a training step; else of kernels alone */
} ms_measurements;

/* Adds a sample; rows of one shape are joined by ms_measured_settle. */
ms_err ms_measured_add(ms_measurements *all, const ms_measured *row,
                       ms_fault *fault);
/* Counts something that gives no row; the names stay the caller's. */
ms_err ms_measured_miss(ms_measurements *all, const char *name, const char *why,
                        double ns, ms_fault *fault);
/* A product by its shape and the width of its elements, in bytes. */
ms_measured ms_measured_product(const char *op, ms_product_shape shape,
                                double width);
/* Attention of so many queries and keys in so many heads of all samples; half
 * of the keys, where a query sees none behind it. */
ms_measured ms_measured_attention(const char *op, ms_attention_code code,
                                  bool backward, double heads, double queries,
                                  double keys, double channels, bool causal);
ms_err ms_measured_settle(ms_measurements *all, ms_fault *fault);
/* What the device takes for it, as memsim's steps have it. */
double ms_measured_predict(const ms_device *device, const ms_measured *row,
                           bool in_step);

/* MS_EINPUT where most products and attention ran faster than the device can:
 * it was another one. */
ms_err ms_measured_check(const ms_measurements *all, const ms_device *device,
                         ms_fault *fault);

/* How far off a device is: of the rows of a kind that are kept back, or of the
 * others. */
typedef struct ms_measured_error {
    uint32_t n;
    double median, most; /* of |predicted / measured - 1|; most: 95 of 100 */
    double ratio;        /* median of predicted / measured; 0: no rows */
} ms_measured_error;
ms_err ms_measured_judge(const ms_measurements *all, const ms_device *device,
                         ms_rate_kind kind, bool kept_back,
                         ms_measured_error *error, ms_fault *fault);

#endif
