/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_QUANTITY_H
#define MS_TOOLS_QUANTITY_H

/* Numbers with units: read from what people type, and printed for them. */

#include "sim/base/base.h"

/* Reads "12.5ms", "3us", "1.2s"; a unit is required. */
ms_err ms_quantity_ns(const char *text, const char *where, uint64_t *t_ns,
                      ms_fault *fault);

/* Reads the digits at text; *end points behind them. False: 2^64 or more. */
bool ms_quantity_whole(const char *text, uint64_t *number, char **end);
/* MS_EUSAGE where the size of a device, a host or a disk is a number without a
 * unit and too small to be bytes: for "80" the hint is 80GiB. */
ms_err ms_quantity_unit(const char *text, const char *where, ms_fault *fault);

/* A short text by value, so that it can stand in an argument list:
 * ms_text_add(text, "%s", ms_quantity_size(bytes).s). */
typedef struct ms_label {
    char s[32];
} ms_label;
ms_label ms_quantity_size(uint64_t bytes); /* "79.65 GiB", "512 bytes" */
ms_label ms_quantity_time(uint64_t t_ns);  /* "4.12 s", "722.0 ms" */
/* In the unit that `like` would be printed in, for numbers that stand side by
 * side: "0.06 GiB", "<0.01 GiB"; "0.95 s". */
ms_label ms_quantity_size_as(uint64_t bytes, uint64_t like);
ms_label ms_quantity_time_as(uint64_t t_ns, uint64_t like);
ms_label ms_quantity_count(uint64_t n);   /* "174,604,259,328" */
ms_label ms_quantity_short(uint64_t n);   /* "174.6B", "7.50B", "812" */
ms_label ms_quantity_flops(double flops); /* "3.21 TFLOP" */

#endif
