/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stack machine that reads Python's pickles, without the opcodes that call
 * or import. Opcodes are those of CPython's Lib/pickletools.py. */
#include "tools/recordings/pickle.h"
#include "policies/common/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MARK (MS_NONE - 1) /* stands on the stack for the opcode MARK */

typedef struct machine {
    ms_pickle *out;
    ms_arena *arena;
    ms_fault *fault;
    size_t at, opcode_at;
    uint32_t *stack, *memo;
    uint32_t n, n_memo;
    uint32_t stack_room, memo_room, nodes_room, cells_room;
} machine;

/* ---- faults -------------------------------------------------------------- */

static ms_err fail_at(const char *name, size_t at, ms_fault *fault,
                      const char *hint, const char *what)
{
    char where[sizeof fault->where];
    snprintf(where, sizeof where, "%.200s:byte %zu", name, at);
    return ms_fail(fault, MS_EINPUT, where, hint, "%s", what);
}

static ms_err fail(const machine *m, const char *what)
{
    return fail_at(m->out->name, m->opcode_at, m->fault,
                   "is it a whole file of torch.cuda.memory._dump_snapshot?",
                   what);
}

ms_err ms_pickle_fail(const ms_pickle *pickle, uint32_t row, ms_fault *fault,
                      const char *hint, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (row == MS_NONE)
        return ms_fail(fault, MS_EINPUT, pickle->name, hint, "%s", what);
    return fail_at(pickle->name, pickle->nodes[row].at, fault, hint, what);
}

/* ---- bytes --------------------------------------------------------------- */

/* A little-endian number of n <= 8 bytes. */
static ms_err read_le(machine *m, uint32_t n, uint64_t *value)
{
    *value = 0;
    if (m->out->length - m->at < n)
        return fail(m, "the file ends in the middle of a value");
    for (uint32_t i = 0; i < n; i++)
        *value |= (uint64_t)m->out->bytes[m->at + i] << 8 * i;
    m->at += n;
    return MS_OK;
}

static ms_err read_signed(machine *m, uint32_t n, int64_t *value)
{
    uint64_t raw;
    MS_TRY(read_le(m, n, &raw));
    if (n > 0 && n < 8 && (raw >> (8 * n - 1) & 1) != 0)
        raw |= UINT64_MAX << 8 * n;
    *value = (int64_t)raw;
    return MS_OK;
}

/* ---- nodes, stack, memo -------------------------------------------------- */

static ms_err push_row(machine *m, uint32_t row)
{
    m->stack = ms_arena_grow(m->arena, m->stack, &m->stack_room, m->n + 1,
                             sizeof *m->stack);
    if (m->stack == NULL)
        return ms_fail_nomem(m->fault);
    m->stack[m->n++] = row;
    return MS_OK;
}

static ms_err push(machine *m, ms_pickle_node node)
{
    ms_pickle *out = m->out;
    out->nodes = ms_arena_grow(m->arena, out->nodes, &m->nodes_room,
                               out->n_nodes + 1, sizeof *out->nodes);
    if (out->nodes == NULL)
        return ms_fail_nomem(m->fault);
    node.at = (uint32_t)m->opcode_at;
    out->nodes[out->n_nodes] = node;
    return push_row(m, out->n_nodes++);
}

static ms_err push_int(machine *m, uint8_t kind, int64_t value)
{
    return push(m, (ms_pickle_node){.kind = kind, .value = {.i = value}});
}

static ms_err push_container(machine *m, uint8_t kind)
{
    return push(m, (ms_pickle_node){.kind = kind,
                                    .value = {.cell = {MS_NONE, MS_NONE}}});
}

static ms_err push_text(machine *m, uint32_t size_bytes)
{
    uint64_t n;
    MS_TRY(read_le(m, size_bytes, &n));
    if (n > m->out->length - m->at)
        return fail(m, "a string goes beyond the end of the file");
    ms_pickle_node node = {.kind = MS_PICKLE_TEXT,
                           .length = (uint32_t)n,
                           .value = {.i = (int64_t)m->at}};
    m->at += n;
    return push(m, node);
}

static ms_err push_float(machine *m)
{
    uint64_t raw = 0;
    double f;
    if (m->out->length - m->at < 8)
        return fail(m, "the file ends in the middle of a value");
    for (uint32_t i = 0; i < 8; i++)
        raw = raw << 8 | m->out->bytes[m->at++];
    memcpy(&f, &raw, sizeof f);
    return push(m,
                (ms_pickle_node){.kind = MS_PICKLE_FLOAT, .value = {.f = f}});
}

static ms_err push_long(machine *m, uint32_t size_bytes)
{
    uint64_t n;
    int64_t value = 0;
    MS_TRY(read_le(m, size_bytes, &n));
    if (n > 8)
        return fail(m, "an integer has more than 64 bits");
    if (n > 0)
        MS_TRY(read_signed(m, (uint32_t)n, &value));
    return push_int(m, MS_PICKLE_INT, value);
}

