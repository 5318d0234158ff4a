/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_LINKBYTES_H
#define MS_SIM_LINKBYTES_H

/* Private to times.c: the bytes of a rank's links, with those of copies that
 * come again, and of pages.  Pages have no op of their own, and no time in
 * ms_link_use: the compute stream's waits for pages are counted instead. */

#include "sim/measure/waits.h"

void ms_linkbytes_add(const ms_waits *waits, ms_report *report);

#endif
