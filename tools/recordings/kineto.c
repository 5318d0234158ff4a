/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/recordings/kineto.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (1u << 20)
#define MOST_EVENT_BYTES (1u << 26)
#define MOST_DIGITS 15u /* of microseconds: what is longer is a double */
#define MOST_NS (INT64_MAX / 4)

/* ---- the buffer ---------------------------------------------------------- */

/* Reads more behind what is left, which is moved to the front. */
static ms_err fill(ms_kineto *t, ms_fault *fault)
{
    size_t left = t->end - t->at, n;
    if (t->at > 0)
        memmove(t->bytes, t->bytes + t->at, left);
    t->before += t->at;
    t->at = 0;
    t->end = left;
    if (t->capacity < left + PIECE_BYTES / 2) {
        t->bytes = ms_arena_grow(t->arena, t->bytes, &t->capacity,
                                 (uint32_t)left + PIECE_BYTES, 1);
        if (t->bytes == NULL)
            return ms_fail_nomem(fault);
    }
    MS_TRY(ms_inflate_read(t->in, t->bytes + t->end, t->capacity - t->end, &n,
                           fault));
    t->end += n;
    t->is_over = n == 0;
    return MS_OK;
}

static ms_err fail_at(const ms_kineto *t, const char *hint, const char *what,
                      ms_fault *fault)
{
    return ms_fail(
        fault, MS_EINPUT, t->name, hint, "byte %llu, behind %llu events: %s",
        (unsigned long long)t->before + t->at, (unsigned long long)t->n, what);
}

static ms_err fail_short(const ms_kineto *t, ms_fault *fault)
{
    return fail_at(t,
                   "export the trace again: the profiler was ended while it "
                   "wrote, or the disk was full",
                   "the trace ends here, within its events", fault);
}

/* ---- values -------------------------------------------------------------- */

/* Where a walk over one event is.  It runs out where the buffer ends: then more
 * is read and the walk begins anew. */
typedef struct walk {
    const char *at, *end;
    bool is_out, is_wrong;
} walk;

static int skip_blanks(walk *w)
{
    while (w->at < w->end && (unsigned char)*w->at <= ' ')
        w->at++;
    w->is_out |= w->at == w->end;
    return w->at < w->end ? (unsigned char)*w->at : -1;
}

static bool expect(walk *w, char wanted)
{
    int found = skip_blanks(w);
    w->is_wrong |= found >= 0 && found != wanted;
    w->at += found == wanted;
    return found == wanted;
}

/* At a quote. */
static ms_kineto_slice take_string(walk *w)
{
    const char *first = ++w->at;
    for (;;) {
        const char *quote = memchr(w->at, '"', (size_t)(w->end - w->at));
        if (quote == NULL) {
            w->is_out = true;
            return (ms_kineto_slice){first, 0};
        }
        const char *back = quote;
        while (back > first && back[-1] == '\\')
            back--;
        w->at = quote + 1;
        if ((quote - back) % 2 == 0)
            return (ms_kineto_slice){first, (uint32_t)(quote - first)};
    }
}

/* At a bracket: to behind the one that closes it. */
static void skip_nested(walk *w)
{
    uint32_t depth = 0;
    while (w->at < w->end) {
        char c = *w->at;
        if (c == '"') {
            take_string(w);
            if (w->is_out)
                return;
            continue;
        }
        w->at++;
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0)
            return;
    }
    w->is_out = true;
}

static bool ends_value(char c)
{
    return c == ',' || c == '}' || c == ']' || (unsigned char)c <= ' ';
}

/* A value as it stands; a string without its quotes. */
static ms_kineto_slice take_value(walk *w)
{
    int c = skip_blanks(w);
    const char *first = w->at;
    if (c == '"')
        return take_string(w);
    if (c == '{' || c == '[')
        skip_nested(w);
    else
        while (w->at < w->end && !ends_value(*w->at))
            w->at++;
    w->is_out |= w->at == w->end;
    w->is_wrong |= !w->is_out && w->at == first;
    return (ms_kineto_slice){first, (uint32_t)(w->at - first)};
}

