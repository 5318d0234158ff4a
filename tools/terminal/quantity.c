/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers with units: read from what people type, and printed for them. */

#include "tools/terminal/quantity.h"
#include "sim/base/size.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t t_ns;
} times[] = {
    {"ns", 1},       {"us", 1000},      {"\u00b5s", 1000},
    {"ms", 1000000}, {"s", 1000000000},
};

bool ms_quantity_whole(const char *text, uint64_t *number, char **end)
{
    bool fits = true;
    *number = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        fits =
            fits && !__builtin_mul_overflow(*number, 10, number) &&
            !__builtin_add_overflow(*number, (uint64_t)(*text - '0'), number);
    *end = (char *)(uintptr_t)text;
    return fits;
}

/* fewer bytes than that mean that the unit was forgotten */
#define LEAST_BYTES (UINT64_C(1) << 20)

ms_err ms_quantity_unit(const char *text, const char *where, ms_fault *fault)
{
    char hint[96];
    uint64_t bytes;
    bool bare = text[strspn(text, "0123456789")] == '\0';
    if (!bare || ms_size_bytes(text, where, &bytes, NULL) != MS_OK ||
        bytes == 0 || bytes >= LEAST_BYTES)
        return MS_OK;
    /* No device has 4096 GiB: "80" means GiB, but "24564" means MiB. */
    snprintf(hint, sizeof hint, "did you mean %s%s? (%sB is so many bytes)",
             text, bytes < 4096 ? "GiB" : "MiB", text);
    return ms_fail(fault, MS_EUSAGE, where, hint,
                   "\"%s\" is a size without a unit", text);
}

ms_err ms_quantity_ns(const char *text, const char *where, uint64_t *t_ns,
                      ms_fault *fault)
{
    ms_decimal number;
    if (!ms_size_decimal(text, &number))
        return ms_fail(fault, MS_EUSAGE, where, "write it as 12.5ms or 3s",
                       "\"%s\" is not a time", text);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (strcmp(times[i].name, number.end) != 0)
            continue;
        if (!ms_size_whole(&number, times[i].t_ns, t_ns) || *t_ns > INT64_MAX)
            return ms_fail(fault, MS_EUSAGE, where, NULL,
                           "\"%s\" is 2^63 nanoseconds or more", text);
        return MS_OK;
    }
    return ms_fail(fault, MS_EUSAGE, where,
                   "the units are ns, us, ms and s, e.g. 12.5ms",
                   "\"%s\" has no known unit of time", text);
}

/* The unit is GiB up to 10 TiB, so that a model's size and a device's have the
 * same unit and compare at a glance. */
static const struct {
    const char *name;
    uint64_t bytes, from;
} size_units[] = {
    {"EiB", UINT64_C(1) << 60, UINT64_C(10) << 60},
    {"PiB", UINT64_C(1) << 50, UINT64_C(10) << 50},
    {"TiB", UINT64_C(1) << 40, UINT64_C(10) << 40},
    {"GiB", UINT64_C(1) << 30, UINT64_C(1) << 30},
    {"MiB", UINT64_C(1) << 20, UINT64_C(1) << 20},
    {"KiB", UINT64_C(1) << 10, UINT64_C(1) << 10},
    {"bytes", 1, 0},
};

ms_label ms_quantity_size_as(uint64_t bytes, uint64_t like)
{
    ms_label label;
    size_t i = 0;
    while (like < size_units[i].from)
        i++;
    const char *name = size_units[i].name;
    uint64_t unit_bytes = size_units[i].bytes, whole = bytes / unit_bytes;
    double rest = (double)(bytes % unit_bytes) / (double)unit_bytes;
    uint64_t cents = (uint64_t)(rest * 100 + 0.5);
    whole += cents / 100;
    if (unit_bytes == 1)
        snprintf(label.s, sizeof label.s, "%llu %s", (unsigned long long)bytes,
                 name);
    else if (bytes > 0 && whole == 0 && cents == 0)
        snprintf(label.s, sizeof label.s, "<0.01 %s", name);
    else
        snprintf(label.s, sizeof label.s, "%llu.%02llu %s",
                 (unsigned long long)whole, (unsigned long long)(cents % 100),
                 name);
    return label;
}

ms_label ms_quantity_size(uint64_t bytes)
{
    return ms_quantity_size_as(bytes, bytes);
}

/* Three or four significant digits. */
static ms_label scaled(double value, const char *unit_name)
{
    ms_label label;
    int decimals = value < 10 ? 2 : value < 1000 ? 1 : 0;
    snprintf(label.s, sizeof label.s, "%.*f %s", decimals, value, unit_name);
    return label;
}

ms_label ms_quantity_time_as(uint64_t t_ns, uint64_t like)
{
    double value = (double)t_ns;
    if (like == 0)
        return (ms_label){"0 ms"};
    if (like < 1000000)
        return scaled(value / 1e3, "µs");
    if (like < 1000000000)
        return scaled(value / 1e6, "ms");
    return scaled(value / 1e9, "s");
}

ms_label ms_quantity_time(uint64_t t_ns)
{
    return ms_quantity_time_as(t_ns, t_ns);
}

ms_label ms_quantity_short(uint64_t n)
{
    static const struct {
        double scale;
        char name;
    } steps[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}};
    double value = (double)n;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (value < steps[i].scale)
            continue;
        ms_label label;
        value /= steps[i].scale;
        snprintf(label.s, sizeof label.s, "%.*f%c", value < 10 ? 2 : 1, value,
                 steps[i].name);
        return label;
    }
    return ms_quantity_count(n);
}

ms_label ms_quantity_count(uint64_t n)
{
    ms_label label;
    ms_size_count(n, label.s);
    return label;
}

ms_label ms_quantity_flops(double flops)
{
    static const struct {
        double scale;
        const char *name;
    } steps[] = {{1e18, "EFLOP"}, {1e15, "PFLOP"}, {1e12, "TFLOP"},
                 {1e9, "GFLOP"},  {1e6, "MFLOP"},  {1e3, "kFLOP"}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (flops >= steps[i].scale)
            return scaled(flops / steps[i].scale, steps[i].name);
    ms_label label;
    snprintf(label.s, sizeof label.s, "%.0f FLOP", flops);
    return label;
}