static ms_err put_memo(machine *m, uint64_t slot)
{
    if (m->n == 0 || m->stack[m->n - 1] == MARK)
        return fail(m, "a memo slot is set while the stack is empty");
    /* Pickles number their memo's slots 0, 1, 2, ...; a slot far beyond the
     * last would only make us allocate what a file of a few bytes asks for. */
    if (slot > m->n_memo)
        return fail(m, "a memo slot is set out of order");
    if (slot == m->n_memo) {
        m->memo = ms_arena_grow(m->arena, m->memo, &m->memo_room, m->n_memo + 1,
                                sizeof *m->memo);
        if (m->memo == NULL)
            return ms_fail_nomem(m->fault);
        m->n_memo++;
    }
    m->memo[slot] = m->stack[m->n - 1];
    return MS_OK;
}

static ms_err get_memo(machine *m, uint32_t size_bytes)
{
    uint64_t slot;
    MS_TRY(read_le(m, size_bytes, &slot));
    if (slot >= m->n_memo)
        return fail(m, "a memo slot is read that was never set");
    return push_row(m, m->memo[slot]);
}

/* ---- containers ---------------------------------------------------------- */

static ms_err add(machine *m, uint32_t row, uint32_t key, uint32_t value)
{
    ms_pickle *out = m->out;
    if (key == MARK || value == MARK)
        return fail(m, "a mark stands where a value belongs");
    out->cells = ms_arena_grow(m->arena, out->cells, &m->cells_room,
                               out->n_cells + 1, sizeof *out->cells);
    if (out->cells == NULL)
        return ms_fail_nomem(m->fault);
    ms_pickle_node *node = &out->nodes[row];
    uint32_t cell = out->n_cells++;
    out->cells[cell] = (ms_pickle_cell){key, value, MS_NONE};
    if (node->value.cell[0] == MS_NONE)
        node->value.cell[0] = cell;
    else
        out->cells[node->value.cell[1]].next = cell;
    node->value.cell[1] = cell;
    node->length++;
    return MS_OK;
}

/* The number of values above the last mark on the stack. */
static ms_err count_above(const machine *m, uint32_t *n)
{
    for (*n = 0; *n < m->n; ++*n)
        if (m->stack[m->n - 1 - *n] == MARK)
            return MS_OK;
    return fail(m, "an opcode needs a mark, and the stack has none");
}

/* Moves the last n values of the stack into the container below them. With
 * `marked` a mark lies between, which goes, too. A dict takes pairs. */
static ms_err add_last(machine *m, uint32_t n, bool marked, uint8_t kind)
{
    uint32_t below = n + (marked ? 1 : 0),
             step = kind == MS_PICKLE_DICT ? 2 : 1;
    if (m->n < below + 1 || n % step != 0)
        return fail(m, "an opcode needs more values than the stack has");
    uint32_t row = m->stack[m->n - below - 1];
    if (row == MARK || m->out->nodes[row].kind != kind)
        return fail(m, kind == MS_PICKLE_DICT
                           ? "keys are set in a value that is no dict"
                           : "values are appended to one that is no list");
    const uint32_t *values = m->stack + m->n - n;
    for (uint32_t i = 0; i < n; i += step)
        MS_TRY(
            add(m, row, step == 2 ? values[i] : MS_NONE, values[i + step - 1]));
    m->n -= below;
    return MS_OK;
}

/* Replaces the last n values (and the mark below them, if `marked`) by a new
 * container that holds them. */
static ms_err gather(machine *m, uint32_t n, bool marked, uint8_t kind)
{
    uint32_t step = kind == MS_PICKLE_DICT ? 2 : 1;
    if (m->n < n || n % step != 0)
        return fail(m, "an opcode needs more values than the stack has");
    MS_TRY(push_container(m, kind));
    uint32_t row = m->stack[--m->n];
    const uint32_t *values = m->stack + m->n - n;
    for (uint32_t i = 0; i < n; i += step)
        MS_TRY(
            add(m, row, step == 2 ? values[i] : MS_NONE, values[i + step - 1]));
    m->n -= n + (marked ? 1 : 0);
    return push_row(m, row);
}

static ms_err from_mark(machine *m, bool fresh, uint8_t kind)
{
    uint32_t n;
    MS_TRY(count_above(m, &n));
    return fresh ? gather(m, n, true, kind) : add_last(m, n, true, kind);
}

/* ---- opcodes ------------------------------------------------------------- */

static ms_err fail_opcode(const machine *m, unsigned char opcode)
{
    static const unsigned char calls[] = "cRbio\x81\x92\x93\x82\x83\x84PQ";
    char what[96];
    if (memchr(calls, opcode, sizeof calls - 1) != NULL)
        return fail_at(m->out->name, m->opcode_at, m->fault,
                       "a snapshot of torch.cuda.memory._dump_snapshot has "
                       "plain data only",
                       "this pickle would import or call Python code, "
                       "which memsim never does");
    snprintf(what, sizeof what,
             "opcode 0x%02x occurs in no snapshot of PyTorch", opcode);
    return fail(m, what);
}

