/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "plots/plots.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/options/options.h"

ms_err ms_alloc_outputs_check(const ms_hall *hall, uint32_t n_allocators,
                              ms_picture *figure, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    bool json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    ms_job job = {.model = arguments->operands[0]};
    MS_TRY(ms_outputs_picture(arguments, hall->keep, figure, fault));
    bool draws = figure->path != NULL;
    if ((draws || csv != NULL) && arguments->n_operands > 1)
        return ms_fail(fault, MS_EUSAGE, NULL, "run it once for each",
                       "option \"--%s\" is of one trace; there are %u",
                       csv != NULL ? "csv" : "plot", arguments->n_operands);
    if (csv != NULL && n_allocators > 1)
        return ms_fail(fault, MS_EUSAGE, NULL, "run it once for each",
                       "--csv has the rows of one --allocator");
    if (draws && n_allocators > MS_ADDRESS_MOST)
        return ms_fail(fault, MS_EUSAGE, NULL, "leave some out",
                       "figure address is of up to %u allocators; there are "
                       "%u",
                       MS_ADDRESS_MOST, n_allocators);
    if (draws &&
        json + ms_outputs_is_stdout(csv) + ms_outputs_is_stdout(figure->path) >
            1)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "ask for one of --json and a file named -",
                       "standard output can carry one result only");
    if (json && ms_outputs_is_stdout(csv))
        return ms_fail(fault, MS_EUSAGE, NULL, "name a file for --csv",
                       "standard output can carry one result only");
    const char *const files[] = {csv, figure->path, figure->script};
    return ms_outputs_check(&job, files, 3, fault);
}
