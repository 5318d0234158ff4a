/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/teworkspace.h"
#include "graphs/quantize.h"

#define MIB 1048576u
#define EARLY_BYTES (4 * MIB)
#define HOPPER_BYTES (32 * MIB + 1024)

void ms_teworkspace_hold(ms_trace *trace)
{
    bool first = trace->training->step == 1;
    bool late = trace->device->compute_capability >= MS_HOPPER;

    if (trace->te_workspace || trace->err)
        return;
    trace->te_workspace = true;
    uint32_t s =
        ms_trace_storage(trace, "transformer_engine_workspace",
                         late ? HOPPER_BYTES : EARLY_BYTES, MS_WORKSPACE, true);
    if (s == MS_NONE)
        return;
    trace->graph.storage_layer[s] = MS_NONE;
    trace->graph.storage_at_start[s] = !first;
    if (first)
        ms_trace_out(trace, s);
}
