/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader of profiler traces: what it makes of an event, and of files that
 * are cut off, broken, or hold what no profiler would write. */
#include "tests/tests.h"
#include "tests/unit/folder.h"
#include "tools/recordings/kineto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN "{\"traceEvents\": ["
#define CLOSE "]}"
#define TIMES "\"ts\": 1000.5, \"dur\": 182.125"
#define KERNEL                                                                 \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", " TIMES "}"

static ms_arena arena;

/* A file with these bytes. */
static const char *file_of(const char *bytes, size_t length)
{
    const char *path = folder_path("trace.json");
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* Reads it to its end, or to the fault; event: the last one. */
static ms_err read_bytes(const char *bytes, size_t length, uint32_t *n,
                         ms_kineto_event *event, ms_fault *fault)
{
    ms_kineto trace;
    ms_kineto_event next;
    bool more = true;
    *n = 0;
    folder_open();
    ms_err err = ms_kineto_open(file_of(bytes, length), &arena, &trace, fault);
    bool is_open = err == MS_OK;
    while (err == MS_OK && more) {
        err = ms_kineto_next(&trace, &next, &more, fault);
        if (err == MS_OK && more) {
            *event = next;
            ++*n;
        }
    }
    if (is_open)
        ms_kineto_close(&trace);
    folder_close();
    return err;
}

static ms_err read_text(const char *text, uint32_t *n, ms_kineto_event *event,
                        ms_fault *fault)
{
    return read_bytes(text, strlen(text), n, event, fault);
}

/* The one event of a trace of these members. */
static ms_kineto_event read_event(const char *members)
{
    char text[1024];
    uint32_t n;
    ms_kineto_event event = {0};
    ms_fault fault = {0};
    snprintf(text, sizeof text, OPEN "{\"ph\": \"X\", %s}" CLOSE, members);
    ck_assert_int_eq(read_text(text, &n, &event, &fault), MS_OK);
    ck_assert_uint_eq(n, 1);
    return event;
}

static void check_fault(const char *text, size_t length, const char *what)
{
    uint32_t n;
    ms_kineto_event event;
    ms_fault fault = {0};
    ck_assert_int_eq(read_bytes(text, length, &n, &event, &fault), MS_EINPUT);
    ck_assert_msg(strstr(fault.what, what) != NULL, "%s: \"%s\" lacks \"%s\"",
                  text, fault.what, what);
}

START_TEST(an_event)
{
    ms_kineto_event e =
        read_event("\"cat\": \"kernel\", \"name\": \"gemm\", \"tid\": 7, " TIMES
                   ", \"args\": {\"External id\": 41, \"correlation\": 9003, "
                   "\"stream\": 7, \"grid\": [64, 8, 1]}");
    ck_assert_int_eq(e.kind, MS_KINETO_KERNEL);
    ck_assert_int_eq(e.t_ns, 1000500);
    ck_assert_uint_eq(e.ns, 182125);
    ck_assert_uint_eq(e.external, 41);
    ck_assert_uint_eq(e.correlation, 9003);
    ck_assert_uint_eq(e.stream, 7);
    ck_assert_uint_eq(e.thread, 7);
}
END_TEST

/* Only what is an event's own is taken, and of "args" only what is theirs. */
START_TEST(nested)
{
    ms_kineto_event e = read_event(
        "\"cat\": \"kernel\", \"args\": {\"more\": {\"stream\": 9, \"x\": "
        "[{\"bytes\": 5}, \"]}\"]}, \"stream\": 3, \"name\": \"not\"}, "
        "\"deep\": [[[{\"dur\": 1}]]], \"name\": \"k\\\"}]\", " TIMES);
    ck_assert_uint_eq(e.stream, 3);
    ck_assert_uint_eq(e.bytes, 0);
    ck_assert_uint_eq(e.ns, 182125);
}
END_TEST

START_TEST(numbers)
{
    static const struct {
        const char *ts, *dur;
        int64_t t_ns;
        uint64_t ns;
    } rows[] = {
        {"0", "0", 0, 0},
        {"-5.25", "-3", -5250, 0},
        {"1.7e3", "1e-05", 1700000, 0},
        {"1729000000000000.123", "1.9999", 1729000000000000000, 1999},
        {"\"1000.5\"", "\"2\"", 1000500, 2000},
        {"1e300", "9999999999999999999999999", INT64_MAX / 4, INT64_MAX / 4},
        {"-1e300", "1E2", -(INT64_MAX / 4), 100000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char members[128];
        snprintf(members, sizeof members, "\"ts\": %s, \"dur\": %s", rows[i].ts,
                 rows[i].dur);
        ms_kineto_event e = read_event(members);
        int64_t off = e.t_ns - rows[i].t_ns;
        int64_t more = (int64_t)(e.ns - rows[i].ns);
        ck_assert_msg(llabs(off) < 1000 && llabs(more) < 1000,
                      "%s: %" PRId64 ", %" PRIu64, members, e.t_ns, e.ns);
    }
    ms_kineto_event e = read_event(
        TIMES
        ", \"args\": {\"stream\": -1, \"bytes\": 99999999999999999999999, "
        "\"correlation\": 4294967296}");
    ck_assert_uint_eq(e.stream, 0);
    ck_assert_uint_eq(e.bytes, UINT64_MAX);
    ck_assert_uint_eq(e.correlation, 4294967296);
}
END_TEST

/* What is of another type is as if it were not there; an event without a
 * duration is none. */
START_TEST(wrong_types)
{
    static const char *const none[] = {
        "\"dur\": null",  "\"dur\": [1]",  "\"dur\": {\"a\": 1}",
        "\"dur\": \"x\"", "\"dur\": true", "\"dur\": 0x10",
        "\"dur\": nan",   "\"dur\": 1e",   "\"other\": 1"};
    char text[256];
    uint32_t n;
    ms_kineto_event e;
    ms_fault fault = {0};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(text, sizeof text, OPEN "{\"ts\": 1, %s}" CLOSE, none[i]);
        ck_assert_int_eq(read_text(text, &n, &e, &fault), MS_OK);
        ck_assert_msg(n == 0, "%s", none[i]);
    }
    e = read_event("\"name\": 5, \"cat\": [\"kernel\"], \"tid\": \"main\", "
                   "\"args\": [\"stream\", 7], " TIMES);
    ck_assert_int_eq(e.kind, MS_KINETO_OTHER);
    ck_assert_uint_eq(e.thread, 0);
    ck_assert_uint_eq(e.stream, 0);
}
END_TEST

/* Wherever it is cut, the message says so: never an event that is not whole. */
START_TEST(truncated)
{
    static const char text[] = OPEN KERNEL
        ", {\"ph\": \"X\", \"name\": \"a\\\"b\", " TIMES
        ", \"args\": {\"stream\": 7, \"x\": [1, {\"y\": \"]\"}]}}" CLOSE;
    for (size_t cut = 1; cut + sizeof CLOSE <= sizeof text; cut++) {
        char part[sizeof text];
        memcpy(part, text, cut);
        part[cut] = '\0';
        check_fault(part, cut, "the trace ends here, within its events");
    }
}
END_TEST

START_TEST(no_events)
{
    uint32_t n;
    ms_kineto_event e;
    ms_fault fault = {0};
    ck_assert_int_eq(read_text(OPEN CLOSE, &n, &e, &fault), MS_OK);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(read_text("[]", &n, &e, &fault), MS_OK);
    ck_assert_uint_eq(n, 0);
    check_fault("{\"traceEvents\": 5}", 18, "has no list");
    check_fault(OPEN "5" CLOSE, strlen(OPEN) + 3, "no event of a trace");
    check_fault(OPEN "{\"a\" 1}" CLOSE, strlen(OPEN) + 9,
                "no event of a trace");
    check_fault(OPEN "{a: 1}" CLOSE, strlen(OPEN) + 8, "no event of a trace");
}
END_TEST

/* gzip: whole, cut off, and with a byte that is another. */
START_TEST(compressed)
{
    /* OPEN KERNEL ", " KERNEL CLOSE, through gzip -9 */
    unsigned char packed[] = {
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab,
        0x56, 0x2a, 0x29, 0x4a, 0x4c, 0x4e, 0x75, 0x2d, 0x4b, 0xcd, 0x2b,
        0x29, 0x56, 0xb2, 0x52, 0x88, 0xae, 0x56, 0x2a, 0xc8, 0x00, 0xd2,
        0x4a, 0x11, 0x4a, 0x3a, 0x0a, 0x4a, 0xc9, 0x89, 0x25, 0x20, 0x76,
        0x76, 0x6a, 0x51, 0x5e, 0x6a, 0x0e, 0x48, 0x20, 0x2f, 0x31, 0x37,
        0x15, 0x2c, 0x02, 0xe2, 0x80, 0x35, 0x18, 0x1a, 0x18, 0x18, 0xe8,
        0x99, 0x02, 0x79, 0x29, 0xa5, 0x45, 0x20, 0xae, 0x85, 0x91, 0x9e,
        0xa1, 0x91, 0x69, 0xad, 0x8e, 0x02, 0x95, 0x0c, 0x8a, 0xad, 0x05,
        0x00, 0xe2, 0x42, 0xd5, 0x40, 0xa3, 0x00, 0x00, 0x00};
    uint32_t n;
    ms_kineto_event e;
    ms_fault fault = {0};
    size_t length = sizeof packed;
    ck_assert_int_eq(read_bytes((char *)packed, length, &n, &e, &fault), MS_OK);
    ck_assert_uint_eq(n, 2);
    for (size_t cut = 3; cut < length; cut += 5)
        ck_assert_int_eq(read_bytes((char *)packed, cut, &n, &e, &fault),
                         MS_EINPUT);
    for (size_t at = 12; at < length; at += 3) {
        packed[at] ^= 0x55;
        ck_assert_int_eq(read_bytes((char *)packed, length, &n, &e, &fault),
                         MS_EINPUT);
        packed[at] ^= 0x55;
    }
}
END_TEST

/* An event that lies across the pieces that are read is whole. */
START_TEST(across_pieces)
{
    enum { EVENTS = 20000 };
    static char text[EVENTS * 160];
    size_t length = (size_t)sprintf(text, OPEN);
    uint32_t n;
    ms_kineto_event e = {0};
    ms_fault fault = {0};
    for (int i = 0; i < EVENTS; i++)
        length += (size_t)sprintf(text + length,
                                  "%s{\"name\": \"%0*d\", " TIMES
                                  ", \"args\": {\"bytes\": %d}}",
                                  i > 0 ? "," : "", i % 50, i, i);
    length += (size_t)sprintf(text + length, CLOSE);
    ck_assert_int_eq(read_bytes(text, length, &n, &e, &fault), MS_OK);
    ck_assert_uint_eq(n, EVENTS);
    ck_assert_uint_eq(e.bytes, EVENTS - 1);
}
END_TEST

static void close_arena(void)
{
    ms_arena_free(&arena);
}

Suite *suite_kineto(void)
{
    Suite *suite = suite_create("kineto");
    TCase *tcase = tcase_create("kineto");
    tcase_add_checked_fixture(tcase, NULL, close_arena);
    tcase_add_test(tcase, an_event);
    tcase_add_test(tcase, nested);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, wrong_types);
    tcase_add_test(tcase, truncated);
    tcase_add_test(tcase, no_events);
    tcase_add_test(tcase, compressed);
    tcase_add_test(tcase, across_pieces);
    suite_add_tcase(suite, tcase);
    return suite;
}
