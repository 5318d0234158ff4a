/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torchtitan's section [activation_checkpoint]
 * (torchtitan/config/job_config.py, ActivationCheckpoint: mode,
 * selective_ac_option; distributed/ activation_checkpoint.py): single blocks,
 * all or every Nth, or by op. */
#include "tools/systems/systems.h"

#include <stdio.h>

static ms_err refuse(const ms_checkpointas *choice, const char *what,
                     const char *nearest, ms_fault *fault)
{
    char hint[96];
    snprintf(hint, sizeof hint, "the nearest that it can: %s", nearest);
    return ms_fail(fault, MS_EUSAGE, "--as torchtitan", hint,
                   "%.60s: torchtitan checkpoints single blocks, all or every "
                   "Nth, or its own list of ops: %s",
                   choice->policy, what);
}

static uint32_t count(const ms_checkpointas *choice)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < choice->n_blocks; b++)
        n += choice->is_single[b];
    return n;
}

/* Is it each Kth block from K up (K - 1 from 0), by itself?  K; 0: it is not.
 */
static uint32_t each_of(const ms_checkpointas *choice)
{
    uint32_t size = 0;
    if (!choice->all_single)
        return 0;
    for (uint32_t b = 0; b < choice->n_blocks && size == 0; b++)
        size = choice->is_single[b] ? b + 1 : 0;
    for (uint32_t b = 0; b < choice->n_blocks; b++)
        if (size == 0 || choice->is_single[b] != ((b + 1) % size == 0))
            return 0;
    return size;
}

ms_err ms_astorchtitan_write(const ms_checkpointas *choice, ms_text *text,
                             ms_fault *fault)
{
    uint32_t each = each_of(choice);
    if (choice->save != NULL || choice->redo != NULL)
        return refuse(choice, "not a list of yours", "checkpoint:sac", fault);
    if (choice->modules != NULL || choice->selective)
        return refuse(choice, "not modules", "checkpoint:sac", fault);
    bool none = choice->tree.n == 1 && !choice->tree.pieces[0].again;
    if (!choice->sac && !none && !choice->all_single)
        return refuse(choice, "not segments of several blocks",
                      "checkpoint:full", fault);
    if (!choice->sac && !none && each == 0)
        return refuse(choice, "not these blocks",
                      2 * count(choice) > choice->n_blocks
                          ? "checkpoint:full"
                          : "checkpoint:each=2",
                      fault);
    ms_text_add(text, "# %s of ", choice->policy);
    ms_text_add(text, "%s\n[activation_checkpoint]\n", choice->model);
    if (choice->sac)
        ms_text_add(text, "mode = \"selective\"\nselective_ac_option = "
                          "\"op\"\n");
    else if (none)
        ms_text_add(text, "mode = \"none\"\n");
    else if (each == 1)
        ms_text_add(text, "mode = \"full\"\n");
    else
        ms_text_add(
            text, "mode = \"selective\"\nselective_ac_option = \"%u\"\n", each);
    return MS_OK;
}
