/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/recordings/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define IN_BYTES (1u << 17)
#define WINDOW 32768u /* how far back a copy reaches */
#define OUT_BYTES (WINDOW + (1u << 17))
#define MOST_COPY 258u
#define FAST 10u /* bits that a table is asked by at once */
#define MOST_BITS 15u
#define MOST_CODES 288u

/* Canonical codes: by their next FAST bits a length (0: longer) and a symbol,
 * and for the longer ones the counts of each length. */
typedef struct codes {
    uint16_t fast[1u << FAST]; /* symbol << 4 | length */
    uint16_t count[MOST_BITS + 1], symbol[MOST_CODES];
} codes;

typedef enum state { PLAIN, HEADER, BLOCK, STORED, CODED, ENDED, DONE } state;

struct ms_inflate {
    const char *path;
    int file;
    state state;
    bool is_last;    /* of the blocks */
    uint64_t bits;   /* read, not used; the next is the lowest */
    uint32_t n_bits; /* of them */
    uint32_t stored; /* bytes of a block that come as they are */
    uint64_t taken;  /* bytes of the file before `in` */
    size_t at, end;  /* in `in` */
    size_t from, to; /* in `out`: made, not handed on */
    bool is_over;    /* the file has no more */
    codes literals, distances;
    unsigned char in[IN_BYTES], out[OUT_BYTES];
};

/* ---- the file ------------------------------------------------------------ */

static ms_err fail_system(const char *path, ms_fault *fault)
{
    return ms_fail(fault, errno == ENOENT ? MS_EINPUT : MS_ESYSTEM, path, NULL,
                   "cannot read: %s", strerror(errno));
}

