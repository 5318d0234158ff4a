/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gnuplot runs as `gnuplot -d -`: no shell, no start-up files, no environment
 * of the user's, its script on standard input and its picture from standard
 * output.  It exits 0 even when it could not write, so a picture counts only
 * when its format's end is there. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plots/plots.h"

#define LIMIT_MS 60000
#define MOST_BYTES (256u << 20)
#define READ_BYTES 65536u

struct flow {
    int fd; /* ours; -1: closed */
    ms_text text;
};

struct job {
    pid_t pid;
    int64_t end_ms;
    int in; /* -1: closed */
    const char *script;
    size_t left;
    struct flow out, err;
};

static const struct {
    const char *ending, *begins, *ends;
    size_t ends_length;
} formats[] = {
    [MS_SVG] = {".svg", "<?xml", "</svg>", 6},
    [MS_PNG] = {".png", "\x89PNG\r\n\x1a\n", "IEND\xae\x42\x60\x82", 8},
    [MS_PDF] = {".pdf", "%PDF-", "%%EOF", 5},
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

ms_err ms_gnuplot_format(const char *path, ms_format *format, ms_fault *fault)
{
    size_t length = strlen(path);
    *format = MS_SVG;
    if (strcmp(path, "-") == 0)
        return MS_OK;
    for (size_t i = 0; i < N_FORMATS; i++)
        if (length > 4 &&
            strcasecmp(path + length - 4, formats[i].ending) == 0) {
            *format = (ms_format)i;
            return MS_OK;
        }
    return ms_fail(fault, MS_EUSAGE, path, "end the name in .svg, .png or .pdf",
                   "the format of the figure is not known from its name");
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- start --------------------------------------------------------------- */

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A pipe whose ends are not inherited and lie above 2, where the duplicates
 * for the child go. */
static bool open_pipe(int ends[2])
{
    int raw[2];
    if (pipe(raw) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        ends[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, 3);
    int first = errno;
    close(raw[0]);
    close(raw[1]);
    errno = first;
    return ends[0] >= 0 && ends[1] >= 0;
}

static bool make_ready(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* SIGPIPE is blocked while the script is written; the child gets its mask and
 * the default action back. */
static int spawn(pid_t *pid, const int theirs[3], const sigset_t *mask)
{
    char *arguments[] = {(char[]){"gnuplot"}, (char[]){"-d"}, (char[]){"-"},
                         NULL};
    char *environment[] = {(char[]){"LC_ALL=C.UTF-8"},
                           (char[]){"HOME=/nonexistent"},
                           (char[]){"PATH=/usr/bin:/bin"}, NULL};
    sigset_t defaults;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    if (posix_spawnattr_init(&attributes) != 0)
        return ENOMEM;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        posix_spawnattr_destroy(&attributes);
        return ENOMEM;
    }
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++)
        error = posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0)
        error = posix_spawnp(pid, "gnuplot", &actions, &attributes, arguments,
                             environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static ms_err not_started(int error, ms_fault *fault)
{
    if (error == ENOENT || error == EACCES || error == ENOTDIR)
        return ms_fail(fault, MS_EPROGRAM, "gnuplot",
                       "install it (Debian: apt install gnuplot-nox); text and "
                       "data need none, nor does memsim report MODEL -o "
                       "page.html, which draws the timeline",
                       "the program gnuplot was not found");
    return ms_fail(fault, MS_ESYSTEM, "gnuplot", NULL, "cannot start: %s",
                   strerror(error));
}

static ms_err start(struct job *job, const sigset_t *mask, ms_fault *fault)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    int error = 0;
    if (!open_pipe(in) || !open_pipe(out) || !open_pipe(err) ||
        !make_ready(in[1]) || !make_ready(out[0]) || !make_ready(err[0]))
        error = errno;
    if (error == 0)
        error = spawn(&job->pid, (int[]){in[0], out[1], err[1]}, mask);
    shut(&in[0]);
    shut(&out[1]);
    shut(&err[1]);
    job->in = in[1];
    job->out.fd = out[0];
    job->err.fd = err[0];
    return error == 0 ? MS_OK : not_started(error, fault);
}

/* ---- talk ---------------------------------------------------------------- */

static void send_script(struct job *job)
{
    ssize_t n = write(job->in, job->script, job->left);
    if (n > 0) {
        job->script += n;
        job->left -= (size_t)n;
    }
    bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
    if (job->left == 0 || broken)
        shut(&job->in);
}

static bool receive(struct flow *flow)
{
    char bytes[READ_BYTES];
    ssize_t n = read(flow->fd, bytes, sizeof bytes);
    if (n > 0)
        ms_text_put(&flow->text, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        shut(&flow->fd);
    return !flow->text.failed && flow->text.length <= MOST_BYTES;
}

static ms_err too_slow(ms_fault *fault)
{
    return ms_fail(fault, MS_EPROGRAM, "gnuplot", NULL,
                   "stopped after %d seconds without a picture",
                   LIMIT_MS / 1000);
}

/* Until gnuplot closes both its outputs. */
static ms_err talk(struct job *job, ms_fault *fault)
{
    while (job->out.fd >= 0 || job->err.fd >= 0) {
        struct pollfd ends[] = {{.fd = job->in, .events = POLLOUT},
                                {.fd = job->out.fd, .events = POLLIN},
                                {.fd = job->err.fd, .events = POLLIN}};
        int64_t left_ms = job->end_ms - now_ms();
        if (left_ms <= 0)
            return too_slow(fault);
        if (poll(ends, 3, (int)left_ms) < 0 && errno != EINTR)
            return ms_fail(fault, MS_ESYSTEM, "gnuplot", NULL, "poll: %s",
                           strerror(errno));
        if (ends[0].revents != 0)
            send_script(job);
        if ((ends[1].revents != 0 && !receive(&job->out)) ||
            (ends[2].revents != 0 && !receive(&job->err)))
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

/* ---- end ----------------------------------------------------------------- */

/* Reaps the child; kills it once the time is over.  status stays 0 where
 * another part of the process reaped it: the picture is judged by its end
 * anyway. */
static ms_err finish(struct job *job, ms_err err, int *status, ms_fault *fault)
{
    bool kill_it = err != MS_OK;
    *status = 0;
    for (;;) {
        if (kill_it)
            kill(job->pid, SIGKILL);
        pid_t done = waitpid(job->pid, status, kill_it ? 0 : WNOHANG);
        if (done == job->pid || (done < 0 && errno != EINTR))
            return err;
        if (!kill_it && now_ms() >= job->end_ms) {
            err = too_slow(fault);
            kill_it = true;
        }
        if (!kill_it)
            poll(NULL, 0, 2);
    }
}

/* The last line of what gnuplot complained, without control characters. */
static const char *complaint(ms_text *err)
{
    if (err->bytes == NULL)
        return "no reason given";
    char *end = err->bytes + err->length;
    while (end > err->bytes && (unsigned char)end[-1] <= ' ')
        *--end = '\0';
    char *start = end;
    while (start > err->bytes && start[-1] != '\n')
        start--;
    for (char *c = start; c < end; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    while (*start == ' ')
        start++;
    return *start != '\0' ? start : "no reason given";
}

static bool is_complete(const ms_text *picture, ms_format format)
{
    const char *begins = formats[format].begins;
    size_t n = picture->length, ends = formats[format].ends_length;
    while (format != MS_PNG && n > 0 && picture->bytes[n - 1] == '\n')
        n--;
    return n >= strlen(begins) + ends &&
           memcmp(picture->bytes, begins, strlen(begins)) == 0 &&
           memcmp(picture->bytes + n - ends, formats[format].ends, ends) == 0;
}

/* The one part of a PDF that differs between runs, of fixed length. */
static void still_clock(ms_text *picture)
{
    static const char key[] = "/CreationDate (D:", still[] = "20000101000000";
    size_t n = sizeof key - 1, date = sizeof still - 1;
    if (picture->length < n + date)
        return;
    for (size_t at = picture->length - n - date; at > 0; at--)
        if (memcmp(picture->bytes + at, key, n) == 0) {
            memcpy(picture->bytes + at + n, still, date);
            return;
        }
}

/* gnuplot writes > as it is; behind ]] it would end a section that there is
 * not, and XML forbids it.  The sections that gnuplot may write stay. */
static void escape_ends(ms_text *picture)
{
    static const char section[] = "<![CDATA[", end[] = "]]>";
    size_t n = sizeof section - 1;
    bool is_open = false, any = false;
    ms_text own = {.arena = picture->arena};
    for (size_t at = 0; at < picture->length; at++) {
        const char *c = picture->bytes + at;
        size_t left = picture->length - at;
        is_open |= left >= n && memcmp(c, section, n) == 0;
        bool ends = *c == '>' && at >= 2 && memcmp(c - 2, end, 3) == 0;
        if (ends && !is_open)
            ms_text_put(&own, "&gt;", 4);
        else
            ms_text_put(&own, c, 1);
        any |= ends && !is_open;
        is_open &= !ends;
    }
    if (any)
        *picture = own;
}

static ms_err judge(struct job *job, int status, ms_format format,
                    ms_fault *fault)
{
    if (job->out.text.failed || job->err.text.failed)
        return ms_fail_nomem(fault);
    if (status == 0 && is_complete(&job->out.text, format)) {
        if (format == MS_PDF)
            still_clock(&job->out.text);
        if (format == MS_SVG && strstr(job->out.text.bytes, "]]>") != NULL)
            escape_ends(&job->out.text);
        return job->out.text.failed ? ms_fail_nomem(fault) : MS_OK;
    }
    const char *hint = "is it gnuplot 5.4 or later with the cairo terminals "
                       "(Debian: apt install gnuplot-nox)?";
    if (WIFSIGNALED(status))
        return ms_fail(fault, MS_EPROGRAM, "gnuplot", hint,
                       "ended by signal %d", WTERMSIG(status));
    return ms_fail(fault, MS_EPROGRAM, "gnuplot", hint,
                   "gave no whole picture (exit status %d): %.300s",
                   WEXITSTATUS(status), complaint(&job->err.text));
}

static ms_err run(struct job *job, const sigset_t *mask, ms_format format,
                  ms_fault *fault)
{
    int status = 0;
    ms_err err = start(job, mask, fault);
    if (err == MS_OK)
        err = finish(job, talk(job, fault), &status, fault);
    shut(&job->in);
    shut(&job->out.fd);
    shut(&job->err.fd);
    return err == MS_OK ? judge(job, status, format, fault) : err;
}

/* gnuplot may end before it has read all: no SIGPIPE of ours may remain. */
ms_err ms_gnuplot_run(const char *script, size_t length, ms_format format,
                      ms_arena *arena, char **picture, size_t *picture_length,
                      ms_fault *fault)
{
    struct job job = {.script = script,
                      .left = length,
                      .end_ms = now_ms() + LIMIT_MS,
                      .out.text.arena = arena,
                      .err.text.arena = arena};
    sigset_t broken_pipe, before, pending;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    ms_err err = run(&job, &before, format, fault);
    struct timespec at_once = {0};
    while (!was_pending && sigtimedwait(&broken_pipe, NULL, &at_once) < 0 &&
           errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *picture = job.out.text.bytes;
    *picture_length = job.out.text.length;
    return err;
}

ms_err ms_gnuplot_draw(const ms_text *script, ms_format format,
                       const char *path, const char *script_path,
                       ms_fault *fault)
{
    char *picture;
    size_t length;
    if (script->failed)
        return ms_fail_nomem(fault);
    if (script_path != NULL)
        MS_TRY(
            ms_output_write(script_path, script->bytes, script->length, fault));
    MS_TRY(ms_gnuplot_run(script->bytes, script->length, format, script->arena,
                          &picture, &length, fault));
    return ms_output_write(path, picture, length, fault);
}
