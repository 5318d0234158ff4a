/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/alive/alive_keys.h"
#include "sim/names.h"
#include "sim/plan.h"

#include <string.h>

/* ---- what is shown ------------------------------------------------------- */

void ms_alive_keys_instant_show(const ms_result *result,
                                const ms_instant *instant,
                                ms_instant_shown *shown)
{
    const ms_plan *plan = result->plan;
    *shown = (ms_instant_shown){.t_ns = instant->t_ns,
                                .bytes = instant->bytes,
                                .event = instant->event};
    if (instant->op == MS_NONE)
        return;
    uint8_t pass = plan->op[instant->op].pass;
    if (pass != MS_START && pass != MS_COPY)
        shown->phase = ms_names_phase[ms_names_phase_of((ms_pass)pass)];
    shown->op = ms_instant_op(plan, instant->op);
    shown->layer = ms_instant_op_layer(plan, instant->op);
}

/* NULL where it is empty, or could not be made. */
static const char *words_of(const ms_text *words, ms_text *text)
{
    text->failed |= words->failed;
    return !words->failed && words->length > 0 ? words->bytes : NULL;
}

/* A parameter of an op graph has no layer, but "0.weight" names one. */
static void split_name(const char *name, ms_group_shown *shown, ms_text *text)
{
    const char *dot = strrchr(name, '.');
    shown->role = name;
    if (dot == NULL || dot == name || shown->category != MS_PARAMETERS)
        return;
    shown->layer = ms_arena_text(text->arena, name, (size_t)(dot - name));
    shown->role = dot + 1;
    text->failed |= shown->layer == NULL;
}

static void show_name(const ms_alike *group, ms_group_shown *shown,
                      ms_text *text)
{
    ms_text words = {.arena = text->arena};
    ms_groups_name(group, &words);
    const char *name = words_of(&words, text);
    if (group->layer != NULL) {
        shown->layer = name;
        shown->role = group->role;
        return;
    }
    split_name(name != NULL ? name : "", shown, text);
}

static void show_side(const ms_result *result, const ms_group_side *side,
                      ms_side_shown *shown, ms_text *text)
{
    ms_text why = {.arena = text->arena}, layer = {.arena = text->arena};
    shown->bytes = side->bytes;
    ms_explain_text_why(result, side, &why);
    shown->why = words_of(&why, text);
    if (side->reader == NULL || !ms_why_reads(side->why))
        return;
    shown->op = side->reader;
    if (side->reader_layer != NULL)
        ms_groups_pattern(side->reader_layer, side->one_reader, &layer);
    shown->layer = words_of(&layer, text);
}

void ms_alive_keys_group_show(const ms_result *const results[2],
                              const ms_alike *group, ms_group_shown *shown,
                              ms_text *text)
{
    *shown = (ms_group_shown){
        .op = group->op, .count = group->count, .category = group->category};
    show_name(group, shown, text);
    for (int s = 0; s < 2 && results[s] != NULL; s++)
        show_side(results[s], &group->side[s], &shown->side[s], text);
}

/* ---- the rows ------------------------------------------------------------ */

#define INSTANT(kind, member) MS_KEYS_AT(kind, ms_instant_shown, member)
#define SIDE(kind, member) MS_KEYS_AT(kind, ms_side_shown, member)
#define GROUP(kind, member) MS_KEYS_AT(kind, ms_group_shown, member)

static const ms_key instant_rows[] = {
    MS_KEYS_COUNT("time_ns", INSTANT(U64, t_ns)),
    MS_KEYS_COUNT_OR_NULL("event", INSTANT(U32, event)),
    {.name = "phase",
     .type = MS_KEY_WORD,
     INSTANT(TEXT, phase),
     .null = true,
     .names = ms_names_phase,
     .n_names = MS_N_PHASES},
    MS_KEYS_TEXT_OR_NULL("op", INSTANT(TEXT, op)),
    MS_KEYS_TEXT_OR_NULL("layer", INSTANT(TEXT, layer))};
