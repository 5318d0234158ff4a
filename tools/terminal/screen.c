/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Standard output: colours, text that is safe to show, paragraphs that are
 * filled to the width of the line. */

#include "tools/terminal/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS 80u

/* ---- colour -------------------------------------------------------------- */

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

/* no-color.org: any NO_COLOR that is not empty counts, even "0". */
static bool wants_colour(int fd, const char *mode)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (mode != NULL && strcmp(mode, "auto") != 0)
        return strcmp(mode, "always") == 0;
    if (no_color != NULL && *no_color != '\0')
        return false;
    if (is_set("CLICOLOR_FORCE") || is_set("FORCE_COLOR"))
        return true;
    if (term == NULL || *term == '\0' || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fd) == 1;
}

const ms_style *ms_screen_style(int fd, const char *mode)
{
    static const ms_style none = {"", "", "", "", ""};
    static const ms_style ansi = {"\033[1m", "\033[2m", "\033[32m", "\033[31m",
                                  "\033[0m"};
    return wants_colour(fd, mode) ? &ansi : &none;
}

/* ---- writing ------------------------------------------------------------- */

void ms_screen_end_with_reader(void)
{
    signal(SIGPIPE, SIG_DFL);
}

ms_err ms_screen_print(const ms_text *text, ms_fault *fault)
{
    if (text->failed)
        return ms_fail_nomem(fault);
    for (size_t at = 0; at < text->length;) {
        ssize_t n = write(STDOUT_FILENO, text->bytes + at, text->length - at);
        if (n >= 0) {
            at += (size_t)n;
        } else if (errno == EPIPE) {
            ms_screen_end_with_reader();
            raise(SIGPIPE);
        } else if (errno != EINTR) {
            return ms_fail(fault, MS_ESYSTEM, "standard output", NULL,
                           "cannot write: %s", strerror(errno));
        }
    }
    return MS_OK;
}

/* ---- text that is safe to show ------------------------------------------- */

/* The code point at s, with its length in bytes; 0xFFFD and length 1 where the
 * bytes are not valid UTF-8. */
static uint32_t decode(const unsigned char *s, size_t *length)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80   ? 1
               : s[0] < 0xC0 ? 0
               : s[0] < 0xE0 ? 2
               : s[0] < 0xF0 ? 3
               : s[0] < 0xF8 ? 4
                             : 0;
    *length = 1;
    if (n <= 1)
        return n == 1 ? s[0] : 0xFFFD;
    uint32_t code = s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0xFFFD;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    if (code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return 0xFFFD;
    *length = n;
    return code;
}

/* Could the character steer a terminal (control characters) or turn the
 * direction of writing (so that text reads other than it is)? */
static bool steers(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xFFFD ||
           (code >= 0x200E && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

char *ms_screen_safe(const char *string, char *buffer, size_t size)
{
    size_t to = 0, length;
    for (; *string != '\0'; string += length) {
        uint32_t code = decode((const unsigned char *)string, &length);
        bool bad = steers(code) && code != '\t';
        size_t need = bad ? 1 : length;
        if (to + need + 1 > size)
            break;
        memcpy(buffer + to, bad ? "?" : string, need);
        to += need;
    }
    buffer[to] = '\0';
    return buffer;
}

/* ---- filled lines -------------------------------------------------------- */

static size_t width_of(const char *word, size_t length)
{
    size_t width = 0;
    for (size_t i = 0; i < length; i++)
        width += (word[i] & 0xC0) != 0x80;
    return width;
}

void ms_screen_right(ms_text *text, uint32_t width, const char *cell)
{
    size_t length = strlen(cell), taken = width_of(cell, length);
    if (taken < width)
        ms_text_add(text, "%*s", (int)(width - taken), "");
    ms_text_put(text, cell, length);
}

/* The length up to the next space where the line may break. A number is not
 * parted from its unit. */
static size_t word_length(const char *words)
{
    size_t at = strcspn(words, " ");
    while (words[at] == ' ' && at > 0 && words[at - 1] >= '0' &&
           words[at - 1] <= '9')
        at += 1 + strcspn(words + at + 1, " ");
    return at;
}

void ms_screen_fill(ms_text *text, uint32_t indent, const char *label,
                    const char *words)
{
    ms_screen_fill_to(text, COLUMNS, indent, label, words);
}

void ms_screen_fill_to(ms_text *text, uint32_t columns, uint32_t indent,
                       const char *label, const char *words)
{
    size_t column = width_of(label, strlen(label));
    ms_text_add(text, "%s", label);
    if (column < indent)
        ms_text_add(text, "%*s", (int)(indent - column), "");
    bool fresh = column < indent; /* the line has nothing but its label */
    column = fresh ? indent : columns;
    for (; *words != '\0'; words += strspn(words, " ")) {
        size_t length = word_length(words), width = width_of(words, length);
        if (!fresh && column + 1 + width > columns) {
            ms_text_add(text, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        ms_text_add(text, "%s", fresh ? "" : " ");
        ms_text_put(text, words, length);
        column += width + !fresh;
        fresh = false;
        words += length;
    }
    ms_text_put(text, "\n", 1);
}
