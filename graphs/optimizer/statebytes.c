/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of precisions as the help shows it: the bytes of a parameter and of
 * its states with Adam. */
#include "graphs/formats/dtypes.h"
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/optimtable.h"

#include <string.h>

static uint32_t bytes_of(uint8_t dtype)
{
    return dtype < MS_N_DTYPES ? ms_dtypes_bytes[dtype] : 0;
}

/* Finds the bytes per element of each of Adam's two moments; false: out of
 * memory. */
static bool moments_of(const ms_precision_row *row, bool linear,
                       ms_arena *arena, uint32_t bytes[2])
{
    const ms_optimizer_row *its = ms_optimtable_own[row->optimizers];
    const ms_optimizer_row *adam = its ? its : &ms_optimtable[MS_ADAM];
    bool own = linear || adam->others == NULL;
    const ms_format *format = linear ? &row->linear : &row->other;
    ms_read_update read;
    if (!ms_updates_read(own ? adam->update : adam->others,
                         its ? adam->impl : MS_IMPL_FUSED, MS_TORCH_2, arena,
                         &read))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        bytes[i] =
            bytes_of(read.states[i].dtype != MS_AS_STATE ? read.states[i].dtype
                     : format->master != MS_NO_DTYPE     ? (uint8_t)MS_FLOAT32
                                                         : format->weight);
    return true;
}

static void put_bytes(const ms_precision_row *row, bool linear, ms_text *text)
{
    const ms_format *format = linear ? &row->linear : &row->other;
    uint32_t weight = bytes_of(format->weight), moments[2] = {0};
    uint32_t gradient =
        format->gradient != MS_NO_DTYPE ? bytes_of(format->gradient) : weight;
    uint32_t master = bytes_of(format->master);
    if (format->gradient == MS_NO_DTYPE &&
        linear) /* such gradients are as those of the other layers */
        gradient = bytes_of(row->other.weight);
    if (!moments_of(row, linear, text->arena, moments)) {
        text->failed = true;
        return;
    }
    ms_text_add(text, "  %-16s %6u %8u %6u %5u + %u %5u\n",
                linear ? row->name : "  others", weight, gradient, master,
                moments[0], moments[1],
                weight + gradient + master + moments[0] + moments[1]);
}

void ms_statebytes_describe(ms_text *text)
{
    ms_text_add(text, "  %-16s %6s %8s %6s %9s %5s\n", "", "weight", "gradient",
                "master", "moments", "sum");
    for (uint32_t i = 0; i < ms_precisions_n; i++) {
        const ms_precision_row *row = &ms_precisions_rows[i];
        put_bytes(row, true, text);
        if (memcmp(&row->linear, &row->other, sizeof row->other) != 0)
            put_bytes(row, false, text);
    }
}
