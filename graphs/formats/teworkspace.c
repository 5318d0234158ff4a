/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/formats/teworkspace.h"
#include "graphs/formats/quantize.h"

#define MIB 1048576u
#define EARLY_BYTES (4 * MIB)
#define HOPPER_BYTES (32 * MIB + 1024)

void ms_teworkspace_hold(ms_trace *trace)
{
    bool late = trace->device->compute_capability >= MS_HOPPER;

    if (trace->te_workspace || trace->err)
        return;
    trace->te_workspace = true;
    ms_library_hold(trace, "transformer_engine_workspace",
                    late ? HOPPER_BYTES : EARLY_BYTES);
}
