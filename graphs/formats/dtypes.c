/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/formats/dtypes.h"

const uint8_t ms_dtypes_bytes[MS_N_DTYPES] = {4, 2, 2, 8, 8, 1, 4, 1, 2};

static bool is_half(uint8_t dtype)
{
    return dtype == MS_FLOAT16 || dtype == MS_BFLOAT16;
}

bool ms_dtypes_floats(uint8_t dtype)
{
    return is_half(dtype) || dtype == MS_FLOAT32 || dtype == MS_FLOAT64;
}

uint8_t ms_dtypes_wider(uint8_t a, uint8_t b)
{
    if (!ms_dtypes_floats(b))
        return a;
    if (!ms_dtypes_floats(a) || a == b)
        return b;
    if (is_half(a) && is_half(b))
        return MS_FLOAT32;
    return ms_dtypes_bytes[a] > ms_dtypes_bytes[b] ? a : b;
}
