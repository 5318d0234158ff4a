/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/policywords.h"
#include "sim/base/size.h"
#include "sim/names.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 4096u
#define MOST_WORDS 48u /* characters of a list of words in an error */

/* A piece of the spec: bytes [at, at + length). */
typedef struct piece {
    size_t at, length;
} piece;

typedef struct parser {
    const char *text;
    size_t length;
    size_t given_at[MS_POLICY_PARAMS]; /* where each parameter of the policy
                                          under way was given */
    bool has_variant; /* the argument that makes it a variant was read */
    ms_arena *arena;
    ms_fault *fault;
} parser;

#define QUOTED 60

static int shown(piece p)
{
    return p.length < QUOTED ? (int)p.length : QUOTED;
}

/* Quotes the spec with the caret at offset; the next failure points there. */
static void point(const parser *p, size_t offset)
{
    ms_fail_quote(p->fault, p->text, p->length, offset);
}

/* Cuts rest at the first separator: returns what is before it and leaves what
 * is behind it. at_end is set where there was none. */
static piece cut(const parser *p, piece *rest, char separator, bool *at_end)
{
    piece head = *rest;
    const char *found = NULL;
    if (rest->length > 0)
        found = memchr(p->text + rest->at, separator, rest->length);
    *at_end = found == NULL;
    if (found != NULL)
        head.length = (size_t)(found - (p->text + rest->at));
    size_t taken = head.length + (found != NULL);
    rest->at += taken;
    rest->length -= taken;
    return head;
}

static bool is_name(const parser *p, piece word, const char *name)
{
    return strlen(name) == word.length &&
           memcmp(p->text + word.at, name, word.length) == 0;
}

/* ---- what there is to choose from ---------------------------------------- */

static void append(char *text, size_t size, const char *format,
                   const char *word)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, format, word);
}

static const char *spelled(const ms_param *param, char *text, size_t size)
{
    const char *value[] = {
        [MS_PARAM_INT] = "=N",           [MS_PARAM_SIZE] = "=SIZE",
        [MS_PARAM_WORD] = "=",           [MS_PARAM_WORDS] = "=",
        [MS_PARAM_NAMES] = "=NAME/NAME", [MS_PARAM_FLAG] = "",
        [MS_PARAM_NUMBERS] = "=NUMBER",  [MS_PARAM_INTS] = "=N"};
    const char *words = param->words != NULL ? param->words : "";
    if (!param->bare && strlen(words) > MOST_WORDS)
        words = "WORD/WORD";
    snprintf(text, size, "%s%s%s", param->name, value[param->type], words);
    if (param->bare)
        snprintf(text, size, "%s", param->type == MS_PARAM_INT ? "N" : words);
    for (char *c = text; *c != '\0' && param->type == MS_PARAM_WORDS; c++)
        *c = *c == '|' ? '/' : *c;
    return text;
}

/* "none, full, sqrt, every=N": the parameters, or only the choices; what there
 * is no room for is in the policy's help. */
static void list_params(const ms_policy *policy, bool choices, char *text,
                        size_t size)
{
    char word[64], more[64];
    bool first = true;
    snprintf(more, sizeof more, ", ... (memsim help %s)", policy->name);
    for (uint32_t i = 0; i < policy->n_params; i++) {
        const ms_param *param = &policy->params[i];
        if (choices && !param->choice)
            continue;
        spelled(param, word, sizeof word);
        if (strlen(text) + strlen(word) + strlen(more) + 3 > size) {
            append(text, size, "%s", more);
            return;
        }
        append(text, size, first ? "%s" : ", %s", word);
        first = false;
    }
}

static void suggest(const parser *p, piece word, const char *const *names,
                    uint32_t n, char *hint, size_t size)
{
    char text[QUOTED + 1];
    snprintf(text, sizeof text, "%.*s", shown(word), p->text + word.at);
    const char *nearest = ms_names_nearest(text, names, n);
    for (uint32_t i = 0; i < n && nearest == NULL && word.length > 0; i++)
        if (strncmp(names[i], text, word.length) == 0 &&
            names[i][word.length] == '_')
            nearest = names[i];
    if (nearest != NULL)
        append(hint, size, "did you mean \"%s\"? ", nearest);
}

