/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/lasting.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"

ms_lasting *ms_lasting_remember(ms_trace *trace)
{
    ms_lasting *lasting = ms_columns_take(trace, 1, sizeof *lasting);
    if (lasting == NULL)
        return NULL;
    *lasting = (ms_lasting){.first_parameter = trace->n_parameters};
    trace->lasting = lasting;
    return lasting;
}

void ms_lasting_repeat(ms_trace *trace, ms_lasting *lasting)
{
    lasting->is_there = true;
    lasting->next = 0;
    trace->lasting = lasting;
}

void ms_lasting_forget(ms_trace *trace)
{
    ms_lasting *lasting = trace->lasting;
    trace->lasting = NULL;
    if (!lasting->is_there)
        lasting->n_parameters = trace->n_parameters - lasting->first_parameter;
}

uint32_t ms_lasting_next(ms_trace *trace)
{
    ms_lasting *lasting = trace->lasting;
    if (lasting == NULL || !lasting->is_there)
        return MS_NONE;
    assert(lasting->next < lasting->n);
    return lasting->tensor[lasting->next++];
}

void ms_lasting_note(ms_trace *trace, uint32_t tensor)
{
    ms_lasting *lasting = trace->lasting;
    if (lasting == NULL || tensor == MS_NONE ||
        !ms_columns_grow(trace, trace->scratch, &lasting->tensor,
                         &lasting->capacity, lasting->n + 1,
                         sizeof *lasting->tensor))
        return;
    lasting->tensor[lasting->n++] = tensor;
}
