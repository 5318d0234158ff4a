/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signs are polygons in px, not the terminal's own, so that they are as large
 * in SVG as in PNG and PDF.  Neighbours in the list differ in shape, in hue and
 * in lightness: they stay apart in grey and for colour-blind readers. */

#include <assert.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/gnuplot/canvas.h"

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

/* The shades of a hue: for the first policy of a family, for its next two, and
 * a pale one for marks in the background. */
static const struct {
    const char *shades[MS_MARKS_SHADES], *pale;
} colors[MS_MARKS_HUES] = {
    {{"#1A1A1A", "#8A8A8A", "#555555"}, "#B4B4B4"},
    {{"#2F62A8", "#8C9FE0", "#1B3A66"}, "#AEC3DF"},
    {{"#2F9C8B", "#7CC9BC", "#1A5C52"}, "#AFDAD3"},
    {{"#B9481F", "#E08A66", "#6E2A11"}, "#E6BBAA"},
    {{"#7B4B9A", "#B592CC", "#4A2B5E"}, "#CDBADA"},
    {{"#96752E", "#CDAE6A", "#5A451A"}, "#D8CAAC"},
    {{"#D0587E", "#EDA3BA", "#8A2F4D"}, "#EEBFCE"},
    {{"#6FA3D8", "#A9CBEC", "#3E6E9E"}, "#CADDF1"},
};

/* ---- whose sign it is ---------------------------------------------------- */

/* Families that most figures have, each with a hue of its own; any other takes
 * one that its spelling gives, or the next that is free. */
static const char *const known[MS_MARKS_HUES] = {
    "no policy", "checkpoint", "zero",       "swap",
    "fsdp",      "offload",    "microbatch", "ddp"};

#define FREE UINT32_MAX

typedef struct families {
    const char *name[MS_MARKS_MOST];
    uint32_t slot[MS_MARKS_MOST]; /* hue, and in a second round + HUES */
    uint32_t n;
} families;

/* FNV-1a */
static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

static uint32_t hue_known(const char *name)
{
    uint32_t hue = 0;
    while (hue < MS_MARKS_HUES && strcmp(known[hue], name) != 0)
        hue++;
    return hue;
}

static bool is_taken(const families *f, uint32_t slot)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->slot[i] == slot)
            return true;
    return false;
}

static uint32_t free_slot(const families *f, const char *name)
{
    uint32_t first = hash_of(name) % MS_MARKS_HUES;
    for (uint32_t i = 0; i < 4 * MS_MARKS_HUES; i++) {
        uint32_t slot = (first + i) % MS_MARKS_HUES;
        slot += i / MS_MARKS_HUES * MS_MARKS_HUES;
        if (!is_taken(f, slot))
            return slot;
    }
    return first;
}

/* In the order of their spelling, so that no order of variants matters. */
static void add_family(families *f, const char *name)
{
    uint32_t at = f->n;
    for (uint32_t i = 0; i < f->n; i++)
        if (strcmp(f->name[i], name) == 0)
            return;
    for (; at > 0 && strcmp(f->name[at - 1], name) > 0; at--)
        f->name[at] = f->name[at - 1];
    f->name[at] = name;
    f->slot[f->n++] = FREE;
}

static void find_slots(families *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (hue_known(f->name[i]) < MS_MARKS_HUES)
            f->slot[i] = hue_known(f->name[i]);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->slot[i] == FREE)
            f->slot[i] = free_slot(f, f->name[i]);
}

/* How many of the family are spelled before it. */
static uint32_t place_in_family(const ms_sign_name *names, uint32_t n,
                                uint32_t own)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < n; i++)
        place += strcmp(names[i].family, names[own].family) == 0 &&
                 strcmp(names[i].name, names[own].name) < 0;
    return place;
}

/* The first of each family has its hue's shape; the others what is left. */
static void find_shapes(uint32_t n, ms_sign *marks, const uint32_t *order)
{
    bool used[SHAPES] = {false};
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++)
        if (marks[i].dash == 0)
            used[marks[i].shape] = true;
    for (uint32_t i = 0; i < n; i++) {
        ms_sign *mark = &marks[order[i]];
        if (mark->dash == 0)
            continue;
        while (next < SHAPES && used[next])
            next++;
        mark->shape =
            (uint8_t)(next < SHAPES ? next++
                                    : (mark->hue + mark->dash) % SHAPES);
    }
}

static int compare_names(const ms_sign_name *a, const ms_sign_name *b)
{
    int order = strcmp(a->family, b->family);
    return order != 0 ? order : strcmp(a->name, b->name);
}

void ms_marks_assign(const ms_sign_name *names, uint32_t n, ms_sign *marks)
{
    families f = {.n = 0};
    uint32_t order[MS_MARKS_MOST];
    assert(n <= MS_MARKS_MOST);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && compare_names(&names[order[at - 1]], &names[i]) > 0;
             at--)
            order[at] = order[at - 1];
        order[at] = i;
        add_family(&f, names[i].family);
    }
    find_slots(&f);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t own = 0, place = place_in_family(names, n, i);
        while (strcmp(f.name[own], names[i].family) != 0)
            own++;
        uint32_t hue = f.slot[own] % MS_MARKS_HUES;
        uint32_t round = f.slot[own] / MS_MARKS_HUES;
        marks[i] = (ms_sign){
            (uint8_t)hue, (uint8_t)((round + place) % MS_MARKS_SHADES),
            (uint8_t)((hue + 3 * round) % SHAPES), (uint8_t)place};
    }
    find_shapes(n, marks, order);
}

const char *ms_marks_color(const ms_sign *mark)
{
    return colors[mark->hue].shades[mark->shade];
}

const char *ms_marks_hue(const ms_sign *mark)
{
    return colors[mark->hue].shades[mark->hue > 0 ? MS_MARKS_SHADES - 1 : 0];
}

uint32_t ms_marks_dash(const ms_sign *mark)
{
    return 1 + mark->dash % MS_MARKS_DASHES;
}

void ms_marks_write(ms_text *script, const ms_sign *mark, double x, double y,
                    double radius)
{
    uint32_t shape = mark->shape, n = shapes[shape].n;
    for (uint32_t i = 0; i <= n; i++) { /* back to the first */
        const double *corner = shapes[shape].corner[i % n];
        ms_canvas_point(script, x + radius * corner[0], y + radius * corner[1]);
    }
    ms_text_put(script, "\n", 1);
}

void ms_marks_object(ms_text *script, const ms_sign *mark, double x, double y,
                     double radius)
{
    uint32_t shape = mark->shape, n = shapes[shape].n;
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
                ms_marks_color(mark));
}

void ms_marks_plot(ms_text *script, const char *block, const ms_sign *mark,
                   bool is_filled, bool is_pale)
{
    const char *color = is_pale ? colors[mark->hue].pale : ms_marks_color(mark);
    ms_text_add(script,
                ", \\\n  $%s using 1:2 with filledcurves closed "
                "fillcolor rgb '%s' fillstyle solid 1 border linecolor rgb "
                "'%s' linewidth %s notitle",
                block, is_filled ? color : "#FFFFFF",
                is_filled ? "#FFFFFF" : color, is_filled ? "0.6" : "1.7");
}
