/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/files/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define IN_BYTES (1u << 17)
#define GZIP_HEADER (15 + 16) /* zlib's windowBits: the largest, in gzip */

struct ms_inflate {
    const char *path;
    int file;
    bool is_packed; /* by gzip */
    bool is_open;   /* stream is to be ended */
    bool is_inside; /* a member of the file that has not ended */
    bool is_over;   /* the file has no more */
    uint64_t taken; /* bytes of the file up to the end of `in` */
    z_stream stream;
    unsigned char in[IN_BYTES];
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
    in->is_over = in->file < 0;
    if (in->is_over) /* it has been given whole */
        return MS_OK;
    do
        n = read(in->file, in->in, IN_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_system(in->path, fault);
    in->taken += (uint64_t)n;
    in->stream.next_in = in->in;
    in->stream.avail_in = (uInt)n;
    in->is_over = n == 0;
    return MS_OK;
}

static ms_err fail_data(const ms_inflate *in, const char *what, ms_fault *fault)
{
    uint64_t at = in->taken - in->stream.avail_in;
    return ms_fail(
        fault, MS_EINPUT, in->path, "was it copied whole? gzip -t tells",
        "byte %llu of the compressed file: %s", (unsigned long long)at, what);
}

/* ---- gzip ---------------------------------------------------------------- */

static voidpf take_memory(voidpf arena, uInt n, uInt size)
{
    return ms_arena_take_raw(arena, n, size);
}

static void keep_memory(voidpf arena, voidpf memory)
{
    (void)arena; /* which gives all back at once */
    (void)memory;
}

static ms_err begin(ms_inflate *in, ms_arena *arena, ms_fault *fault)
{
    in->stream.zalloc = take_memory;
    in->stream.zfree = keep_memory;
    in->stream.opaque = arena;
    if (inflateInit2(&in->stream, GZIP_HEADER) != Z_OK)
        return ms_fail_nomem(fault);
    in->is_packed = in->is_open = true;
    return MS_OK;
}

/* As much as one call of zlib makes of what was read. */
static ms_err inflate_some(ms_inflate *in, ms_fault *fault)
{
    in->is_inside = true;
    switch (inflate(&in->stream, Z_NO_FLUSH)) {
    case Z_OK:
    case Z_BUF_ERROR: /* it wants more of the file */
        return MS_OK;
    case Z_STREAM_END: /* another member may follow */
        in->is_inside = false;
        inflateReset(&in->stream);
        return MS_OK;
    case Z_MEM_ERROR:
        return ms_fail_nomem(fault);
    default:
        return fail_data(
            in, in->stream.msg != NULL ? in->stream.msg : "it is no gzip",
            fault);
    }
}

static ms_err read_packed(ms_inflate *in, char *bytes, size_t room, size_t *n,
                          ms_fault *fault)
{
    uInt most = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
    in->stream.next_out = (Bytef *)bytes;
    in->stream.avail_out = most;
    while (in->stream.avail_out == most) {
        if (in->stream.avail_in == 0 && !in->is_over)
            MS_TRY(fill(in, fault));
        if (in->stream.avail_in == 0 && in->is_inside)
            return fail_data(in, "it ends here, within the data", fault);
        if (in->stream.avail_in == 0)
            break;
        MS_TRY(inflate_some(in, fault));
    }
    *n = most - in->stream.avail_out;
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
    bool packed = made->stream.avail_in >= 2 && made->in[0] == 0x1f &&
                  made->in[1] == 0x8b;
    return packed ? begin(made, arena, fault) : MS_OK;
}

ms_err ms_inflate_read(ms_inflate *in, char *bytes, size_t room, size_t *n,
                       ms_fault *fault)
{
    z_stream *stream = &in->stream;
    if (in->is_packed)
        return read_packed(in, bytes, room, n, fault);
    if (stream->avail_in == 0 && !in->is_over)
        MS_TRY(fill(in, fault));
    *n = stream->avail_in < room ? stream->avail_in : room;
    memcpy(bytes, stream->next_in, *n);
    stream->next_in += *n;
    stream->avail_in -= (uInt)*n;
    return MS_OK;
}

bool ms_inflate_is_packed(const char *bytes, size_t length)
{
    return length >= 2 && (unsigned char)bytes[0] == 0x1f &&
           (unsigned char)bytes[1] == 0x8b;
}

static ms_err unpack(ms_inflate *in, uint64_t most, ms_arena *arena,
                     char **bytes, size_t *length, ms_fault *fault)
{
    uint32_t capacity = 0, used = 0;
    char *out = NULL;
    for (size_t n = 1; n > 0; used += (uint32_t)n) {
        if (used > most)
            return ms_fail(fault, MS_EINPUT, in->path, NULL,
                           "more than %llu bytes, unpacked",
                           (unsigned long long)most);
        out = ms_arena_grow(arena, out, &capacity, used + IN_BYTES, 1);
        if (out == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(read_packed(in, out + used, capacity - used - 1, &n, fault));
    }
    out[used] = '\0';
    *bytes = out;
    *length = used;
    return MS_OK;
}

ms_err ms_inflate_bytes(const char *path, uint64_t most, ms_arena *arena,
                        char **bytes, size_t *length, ms_fault *fault)
{
    ms_arena scratch = {.limit_bytes = arena->limit_bytes};
    ms_inflate *in = ms_arena_take(&scratch, 1, sizeof *in);
    if (in == NULL)
        return ms_fail_nomem(fault);
    in->path = path;
    in->file = -1;
    in->taken = *length;
    in->stream.next_in = (Bytef *)*bytes;
    in->stream.avail_in = (uInt)*length;
    ms_err err = begin(in, &scratch, fault);
    if (err == MS_OK)
        err = unpack(in, most, arena, bytes, length, fault);
    ms_inflate_close(in);
    ms_arena_free(&scratch);
    return err;
}

void ms_inflate_close(ms_inflate *in)
{
    if (in != NULL && in->is_open)
        inflateEnd(&in->stream);
    if (in != NULL && in->file > STDIN_FILENO)
        close(in->file);
}
