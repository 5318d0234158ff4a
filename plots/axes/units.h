/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_UNITS_H
#define MS_PLOTS_UNITS_H

/* Bytes and times in the units that suit them.  Private to plots/. */

#include "sim/base/base.h"

typedef struct ms_unit {
    const char *name;
    uint64_t size; /* in bytes or ns */
    uint64_t from; /* the least value it is chosen for */
} ms_unit;

const ms_unit *ms_units_bytes(uint64_t bytes);
const ms_unit *ms_units_time(uint64_t t_ns);
/* A number of the unit with two decimals, without the unit's name. */
void ms_units_put_number(ms_text *text, uint64_t bytes, const ms_unit *unit);
/* Without the unit's name, in the decimals that tell numbers up to `highest`
 * apart: of up to 8 GiB "7.94", of up to 80 "7.9", of up to 8000 "8". */
void ms_units_put_decimals(ms_text *text, uint64_t value, const ms_unit *unit,
                           uint64_t highest);
/* With the unit's name and no more decimals than needed: "79.65 GiB",
 * "80 GiB". */
void ms_units_put_bytes(ms_text *text, uint64_t bytes, const ms_unit *unit);
/* With the unit that suits it, in three or four digits: "174.0 ms". */
void ms_units_put_time(ms_text *text, uint64_t t_ns);
/* The least of 1, 2, 5 times a power of ten that cuts span into at most
 * `most` parts. */
double ms_units_step(double span, uint32_t most);

#endif
