/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_OUTPUTS_H
#define MS_TOOLS_OUTPUTS_H

/* Where results are written: files, standard output, figures. */

#include "tools/job/job.h"
#include "tools/options/options.h"

bool ms_outputs_is_stdout(const char *path);
/* Refuses files (NULL: none) that are an input of the job or are named twice.
 */
ms_err ms_outputs_check(const ms_job *job, const char *const *files, uint32_t n,
                        ms_fault *fault);
/* The same for inputs by their names. */
ms_err ms_outputs_keep(const char *const *inputs, uint32_t n_inputs,
                       const char *const *files, uint32_t n, ms_fault *fault);
/* "memsim.gp" for "memsim.svg"; NULL: out of memory. */
char *ms_outputs_script(const char *figure, ms_arena *arena);
ms_err ms_outputs_write(const char *path, const ms_text *text, bool quiet,
                        ms_fault *fault);

/* Of a page: MS_EUSAGE where its name does not end in .html. */
ms_err ms_outputs_page(const char *path, ms_fault *fault);
/* What the data of a page begins with: the command that made it, and what
 * ms_htmlpage_put_colors writes. */
ms_err ms_outputs_opening(const char *command, const ms_arguments *arguments,
                          ms_text *text, ms_fault *fault);

/* --rank: numbers are told of that rank instead of the one with the highest
 * peak.  MS_EUSAGE: there is no such rank. */
ms_err ms_outputs_rank(const ms_arguments *arguments, ms_report *report,
                       ms_fault *fault);

/* The values of --plot, --figure and --keep-script; NULL: not given. */
typedef struct ms_picture {
    const char *path, *kind;
    const char *script; /* where the script is kept */
    const char *title;  /* in place of the figure's own title, or a page's */
} ms_picture;
/* Reads them. The path must end as a figure's file does. */
ms_err ms_outputs_picture(const ms_arguments *arguments, ms_arena *arena,
                          ms_picture *picture, ms_fault *fault);

#endif
