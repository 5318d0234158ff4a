/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"

#define LOG_RATIO 8.0 /* of the ends, from which on a scale is logarithmic */
#define CLOSE 1e-9    /* share of the span that rounding may move a tick */

static double part_of(const ms_scale *scale, double value)
{
    if (scale->is_log)
        return log(value / scale->from) / log(scale->to / scale->from);
    return (value - scale->from) / (scale->to - scale->from);
}

double ms_scale_px(const ms_scale *scale, double value)
{
    return scale->px_from +
           part_of(scale, value) * (scale->px_to - scale->px_from);
}

static bool is_within(const ms_scale *scale, double value)
{
    double part = part_of(scale, value);
    return part > -CLOSE && part < 1.0 + CLOSE;
}

static uint32_t linear_ticks(const ms_scale *scale, double unit, uint32_t most,
                             double ticks[MS_SCALE_TICKS])
{
    uint32_t n = 0;
    double step = ms_units_step((scale->to - scale->from) / unit, most - 1);
    if (unit <= 1.0 && step < 1.0)
        step = 1.0;
    double first = ceil(scale->from / unit / step - CLOSE);
    for (double i = 0.0; n < most && n < MS_SCALE_TICKS; i += 1.0) {
        double tick = (first + i) * step * unit;
        if (!is_within(scale, tick))
            break;
        ticks[n++] = tick;
    }
    return n;
}

/* Ticks at the steps of the first list below that gives few enough: 1, 2 and 5
 * in each power of ten, then fewer steps, then fewer powers. */
static uint32_t log_ticks(const ms_scale *scale, double unit, uint32_t most,
                          double ticks[MS_SCALE_TICKS])
{
    static const struct {
        double steps[3];
        uint32_t n;
        double power;
    } lists[] = {{{1.0, 2.0, 5.0}, 3, 10.0},
                 {{1.0, 3.0}, 2, 10.0},
                 {{1.0}, 1, 10.0},
                 {{1.0}, 1, 1e2},
                 {{1.0}, 1, 1e4},
                 {{1.0}, 1, 1e8}};
    uint32_t n = 0;
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++) {
        double power = lists[list].power;
        double at = floor(log(scale->from / unit) / log(power));
        n = 0;
        for (double low = pow(power, at); low * unit < scale->to; low *= power)
            for (uint32_t i = 0; i < lists[list].n; i++) {
                double tick = low * lists[list].steps[i] * unit;
                if (is_within(scale, tick) && n++ < MS_SCALE_TICKS)
                    ticks[n - 1] = tick;
            }
        if (n <= most && n <= MS_SCALE_TICKS)
            break;
    }
    return n <= MS_SCALE_TICKS ? n : MS_SCALE_TICKS;
}

uint32_t ms_scale_ticks(const ms_scale *scale, double unit, uint32_t most,
                        double ticks[MS_SCALE_TICKS])
{
    return (scale->is_log ? log_ticks : linear_ticks)(scale, unit, most, ticks);
}

/* A linear scale spans at least 2 % of its highest value: otherwise differences
 * by rounding would fill the figure.  It starts at zero where its start would
 * be near zero. */
ms_scale ms_scale_around(double low, double high, double px_from, double px_to,
                         double before, double behind)
{
    ms_scale scale = {.px_from = px_from, .px_to = px_to};
    double span = high - low;
    if (low > 0.0 && high / low >= LOG_RATIO) {
        double ratio = high / low;
        scale.is_log = true;
        scale.from = low / pow(ratio, before);
        scale.to = high * pow(ratio, behind);
        return scale;
    }
    if (span < high * 0.02)
        span = high * 0.02;
    if (span <= 0.0)
        span = 1.0;
    scale.from = low - span * before;
    scale.to = high + span * behind;
    if (scale.from < high * 0.2)
        scale.from = 0.0;
    return scale;
}