static ms_err fail_policy(const parser *p, piece name)
{
    char hint[256] = "";
    const char *names[64];
    uint32_t n = 0;
    for (; n < ms_registry_n() && n < 64; n++)
        names[n] = ms_registry_row(n)->name;
    suggest(p, name, names, n, hint, sizeof hint);
    append(hint, sizeof hint, "policies: %s", names[0]);
    for (uint32_t i = 1; i < n; i++)
        append(hint, sizeof hint, ", %s", names[i]);
    point(p, name.at);
    if (name.length == 0)
        return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                       "a policy's name is missing");
    return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                   "unknown policy \"%.*s\"", shown(name), p->text + name.at);
}

static bool has_param(const parser *p, const ms_policy *policy, piece word)
{
    for (uint32_t i = 0; i < policy->n_params; i++)
        if (is_name(p, word, policy->params[i].name))
            return true;
    return false;
}

/* The variant of the policy that takes an argument of this name, or NULL. */
static const ms_policy *find_variant(const parser *p, const ms_policy *policy,
                                     piece word)
{
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        const ms_policy *row = ms_registry_row(i);
        if (row->variant_of != NULL &&
            strcmp(row->variant_of, policy->name) == 0 &&
            has_param(p, row, word))
            return row;
    }
    return NULL;
}

/* What stands behind a comma of Megatron-LM's layouts, "Et*3|(tt|)*29,m|L",
 * where it is cosmetic. */
static bool is_layout(const parser *p, piece word)
{
    char text[QUOTED + 1];
    snprintf(text, sizeof text, "%.*s", shown(word), p->text + word.at);
    return word.length > 0 && text[strspn(text, "EtLm|()*0123456789")] == '\0';
}

static ms_err fail_argument(const parser *p, const struct ms_spec_item *item,
                            piece word)
{
    const ms_policy *policy = item->policy;
    const char *written = ms_policy_written(item);
    char hint[384] = "";
    const char *names[MS_POLICY_PARAMS];
    for (uint32_t i = 0; i < policy->n_params; i++)
        names[i] = policy->params[i].name;
    const ms_policy *variant = find_variant(p, policy, word);
    suggest(p, word, names, policy->n_params, hint, sizeof hint);
    if (variant != NULL)
        snprintf(hint, sizeof hint, "add %s, whose argument it is; ",
                 variant->variant_by);
    if (is_layout(p, word) && strcmp(policy->name, "pipeline") == 0)
        append(hint, sizeof hint, "%s", "leave commas out of a layout; ");
    if (policy->n_params == 0)
        append(hint, sizeof hint, "\"%s\" takes none", written);
    else
        append(hint, sizeof hint, "%s takes: ", written);
    list_params(policy, false, hint, sizeof hint);
    point(p, word.at);
    if (word.length == 0)
        return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                       "an argument of \"%s\" is missing", written);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                   "unknown argument \"%.*s\" of policy \"%s\"", shown(word),
                   p->text + word.at, written);
}

/* ---- values -------------------------------------------------------------- */

/* Reads an integer such as 500000000 or 5e8. */
static ms_err parse_int(const parser *p, const ms_param *param, piece word,
                        ms_policy_value *value)
{
    int64_t number = 0, zeros = 0, *to = &number;
    bool digits = word.length > 0, fits = true;
    for (size_t i = 0; i < word.length && digits; i++) {
        char c = p->text[word.at + i];
        bool is_e = c == 'e' && to == &number && i > 0 && i + 1 < word.length;
        digits = is_e || (c >= '0' && c <= '9');
        fits = fits && (is_e || (!__builtin_mul_overflow(*to, 10, to) &&
                                 !__builtin_add_overflow(*to, c - '0', to)));
        to = is_e ? &zeros : to;
    }
    for (fits = fits && zeros <= 18; fits && zeros > 0; zeros--)
        fits = !__builtin_mul_overflow(number, 10, &number);
    value->number = number;
    if (digits && fits && number >= param->low && number <= param->high)
        return MS_OK;
    char hint[128];
    snprintf(hint, sizeof hint,
             "%s takes a whole number from %" PRId64 " to %" PRId64,
             param->name, param->low, param->high);
    point(p, word.at);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", hint, "%s: \"%.*s\" is %s",
                   param->name, shown(word), p->text + word.at,
                   digits ? "out of range" : "no whole number");
}

