/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_PAGEPARTS_H
#define MS_PLOTS_PAGEPARTS_H

/* The style and the script of a page, made by embed.cmake.  Private to
 * plots/. */

typedef struct ms_pagepart {
    const char *hash; /* as a content security policy names it */
    const char *text;
} ms_pagepart;

extern const ms_pagepart ms_pageparts_style, ms_pageparts_script;

#endif
