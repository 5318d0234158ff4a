/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/axes/units.h"

/* The rows of each table ascend, and a unit is used from `from` on.  Memory
 * stays in GiB far beyond 1 TiB, so that it compares with the GiB of one
 * device. */
static const ms_unit of_bytes[] = {
    {"B", 1, 0},
    {"KiB", UINT64_C(1) << 10, UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20, UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30, UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40, UINT64_C(10) << 40},
    {"PiB", UINT64_C(1) << 50, UINT64_C(10) << 50},
    {"EiB", UINT64_C(1) << 60, UINT64_C(10) << 60},
};

static const ms_unit of_times[] = {
    {"ns", 1, 0},
    {"µs", UINT64_C(1000), UINT64_C(1000)},
    {"ms", UINT64_C(1000000), UINT64_C(1000000)},
    {"s", UINT64_C(1000000000), UINT64_C(2000000000)},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const ms_unit *choose(const ms_unit *table, size_t n, uint64_t value)
{
    while (n > 1 && value < table[n - 1].from)
        n--;
    return &table[n - 1];
}

const ms_unit *ms_units_bytes(uint64_t bytes)
{
    return choose(of_bytes, COUNT(of_bytes), bytes);
}

const ms_unit *ms_units_time(uint64_t t_ns)
{
    return choose(of_times, COUNT(of_times), t_ns);
}

/* The digits are made by hand, because printf's decimal point depends on the
 * locale. */
static void put_decimal(ms_text *text, uint64_t value, const ms_unit *unit,
                        int decimals)
{
    uint32_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    uint64_t whole = value / unit->size;
    double rest = (double)(value % unit->size) / (double)unit->size;
    uint32_t part = (uint32_t)(rest * scale + 0.5);
    if (part == scale) {
        part = 0;
        whole++;
    }
    ms_text_u64(text, whole);
    if (decimals > 0)
        ms_text_add(text, ".%0*u", decimals, part);
}

void ms_units_put_decimals(ms_text *text, uint64_t value, const ms_unit *unit,
                           uint64_t highest)
{
    uint64_t most = highest / unit->size;
    int decimals = unit->size == 1 || most >= 1000 ? 0 : most >= 10 ? 1 : 2;
    /* The least value that does not round to zero, times two. */
    uint64_t least = unit->size;
    for (int i = 0; i < decimals; i++)
        least /= 10;
    if (value == 0 || value >= least - least / 2)
        put_decimal(text, value, unit, value > 0 ? decimals : 0);
    else
        ms_text_add(text, "<%s",
                    decimals == 0   ? "1"
                    : decimals == 1 ? "0.1"
                                    : "0.01");
}

void ms_units_put_number(ms_text *text, uint64_t bytes, const ms_unit *unit)
{
    if (bytes > 0 && bytes < unit->size / 200)
        ms_text_add(text, "<0.01");
    else
        put_decimal(text, bytes, unit, unit->size > 1 ? 2 : 0);
}

void ms_units_put_bytes(ms_text *text, uint64_t bytes, const ms_unit *unit)
{
    put_decimal(text, bytes, unit, bytes % unit->size == 0 ? 0 : 2);
    ms_text_add(text, " %s", unit->name);
}

void ms_units_put_time(ms_text *text, uint64_t t_ns)
{
    const ms_unit *unit = ms_units_time(t_ns);
    uint64_t whole = t_ns / unit->size;
    int decimals = whole >= 100 ? 1 : 2;
    put_decimal(text, t_ns, unit, unit->size > 1 ? decimals : 0);
    ms_text_add(text, " %s", unit->name);
}

double ms_units_step(double span, uint32_t most)
{
    static const double steps[] = {1.0, 2.0, 5.0};
    for (double power = 1e-3; power < 1e300; power *= 10.0)
        for (size_t i = 0; i < COUNT(steps); i++)
            if (steps[i] * power * most >= span)
                return steps[i] * power;
    return span;
}
