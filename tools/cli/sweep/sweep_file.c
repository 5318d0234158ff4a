/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of a sweep. A sweep may take hours: unlike other outputs, which are
 * written to a temporary file and renamed, its file grows by whole rows, and
 * rows in it are never thrown away. */

#include "policies/common/policy.h"
#include "tools/cli/sweep/sweep.h"
#include "tools/job/outputs.h"
#include "tools/terminal/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BETWEEN_NS 100000000u /* between two writes: ten writes a second */
#define MOST_WAITING 65536u   /* bytes that wait at most */

static ms_err fail_system(const ms_sweep_file *file, const char *hint,
                          ms_fault *fault)
{
    return ms_fail(fault, MS_ESYSTEM, file->path, hint, "cannot write: %s",
                   strerror(errno));
}

/* ---- opening ------------------------------------------------------------- */

static ms_err check_new(const ms_sweep_file *file, ms_fault *fault)
{
    struct stat link;
    if (errno != ENOENT)
        return fail_system(file, NULL, fault);
    if (lstat(file->path, &link) == 0)
        return ms_fail(fault, MS_ESYSTEM, file->path,
                       "remove the link or create the file it names",
                       "is a symbolic link that leads nowhere");
    return MS_OK;
}

static ms_err check_old(ms_sweep_file *file, const struct stat *now,
                        bool resume, ms_fault *fault)
{
    if (S_ISDIR(now->st_mode))
        return ms_fail(fault, MS_ESYSTEM, file->path, "name a file in it",
                       "is a directory");
    file->regular = S_ISREG(now->st_mode);
    if (resume && !file->regular)
        return ms_fail(
            fault, MS_EUSAGE, file->path, "leave --resume out",
            "is not a regular file: a sweep in it cannot be resumed");
    if (!resume && file->regular && now->st_size > 0)
        return ms_fail(fault, MS_EUSAGE, file->path,
                       "add --resume to continue it, or remove it",
                       "exists already and is not empty");
    return MS_OK;
}

/* Two sweeps into one file would mix their rows. Some file systems have no
 * locks; there nothing prevents it. */
static ms_err lock_file(const ms_sweep_file *file, ms_fault *fault)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(file->fd, F_SETLK, &lock) == 0 ||
        (errno != EACCES && errno != EAGAIN))
        return MS_OK;
    return ms_fail(fault, MS_ESYSTEM, file->path,
                   "wait for it, or name another file",
                   "another memsim is writing it");
}

