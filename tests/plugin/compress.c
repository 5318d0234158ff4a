/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/plugin.h"

/* Compresses what forward saves until backward needs it, as ActNN does (Chen
 * et al. 2021). After a unit has run, tensors that it was the last to read
 * are packed into a buffer of their own; before the unit's backward they are
 * unpacked. The time to read and write is that of the packing; quantizing is
 * a task of its own. */

#define FLOPS_PER_BYTE 4u /* minimum, maximum, scaling, rounding */

typedef struct packed {
    uint32_t set, buffer, quantize, dequantize;
} packed;

static packed prepare(ms_plugin_step *step, uint32_t unit)
{
    packed p = {.set = ms_plugin_saved_set(step, unit, 1024)};
    uint64_t bytes = ms_plugin_set_bytes(step, p.set);
    uint64_t bits = (uint64_t)ms_plugin_argument(step, 0);
    if (p.set == MS_PLUGIN_NONE)
        return p;
    p.buffer = ms_plugin_buffer(step, "compressed", bytes * bits / 16);
    p.quantize = ms_plugin_task(step, "quantize", "compute", MS_PLUGIN_FLOPS,
                                FLOPS_PER_BYTE * bytes);
    p.dequantize = ms_plugin_task(step, "dequantize", "compute",
                                  MS_PLUGIN_FLOPS, FLOPS_PER_BYTE * bytes);
    return p;
}

static void leave(ms_plugin_step *step, uint32_t call, const packed *p)
{
    ms_plugin_take_buffer(step, call, p->buffer);
    ms_plugin_work(step, call, p->quantize, p->set);
    ms_plugin_pack(step, call, p->set, p->buffer);
}

static void come_back(ms_plugin_step *step, uint32_t call, const packed *p)
{
    ms_plugin_move(step, call, p->set, MS_PLUGIN_HERE);
    ms_plugin_work(step, call, p->dequantize, p->set);
    ms_plugin_give_buffer(step, call, p->buffer);
}

static int place(ms_plugin_step *step)
{
    packed *units = ms_plugin_take(step, ms_plugin_units(step), sizeof *units);
    if (units == NULL)
        return 1;
    for (uint32_t u = 0; u < ms_plugin_units(step); u++)
        units[u] = prepare(step, u);
    for (uint32_t i = 0; i < ms_plugin_calls(step); i++) {
        ms_plugin_verb verb = ms_plugin_call_verb(step, i);
        uint32_t unit = ms_plugin_call_unit(step, i);
        bool runs = verb == MS_PLUGIN_FORWARD || verb == MS_PLUGIN_BACKWARD;
        bool packs = runs && units[unit].set != MS_PLUGIN_NONE;
        if (packs && verb == MS_PLUGIN_BACKWARD)
            come_back(step, i, &units[unit]);
        ms_plugin_copy(step, i);
        if (packs && verb == MS_PLUGIN_FORWARD)
            leave(step, i, &units[unit]);
    }
    return 0;
}

static const ms_plugin_param params[] = {{.name = "bits",
                                          .choice = true,
                                          .low = 1,
                                          .high = 16,
                                          .help = "of each value of 16 bits"}};
const ms_plugin ms_plugin_entry = {
    .api = MS_PLUGIN_API,
    .name = "compress",
    .summary = "activations wait for backward in fewer bits",
    .example = "compress:bits=4",
    .n_params = 1,
    .params = params,
    .place = place};