static ms_err parse_size(const parser *p, const ms_param *param, piece word,
                         ms_policy_value *value)
{
    uint64_t bytes = 0;
    char *text = ms_arena_text(p->arena, p->text + word.at, word.length);
    if (text == NULL)
        return ms_fail_nomem(p->fault);
    bool size = ms_size_bytes(text, NULL, &bytes, NULL) == MS_OK;
    value->number = (int64_t)bytes;
    if (size && value->number >= param->low && value->number <= param->high)
        return MS_OK;
    point(p, word.at);
    if (!size)
        return ms_size_bytes(text, "--policy", &bytes, p->fault);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", NULL,
                   "%s: \"%.*s\" is out of range", param->name, shown(word),
                   p->text + word.at);
}

/* The index of word in "a|b|c", or -1. */
static int64_t word_index(const parser *p, const char *words, piece word)
{
    for (int64_t index = 0;; index++) {
        size_t length = strcspn(words, "|");
        if (length == word.length &&
            memcmp(words, p->text + word.at, length) == 0)
            return index;
        if (words[length] == '\0')
            return -1;
        words += length + 1;
    }
}

static ms_err keep_text(const parser *p, piece word, ms_policy_value *value)
{
    value->text = ms_arena_text(p->arena, p->text + word.at, word.length);
    return value->text == NULL ? ms_fail_nomem(p->fault) : MS_OK;
}

static ms_err parse_word(const parser *p, const ms_param *param, piece word,
                         ms_policy_value *value)
{
    value->number = word_index(p, param->words, word);
    if (value->number >= 0)
        return MS_OK;
    if (ms_policy_is_path(param, p->text + word.at, word.length))
        return keep_text(p, word, value);
    char hint[192];
    snprintf(hint, sizeof hint, "%s is one of %s%s", param->name, param->words,
             param->file ? ", or a file as ./FILE" : "");
    point(p, word.at);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                   "%s: unknown value \"%.*s\"", param->name, shown(word),
                   p->text + word.at);
}

/* Reads some of the words, joined with '/', each at most once. */
static ms_err parse_words(const parser *p, const ms_param *param, piece list,
                          ms_policy_value *value)
{
    piece rest = list;
    bool last = false;
    value->number = 0;
    while (!last) {
        ms_policy_value one;
        piece word = cut(p, &rest, '/', &last);
        MS_TRY(parse_word(p, param, word, &one));
        value->number |= (int64_t)1 << one.number;
    }
    return MS_OK;
}

static bool is_number(const char *text, size_t length, bool may_be_zero)
{
    char *end;
    return strspn(text, "0123456789.") == length &&
           (strtod(text, &end) > 0 || may_be_zero) && end == text + length;
}

/* A list NAME/NAME, N/N, or NUMBER/NUMBER: a point may be; 0 is not alone. */
static ms_err parse_list(const parser *p, const ms_param *param, piece list,
                         ms_policy_value *value)
{
    bool numbers = param->type == MS_PARAM_NUMBERS, last = false;
    ms_text ints = {.arena = p->arena}; /* in canonical spelling */
    piece rest = list;
    while (!last) {
        piece one = cut(p, &rest, '/', &last);
        const char *at = p->text + one.at;
        if (param->type == MS_PARAM_INTS) {
            MS_TRY(parse_int(p, param, one, value));
            ms_text_add(&ints, "%s", ints.length > 0 ? "/" : "");
            ms_text_i64(&ints, value->number);
        }
        if (one.length > 0 &&
            (!numbers || is_number(at, one.length, one.length < list.length)))
            continue;
        point(p, one.at);
        if (numbers)
            return ms_fail(p->fault, MS_EUSAGE, "--policy",
                           "write 1.25, for example",
                           "%s: \"%.*s\" is no positive number", param->name,
                           shown(one), at);
        return ms_fail(p->fault, MS_EUSAGE, "--policy",
                       "write NAME or NAME/NAME/...", "%s: a name is missing",
                       param->name);
    }
    if (param->type != MS_PARAM_INTS)
        return keep_text(p, list, value);
    value->text = ints.bytes;
    return ints.failed ? ms_fail_nomem(p->fault) : MS_OK;
}

