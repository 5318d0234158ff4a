/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help on the cases of memsim check. */

#include "tools/cli/help/help.h"
#include "tools/terminal/textlines.h"

#include <stddef.h>

void ms_help_checks_write(ms_text *text)
{
    static const char *const lines[] = {
        "memsim check CASES simulates each case as memsim run would and fails "
        "(exit status 1)",
        "where one does not fit, is over its limit, or has grown over the "
        "baseline.  CASES is",
        "a file of yours:",
        "",
        "    {\"memsim_checks\": 1,",
        "     \"tolerance_percent\": 3,",
        "     \"cases\": [",
        "       {\"name\": \"7B, one node\",",
        "        \"model\": \"llama-2-7b\",",
        "        \"settings\": {\"policy\": \"zero:3\", \"gpus\": 8, "
        "\"batch\": 4},",
        "        \"limit\": \"75GiB\"},",
        "       {\"name\": \"ours\", \"model\": \"configs/ours.json\",",
        "        \"tolerance_percent\": 1, \"time_tolerance_percent\": 5}]}",
        "",
        "  name           of the case, in tables and in the baseline",
        "  model          as memsim run has it; a path is one from the folder "
        "of CASES",
        "  settings       keys as --grid has them: policy, device, gpus, "
        "batch, memory, ...",
        "  limit          what nvidia-smi may show at most",
        "  tolerance_percent",
        "                 by how much memory may grow over the baseline (3)",
        "  time_tolerance_percent",
        "                 the same of the step's time; null (as without it): "
        "it is not checked",
        "",
        "Both tolerances may stand beside \"cases\", for all of them.  The "
        "baseline is",
        "CASES.baseline, or what --baseline says: --update writes it, to be "
        "committed beside",
        "CASES.  A case without one passes and is called new.  --markdown "
        "writes the table for",
        "a pull request; tools/ci has a GitHub Action, a GitLab job and a "
        "prolog of Slurm.",
        NULL};
    ms_textlines_lines(lines, text);
}
