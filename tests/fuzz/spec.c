/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes bytes as a policy. What is printed of one must parse to the same
 * print. */
#include "tests/fuzz/fuzz.h"
#include "tools/cli/commands.h"

#include "policies/common/policy.h"

#include <string.h>

static void check_print(const ms_spec *spec, ms_arena *arena)
{
    ms_fault fault = {0};
    ms_spec again = {0};
    const char *print = ms_spec_print(spec, arena);
    FUZZ_LAW(print != NULL);
    FUZZ_LAW(ms_spec_parse(print, arena, &again, &fault) == MS_OK);
    FUZZ_LAW(strcmp(print, ms_spec_print(&again, arena)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    ms_spec spec = {0};
    const char *text = ms_arena_text(&arena, (const char *)bytes, length);
    if (text != NULL) {
        ms_err err = ms_spec_parse(text, &arena, &spec, &fault);
        FUZZ_LAW(err == fault.err);
        if (err == MS_OK)
            check_print(&spec, &arena);
    }
    ms_arena_free(&arena);
    return 0;
}
