/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signs are polygons in px, not the terminal's own, so that they are as large
 * in SVG as in PNG and PDF.  Neighbours in the list differ in shape, in hue and
 * in lightness: they stay apart in grey and for colour-blind readers. */

#include "plots/frame.h"

#define SHAPES 8u
#define CORNERS 16u

/* In radii, y down. */
static const struct {
    uint32_t n;
    double corner[CORNERS][2];
} shapes[SHAPES] = {
    {16, /* circle */
     {{1.0, 0.0},
      {0.924, 0.383},
      {0.707, 0.707},
      {0.383, 0.924},
      {0.0, 1.0},
      {-0.383, 0.924},
      {-0.707, 0.707},
      {-0.924, 0.383},
      {-1.0, 0.0},
      {-0.924, -0.383},
      {-0.707, -0.707},
      {-0.383, -0.924},
      {0.0, -1.0},
      {0.383, -0.924},
      {0.707, -0.707},
      {0.924, -0.383}}},
    {4, {{-0.89, -0.89}, {0.89, -0.89}, {0.89, 0.89}, {-0.89, 0.89}}},
    {3, {{0.0, -1.25}, {1.16, 0.8}, {-1.16, 0.8}}},
    {4, {{0.0, -1.25}, {1.25, 0.0}, {0.0, 1.25}, {-1.25, 0.0}}},
    {3, {{0.0, 1.25}, {1.16, -0.8}, {-1.16, -0.8}}},
    {12, /* plus */
     {{-0.42, -1.2},
      {0.42, -1.2},
      {0.42, -0.42},
      {1.2, -0.42},
      {1.2, 0.42},
      {0.42, 0.42},
      {0.42, 1.2},
      {-0.42, 1.2},
      {-0.42, 0.42},
      {-1.2, 0.42},
      {-1.2, -0.42},
      {-0.42, -0.42}}},
    {12, /* cross */
     {{-0.55, -1.15},
      {0.0, -0.6},
      {0.55, -1.15},
      {1.15, -0.55},
      {0.6, 0.0},
      {1.15, 0.55},
      {0.55, 1.15},
      {0.0, 0.6},
      {-0.55, 1.15},
      {-1.15, 0.55},
      {-0.6, 0.0},
      {-1.15, -0.55}}},
    {10, /* star */
     {{0.0, -1.35},
      {0.32, -0.44},
      {1.28, -0.42},
      {0.51, 0.17},
      {0.79, 1.09},
      {0.0, 0.54},
      {-0.79, 1.09},
      {-0.51, 0.17},
      {-1.28, -0.42},
      {-0.32, -0.44}}},
};

static const struct {
    const char *full, *pale;
} colors[SHAPES] = {
    {"#1A1A1A", "#B4B4B4"}, {"#2F62A8", "#AEC3DF"}, {"#2F9C8B", "#AFDAD3"},
    {"#B9481F", "#E6BBAA"}, {"#7B4B9A", "#CDBADA"}, {"#96752E", "#D8CAAC"},
    {"#D0587E", "#EEBFCE"}, {"#6FA3D8", "#CADDF1"},
};

/* In the second half each shape has another colour. */
static uint32_t color_of(uint32_t sign)
{
    return (sign + sign / SHAPES * 3) % SHAPES;
}

const char *ms_marks_color(uint32_t sign)
{
    return colors[color_of(sign)].full;
}

bool ms_marks_is_dashed(uint32_t sign)
{
    return sign / SHAPES % 2 == 1;
}

void ms_marks_write(ms_text *script, uint32_t sign, double x, double y,
                    double radius)
{
    uint32_t shape = sign % SHAPES, n = shapes[shape].n;
    for (uint32_t i = 0; i <= n; i++) { /* back to the first */
        const double *corner = shapes[shape].corner[i % n];
        ms_frame_point(script, x + radius * corner[0], y + radius * corner[1]);
    }
    ms_text_put(script, "\n", 1);
}

void ms_marks_object(ms_text *script, uint32_t sign, double x, double y,
                     double radius)
{
    uint32_t shape = sign % SHAPES, n = shapes[shape].n;
    ms_text_add(script, "set object polygon");
    for (uint32_t i = 0; i <= n; i++) {
        const double *corner = shapes[shape].corner[i % n];
        ms_text_add(script, i == 0 ? " from screen " : " to screen ");
        ms_text_double(script, (x + radius * corner[0]) / MS_FIGURE_WIDTH);
        ms_text_add(script, ",1-");
        ms_text_double(script, y + radius * corner[1]);
        ms_text_add(script, "/H");
    }
    ms_text_add(script,
                " front noclip fillcolor rgb '%s' fillstyle solid "
                "noborder\n",
                ms_marks_color(sign));
}

void ms_marks_plot(ms_text *script, const char *block, uint32_t sign,
                   bool is_filled, bool is_pale)
{
    uint32_t row = color_of(sign);
    const char *color = is_pale ? colors[row].pale : colors[row].full;
    ms_text_add(script,
                ", \\\n  $%s using 1:2 with filledcurves closed "
                "fillcolor rgb '%s' fillstyle solid 1 border linecolor rgb "
                "'%s' linewidth %s notitle",
                block, is_filled ? color : "#FFFFFF",
                is_filled ? "#FFFFFF" : color, is_filled ? "0.6" : "1.7");
}
