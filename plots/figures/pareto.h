/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_PARETO_H
#define MS_PLOTS_PARETO_H

/* The parts of figure_pareto.c, private to plots/:
 *
 *     trades.c         which trades nothing beats, whose sign each has
 *     figure_pareto.c  scales, names, capacities, the plot
 */

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/plots.h"

#define MS_PARETO_FAMILIES 16u /* that have signs */
#define MS_PARETO_LIMITS 4u    /* lines of capacities */
#define MS_PARETO_CROWD 300u   /* more have small signs */

typedef struct ms_spot {
    const ms_trade *trade;
    double x, y;
    double cost; /* ns, or ns per token or sample */
    uint32_t sign;
    uint32_t equals; /* trades with the same numbers, which are not drawn */
    bool is_optimal, is_hidden;
    bool is_pale; /* does not fit, and lies in no zone that says so */
} ms_spot;

typedef struct ms_pareto {
    ms_frame frame;
    ms_spot *spots; /* by peak, then by step */
    uint32_t n, n_optimal, n_hidden, n_unnamed;
    bool by_rate;   /* steps do not all do the same */
    bool bounded;   /* some trades are a bound of the others */
    ms_limit limit; /* that all share; usable_bytes 0: there is none */
    ms_limit limits[MS_PARETO_LIMITS]; /* else that are shown */
    uint32_t n_limits;
    double zone_bytes; /* nothing from here on fits; infinite: no zone */
    bool has_pale;
    ms_scale x, y;
    const ms_unit *x_unit, *y_unit;
    double radius;
    ms_frame_entry families[MS_PARETO_FAMILIES];
    uint32_t n_families;
    ms_labelplaces places;
} ms_pareto;

/* ---- trades.c ------------------------------------------------------------ */

ms_err ms_trades_load(ms_pareto *p, const ms_trade *trades, uint32_t n,
                      ms_fault *fault);

#endif