static ms_err parse_value(const parser *p, const ms_param *param, piece word,
                          ms_policy_value *value)
{
    switch (param->type) {
    case MS_PARAM_INT:
        return parse_int(p, param, word, value);
    case MS_PARAM_SIZE:
        return parse_size(p, param, word, value);
    case MS_PARAM_WORD:
        return parse_word(p, param, word, value);
    case MS_PARAM_WORDS:
        return parse_words(p, param, word, value);
    case MS_PARAM_FLAG:
        value->number = 1;
        return MS_OK;
    default:
        return parse_list(p, param, word, value);
    }
}

/* ---- arguments ----------------------------------------------------------- */

/* Can a bare parameter be meant by this word alone? */
static bool is_bare(const parser *p, const ms_param *param, piece alone)
{
    piece rest = alone;
    bool last;
    if (!param->bare || alone.length == 0)
        return false;
    if (param->type == MS_PARAM_INT)
        return p->text[alone.at] >= '0' && p->text[alone.at] <= '9';
    return word_index(p, param->words, cut(p, &rest, '/', &last)) >= 0;
}

/* Finds the row that an argument sets, or n_params where there is none. */
static uint32_t find_param(const parser *p, const ms_policy *policy, piece key,
                           bool has_value)
{
    const char *own =
        has_value ? ms_policywords_param(p->text + key.at, key.length) : NULL;
    uint32_t row = 0;
    for (; row < policy->n_params; row++) {
        const ms_param *param = &policy->params[row];
        if (is_name(p, key, param->name) ||
            (!has_value && is_bare(p, param, key)) ||
            (own != NULL && strcmp(own, param->name) == 0))
            break;
    }
    return row;
}

static ms_err check_form(const parser *p, const ms_param *param, piece key,
                         bool named, bool has_value)
{
    char example[64], hint[96];
    bool flag = param->type == MS_PARAM_FLAG;
    if (flag ? !has_value : has_value || !named)
        return MS_OK;
    snprintf(hint, sizeof hint, "write %s",
             spelled(param, example, sizeof example));
    point(p, key.at);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", hint, "\"%s\" %s",
                   param->name, flag ? "takes no value" : "needs a value");
}

static ms_err fail_twice(const parser *p, piece key, const char *name)
{
    point(p, key.at);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", NULL,
                   "\"%s\" is given twice", name);
}

/* Is it the argument that makes the policy a variant of the one written? */
static bool is_variant_by(const parser *p, const struct ms_spec_item *item,
                          piece key)
{
    const char *by = item->policy->variant_by;
    return item->is_variant && strcspn(by, "=") == key.length &&
           memcmp(p->text + key.at, by, key.length) == 0;
}

static ms_err parse_argument(parser *p, struct ms_spec_item *item,
                             piece argument)
{
    const ms_policy *policy = item->policy;
    bool bare;
    piece value = argument;
    piece key = cut(p, &value, '=', &bare);
    if (is_variant_by(p, item, key)) {
        bool twice = p->has_variant;
        p->has_variant = true;
        return twice ? fail_twice(p, key, "impl") : MS_OK;
    }
    uint32_t row = find_param(p, policy, key, !bare);
    if (row == policy->n_params)
        return fail_argument(p, item, key);
    const ms_param *param = &policy->params[row];
    bool named = !bare || is_name(p, key, param->name);
    MS_TRY(check_form(p, param, key, named, !bare));
    if (item->values[row].given)
        return fail_twice(p, key, param->name);
    item->values[row].given = true;
    p->given_at[row] = key.at;
    return parse_value(p, param, named ? value : argument, &item->values[row]);
}

/* Finds the one row of choices that is given, or n_params where the policy has
 * none. */
