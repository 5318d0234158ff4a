/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_DTYPES_H
#define MS_GRAPHS_DTYPES_H

/* Private to graphs/: number formats of tensors, and the bytes that an element
 * takes in each. */

#include <stdbool.h>
#include <stdint.h>

typedef enum ms_dtype {
    MS_FLOAT32,
    MS_FLOAT16,
    MS_BFLOAT16,
    MS_FLOAT64,
    MS_INT64,
    MS_BYTE, /* bool and masks */
    MS_INT32,
    MS_FLOAT8, /* of either kind, E4M3 or E5M2 */
    MS_INT16,
    MS_N_DTYPES
} ms_dtype;
extern const uint8_t ms_dtypes_bytes[MS_N_DTYPES];

bool ms_dtypes_floats(uint8_t dtype);
/* The widest of two floating dtypes; other dtypes give way. */
uint8_t ms_dtypes_wider(uint8_t a, uint8_t b);

#endif
