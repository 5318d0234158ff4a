/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Standard output: colours, text that is safe to show, paragraphs that are
 * filled to the width of the line. */

#include "tools/terminal/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PIPED_COLUMNS 80u
#define FEWEST_COLUMNS 50u
#define MOST_COLUMNS 200u

/* ---- width --------------------------------------------------------------- */

uint32_t ms_screen_columns(int fd)
{
    struct winsize size = {0};
    const char *wish = getenv("COLUMNS");
    unsigned long columns = wish != NULL ? strtoul(wish, NULL, 10) : 0;
    if (!ms_screen_is_terminal(fd))
        return PIPED_COLUMNS;
    if (columns == 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns == 0)
        return PIPED_COLUMNS;
    return columns < FEWEST_COLUMNS ? FEWEST_COLUMNS
           : columns > MOST_COLUMNS ? MOST_COLUMNS
                                    : (uint32_t)columns;
}

bool ms_screen_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

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
    return ms_screen_is_terminal(fd);
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

/* What sets a colour, "\033[1m", takes no column. */
static size_t escape_length(const char *at, const char *end)
{
    size_t n = 2;
    if (end - at < 3 || at[0] != '\033' || at[1] != '[')
        return 0;
    while (at + n < end && at[n] != 'm')
        n++;
    return at + n < end ? n + 1 : 0;
}

uint32_t ms_screen_width(const char *string, size_t length)
{
    uint32_t width = 0;
    const char *end = string + length;
    while (string < end) {
        size_t escape = escape_length(string, end);
        width += escape == 0 && (*string & 0xC0) != 0x80;
        string += escape > 0 ? escape : 1;
    }
    return width;
}

size_t ms_screen_step(const char *at, const char *end, uint32_t *width)
{
    size_t n = escape_length(at, end);
    *width = n == 0;
    if (n > 0)
        return n;
    for (n = 1; at + n < end && (at[n] & 0xC0) == 0x80;)
        n++;
    return n;
}

void ms_screen_right(ms_text *text, uint32_t width, const char *cell)
{
    size_t length = strlen(cell);
    uint32_t taken = ms_screen_width(cell, length);
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

/* How much of a word that is wider than a line stands on this one: up to a
 * sign behind which a policy or a list goes on; all where it has none. */
static size_t part_length(const char *word, size_t length, uint32_t room)
{
    size_t part = 0;
    for (size_t i = 0; i + 1 < length && i < room; i++)
        if (strchr("+,|", word[i]) != NULL)
            part = i + 1;
    return part > 0 ? part : length;
}

size_t ms_screen_word(const char *words, uint32_t room, uint32_t *width)
{
    size_t length = word_length(words);
    *width = ms_screen_width(words, length);
    if (*width <= room)
        return length;
    length = strcspn(words, " ");
    if (ms_screen_width(words, length) > room)
        length = part_length(words, length, room);
    *width = ms_screen_width(words, length);
    return length;
}

void ms_screen_fill(ms_text *text, uint32_t indent, const char *label,
                    const char *words)
{
    uint32_t columns = ms_screen_columns(STDOUT_FILENO);
    if (columns < PIPED_COLUMNS && indent > columns / 3)
        indent = columns / 3;
    uint32_t column = ms_screen_width(label, strlen(label)), width;
    ms_text_add(text, "%s", label);
    if (column < indent)
        ms_text_add(text, "%*s", (int)(indent - column), "");
    /* The line has nothing but its label. */
    bool fresh = column < indent || column == 0;
    column = fresh ? indent : columns;
    for (; *words != '\0'; words += strspn(words, " ")) {
        size_t length = ms_screen_word(words, columns - indent, &width);
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
        if (*words != ' ') /* a part of a word, or the end */
            column = columns;
    }
    ms_text_put(text, "\n", 1);
}
