/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <string.h>

#include "plots/axes/panel.h"
#include "plots/gnuplot/canvas.h"
#include "plots/page/htmlpage.h"
#include "plots/page/pageparts.h"
#include "plots/record/stack.h"
#include "plots/record/works.h"

/* A title may be any bytes. */
static void put_escaped(const char *words, ms_text *text)
{
    for (const char *at = words; *at != '\0';) {
        size_t n = ms_text_character(at);
        if (n == 0 || (unsigned char)*at < ' ')
            ms_text_add(text, n == 0 ? "\uFFFD" : " "), n = 1;
        else if (strchr("<>&\"'", *at) != NULL)
            ms_text_add(text, "&#%d;", *at);
        else
            ms_text_put(text, at, n);
        at += n;
    }
}

static void put_head(const char *title, ms_text *text)
{
    ms_text_add(text,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                "<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\""
                "default-src 'none'; style-src '%s'; script-src '%s'; "
                "base-uri 'none'; form-action 'none'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n"
                "<title>",
                ms_pageparts_style.hash, ms_pageparts_script.hash);
    put_escaped(title, text);
    ms_text_add(text, "</title>\n<style>");
}

/* What a name holds must not end the block: "<" stands only in strings. */
static void put_data(const ms_text *data, ms_text *text)
{
    const char *at = data->bytes, *end = data->bytes + data->length;
    while (at < end) {
        const char *angle = memchr(at, '<', (size_t)(end - at));
        const char *until = angle != NULL ? angle : end;
        ms_text_put(text, at, (size_t)(until - at));
        if (angle != NULL)
            ms_text_add(text, "\\u003c"), until++;
        at = until;
    }
}

ms_err ms_htmlpage_make(const char *title, const ms_text *data, ms_text *page,
                        ms_fault *fault)
{
    if (data->failed)
        return ms_fail_nomem(fault);
    put_head(title, page);
    ms_text_add(page,
                "%s</style>\n</head>\n<body>\n<main id=\"page\">"
                "<noscript>This page draws its figures by a script of "
                "its own.</noscript></main>\n"
                "<script type=\"application/json\" id=\"data\">",
                ms_pageparts_style.text);
    put_data(data, page);
    ms_text_add(page, "</script>\n<script>%s</script>\n</body>\n</html>\n",
                ms_pageparts_script.text);
    return page->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- what a page says once ----------------------------------------------- */

static const struct {
    uint8_t kind; /* of a turn */
    const char *color;
} turns[] = {
    {MS_TURN_FORWARD, "#6FA3D8"},    {MS_TURN_BACKWARD, "#B9481F"},
    {MS_TURN_GRAD_INPUT, "#B9481F"}, {MS_TURN_GRAD_WEIGHT, "#5B3A80"},
    {MS_TURNTIMES_STEP, "#2F9C8B"},
};

static void put_pair(const char *name, const char *color, ms_text *text)
{
    ms_text_add(text, "[");
    ms_text_json(text, name);
    ms_text_add(text, ",\"%s\"]", color != NULL ? color : "#B4B4B4");
}

void ms_htmlpage_put_colors(ms_text *text)
{
    const char *between = "";
    ms_text_add(text, "\"categories\":[");
    for (uint32_t c = 0; c < MS_N_CATEGORIES; c++) {
        ms_text_add(text, "%s", c > 0 ? "," : "");
        put_pair(ms_names_category[c], ms_canvas_category_color[c], text);
    }
    ms_text_add(text, ",");
    put_pair("recorded", "#8C9FE0", text);
    ms_text_add(text, "],\"order\":[");
    for (uint32_t i = 0; i < MS_N_CATEGORIES; i++)
        ms_text_add(text, "%u,", ms_stack_order[i]);
    ms_text_add(text, "%u", MS_PAGE_CATEGORIES - 1);
    ms_text_add(text, "],\"works\":[");
    for (uint32_t work = 0; work < MS_N_WORKS; work++) {
        ms_text_add(text, "%s", work > 0 ? "," : "");
        put_pair(ms_works_look[work].words, ms_works_look[work].color, text);
    }
    ms_text_add(text, "],\"phases\":{");
    for (uint32_t phase = 0; phase <= MS_N_PHASES; phase++) {
        if (ms_record_phases[phase] == NULL)
            continue;
        ms_text_add(text, "%s\"%s\":\"%s\"", between, ms_record_phases[phase],
                    ms_panel_phases[phase].strip);
        between = ",";
    }
    ms_text_add(text, "},\"turns\":{");
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
        ms_text_add(text, "%s\"%s\":\"%s\"", i > 0 ? "," : "",
                    ms_turntimes_names[turns[i].kind], turns[i].color);
    ms_text_add(text, "}");
}