/* 0: it is none. */
static uint64_t whole_of(ms_kineto_slice s)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < s.length && s.bytes[i] >= '0' && s.bytes[i] <= '9';
         i++)
        value = i < 19 ? value * 10 + (uint64_t)(s.bytes[i] - '0') : UINT64_MAX;
    return value;
}

/* What is longer, or has an exponent; ends at the ends of a time in ns. */
static bool read_long(ms_kineto_slice s, int64_t *ns)
{
    char digits[64], *end;
    if (s.length == 0 || s.length >= sizeof digits)
        return false;
    memcpy(digits, s.bytes, s.length);
    digits[s.length] = '\0';
    if (digits[strspn(digits, "0123456789.eE+-")] != '\0')
        return false;
    double us = strtod(digits, &end);
    double most = (double)MOST_NS / 1000;
    if (end != digits + s.length)
        return false;
    us = us > most ? most : us < -most ? -most : us;
    *ns = (int64_t)(us * 1000);
    return true;
}

/* Microseconds with up to three places, in ns; false: it is no number. */
static bool read_ns(ms_kineto_slice s, int64_t *ns)
{
    bool negative = s.length > 0 && s.bytes[0] == '-';
    int64_t value = 0;
    uint32_t i = negative, places = 0;
    for (; i < s.length && s.bytes[i] >= '0' && s.bytes[i] <= '9'; i++)
        value = i < MOST_DIGITS ? value * 10 + (s.bytes[i] - '0') : value;
    if (i == (uint32_t)negative || i > MOST_DIGITS)
        return read_long(s, ns);
    if (i < s.length && s.bytes[i] == '.')
        for (i++; i < s.length && s.bytes[i] >= '0' && s.bytes[i] <= '9'; i++)
            if (places++ < 3)
                value = value * 10 + (s.bytes[i] - '0');
    if (i < s.length)
        return read_long(s, ns);
    for (; places < 3; places++)
        value *= 10;
    *ns = negative ? -value : value;
    return true;
}

/* ---- events -------------------------------------------------------------- */

static bool is(ms_kineto_slice s, const char *word)
{
    return s.length == strlen(word) && memcmp(s.bytes, word, s.length) == 0;
}

static const struct {
    const char *word;
    ms_kineto_kind kind;
} categories[] = {
    {"cpu_op", MS_KINETO_OP},
    {"kernel", MS_KINETO_KERNEL},
    {"cuda_runtime", MS_KINETO_RUNTIME},
    {"cuda_driver", MS_KINETO_RUNTIME},
    {"gpu_memcpy", MS_KINETO_COPY},
    {"gpu_memset", MS_KINETO_FILL},
    {"user_annotation", MS_KINETO_NOTE},
    {"Operator", MS_KINETO_OP}, /* until torch 1.12 */
    {"Kernel", MS_KINETO_KERNEL},
    {"Runtime", MS_KINETO_RUNTIME},
    {"Memcpy", MS_KINETO_COPY},
    {"Memset", MS_KINETO_FILL},
};

static ms_kineto_kind kind_of(ms_kineto_slice word)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (is(word, categories[i].word))
            return categories[i].kind;
    return MS_KINETO_OTHER;
}

/* By length first: most keys are none of these. */
static void set_argument(ms_kineto_event *e, ms_kineto_slice key,
                         ms_kineto_slice value)
{
    switch (key.length) {
    case 5:
        if (is(key, "bytes"))
            e->bytes = whole_of(value);
        else if (is(key, "dtype"))
            e->dtype = value;
        return;
    case 6:
        if (is(key, "stream"))
            e->stream = whole_of(value);
        return;
    case 10:
        if (is(key, "Input Dims") || is(key, "Input dims"))
            e->dims = value;
        else if (is(key, "Input type"))
            e->types = value;
        else if (is(key, "Group size"))
            e->ranks = whole_of(value);
        return;
    case 11:
        if (is(key, "External id") || is(key, "external id"))
            e->external = whole_of(value);
        else if (is(key, "correlation"))
            e->correlation = whole_of(value);
        return;
    case 13:
        if (is(key, "In msg nelems"))
            e->n_elements = whole_of(value);
        return;
    case 15:
        if (is(key, "Concrete Inputs"))
            e->concrete = value;
        else if (is(key, "Collective name"))
            e->collective = value;
        return;
    default:
        return;
    }
}

