/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_COMMANDS_H
#define MS_TOOLS_COMMANDS_H

/* The table of commands, one row each. */

#include "tools/options/options.h"

/* What main hands to a command. */
typedef struct ms_hall {
    ms_arguments *arguments;
    ms_arena *keep, *trial;
    const struct ms_commands *commands; /* of help and completion */
} ms_hall;

typedef struct ms_command {
    const char *name, *operands, *summary;
    uint16_t bit; /* MS_FOR_... */
    uint8_t min_operands, max_operands;
    /* *status is the exit status when nothing failed. */
    ms_err (*call)(const ms_hall *hall, int *status, ms_fault *fault);
    const char *examples[4]; /* the last one is NULL */
} ms_command;

typedef struct ms_commands {
    const ms_command *rows;
    uint32_t n;
} ms_commands;
/* commands.c. Only main names the table: what a row calls gets it from main, so
 * that calls between the files make no circle. */
extern const ms_commands ms_commands_all;

ms_err ms_run_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_compare_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_sweep_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_fit_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_inspect_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_explain_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_alloc_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_calibrate_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_plot_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_report_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_diff_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_gate_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_help_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_completion_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_schema_command(const ms_hall *hall, int *status, ms_fault *fault);

#endif
