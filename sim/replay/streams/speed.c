/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/streams/speed.h"
#include "sim/machine.h"

#define WHOLE 1000u /* of a resource, in the units of ms_demand */

bool ms_speed_varies(const ms_machine *machine)
{
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        for (uint32_t r = 0; r < MS_N_RESOURCES; r++)
            if (machine->demand[s][r].held || machine->demand[s][r].shared)
                return true;
    return false;
}

uint32_t ms_speed_of(const ms_machine *machine, uint32_t busy, uint32_t stream)
{
    uint32_t speed = MS_SPEED_WHOLE;
    for (uint32_t r = 0; r < MS_N_RESOURCES; r++) {
        uint32_t shared = 0, held = 0;
        if (machine->demand[stream][r].shared == 0)
            continue;
        for (uint32_t s = 0; s < MS_N_STREAMS; s++) {
            if (!(busy >> s & 1u))
                continue;
            shared += machine->demand[s][r].shared;
            held += s == stream ? 0 : machine->demand[s][r].held;
        }
        /* However much the others hold, a thousandth is left. */
        uint32_t left = held < WHOLE ? WHOLE - held : 1;
        uint32_t part = MS_SPEED_WHOLE * left / shared;
        if (part < speed)
            speed = part;
    }
    return speed > 0 ? speed : 1;
}
