/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes bytes as a file of settings, in whichever syntax they are: pairs, facts
 * and the options that they become. What is composed can be read as options. */
#include "tests/fuzz/fuzz.h"
#include "tools/from/compose.h"
#include "tools/from/formats.h"
#include "tools/from/versions.h"

#include <string.h>

/* Options are words of the command line: their names are in its table. */
static void check_options(const ms_arguments *arguments)
{
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        FUZZ_LAW(ms_optionuses_of(given->option, MS_FOR_RUN) != NULL);
        FUZZ_LAW(given->value != NULL);
    }
}

static ms_err read_settings(const char *text, size_t length, ms_arena *arena,
                            ms_fault *fault)
{
    const ms_format *format;
    ms_pairs pairs;
    ms_facts facts = {.arena = arena};
    ms_arguments typed = {.n_given = 0}, out;
    MS_TRY(
        ms_formats_read("fuzz", text, length, arena, &pairs, &format, fault));
    MS_TRY(ms_versions_read(&facts, format, &pairs, fault));
    MS_TRY(ms_facts_settle(&facts, 4096, fault));
    MS_TRY(
        ms_compose_arguments(&facts, MS_FOR_RUN, &typed, arena, &out, fault));
    check_options(&out);
    return MS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    ms_arena arena = {.limit_bytes = FUZZ_ARENA_BYTES};
    ms_fault fault = {0};
    const char *text = ms_arena_text(&arena, (const char *)bytes, length);
    if (text != NULL) {
        ms_err err = read_settings(text, length, &arena, &fault);
        FUZZ_LAW(err == fault.err);
    }
    ms_arena_free(&arena);
    return 0;
}