static void set_member(ms_kineto_event *e, ms_kineto_slice key,
                       ms_kineto_slice value, bool *lasts)
{
    if (is(key, "name")) {
        e->name = value;
    } else if (is(key, "cat")) {
        e->kind = kind_of(value);
    } else if (is(key, "ts")) {
        read_ns(value, &e->t_ns);
    } else if (is(key, "tid")) {
        e->thread = whole_of(value);
    } else if (is(key, "dur")) {
        int64_t ns = 0;
        *lasts = read_ns(value, &ns);
        e->ns = ns > 0 ? (uint64_t)ns : 0;
    }
}

static void take_args(walk *w, ms_kineto_event *e);

/* One member, of the event or of its "args". */
static void take_member(walk *w, ms_kineto_event *e, bool args, bool *lasts)
{
    if (skip_blanks(w) != '"') {
        w->is_wrong |= !w->is_out;
        return;
    }
    ms_kineto_slice key = take_string(w);
    if (w->is_out || !expect(w, ':'))
        return;
    if (!args && is(key, "args") && skip_blanks(w) == '{') {
        take_args(w, e);
        return;
    }
    ms_kineto_slice value = take_value(w);
    if (args)
        set_argument(e, key, value);
    else
        set_member(e, key, value, lasts);
}

/* Between braces. */
static void take_members(walk *w, ms_kineto_event *e, bool args, bool *lasts)
{
    if (!expect(w, '{'))
        return;
    while (skip_blanks(w) != '}' && !w->is_out && !w->is_wrong) {
        take_member(w, e, args, lasts);
        if (!w->is_out && !w->is_wrong && skip_blanks(w) == ',')
            w->at++;
        else if (!w->is_out && *w->at != '}')
            w->is_wrong = true;
    }
    if (!w->is_wrong)
        expect(w, '}');
}

static void take_args(walk *w, ms_kineto_event *e)
{
    bool lasts;
    take_members(w, e, true, &lasts);
}

/* One element of the list: at its first byte. */
static ms_err take_event(ms_kineto *t, ms_kineto_event *e, bool *lasts,
                         ms_fault *fault)
{
    for (;;) {
        walk w = {.at = t->bytes + t->at, .end = t->bytes + t->end};
        *e = (ms_kineto_event){.kind = MS_KINETO_OTHER};
        *lasts = false;
        take_members(&w, e, false, lasts);
        if (w.is_wrong && !w.is_out) {
            t->at = (size_t)(w.at - t->bytes);
            return fail_at(t, "is it the file as torch.profiler wrote it?",
                           "this is no event of a trace", fault);
        }
        if (!w.is_out) {
            t->at = (size_t)(w.at - t->bytes);
            t->n++;
            return MS_OK;
        }
        if (t->is_over)
            return fail_short(t, fault);
        if (t->end - t->at > MOST_EVENT_BYTES)
            return fail_at(t, NULL, "an event of more than 64 MiB", fault);
        MS_TRY(fill(t, fault));
    }
}

/* ---- the file ------------------------------------------------------------ */

/* The next byte that is not blank; 0: the end. */
static ms_err peek(ms_kineto *t, char *c, ms_fault *fault)
{
    for (;;) {
        while (t->at < t->end && (unsigned char)t->bytes[t->at] <= ' ')
            t->at++;
        if (t->at < t->end) {
            *c = t->bytes[t->at];
            return MS_OK;
        }
        *c = 0;
        if (t->is_over)
            return MS_OK;
        MS_TRY(fill(t, fault));
    }
}

#define LIST "\"traceEvents\""
#define LIST_BYTES (sizeof LIST - 1)

/* Goes behind the list's name, wherever it is. */
static ms_err find_name(ms_kineto *t, ms_fault *fault)
{
    for (;;) {
        const char *at = t->bytes + t->at, *end = t->bytes + t->end;
        while ((size_t)(end - at) >= LIST_BYTES) {
            at = memchr(at, '"', (size_t)(end - at));
            if (at == NULL || (size_t)(end - at) < LIST_BYTES)
                break;
            if (memcmp(at, LIST, LIST_BYTES) == 0) {
                t->at = (size_t)(at - t->bytes) + LIST_BYTES;
                return MS_OK;
            }
            at++;
        }
        if (t->is_over)
            return fail_short(t, fault);
        if (t->end - t->at >= LIST_BYTES)
            t->at = t->end - LIST_BYTES + 1;
        MS_TRY(fill(t, fault));
    }
}

