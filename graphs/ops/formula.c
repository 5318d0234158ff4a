/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Backward functions written as text; ops.h explains the notation. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

#define MOST_TEMPORARIES 8u

typedef struct word {
    const char *kernel;
    size_t length;     /* of kernel */
    char from;         /* which list: g, i or s; '\0': the gradient itself */
    uint32_t i;        /* the index in that list */
    char dtype;        /* b: bytes, l: int64; '\0': the tensor's */
    char mark;         /* '!': the result, '~': workspace; '\0': a temporary */
    const char *after; /* the start of the next word */
} word;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a word such as "mul.i0b~". */
static word read_word(const char *at)
{
    word w = {.kernel = at};
    while (*at == '_' || is_digit(*at) || (*at >= 'a' && *at <= 'z'))
        at++;
    w.length = (size_t)(at - w.kernel);
    if (*at == '.') {
        w.from = at[1];
        at += 2;
        if (is_digit(*at))
            w.i = (uint32_t)(*at++ - '0');
        if (*at == 'b' || *at == 'l')
            w.dtype = *at++;
    }
    if (*at == '!' || *at == '~')
        w.mark = *at++;
    w.after = at + strspn(at, " ");
    return w;
}

/* The tensor whose shape a word names. */
static uint32_t tensor_of(const ms_node *node, const uint32_t *grads,
                          const word *w)
{
    uint32_t n = w->from == 'g'   ? node->n_outputs
                 : w->from == 's' ? node->n_saved
                                  : node->n_inputs;
    const uint32_t *list = w->from == 'g'   ? grads
                           : w->from == 's' ? node->saved
                                            : node->input;
    return w->i < n ? list[w->i] : grads[0];
}

static uint32_t make(ms_trace *trace, const word *w, uint32_t like,
                     uint32_t grad)
{
    ms_tensor shape = *ms_trace_at(trace, like);
    uint8_t dtype = w->dtype == 'b'   ? MS_BYTE
                    : w->dtype == 'l' ? MS_INT64
                                      : shape.dtype;
    uint32_t y = ms_trace_make(trace, w->mark == '!' ? "grad" : "derivative",
                               dtype, shape.n_dims, shape.size);
    if (y == MS_NONE)
        return y;
    ms_view_lay_out(trace, y, like);
    ms_view_lay_out(trace, y, grad);
    return y;
}

/* Is the word a cast that TensorIterator makes for a kernel on the CPU only?
 * Kernels of CUDA convert as they read. */
static bool is_left_out(const ms_step_settings *settings, const word *w)
{
    return !settings->cpu && w->mark == '~' &&
           strncmp(w->kernel, "_to_copy", w->length) == 0;
}

static uint32_t run_word(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, const word *w)
{
    uint32_t like = tensor_of(node, grads, w), y = MS_NONE;
    const char *name =
        ms_arena_format(trace->arena, "aten::%.*s", (int)w->length, w->kernel);
    if (!name) {
        trace->err = ms_fail_nomem(trace->fault);
        return MS_NONE;
    }
    ms_trace_begin(trace, name);
    ms_trace_read(trace, grads[0]);
    if (node->n_saved > 0) /* inputs that are not saved may be gone */
        ms_trace_read(trace, node->saved[0]);
    if (trace->err)
        return MS_NONE;
    ms_tensor shape = *ms_trace_at(trace, like);
    if (w->mark == '~')
        ms_trace_workspace(
            trace, ms_trace_elements(&shape) *
                       ms_dtypes_bytes[w->dtype == 'b'   ? MS_BYTE
                                       : w->dtype == 'l' ? MS_INT64
                                                         : shape.dtype]);
    else
        y = make(trace, w, like, grads[0]);
    ms_trace_end(trace, (double)ms_trace_elements(&shape), false);
    return y;
}

/* Runs the words up to the end of the section that starts at *at. */
static void run_section(ms_trace *trace, const ms_node *node,
                        const uint32_t *grads, const char *at, uint32_t *out)
{
    uint32_t temporary[MOST_TEMPORARIES], n = 0;
    while (*at != '\0' && *at != ';' && !trace->err) {
        word w = read_word(at);
        uint32_t y = grads[0];
        if (w.from == '\0')
            ms_trace_ref(trace, y);
        else if (!is_left_out(trace->settings, &w))
            y = run_word(trace, node, grads, &w);
        if (w.mark == '!')
            *out = y;
        else if (w.mark == '\0' && n < MOST_TEMPORARIES)
            temporary[n++] = y;
        at = w.after;
    }
    while (n > 0)
        ms_trace_drop(trace, temporary[--n]);
}

void ms_formula_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    const ms_formula *formula = (const ms_formula *)node->rule;
    for (const char *at = formula->makes; *at != '\0' && !trace->err;) {
        uint32_t i = (uint32_t)(*at - '0');
        if (i < node->n_inputs && node->needs[i])
            run_section(trace, node, grads, at + strlen("0: "), &out[i]);
        at += strcspn(at, ";");
        at += strspn(at, "; ");
    }
}

/* Is this a section such as "0: mul.g div.i0!", with every letter in its place?
 */
static bool is_section(const char *at)
{
    uint32_t results = 0, temporaries = 0;
    if (!is_digit(at[0]) || strncmp(at + 1, ": ", 2) != 0)
        return false;
    for (at += 3; *at != '\0' && *at != ';';) {
        word w = read_word(at);
        bool pass = w.from == '\0' && w.mark == '!' && w.length == 4;
        if (w.length == 0 || (!pass && !strchr("gis", w.from)) ||
            (!pass && w.from == '\0') || w.after == at)
            return false;
        results += w.mark == '!';
        temporaries += w.mark == '\0';
        at = w.after;
    }
    return results == 1 && temporaries <= MOST_TEMPORARIES;
}

bool ms_formula_is_sound(const char *makes)
{
    const char *at = makes;
    while (*at != '\0') {
        if (!is_section(at))
            return false;
        at += strcspn(at, ";");
        at += strspn(at, "; ");
    }
    return at > makes;
}
