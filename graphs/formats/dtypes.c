/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/formats/dtypes.h"

const uint8_t ms_dtypes_bytes[MS_N_DTYPES] = {4, 2, 2, 8, 8, 1, 4, 1, 2};