ms_err ms_sweep_file_open(ms_sweep_file *file, const char *path, bool resume,
                          ms_arena *arena, ms_fault *fault)
{
    struct stat now;
    *file = (ms_sweep_file){.path = path, .fd = -1, .rows.arena = arena};
    if (path == NULL || ms_outputs_is_stdout(path)) {
        file->path = NULL;
        return MS_OK;
    }
    file->regular = true;
    if (stat(path, &now) == 0)
        MS_TRY(check_old(file, &now, resume, fault));
    else
        MS_TRY(check_new(file, fault));
    int access = file->regular ? O_RDWR | O_CREAT : O_WRONLY;
    file->fd = open(path, access | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return fail_system(file,
                           "does its folder exist, and may you write "
                           "there?",
                           fault);
    return file->regular ? lock_file(file, fault) : MS_OK;
}

/* ---- resuming ------------------------------------------------------------ */

/* The lines of a file; `at` is the offset of the next one. */
typedef struct lines {
    const ms_sweep_file *file;
    const char *bytes;
    size_t length, at;
    uint32_t number; /* of the next line, counted from 1 */
} lines;

static size_t line_length(const lines *l)
{
    const char *from = l->bytes + l->at;
    const char *end = memchr(from, '\n', l->length - l->at);
    return end == NULL ? MS_NONE : (size_t)(end - from);
}

static ms_err fail_line(const lines *l, size_t column, const char *hint,
                        const char *what, ms_fault *fault)
{
    char where[256];
    snprintf(where, sizeof where, "%.200s:%" PRIu32 ":%zu", l->file->path,
             l->number, column + 1);
    size_t length = line_length(l);
    if (length == MS_NONE)
        length = l->length - l->at;
    ms_fail_quote(fault, l->bytes + l->at, length, column);
    return ms_fail(fault, MS_EINPUT, where, hint, "%s", what);
}

/* The next line must begin with the expected text. An incomplete one, at the
 * end of the file, must agree as far as it goes. */
static ms_err check_line(const lines *l, const ms_text *expected,
                         const char *what, ms_fault *fault)
{
    size_t length = l->length - l->at, i = 0;
    if (expected->failed)
        return ms_fail_nomem(fault);
    if (length > expected->length)
        length = expected->length;
    while (i < length && l->bytes[l->at + i] == expected->bytes[i])
        i++;
    if (i == length)
        return MS_OK;
    return fail_line(l, i,
                     "resume with the same --grid, --filter, --shard and form, "
                     "or write to another file",
                     what, fault);
}

static ms_err check_header(lines *l, const ms_sweep *sweep, ms_arena *trial,
                           ms_fault *fault)
{
    ms_text header = {.arena = trial};
    ms_sweep_rows_header(sweep, &header);
    if (header.length == 0 && !header.failed)
        return MS_OK;
    MS_TRY(
        check_line(l, &header, "is not the first line of this sweep", fault));
    if (l->length < header.length)
        return MS_OK; /* an incomplete line */
    l->at = header.length;
    l->number++;
    return MS_OK;
}

/* Checks the rows as far as they are whole; *last gets the offset of the last
 * one. */
static ms_err check_rows(lines *l, const ms_sweep *sweep, ms_arena *trial,
                         uint32_t *n, size_t *last, ms_fault *fault)
{
    for (*n = 0; l->at < l->length; (*n)++) {
        ms_text row = {.arena = trial};
        if (*n == sweep->n)
            return fail_line(l, 0, "resume with the same --grid and --shard",
                             "the sweep has no more rows", fault);
        ms_arena_reset(trial);
        ms_sweep_rows_begin(sweep, *n, &row);
        MS_TRY(
            check_line(l, &row, "differs from this row of the sweep", fault));
        size_t length = line_length(l);
        if (length == MS_NONE)
            return MS_OK;
        *last = l->at;
        l->at += length + 1;
        l->number++;
    }
    return MS_OK;
}

static ms_err check_lines(ms_sweep_file *file, lines *l, const ms_sweep *sweep,
                          ms_arena *trial, ms_text *last, ms_fault *fault)
{
    size_t begins = 0;
    MS_TRY(check_header(l, sweep, trial, fault));
    bool torn = !sweep->json && l->at == 0;
    if (!torn)
        MS_TRY(check_rows(l, sweep, trial, &file->found, &begins, fault));
    file->end_bytes = l->at;
    if (file->found > 0)
        ms_text_put(last, l->bytes + begins, l->at - begins);
    return last->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_sweep_file_resume(ms_sweep_file *file, const ms_sweep *sweep,
                            ms_arena *trial, ms_text *last, ms_fault *fault)
{
    struct stat now;
    if (fstat(file->fd, &now) != 0)
        return fail_system(file, NULL, fault);
    lines l = {.file = file, .length = (size_t)now.st_size, .number = 1};
    if (l.length == 0)
        return MS_OK;
    void *bytes = mmap(NULL, l.length, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (bytes == MAP_FAILED)
        return ms_fail(fault, MS_ESYSTEM, file->path, NULL, "cannot read: %s",
                       strerror(errno));
    l.bytes = bytes;
    ms_err err = check_lines(file, &l, sweep, trial, last, fault);
    munmap(bytes, l.length);
    MS_TRY(err);
    if (ftruncate(file->fd, (off_t)file->end_bytes) != 0 ||
        lseek(file->fd, 0, SEEK_END) < 0)
        return fail_system(file, NULL, fault);
    return MS_OK;
}

/* ---- writing ------------------------------------------------------------- */

/* After a write that failed: `written` bytes of the rows are in the file, and
 * what is beyond the last whole row is cut off. */
static void cut_half(ms_sweep_file *file, size_t written)
{
    int first = errno;
    while (written > 0 && file->rows.bytes[written - 1] != '\n')
        written--;
    file->end_bytes += written;
    if (file->regular && ftruncate(file->fd, (off_t)file->end_bytes) != 0)
        written = 0; /* the cut failed; --resume will make it */
    errno = first;
}

static ms_err write_rows(ms_sweep_file *file, ms_fault *fault)
{
    const ms_text *rows = &file->rows;
    if (file->path == NULL)
        return ms_screen_print(rows, fault);
    for (size_t at = 0; at < rows->length;) {
        ssize_t n = write(file->fd, rows->bytes + at, rows->length - at);
        if (n >= 0) {
            at += (size_t)n;
        } else if (errno != EINTR) {
            cut_half(file, at);
            return fail_system(file,
                               file->regular ? "the rows so far are in it; "
                                               "--resume goes on with them"
                                             : NULL,
                               fault);
        }
    }
    file->end_bytes += rows->length;
    return MS_OK;
}

ms_err ms_sweep_file_flush(ms_sweep_file *file, bool all, ms_fault *fault)
{
    uint64_t now = ms_progress_now_ns();
    if (file->rows.failed)
        return ms_fail_nomem(fault);
    if (file->rows.length == 0 || (!all && file->rows.length < MOST_WAITING &&
                                   now - file->wrote_ns < BETWEEN_NS))
        return MS_OK;
    ms_err err = write_rows(file, fault);
    file->rows.length = 0;
    file->wrote_ns = now;
    return err;
}

/* Some file systems cannot sync and return EINVAL. */
ms_err ms_sweep_file_close(ms_sweep_file *file, ms_fault *fault)
{
    int fd = file->fd;
    if (fd < 0)
        return MS_OK;
    file->fd = -1;
    bool good = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    int first = errno;
    if (close(fd) != 0 && errno != EINTR && good)
        return fail_system(file, NULL, fault);
    errno = first;
    return good ? MS_OK : fail_system(file, NULL, fault);
}