static ms_err find_choice(const parser *p, const struct ms_spec_item *item,
                          piece whole, uint32_t *chosen)
{
    const ms_policy *policy = item->policy;
    uint32_t choices = 0;
    char hint[384] = "choose one of: ";
    *chosen = policy->n_params;
    for (uint32_t i = 0; i < policy->n_params; i++) {
        choices += policy->params[i].choice;
        if (!policy->params[i].choice || !item->values[i].given)
            continue;
        if (*chosen < i) {
            size_t a = p->given_at[*chosen], b = p->given_at[i];
            point(p, a > b ? a : b);
            list_params(policy, true, hint, sizeof hint);
            return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                           "\"%s\" and \"%s\" contradict each other",
                           policy->params[*chosen].name,
                           policy->params[i].name);
        }
        *chosen = i;
    }
    if (choices == 0 || *chosen < policy->n_params)
        return MS_OK;
    list_params(policy, true, hint, sizeof hint);
    if (choices == 1 && policy->example != NULL)
        snprintf(hint, sizeof hint, "for example %s", policy->example);
    point(p, whole.at);
    return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                   "policy \"%s\" does not say what to do", policy->name);
}

/* Checks that exactly one choice is given, and beside it only what goes with
 * it. */
static ms_err check_choice(const parser *p, const struct ms_spec_item *item,
                           piece whole)
{
    const ms_policy *policy = item->policy;
    uint32_t chosen;
    char hint[128];
    MS_TRY(find_choice(p, item, whole, &chosen));
    for (uint32_t i = 0; i < policy->n_params; i++) {
        const ms_param *param = &policy->params[i];
        if (!item->values[i].given || param->with == NULL)
            continue;
        assert(chosen < policy->n_params);
        if (ms_policywords_lists(param->with, policy->params[chosen].name))
            continue;
        snprintf(hint, sizeof hint, "it goes with %s", param->with);
        point(p, p->given_at[i]);
        return ms_fail(p->fault, MS_EUSAGE, "--policy", hint,
                       "\"%s\" means nothing beside \"%s\"", param->name,
                       policy->params[chosen].name);
    }
    return MS_OK;
}

/* ---- policies ------------------------------------------------------------ */

/* The variant is chosen before the arguments are read, since each variant has
 * parameters of its own. */
static ms_err parse_policy(parser *p, piece whole, ms_spec *spec)
{
    bool last;
    piece rest = whole;
    piece name = cut(p, &rest, ':', &last);
    struct ms_spec_item item = {0};
    const ms_policy *named = NULL;
    for (uint32_t i = 0; i < ms_registry_n(); i++)
        if (is_name(p, name, ms_registry_row(i)->name))
            named = ms_registry_row(i);
    if (named == NULL)
        return fail_policy(p, name);
    item.policy = ms_registry_variant(named, p->text + rest.at, rest.length);
    item.is_variant = item.policy != named;
    p->has_variant = false;
    for (uint32_t i = 0; i < item.policy->n_params; i++)
        item.values[i].number = item.policy->params[i].fallback;
    while (!last) {
        piece argument = cut(p, &rest, ',', &last);
        MS_TRY(parse_argument(p, &item, argument));
    }
    MS_TRY(check_choice(p, &item, whole));
    if (!ms_spec_join_fits(spec, &item))
        point(p, name.at);
    return ms_spec_join_one(spec, &item, p->fault);
}

ms_err ms_spec_parse(const char *text, ms_arena *arena, ms_spec *spec,
                     ms_fault *fault)
{
    parser p = {.length = strlen(text), .arena = arena, .fault = fault};
    if (p.length > MOST_BYTES)
        return ms_fail(fault, MS_EUSAGE, "--policy", NULL,
                       "a policy of %zu bytes; at most %u", p.length,
                       MOST_BYTES);
    MS_TRY(ms_policywords_plain(text, arena, &p.text, fault));
    p.length = strlen(p.text);
    piece rest = {0, p.length};
    bool last = false;
    while (!last) {
        piece whole = cut(&p, &rest, '+', &last);
        MS_TRY(parse_policy(&p, whole, spec));
    }
    return MS_OK;
}
