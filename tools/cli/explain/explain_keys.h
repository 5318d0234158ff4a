/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_EXPLAIN_KEYS_H
#define MS_TOOLS_EXPLAIN_KEYS_H

/* What the object of memsim explain --json is printed from. */

#include "tools/advice/pooltries.h"
#include "tools/alive/alive_keys.h"
#include "tools/cli/explain/idletimes.h"
#include "tools/cli/explain/schedulepicture.h"
#include "tools/results/sheet.h"

typedef struct ms_explain_sheet {
    const char *memsim, *model, *policy, *from_json;
    const ms_sheet *run; /* explain prints some of the keys of a run, too */
    ms_instant_shown at;
    ms_group_shown *groups; /* the largest group first */
    uint32_t n_groups;
    const ms_idletimes *saved;
    const ms_schedulepicture *schedule;
    const ms_pooltries *tries; /* NULL: the pool is exact */
} ms_explain_sheet;

extern const ms_keys ms_explain_keys;

#endif
