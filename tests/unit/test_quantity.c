/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes as people type them, and numbers as people read them. */
#include "sim/base/size.h"
#include "tests/tests.h"
#include "tools/terminal/quantity.h"

#include <string.h>

static void check_bytes(const char *text, uint64_t expected)
{
    ms_fault fault = {0};
    uint64_t bytes = 0;
    ck_assert_int_eq(ms_size_bytes(text, NULL, &bytes, &fault), MS_OK);
    ck_assert_uint_eq(bytes, expected);
}

static void check_fails(const char *text, const char *what, const char *hint)
{
    ms_fault fault = {0};
    uint64_t bytes = 0;
    ck_assert_int_eq(ms_size_bytes(text, NULL, &bytes, &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, what));
    ck_assert_ptr_nonnull(strstr(fault.hint, hint));
}

static void check_exact(uint64_t bytes, const char *expected)
{
    char text[MS_SIZE_COUNT];
    uint64_t again = 0;
    ms_size_exact(bytes, text);
    ck_assert_str_eq(text, expected);
    ck_assert_int_eq(ms_size_bytes(text, NULL, &again, NULL), MS_OK);
    ck_assert_uint_eq(again, bytes);
}

START_TEST(exact_sizes_read_back)
{
    check_exact(0, "0");
    check_exact(1000, "1000");
    check_exact(1024, "1KiB");
    check_exact(UINT64_C(40) << 30, "40GiB");
    check_exact((UINT64_C(40) << 30) + 1, "42949672961");
    check_exact(UINT64_C(2048) << 40, "2048TiB");
}
END_TEST

START_TEST(bytes)
{
    check_bytes("0", 0);
    check_bytes("85520809984", UINT64_C(85520809984));
    check_bytes("80GiB", UINT64_C(85899345920));
    check_bytes("80GB", UINT64_C(80000000000));
    check_bytes("1B", 1);
    check_bytes("3KiB", 3072);
    check_bytes("3kB", 3000);
    check_bytes("3KB", 3000);
    check_bytes("1.5MiB", 1572864);
    check_bytes("79.65GiB", UINT64_C(85523536281)); /* 85523536281.6 */
    check_bytes("0.000001MB", 1);
    check_bytes("1TiB", UINT64_C(1) << 40);
    check_bytes("9223372036854775807", INT64_MAX);
}
END_TEST

START_TEST(faults)
{
    static const char both[] = "did you mean 80GiB (85,899,345,920 bytes) or "
                               "80GB (80,000,000,000 bytes)?";
    check_fails("80G", "\"80G\" has no known unit", both);
    check_fails("80g", "\"80g\" has no known unit", both);
    check_fails("80gib", "\"80gib\" has no known unit", both);
    check_fails("80 GiB", "\"80 GiB\" has no known unit", "80GiB");
    check_fails("80x", "\"80x\" has no known unit", "80GiB");
    check_fails("", "\"\" is not a memory size", "80GiB");
    check_fails("GiB", "\"GiB\" is not a memory size", "80GiB");
    check_fails("-1", "\"-1\" is not a memory size", "80GiB");
    check_fails(".5GiB", "\".5GiB\" is not a memory size", "80GiB");
    check_fails("1.GiB", "\"1.GiB\" is not a memory size", "80GiB");
    check_fails("1.2345678GiB", "is not a memory size", "80GiB");
    check_fails("1.5", "\"1.5\" is not a whole number of bytes", "80GiB");
    check_fails("1e9", "\"1e9\" has no known unit", "80GiB");
    check_fails("9223372036854775808", "is 2^63 bytes or more", "");
    check_fails("18446744073709551616", "is not a memory size", "");
    check_fails("99999999999TiB", "is 2^63 bytes or more", "");
}
END_TEST

START_TEST(size)
{
    ck_assert_str_eq(ms_quantity_size(0).s, "0 bytes");
    ck_assert_str_eq(ms_quantity_size(1023).s, "1023 bytes");
    ck_assert_str_eq(ms_quantity_size(1536).s, "1.50 KiB");
    ck_assert_str_eq(ms_quantity_size(1u << 20).s, "1.00 MiB");
    ck_assert_str_eq(ms_quantity_size(UINT64_C(85019453030)).s, "79.18 GiB");
    ck_assert_str_eq(ms_quantity_size((UINT64_C(2) << 30) - 1).s, "2.00 GiB");
    ck_assert_str_eq(ms_quantity_size(UINT64_C(9) << 40).s, "9216.00 GiB");
    ck_assert_str_eq(ms_quantity_size(UINT64_C(10) << 40).s, "10.00 TiB");
    ck_assert_str_eq(ms_quantity_size(UINT64_MAX).s, "16.00 EiB");
    ck_assert_str_eq(ms_quantity_size_as(64 << 20, 1u << 30).s, "0.06 GiB");
    ck_assert_str_eq(ms_quantity_size_as(1 << 20, 1u << 30).s, "<0.01 GiB");
    ck_assert_str_eq(ms_quantity_size_as(0, 1u << 30).s, "0.00 GiB");
}
END_TEST

START_TEST(other)
{
    ck_assert_str_eq(ms_quantity_short(999999).s, "999,999");
    ck_assert_str_eq(ms_quantity_short(7500000000).s, "7.50B");
    ck_assert_str_eq(ms_quantity_short(174604259328).s, "174.6B");
    ck_assert_str_eq(ms_quantity_time_as(858600000, 8240000000).s, "0.86 s");
    ck_assert_str_eq(ms_quantity_count(0).s, "0");
    ck_assert_str_eq(ms_quantity_count(999).s, "999");
    ck_assert_str_eq(ms_quantity_count(UINT64_C(174604259328)).s,
                     "174,604,259,328");
    ck_assert_str_eq(ms_quantity_count(UINT64_MAX).s,
                     "18,446,744,073,709,551,615");
    ck_assert_str_eq(ms_quantity_time(0).s, "0 ms");
    ck_assert_str_eq(ms_quantity_time(1500).s, "1.50 µs");
    ck_assert_str_eq(ms_quantity_time(722000000).s, "722.0 ms");
    ck_assert_str_eq(ms_quantity_time(UINT64_C(4120000000)).s, "4.12 s");
    ck_assert_str_eq(ms_quantity_flops(12).s, "12 FLOP");
    ck_assert_str_eq(ms_quantity_flops(3.21e12).s, "3.21 TFLOP");
}
END_TEST

Suite *suite_quantity(void)
{
    Suite *suite = suite_create("quantity");
    TCase *tcase = tcase_create("quantity");
    tcase_add_test(tcase, bytes);
    tcase_add_test(tcase, exact_sizes_read_back);
    tcase_add_test(tcase, faults);
    tcase_add_test(tcase, size);
    tcase_add_test(tcase, other);
    suite_add_tcase(suite, tcase);
    return suite;
}
