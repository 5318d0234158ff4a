/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PRECISIONS_H
#define MS_GRAPHS_PRECISIONS_H

/* Private to graphs/: number formats as data.  A row of training.precision says
 * how many bytes an element of a weight takes, and what belongs to it; weights
 * of linear layers other than the head may have formats of their own
 * (graphs/states.md 1).  With Adam, bytes per parameter:
 *
 *     bf16-mixed       2 weight  2 gradient  4 master     4 + 4 moments  = 16
 *     bf16-remainders  2         2           2 remainder  4 + 4          = 14
 *     fp8-primary      1         2           4            4 + 4          = 15
 *     msamp-o2         2         1           0            1 + 2          = 6
 *
 * Moments are the optimizer's (optimtable.h); some rows come with optimizers of
 * their own.  What products in fp8 make and save is in fp8.h. */

#include "graphs/formats/dtypes.h"
#include "graphs/trace/stepsettings.h"
#include "graphs/trace/tensors.h"

/* No such tensor, or as training.gradients says. */
#define MS_NO_DTYPE ((uint8_t)(MS_N_DTYPES + 1u))

typedef struct ms_format {
    uint8_t weight;   /* ms_dtype, all three */
    uint8_t gradient; /* MS_NO_DTYPE: as the setting says */
    uint8_t master;   /* MS_NO_DTYPE: there is none */
} ms_format;

/* Which optimizers a precision has (rows in optimtable.c). */
typedef enum ms_precision_optimizers {
    MS_OPTIMIZERS_ANY, /* those of the framework */
    MS_OPTIMIZERS_TE,
    MS_OPTIMIZERS_MSAMP_O1,
    MS_OPTIMIZERS_MSAMP_O2,
    MS_N_PRECISION_OPTIMIZERS
} ms_precision_optimizers;

typedef struct ms_precision_row {
    const char *name, *help;
    ms_format other, linear;
    uint8_t autocast; /* to which autocast lowers; MS_FLOAT32: there is none */
    bool tf32;
    bool fp8;       /* linear layers but the head multiply in fp8 */
    bool mx;        /* 32 elements share a scale of 8 bits, whatever fp8.recipe
                       would choose: Blackwell and later */
    bool late;      /* of their inputs the rows are saved, and transposed in
                       backward (MS-AMP); else columns (Transformer Engine) */
    bool wide;      /* or they are saved as they are, and quantized again by
                       each product that reads them (torchao) */
    bool quantized; /* linear layers have no weights of 16 bits */
    uint8_t optimizers; /* ms_precision_optimizers: its own Adam and AdamW */
    const char *maker;  /* of these */
} ms_precision_row;

/* In the order of ms_precision. */
extern const ms_precision_row ms_precisions_rows[];
extern const uint32_t ms_precisions_n;
const ms_precision_row *ms_precisions_of(const ms_training *training);
/* 16-bit weights with an fp32 master copy? */
bool ms_precisions_is_mixed(const ms_training *training);

/* Of one parameter: the formats of its gradient and of its master copy (not
 * where parts are their own). */
uint8_t ms_precisions_gradient(const ms_trace *trace,
                               const ms_parameter *parameter);
uint8_t ms_precisions_master(const ms_trace *trace,
                             const ms_parameter *parameter);
/* Is the step BF16_Optimizer's: is .grad added to an fp32 sum that lasts? */
bool ms_precisions_has_sum(const ms_step_settings *settings);
/* Are weights fp32, and each part's master copy a clone of it? */
bool ms_precisions_is_flat_fp32(const ms_step_settings *settings);
/* MS_EUSAGE where the row and another setting contradict each other. */
ms_err ms_precisions_check(const ms_training *training, ms_fault *fault);
/* The same for what policies decide. */
ms_err ms_precisions_refuse(const ms_trace *trace);

#endif