static ms_err fill(ms_inflate *in, ms_fault *fault)
{
    ssize_t n;
    do
        n = read(in->file, in->in, IN_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_system(in->path, fault);
    in->taken += in->end;
    in->at = 0;
    in->end = (size_t)n;
    in->is_over = n == 0;
    return MS_OK;
}

static ms_err fail_data(const ms_inflate *in, const char *what, ms_fault *fault)
{
    return ms_fail(fault, MS_EINPUT, in->path,
                   "was it copied whole? gzip -t tells",
                   "byte %llu of the compressed file: %s",
                   (unsigned long long)in->taken + in->at, what);
}

/* At least n bits, n <= 32; at the end of the file zeros follow for as many as
 * a table is asked by. */
static ms_err need(ms_inflate *in, uint32_t n, ms_fault *fault)
{
    while (in->n_bits < n) {
        if (in->at == in->end && !in->is_over)
            MS_TRY(fill(in, fault));
        if (in->at == in->end)
            return fail_data(in, "it ends here, within the data", fault);
        in->bits |= (uint64_t)in->in[in->at++] << in->n_bits;
        in->n_bits += 8;
    }
    return MS_OK;
}

static ms_err take(ms_inflate *in, uint32_t n, uint32_t *value, ms_fault *fault)
{
    MS_TRY(need(in, n, fault));
    *value = (uint32_t)(in->bits & ((UINT64_C(1) << n) - 1));
    in->bits >>= n;
    in->n_bits -= n;
    return MS_OK;
}

/* ---- codes --------------------------------------------------------------- */

static uint32_t reversed(uint32_t code, uint32_t n)
{
    uint32_t back = 0;
    for (uint32_t i = 0; i < n; i++)
        back |= (code >> i & 1) << (n - 1 - i);
    return back;
}

/* RFC 1951, 3.2.2.  False: the lengths are of no code. */
static bool make_codes(codes *made, const uint8_t *lengths, uint32_t n)
{
    uint32_t offset[MOST_BITS + 2] = {0}, next[MOST_BITS + 2] = {0};
    int32_t left = 1;
    memset(made->count, 0, sizeof made->count);
    memset(made->fast, 0, sizeof made->fast);
    for (uint32_t i = 0; i < n; i++)
        made->count[lengths[i]]++;
    made->count[0] = 0;
    for (uint32_t i = 1; i <= MOST_BITS; i++) {
        left = 2 * left - made->count[i];
        if (left < 0)
            return false;
        offset[i + 1] = offset[i] + made->count[i];
        next[i + 1] = (next[i] + made->count[i]) << 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t length = lengths[i];
        if (length == 0)
            continue;
        made->symbol[offset[length]++] = (uint16_t)i;
        uint32_t code = reversed(next[length]++, length);
        for (; length <= FAST && code < 1u << FAST; code += 1u << length)
            made->fast[code] = (uint16_t)(i << 4 | length);
    }
    return true;
}

/* A code that is longer than the table, bit by bit. */
static ms_err take_long(ms_inflate *in, const codes *of, uint32_t *symbol,
                        ms_fault *fault)
{
    int32_t code = 0, first = 0, index = 0;
    for (uint32_t length = 1; length <= MOST_BITS; length++) {
        MS_TRY(need(in, length, fault));
        code |= (int32_t)(in->bits >> (length - 1) & 1);
        if (code - of->count[length] < first) {
            *symbol = of->symbol[index + (code - first)];
            in->bits >>= length;
            in->n_bits -= length;
            return MS_OK;
        }
        index += of->count[length];
        first = (first + of->count[length]) << 1;
        code <<= 1;
    }
    return fail_data(in, "there is no such code", fault);
}

static ms_err take_symbol(ms_inflate *in, const codes *of, uint32_t *symbol,
                          ms_fault *fault)
{
    while (in->n_bits < MOST_BITS && in->at < in->end) {
        in->bits |= (uint64_t)in->in[in->at++] << in->n_bits;
        in->n_bits += 8;
    }
    uint16_t found = of->fast[in->bits & ((1u << FAST) - 1)];
    uint32_t length = found & 15;
    if (length == 0 || length > in->n_bits)
        return take_long(in, of, symbol, fault);
    *symbol = found >> 4;
    in->bits >>= length;
    in->n_bits -= length;
    return MS_OK;
}

/* ---- blocks -------------------------------------------------------------- */

static void fixed_codes(ms_inflate *in)
{
    uint8_t lengths[MOST_CODES];
    for (uint32_t i = 0; i < MOST_CODES; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_codes(&in->literals, lengths, MOST_CODES);
    memset(lengths, 5, 30);
    make_codes(&in->distances, lengths, 30);
}

/* One of the lengths 16 to 18: so many times the one before, or none. */
static ms_err take_run(ms_inflate *in, uint32_t symbol, uint32_t *times,
                       ms_fault *fault)
{
    MS_TRY(take(in, symbol == 16 ? 2 : symbol == 17 ? 3 : 7, times, fault));
    *times += symbol == 18 ? 11 : 3;
    return MS_OK;
}

static ms_err take_lengths(ms_inflate *in, uint8_t *lengths, uint32_t n,
                           ms_fault *fault)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t symbol, times = 1;
        MS_TRY(take_symbol(in, &in->literals, &symbol, fault));
        if (symbol > 15)
            MS_TRY(take_run(in, symbol, &times, fault));
        uint8_t value = symbol < 16    ? (uint8_t)symbol
                        : symbol == 16 ? lengths[i > 0 ? i - 1 : 0]
                                       : 0;
        if (times > n - i || (symbol == 16 && i == 0))
            return fail_data(in, "there are no such codes", fault);
        while (times-- > 0)
            lengths[i++] = value;
    }
    return MS_OK;
}

static ms_err own_codes(ms_inflate *in, ms_fault *fault)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[MOST_CODES + 32] = {0};
    uint32_t n_literals, n_distances, n_lengths, length;
    MS_TRY(take(in, 5, &n_literals, fault));
    MS_TRY(take(in, 5, &n_distances, fault));
    MS_TRY(take(in, 4, &n_lengths, fault));
    n_literals += 257;
    n_distances += 1;
    for (uint32_t i = 0; i < n_lengths + 4; i++) {
        MS_TRY(take(in, 3, &length, fault));
        lengths[order[i]] = (uint8_t)length;
    }
    if (n_literals > MOST_CODES || !make_codes(&in->literals, lengths, 19))
        return fail_data(in, "there are no such codes", fault);
    MS_TRY(take_lengths(in, lengths, n_literals + n_distances, fault));
    if (!make_codes(&in->distances, lengths + n_literals, n_distances) ||
        !make_codes(&in->literals, lengths, n_literals))
        return fail_data(in, "there are no such codes", fault);
    return MS_OK;
}

