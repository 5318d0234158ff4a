/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files are written whole or not at all: into a temporary file beside the
 * target, synced, then renamed over it.  A symbolic link is followed, so that
 * what it points to is replaced, not the link.  A target that is no regular
 * file (a terminal, a pipe, /dev/null) is written in place. */

#define _XOPEN_SOURCE 700 /* realpath */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/plots.h"

#define PIECE_BYTES 65536u

#define TRIES 1000

static ms_err failed(ms_fault *fault, const char *path, const char *hint)
{
    return ms_fail(fault, MS_ESYSTEM, path, hint, "cannot write: %s",
                   strerror(errno));
}

/* What is written, piece by piece. */
struct source {
    ms_output_next *next;
    void *of;
};

/* Writes all bytes, or returns false with errno set.  A pipe that is set not to
 * block says EAGAIN: poll waits until it takes more. */
static bool write_piece(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            poll(&ready, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
#define N_INTERRUPTS (sizeof interrupts / sizeof interrupts[0])

/* Is a signal pending that replace_undisturbed blocks?  One that is ignored, as
 * under nohup, does not count. */
static bool is_interrupted(void)
{
    sigset_t pending;
    struct sigaction action;
    if (sigpending(&pending) != 0)
        return false;
    for (size_t i = 0; i < N_INTERRUPTS; i++)
        if (sigismember(&pending, interrupts[i]) == 1 &&
            sigaction(interrupts[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            return true;
    return false;
}

/* Whichever function returns false has set errno; EINTR stands for an
 * interrupt. */
static bool write_all(int fd, const struct source *source)
{
    const char *bytes;
    size_t length;
    do {
        errno = EINTR;
        if (is_interrupted() || !source->next(source->of, &bytes, &length) ||
            !write_piece(fd, bytes, length))
            return false;
    } while (length > 0);
    return true;
}

/* Some file systems cannot sync and say EINVAL; that is no lost data. */
static bool sync_file(int fd)
{
    while (fsync(fd) != 0) {
        if (errno == EINVAL || errno == ENOTSUP)
            return true;
        if (errno != EINTR)
            return false;
    }
    return true;
}

/* Closes fd on every path and keeps the first errno.  After EINTR the
 * descriptor is closed on Linux: closing it again could hit another file. */
static bool close_after(int fd, bool good)
{
    int first = errno;
    if (close(fd) != 0 && errno != EINTR && good)
        return false;
    errno = first;
    return good;
}

static ms_err write_in_place(const char *path, const struct source *source,
                             ms_fault *fault)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(fault, path, NULL);
    if (!close_after(fd, write_all(fd, source)))
        return failed(fault, path, NULL);
    return MS_OK;
}

/* Opens a new file in the folder of target, its name in temporary.  Not
 * mkstemp: that gives mode 0600 and the umask cannot be read safely in a
 * program with threads; O_EXCL with mode 0666 lets the kernel apply it. */
static int open_beside(const char *target, char temporary[PATH_MAX])
{
    const char *slash = strrchr(target, '/');
    int folder = slash != NULL ? (int)(slash - target) + 1 : 0;
    for (int i = 0; i < TRIES; i++) {
        int n = snprintf(temporary, PATH_MAX, "%.*s.memsim-%ld-%d.tmp", folder,
                         target, (long)getpid(), i);
        if (n >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* mode: of the file that is replaced, or 0 where there is none. */
static bool fill(int fd, mode_t mode, const struct source *source)
{
    bool good = mode == 0 || fchmod(fd, mode & 07777) == 0;
    good = good && write_all(fd, source) && sync_file(fd);
    return close_after(fd, good);
}

static bool replace(const char *target, mode_t mode,
                    const struct source *source)
{
    char temporary[PATH_MAX];
    int fd = open_beside(target, temporary);
    if (fd < 0)
        return false;
    if (fill(fd, mode, source) && rename(temporary, target) == 0)
        return true;
    int first = errno;
    unlink(temporary);
    errno = first;
    return false;
}

/* An interrupt waits until the temporary file is renamed or removed; an output
 * of many pieces is given up for it. */
static bool replace_undisturbed(const char *target, mode_t mode,
                                const struct source *source)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < N_INTERRUPTS; i++)
        sigaddset(&held, interrupts[i]);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    bool good = replace(target, mode, source);
    int first = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = first;
    return good;
}

static ms_err write_new(const char *path, const struct source *source,
                        ms_fault *fault)
{
    struct stat link;
    if (errno != ENOENT)
        return failed(fault, path, NULL);
    if (lstat(path, &link) == 0)
        return ms_fail(fault, MS_ESYSTEM, path,
                       "remove the link or create the file it names",
                       "is a symbolic link that leads nowhere");
    if (path[0] == '\0')
        return ms_fail(fault, MS_ESYSTEM, NULL,
                       "name a file, or - for "
                       "standard output",
                       "the name of the output is empty");
    if (!replace_undisturbed(path, 0, source))
        return failed(fault, path,
                      errno == ENOSPC || errno == EDQUOT
                          ? "make room there, or name another place"
                          : "does its folder exist, and may you write there?");
    return MS_OK;
}

ms_err ms_output_stream(const char *path, ms_output_next *next, void *of,
                        ms_fault *fault)
{
    struct stat now;
    char target[PATH_MAX];
    const struct source a_source = {next, of}, *source = &a_source;
    assert(path != NULL);
    if (strcmp(path, "-") == 0) {
        if (!write_all(STDOUT_FILENO, source))
            return failed(fault, "standard output", NULL);
        return MS_OK;
    }
    if (stat(path, &now) != 0)
        return write_new(path, source, fault);
    if (S_ISDIR(now.st_mode))
        return ms_fail(fault, MS_ESYSTEM, path, "name a file in it",
                       "is a directory");
    if (!S_ISREG(now.st_mode))
        return write_in_place(path, source, fault);
    if (realpath(path, target) == NULL ||
        !replace_undisturbed(target, now.st_mode, source))
        return failed(fault, path, NULL);
    return MS_OK;
}

struct whole {
    const char *bytes;
    size_t length;
};

/* All at once, then nothing. */
static bool next_whole(void *of, const char **bytes, size_t *length)
{
    struct whole *whole = of;
    *bytes = whole->bytes;
    *length = whole->length;
    whole->length = 0;
    return true;
}

ms_err ms_output_write(const char *path, const char *bytes, size_t length,
                       ms_fault *fault)
{
    struct whole whole = {bytes, length};
    assert(bytes != NULL || length == 0);
    return ms_output_stream(path, next_whole, &whole, fault);
}

struct long_text {
    ms_output_put *put;
    void *of;
    ms_text *text;
    ms_fault *fault;
    ms_err err;
    bool more;
};

static bool next_of_text(void *of, const char **bytes, size_t *length)
{
    struct long_text *from = of;
    ms_text *text = from->text;
    text->length = 0;
    while (from->more && from->err == MS_OK && !text->failed &&
           text->length < PIECE_BYTES)
        from->err = from->put(from->of, &from->more);
    if (from->err == MS_OK && text->failed)
        from->err = ms_fail_nomem(from->fault);
    *bytes = text->bytes;
    *length = text->length;
    errno = ECANCELED; /* the fault says more */
    return from->err == MS_OK;
}

ms_err ms_output_text(const char *path, ms_output_put *put, void *of,
                      ms_text *text, ms_fault *fault)
{
    struct long_text from = {put, of, text, fault, MS_OK, true};
    ms_err err = ms_output_stream(path, next_of_text, &from, fault);
    return from.err != MS_OK ? from.err : err;
}
