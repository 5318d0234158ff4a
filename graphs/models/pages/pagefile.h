/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PAGEFILE_H
#define MS_PAGEFILE_H

/* Private to graphs/models: where the page of a model_type or a family comes
 * from, and whether a user's page has the form of one (huggingface.h).
 *
 * In this order: the files of --set model.page=FILE (--page), the last first;
 * the file NAME.json of the folder that the environment variable MEMSIM_PAGES
 * names; the built-in pages.  So a user's page may stand in for a built-in
 * one, and be like it. */

#include "graphs/models/pages/page.h"

/* The built-in pages of model types and of families, sorted by name; made by
 * graphs/embed.cmake. */
typedef struct ms_page_text {
    const char *name, *text;
} ms_page_text;
extern const ms_page_text ms_pages_all[];
extern const uint32_t ms_pages_n;
extern const ms_page_text ms_pages_families[];
extern const uint32_t ms_pages_n_families;

/* The page of that name and of the kind of page, read and checked; *found: is
 * there one?  Faults: MS_EINPUT at the line of a page that is none,
 * MS_ESYSTEM. */
ms_err ms_pagefile_find(ms_page *page, const char *type, ms_json *json,
                        bool *found);
/* The user's folder of pages (MEMSIM_PAGES), or NULL. */
const char *ms_pagefile_folder(void);
/* The families that there are: the built-in ones, and those of the files that
 * were read. */
uint32_t ms_pagefile_families(const ms_page *page, const char **names,
                              uint32_t room);

#endif
