/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim check --json. */

#include "tools/cli/check/gate.h"

#define CASE(kind, member) MS_KEYS_AT(kind, ms_gate_case, member)

const char *const ms_gate_keys_verdicts[MS_GATE_N_VERDICTS] = {
    [MS_GATE_PASSES] = "passes",       [MS_GATE_NEW] = "new",
    [MS_GATE_SHRANK] = "shrank",       [MS_GATE_REFUSED] = "refused",
    [MS_GATE_NO_FIT] = "does not fit", [MS_GATE_OVER] = "over its limit",
    [MS_GATE_GREW] = "grew",           [MS_GATE_SLOWER] = "slower",
};

static const ms_key case_rows[] = {
    MS_KEYS_TEXT("name", CASE(TEXT, name)),
    MS_KEYS_TEXT("model", CASE(TEXT, model)),
    MS_KEYS_TEXT("policy", CASE(TEXT, policy)),
    {.name = "verdict",
     .type = MS_KEY_WORD,
     CASE(U8, verdict),
     .names = ms_gate_keys_verdicts,
     .n_names = MS_GATE_N_VERDICTS,
     .help = "the first three pass"},
    {.name = "used_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     CASE(SOME, now.used_bytes),
     .help = "what nvidia-smi would show; null where it is refused"},
    {.name = "baseline_used_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     CASE(SOME, before.used_bytes),
     .help = "null: there is no baseline of it"},
    {.name = "limit_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     CASE(SOME, limit_bytes),
     .help = "null: it has none"},
    {.name = "step_ns",
     .type = MS_KEY_COUNT,
     .null = true,
     CASE(SOME, now.step_ns),
     .help = ""},
    {.name = "baseline_step_ns",
     .type = MS_KEY_COUNT,
     .null = true,
     CASE(SOME, before.step_ns),
     .help = "the same of time"},
    {.name = "message",
     .type = MS_KEY_TEXT,
     .null = true,
     CASE(TEXT, refused),
     .help = "why it is refused"},
};
static const ms_keys one = MS_KEYS_OBJECT("case", case_rows);

typedef struct sheet {
    const char *memsim;
    const ms_gate *check;
    bool passes;
} sheet;

static ms_key_list cases(const void *of)
{
    const ms_gate *check = ((const sheet *)of)->check;
    return (ms_key_list){check->cases, check->n, sizeof *check->cases};
}

static const ms_key check_rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", MS_KEYS_AT(TEXT, sheet, memsim)),
    {.name = "passes",
     .type = MS_KEY_BOOL,
     MS_KEYS_AT(BOOL, sheet, passes),
     .help = "do all cases?  Else the exit status is 1"},
    {.name = "cases",
     .type = MS_KEY_OBJECTS,
     .list = cases,
     .of = &one,
     .help = "in the order of the file"},
};
const ms_keys ms_gate_keys = MS_KEYS_OBJECT("check", check_rows);

void ms_gate_keys_write(const ms_gate *check, ms_text *text)
{
    const sheet of = {MS_VERSION, check, check->passes};
    ms_keys_write(&ms_gate_keys, &of, text);
    ms_text_add(text, "\n");
}