static ms_err begin_stored(ms_inflate *in, ms_fault *fault)
{
    uint32_t n, inverse;
    in->bits >>= in->n_bits % 8;
    in->n_bits -= in->n_bits % 8;
    MS_TRY(take(in, 16, &n, fault));
    MS_TRY(take(in, 16, &inverse, fault));
    if (n != (~inverse & 0xffff))
        return fail_data(in, "a block has two lengths", fault);
    in->stored = n;
    in->state = STORED;
    return MS_OK;
}

static ms_err begin_block(ms_inflate *in, ms_fault *fault)
{
    uint32_t last, kind;
    MS_TRY(take(in, 1, &last, fault));
    MS_TRY(take(in, 2, &kind, fault));
    in->is_last = last == 1;
    in->state = CODED;
    if (kind == 0)
        return begin_stored(in, fault);
    if (kind == 2)
        return own_codes(in, fault);
    if (kind == 3)
        return fail_data(in, "there is no such kind of block", fault);
    fixed_codes(in);
    return MS_OK;
}

static ms_err take_copy(ms_inflate *in, uint32_t symbol, ms_fault *fault)
{
    static const uint16_t lengths[] = {
        3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1,
                                          1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                          4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distances[] = {
        1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
        33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
        1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    uint32_t more, far;
    if (symbol > 28)
        return fail_data(in, "there is no such length", fault);
    MS_TRY(take(in, length_bits[symbol], &more, fault));
    uint32_t length = lengths[symbol] + more;
    MS_TRY(take_symbol(in, &in->distances, &far, fault));
    if (far > 29)
        return fail_data(in, "there is no such distance", fault);
    MS_TRY(take(in, far < 4 ? 0 : far / 2 - 1, &more, fault));
    size_t distance = distances[far] + more;
    if (distance > in->to)
        return fail_data(in, "a copy begins before the data", fault);
    unsigned char *to = in->out + in->to;
    const unsigned char *from = to - distance;
    for (uint32_t i = 0; i < length; i++)
        to[i] = from[i];
    in->to += length;
    return MS_OK;
}

static ms_err go_coded(ms_inflate *in, ms_fault *fault)
{
    while (in->to + MOST_COPY < OUT_BYTES) {
        uint32_t symbol = 0;
        MS_TRY(take_symbol(in, &in->literals, &symbol, fault));
        if (symbol < 256) {
            in->out[in->to++] = (unsigned char)symbol;
        } else if (symbol == 256) {
            in->state = in->is_last ? ENDED : BLOCK;
            return MS_OK;
        } else {
            MS_TRY(take_copy(in, symbol - 257, fault));
        }
    }
    return MS_OK;
}

static ms_err go_stored(ms_inflate *in, ms_fault *fault)
{
    for (; in->stored > 0 && in->to < OUT_BYTES; in->stored--) {
        uint32_t byte;
        MS_TRY(take(in, 8, &byte, fault));
        in->out[in->to++] = (unsigned char)byte;
    }
    if (in->stored == 0)
        in->state = in->is_last ? ENDED : BLOCK;
    return MS_OK;
}

/* ---- the format around them (RFC 1952) ----------------------------------- */

static ms_err skip_text(ms_inflate *in, ms_fault *fault)
{
    uint32_t byte;
    do
        MS_TRY(take(in, 8, &byte, fault));
    while (byte != 0);
    return MS_OK;
}

static ms_err take_header(ms_inflate *in, ms_fault *fault)
{
    uint32_t magic, method, flags, rest, n;
    MS_TRY(take(in, 16, &magic, fault));
    MS_TRY(take(in, 8, &method, fault));
    MS_TRY(take(in, 8, &flags, fault));
    MS_TRY(take(in, 32, &rest, fault));
    MS_TRY(take(in, 16, &rest, fault));
    if (magic != 0x8b1f || method != 8)
        return fail_data(in, "it is no gzip file", fault);
    if ((flags & 4) != 0) {
        MS_TRY(take(in, 16, &n, fault));
        for (; n > 0; n--)
            MS_TRY(take(in, 8, &rest, fault));
    }
    if ((flags & 8) != 0)
        MS_TRY(skip_text(in, fault));
    if ((flags & 16) != 0)
        MS_TRY(skip_text(in, fault));
    if ((flags & 2) != 0)
        MS_TRY(take(in, 16, &rest, fault));
    in->state = BLOCK;
    return MS_OK;
}

/* Behind the last block: checksum and length, then perhaps another file. */
static ms_err end_member(ms_inflate *in, bool *more, ms_fault *fault)
{
    uint32_t rest;
    in->bits >>= in->n_bits % 8;
    in->n_bits -= in->n_bits % 8;
    MS_TRY(take(in, 32, &rest, fault));
    MS_TRY(take(in, 32, &rest, fault));
    if (in->n_bits == 0 && in->at == in->end)
        MS_TRY(fill(in, fault));
    *more = in->n_bits > 0 || in->at < in->end;
    in->state = *more ? HEADER : DONE;
    return MS_OK;
}

/* Makes more bytes; none: there are none. */
static ms_err inflate_more(ms_inflate *in, ms_fault *fault)
{
    size_t kept = in->to < WINDOW ? in->to : WINDOW;
    memmove(in->out, in->out + in->to - kept, kept);
    in->from = in->to = kept;
    while (in->from == in->to && in->state != DONE) {
        bool more = true;
        if (in->state == ENDED)
            MS_TRY(end_member(in, &more, fault));
        if (!more)
            return MS_OK;
        if (in->state == HEADER)
            MS_TRY(take_header(in, fault));
        if (in->state == BLOCK)
            MS_TRY(begin_block(in, fault));
        MS_TRY(in->state == STORED ? go_stored(in, fault)
                                   : go_coded(in, fault));
    }
    return MS_OK;
}

/* ---- what others call ---------------------------------------------------- */

ms_err ms_inflate_open(const char *path, ms_arena *arena, ms_inflate **in,
                       ms_fault *fault)
{
    ms_inflate *made = ms_arena_take(arena, 1, sizeof *made);
    *in = made;
    if (made == NULL)
        return ms_fail_nomem(fault);
    bool is_input = strcmp(path, "-") == 0;
    made->path = is_input ? "standard input" : path;
    made->file = is_input ? STDIN_FILENO : open(path, O_RDONLY);
    if (made->file < 0)
        return fail_system(path, fault);
    MS_TRY(fill(made, fault));
    if (made->end >= 2 && made->in[0] == 0x1f && made->in[1] == 0x8b)
        made->state = HEADER;
    return MS_OK;
}

ms_err ms_inflate_read(ms_inflate *in, char *bytes, size_t room, size_t *n,
                       ms_fault *fault)
{
    if (in->state == PLAIN) {
        if (in->at == in->end && !in->is_over)
            MS_TRY(fill(in, fault));
        size_t left = in->end - in->at;
        *n = left < room ? left : room;
        memcpy(bytes, in->in + in->at, *n);
        in->at += *n;
        return MS_OK;
    }
    if (in->from == in->to)
        MS_TRY(inflate_more(in, fault));
    size_t left = in->to - in->from;
    *n = left < room ? left : room;
    memcpy(bytes, in->out + in->from, *n);
    in->from += *n;
    return MS_OK;
}

void ms_inflate_close(ms_inflate *in)
{
    if (in != NULL && in->file > STDIN_FILENO)
        close(in->file);
}
