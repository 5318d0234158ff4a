/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "saved" in memsim explain --json: how long it waits. */

#include "tools/results/keys/keys.h"

static const ms_key idle_rows[] = {
    MS_KEYS_COUNT("from_ns"),
    {.name = "to_ns",
     .type = MS_KEY_COUNT,
     .help = "waiting for so long, to_ns not included"},
    MS_KEYS_COUNT("bytes"),
    MS_KEYS_COUNT("tensors"),
    MS_KEYS_COUNT("uses"),
    MS_KEYS_COUNT("alone_bytes"),
    MS_KEYS_COUNT("hidden_bytes")};
static const ms_keys idle = MS_KEYS_OBJECT("idle_class", idle_rows);

static const ms_key saved_rows[] = {
    {.name = "bytes",
     .type = MS_KEY_COUNT,
     .help = "run's saved_for_backward_bytes"},
    MS_KEYS_COUNT("tensors"),
    {.name = "uses",
     .type = MS_KEY_COUNT,
     .help = "how often ops of either pass read them, all together"},
    {.name = "half_ns",
     .type = MS_KEY_COUNT,
     .help = "half of the bytes wait for as long, or longer"},
    {.name = "alone_bytes",
     .type = MS_KEY_COUNT,
     .help = "what the link could take out and bring back while it waits, each "
             "tensor with the link to itself"},
    {.name = "hidden_bytes",
     .type = MS_KEY_COUNT,
     .help = "the same, one copy after the other"},
    {.name = "idle",
     .type = MS_KEY_OBJECTS,
     .of = &idle,
     .help = "the same by how long they wait, in classes of equal width"}};
const ms_keys ms_keys_saved = MS_KEYS_OBJECT("saved", saved_rows);