static ms_err do_number(machine *m, unsigned char opcode)
{
    int64_t value;
    uint64_t raw;
    switch (opcode) {
    case 'J':
        MS_TRY(read_signed(m, 4, &value));
        return push_int(m, MS_PICKLE_INT, value);
    case 'K':
    case 'M':
        MS_TRY(read_le(m, opcode == 'K' ? 1 : 2, &raw));
        return push_int(m, MS_PICKLE_INT, (int64_t)raw);
    case 0x8a:
    case 0x8b:
        return push_long(m, opcode == 0x8a ? 1 : 4);
    case 'G':
        return push_float(m);
    case 'N':
        return push_int(m, MS_PICKLE_NONE, 0);
    case 0x88:
    case 0x89:
        return push_int(m, MS_PICKLE_BOOL, opcode == 0x88);
    default:
        return fail_opcode(m, opcode);
    }
}

static ms_err do_container(machine *m, unsigned char opcode)
{
    switch (opcode) {
    case '}':
        return push_container(m, MS_PICKLE_DICT);
    case ']':
    case ')':
        return push_container(m, MS_PICKLE_LIST);
    case '(':
        return push_row(m, MARK);
    case 'a':
        return add_last(m, 1, false, MS_PICKLE_LIST);
    case 'e':
        return from_mark(m, false, MS_PICKLE_LIST);
    case 's':
        return add_last(m, 2, false, MS_PICKLE_DICT);
    case 'u':
        return from_mark(m, false, MS_PICKLE_DICT);
    case 't':
    case 'l':
        return from_mark(m, true, MS_PICKLE_LIST);
    case 'd':
        return from_mark(m, true, MS_PICKLE_DICT);
    case 0x85:
    case 0x86:
    case 0x87:
        return gather(m, opcode - 0x84u, false, MS_PICKLE_LIST);
    default:
        return do_number(m, opcode);
    }
}

static ms_err do_opcode(machine *m, unsigned char opcode)
{
    uint64_t raw;
    switch (opcode) {
    case 0x80: /* PROTO: the version changes no opcode's meaning */
        MS_TRY(read_le(m, 1, &raw));
        return raw <= 5 ? MS_OK
                        : fail(m, "the pickle's protocol is newer than 5");
    case 0x95:
        return read_le(m, 8, &raw);
    case 'X':
        return push_text(m, 4);
    case 0x8c:
        return push_text(m, 1);
    case 0x8d:
        return push_text(m, 8);
    case 'h':
        return get_memo(m, 1);
    case 'j':
        return get_memo(m, 4);
    case 'q':
    case 'r':
        MS_TRY(read_le(m, opcode == 'q' ? 1 : 4, &raw));
        return put_memo(m, raw);
    case 0x94:
        return put_memo(m, m->n_memo);
    default:
        return do_container(m, opcode);
    }
}

ms_err ms_pickle_read(const char *name, const char *bytes, size_t length,
                      ms_arena *arena, ms_pickle *pickle, ms_fault *fault)
{
    machine m = {.out = pickle, .arena = arena, .fault = fault};
    *pickle = (ms_pickle){
        .name = name, .bytes = (const unsigned char *)bytes, .length = length};
    for (;;) {
        m.opcode_at = m.at;
        if (m.at >= length)
            return fail_at(name, m.at, fault, "is the file complete?",
                           "the file ends before the pickle does");
        unsigned char opcode = pickle->bytes[m.at++];
        if (opcode == '.')
            break;
        MS_TRY(do_opcode(&m, opcode));
    }
    if (m.n != 1 || m.stack[0] == MARK)
        return fail(&m, "the pickle does not end in one value");
    pickle->root = m.stack[0];
    return MS_OK;
}

/* ---- access -------------------------------------------------------------- */

uint32_t ms_pickle_first(const ms_pickle *pickle, uint32_t row)
{
    if (row == MS_NONE || pickle->nodes[row].kind < MS_PICKLE_LIST)
        return MS_NONE;
    return pickle->nodes[row].value.cell[0];
}

bool ms_pickle_is(const ms_pickle *pickle, uint32_t row, const char *text)
{
    const ms_pickle_node *node = &pickle->nodes[row];
    size_t length = strlen(text);
    return node->kind == MS_PICKLE_TEXT && node->length == length &&
           memcmp(pickle->bytes + node->value.i, text, length) == 0;
}

uint32_t ms_pickle_find(const ms_pickle *pickle, uint32_t row, const char *key)
{
    uint32_t found = MS_NONE;
    if (row == MS_NONE || pickle->nodes[row].kind != MS_PICKLE_DICT)
        return MS_NONE;
    for (uint32_t c = ms_pickle_first(pickle, row); c != MS_NONE;
         c = pickle->cells[c].next)
        if (ms_pickle_is(pickle, pickle->cells[c].key, key))
            found = pickle->cells[c].value;
    return found;
}
