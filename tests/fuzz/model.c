/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes bytes as a model file, which is read, sorted and drawn as DOT. */
#include "graphs/model.h"
#include "tests/fuzz/fuzz.h"
#include "tools/cli/commands.h"

#define MAX_LAYERS 10000u /* larger models take too long */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    ms_model model;
    ms_err err = ms_read_model_bytes("fuzz.json", (const char *)bytes, length,
                                     NULL, 0, &arena, &model, &fault);
    bool small = err == MS_OK && model.n_layers <= MAX_LAYERS;
    if (small)
        err = ms_dag_order(&model, &arena, &fault);
    if (small && err == MS_OK) {
        ms_text text = {.arena = &arena};
        ms_dag_dot(&model, &text);
    }
    FUZZ_LAW(err == fault.err);
    FUZZ_LAW(err == MS_OK || fault.what[0] != '\0');
    ms_arena_free(&arena);
    return 0;
}
