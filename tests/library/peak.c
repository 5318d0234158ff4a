/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a policy buys, for any model:
 *
 *     cc peak.c $(pkg-config --cflags --libs memsim) -o peak
 *     ./peak gpt2 checkpoint:sqrt */
#include <memsim.h>

#include <inttypes.h>
#include <stdio.h>

static int complain(const memsim_job *job)
{
    fprintf(stderr, "%s: %s\n", memsim_where(job), memsim_what(job));
    return (int)memsim_fault(job);
}

int main(int argc, char **argv)
{
    memsim_numbers plain = {.size = sizeof plain}, saved = plain;
    memsim_job *job = memsim_open(argc > 1 ? argv[1] : "gpt2");
    if (memsim_evaluate(job, &plain) != MEMSIM_OK)
        return complain(job);
    if (memsim_set(job, "policy", argc > 2 ? argv[2] : "none") != MEMSIM_OK ||
        memsim_evaluate(job, &saved) != MEMSIM_OK)
        return complain(job);
    printf("%" PRIu64 " %" PRIu64 " bytes, %" PRIu64 " %" PRIu64 " ns\n",
           plain.peak_allocated_bytes, saved.peak_allocated_bytes,
           plain.step_ns, saved.step_ns);
    memsim_free(job);
    return 0;
}