/* To the first event: the file is a list, or has one. */
static ms_err find_list(ms_kineto *t, ms_fault *fault)
{
    char c;
    MS_TRY(peek(t, &c, fault));
    if (c != '[') {
        MS_TRY(find_name(t, fault));
        MS_TRY(peek(t, &c, fault));
        t->at += c == ':';
        MS_TRY(peek(t, &c, fault));
    }
    if (c == 0)
        return fail_short(t, fault);
    if (c != '[')
        return fail_at(t, NULL, "\"traceEvents\" has no list", fault);
    t->at++;
    t->is_in_list = true;
    return MS_OK;
}

/* Behind the word among the first bytes, from `from` on; NULL: it is not there.
 */
static const char *find_word(const ms_kineto *t, size_t from, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = from; i + length <= t->end; i++)
        if (memcmp(t->bytes + i, word, length) == 0)
            return t->bytes + i + length;
    return NULL;
}

/* The first "name" behind "deviceProperties". */
static ms_err find_device(ms_kineto *t, ms_fault *fault)
{
    const char *list = find_word(t, t->at, "\"deviceProperties\"");
    const char *name =
        list != NULL ? find_word(t, (size_t)(list - t->bytes), "\"name\": \"")
                     : NULL;
    if (name == NULL)
        return MS_OK;
    const char *quote = memchr(name, '"', (size_t)(t->bytes + t->end - name));
    if (quote == NULL)
        return MS_OK;
    t->device = ms_arena_text(t->arena, name, (size_t)(quote - name));
    return t->device != NULL ? MS_OK : ms_fail_nomem(fault);
}

bool ms_kineto_has_events(const ms_kineto *t)
{
    size_t at = t->at;
    while (at < t->end && (unsigned char)t->bytes[at] <= ' ')
        at++;
    return find_word(t, t->at, "\"traceEvents\"") != NULL ||
           (at < t->end && t->bytes[at] == '[');
}

ms_err ms_kineto_open(const char *path, ms_arena *arena, ms_kineto *t,
                      ms_fault *fault)
{
    *t = (ms_kineto){.arena = arena,
                     .name = strcmp(path, "-") == 0 ? "standard input" : path};
    MS_TRY(ms_inflate_open(path, arena, &t->in, fault));
    MS_TRY(fill(t, fault));
    t->is_simulated = find_word(t, 0, "\"otherData\":{\"memsim\":") != NULL;
    return find_device(t, fault);
}

/* Behind the last event: only at its end does gzip tell whether what was read
 * is what was written. */
static ms_err read_out(ms_kineto *t, ms_fault *fault)
{
    while (!t->is_over) {
        t->at = t->end;
        MS_TRY(fill(t, fault));
    }
    return MS_OK;
}

ms_err ms_kineto_next(ms_kineto *t, ms_kineto_event *event, bool *more,
                      ms_fault *fault)
{
    char c;
    bool lasts = false;
    if (!t->is_in_list)
        MS_TRY(find_list(t, fault));
    for (*more = true; !lasts;) {
        MS_TRY(peek(t, &c, fault));
        if (c == ',') {
            t->at++;
            MS_TRY(peek(t, &c, fault));
        }
        if (c == 0)
            return fail_short(t, fault);
        *more = c != ']';
        if (!*more)
            return read_out(t, fault);
        MS_TRY(take_event(t, event, &lasts, fault));
    }
    return MS_OK;
}

ms_err ms_kineto_rest(ms_kineto *t, uint32_t most_bytes, ms_fault *fault)
{
    while (!t->is_over) {
        if (t->end - t->at > most_bytes)
            return ms_fail(fault, MS_EINPUT, t->name, NULL,
                           "larger than %u bytes", most_bytes);
        MS_TRY(fill(t, fault));
    }
    t->bytes[t->end] = '\0'; /* the last read had room left */
    return MS_OK;
}

void ms_kineto_close(ms_kineto *t)
{
    ms_inflate_close(t->in);
}
