/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/demand.h"

#include <stdio.h>
#include <stdlib.h>

void demand(ms_err err, const ms_fault *fault)
{
    if (err == MS_OK)
        return;
    fprintf(stderr, "memsim-bench: %s: %s\n", fault->where, fault->what);
    exit(EXIT_FAILURE);
}
