/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_QUANTIZE_H
#define MS_GRAPHS_QUANTIZE_H

/* Private to graphs/: tensors in 8-bit floating point with their scales, as
 * products read them (fp8.h): by rows or by columns.
 *
 *     ms_quantized q = ms_quantize_tensor(trace, x, true, MS_NONE, NULL);
 *     ms_quantize_read(trace, &q, MS_ROWS);           the open op reads them
 *     ms_quantize_save(trace, node, &q, MS_COLUMNS);  two tensors
 *     ms_quantize_drop(trace, &q, MS_ROWS);
 *
 * Each side is a tensor of 1 byte an element and one of scales, referenced once
 * (where one serves for both, twice), or a storage that lasts. */

#include "graphs/trace/stepsettings.h"
#include "graphs/trace/tensors.h"

enum { MS_ROWS, MS_COLUMNS };

/* Tensors, storages, or MS_NONE. */
typedef struct ms_quantized {
    uint32_t data[2], scale[2], lasting[2];
} ms_quantized;
extern const ms_quantized ms_quantize_nothing;

/* In the order of the words of fp8.recipe. */
enum {
    MS_RECIPE_AUTO,
    MS_RECIPE_DELAYED,
    MS_RECIPE_CURRENT,
    MS_RECIPE_BLOCK,
    MS_RECIPE_MX
};

/* How long quantized copies of weights last (fp8.weights). */
typedef enum ms_fp8_weights {
    MS_FP8_AUTO,    /* kept where a transposed copy of the only weight is meant,
                       layer where ranks share the weights, kept by Megatron's
                       layers, else forward */
    MS_FP8_FORWARD, /* from a micro-batch's forward to its backward */
    MS_FP8_KEPT,    /* always: made anew by each step (is_first_microbatch) */
    MS_FP8_LAYER    /* for one product: backward makes them again */
} ms_fp8_weights;

/* ms_device.compute_capability */
#define MS_BLACKWELL 100u
#define MS_HOPPER 90u

/* MS-AMP's way and not Transformer Engine's: rows are kept. */
bool ms_quantize_is_late(const ms_step_settings *settings);
/* torchao's: nothing quantized is kept. */
bool ms_quantize_is_wide(const ms_step_settings *settings);
ms_fp8_weights ms_quantize_lasts(const ms_trace *trace);
/* Of what the sizes of products must be multiples. */
void ms_quantize_multiples(const ms_step_settings *settings, uint32_t *rows,
                           uint32_t *width);

bool ms_quantize_has(const ms_quantized *q, uint32_t side);
void ms_quantize_read(ms_trace *trace, const ms_quantized *q, uint32_t side);
void ms_quantize_drop(ms_trace *trace, ms_quantized *q, uint32_t side);
void ms_quantize_save(ms_trace *trace, uint32_t node, const ms_quantized *q,
                      uint32_t side);
/* x by one side alone: a kernel of its own for each (torchao). */
ms_quantized ms_quantize_side(ms_trace *trace, uint32_t x, uint32_t side);
/* x by rows, and by columns where asked for.  bias: gets the sum of the rows of
 * x, shaped like `like`, or NULL. */
ms_quantized ms_quantize_tensor(ms_trace *trace, uint32_t x, bool columns,
                                uint32_t like, uint32_t *bias);
/* Makes the columns of x from its rows: a kernel. */
void ms_quantize_turn(ms_trace *trace, ms_quantized *q, const ms_tensor *x);

/* A new parameter is the weight of a linear layer: gives it the format of
 * precisions.h and the copies that last. */
void ms_quantize_parameter(ms_trace *trace, uint32_t weight);
/* The sides that a weight has at all times. */
ms_quantized ms_quantize_lasting(const ms_step_settings *settings,
                                 const ms_parameter *of);
/* A weight as its products read it: those, else made. */
ms_quantized ms_quantize_weight(ms_trace *trace, uint32_t weight, bool columns);
/* Buffers of the layer that runs, of so many products: scales, maxima of the
 * steps before. */
void ms_quantize_state(ms_trace *trace, uint64_t products);
/* The step is over: copies that last are made anew. */
void ms_quantize_refresh(ms_trace *trace);

#endif
