/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/cli/schema/documents.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/alloc/alloc_keys.h"
#include "tools/cli/calibrate/calibrate_keys.h"
#include "tools/cli/check/gate.h"
#include "tools/cli/compare/compare_keys.h"
#include "tools/cli/diff/diff.h"
#include "tools/cli/explain/explain_keys.h"
#include "tools/cli/fit/fit_keys.h"
#include "tools/cli/front/front_keys.h"
#include "tools/cli/inspect/inspect.h"

const ms_schema_document ms_documents[] = {
    {"model", "a model file: family, layer list or op graph", NULL},
    {"result", "what memsim run --json prints", &ms_keys_run},
    {"explain", "what memsim explain --json prints", &ms_explain_keys},
    {"compare", "what memsim compare --json prints", &ms_compare_keys},
    {"front", "what memsim compare --checkpoint-all --json prints",
     &ms_front_keys},
    {"row", "a line of what memsim sweep --json prints", &ms_keys_row},
    {"fit", "what memsim fit --json prints", &ms_fit_keys},
    {"alloc", "what memsim alloc --json prints", &ms_alloc_keys},
    {"traces", "the same of several traces", &ms_alloc_keys_traces},
    {"plans", "what memsim alloc --allocator arena --json prints",
     &ms_alloc_plans_keys},
    {"calibrate", "what memsim calibrate --json prints", &ms_calibrate_keys},
    {"diff", "what memsim diff --json prints", &ms_diff_keys},
    {"check", "what memsim check --json prints", &ms_gate_keys},
    {"inspect", "what memsim inspect --json prints", &ms_inspect_keys},
};
const uint32_t ms_documents_n = sizeof ms_documents / sizeof ms_documents[0];