const ms_keys ms_alive_keys_instant = MS_KEYS_OBJECT("instant", instant_rows);

static const ms_key instants_rows[] = {
    {.name = "at", .type = MS_KEY_OBJECT, .of = &ms_alive_keys_instant},
    MS_KEYS_COUNT("total_bytes", INSTANT(U64, bytes))};
const ms_keys ms_alive_keys_instants =
    MS_KEYS_OBJECT("instants", instants_rows);

static const ms_key reader_rows[] = {
    MS_KEYS_TEXT("op", SIDE(TEXT, op)),
    MS_KEYS_TEXT_OR_NULL("layer", SIDE(TEXT, layer))};
static const ms_keys reader = MS_KEYS_OBJECT("reader", reader_rows);

static bool is_side_read(const void *of)
{
    const ms_side_shown *side = of;
    return side->op != NULL;
}

static bool is_read(const void *of)
{
    const ms_group_shown *group = of;
    return is_side_read(&group->side[0]);
}

static ms_key_list removes(const void *of)
{
    const ms_side_shown *side = ((const ms_group_shown *)of)->side;
    return (ms_key_list){(void *)side->remove, side->n_remove,
                         sizeof *side->remove};
}

/* What tensors are, whether of one run or of two. */
#define TENSORS                                                                \
    {.name = "category",                                                       \
     .type = MS_KEY_WORD,                                                      \
     GROUP(U8, category),                                                      \
     .names = ms_names_category,                                               \
     .n_names = MS_N_CATEGORIES},                                              \
        MS_KEYS_TEXT_OR_NULL("layer", GROUP(TEXT, layer)),                     \
        MS_KEYS_TEXT("role", GROUP(TEXT, role)),                               \
        MS_KEYS_TEXT_OR_NULL("op", GROUP(TEXT, op)),                           \
        MS_KEYS_COUNT("count", GROUP(U32, count))

static const ms_key group_rows[] = {
    TENSORS,
    MS_KEYS_COUNT("bytes", GROUP(U64, side[0].bytes)),
    {.name = "why",
     .type = MS_KEY_TEXT,
     GROUP(TEXT, side[0].why),
     .null = true,
     .help = "what keeps them alive"},
    {.name = "next_reader",
     .type = MS_KEY_OBJECT,
     GROUP(NOT, side[0]),
     .there = is_read,
     .null = true,
     .of = &reader,
     .help = "op and layer that read them next"},
    {.name = "remove",
     .type = MS_KEY_TEXTS,
     .list = removes,
     .help = "policies and settings, found by replays, that leave at most half "
             "of the bytes"},
};
const ms_keys ms_alive_keys_group = MS_KEYS_OBJECT("group", group_rows);

static const ms_key side_rows[] = {MS_KEYS_COUNT("bytes", SIDE(U64, bytes)),
                                   MS_KEYS_TEXT_OR_NULL("why", SIDE(TEXT, why)),
                                   {.name = "next_reader",
                                    .type = MS_KEY_OBJECT,
                                    .there = is_side_read,
                                    .null = true,
                                    .of = &reader}};
static const ms_keys side = MS_KEYS_OBJECT("side", side_rows);

static uint64_t difference(const void *of)
{
    const ms_group_shown *group = of;
    return group->side[1].bytes - group->side[0].bytes;
}

static ms_key_list both_sides(const void *of)
{
    const ms_side_shown *sides = ((const ms_group_shown *)of)->side;
    return (ms_key_list){(void *)sides, 2, sizeof *sides};
}

static const ms_key change_rows[] = {
    TENSORS,
    {.name = "difference_bytes", .type = MS_KEY_INTEGER, .make = difference},
    {.name = "variants",
     .type = MS_KEY_OBJECTS,
     .list = both_sides,
     .of = &side}};
const ms_keys ms_alive_keys_change = MS_KEYS_OBJECT("change", change_rows);
