/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints what callers of memsim.h were compiled with. */
#include <memsim.h>

#include <stdio.h>

#define MEMBER(type, name)                                                     \
    printf(#type " " #name " %zu %zu\n", offsetof(type, name),                 \
           sizeof(((type *)0)->name))

int main(void)
{
    printf("abi %d %d\n", MEMSIM_ABI, memsim_abi());
    printf("status %d %d %d %d %d %d\n", MEMSIM_OK, MEMSIM_USAGE, MEMSIM_INPUT,
           MEMSIM_SYSTEM, MEMSIM_INFEASIBLE, MEMSIM_NO_MEMORY);
    printf("categories %d %d %d\n", MEMSIM_PARAMETERS, MEMSIM_ACTIVATIONS,
           MEMSIM_CATEGORIES);
    MEMBER(memsim_numbers, size);
    MEMBER(memsim_numbers, fits);
    MEMBER(memsim_numbers, ranks);
    MEMBER(memsim_numbers, peak_allocated_bytes);
    MEMBER(memsim_numbers, peak_reserved_bytes);
    MEMBER(memsim_numbers, capacity_bytes);
    MEMBER(memsim_numbers, context_bytes);
    MEMBER(memsim_numbers, host_peak_bytes);
    MEMBER(memsim_numbers, by_category);
    MEMBER(memsim_numbers, step_ns);
    MEMBER(memsim_numbers, recompute_ns);
    MEMBER(memsim_numbers, stall_ns);
    MEMBER(memsim_numbers, exposed_comm_ns);
    MEMBER(memsim_numbers, tokens_per_second);
    MEMBER(memsim_brief, size);
    MEMBER(memsim_brief, fits);
    MEMBER(memsim_brief, peak_allocated_bytes);
    MEMBER(memsim_brief, step_ns);
    MEMBER(memsim_brief, recompute_ns);
    MEMBER(memsim_brief, tokens_per_second);
    MEMBER(memsim_point, t_ns);
    MEMBER(memsim_point, bytes);
    return 0;
}
