/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_OUTPUTS_H
#define MS_TOOLS_OUTPUTS_H

/* Where results go: files, standard output, figures. */

#include "tools/job/job.h"
#include "tools/options/options.h"

bool ms_outputs_is_stdout(const char *path);
/* Refuses files (NULL: none) that are an input of the job or named twice. */
ms_err ms_outputs_check(const ms_job *job, const char *const *files, uint32_t n,
                        ms_fault *fault);
/* The same with inputs by name. */
ms_err ms_outputs_keep(const char *const *inputs, uint32_t n_inputs,
                       const char *const *files, uint32_t n, ms_fault *fault);
/* memsim.svg -> memsim.gp; NULL: no memory. */
char *ms_outputs_script(const char *figure, ms_arena *arena);
ms_err ms_outputs_write(const char *path, const ms_text *text, bool quiet,
                        ms_fault *fault);

/* What --plot, --figure and --keep-script ask for; NULL: nothing. */
typedef struct ms_picture {
    const char *path, *kind;
    const char *script; /* where it is kept */
    const char *title;  /* instead of the figure's own; NULL: that */
} ms_picture;
/* The path has one of the endings of figures. */
ms_err ms_outputs_picture(const ms_arguments *arguments, ms_arena *arena,
                          ms_picture *picture, ms_fault *fault);

#endif
