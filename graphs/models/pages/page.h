/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PAGE_H
#define MS_PAGE_H

/* Private to graphs/models: a configuration beside the pages of its
 * type, and what a name means there.
 *
 * Of a family (familypage.h) a name is "i", the number of the block, an entry
 * of "let", or a typed key (typedkeys.h).  Of a model_type a name is, in this
 * order: "i", the number of the block; "head" ("lm", "mlm", "none", "pooler",
 * "classes"), "classes" (how many) and "mtp", which settings may choose; an
 * entry of "let"; a key of the configuration. "text_config.hidden_size" is a
 * key of an object; a page with "within" looks for the other keys in that
 * object. */

#include "graphs/json/expression.h"
#include "graphs/model.h"

#define MS_PAGE_LIKE 8u /* a page and what it is like, at most */

typedef struct ms_page_kept {
    const char *name;
    ms_known value;
    struct ms_page_kept *next;
} ms_page_kept;

typedef enum ms_page_kind { MS_PAGE_MODEL_TYPE, MS_PAGE_FAMILY } ms_page_kind;

typedef struct ms_page {
    ms_page_kind kind;
    const char *type;            /* model_type, or the family */
    const ms_json *config;       /* the user's */
    uint32_t config_row;         /* of a family: what faults point to */
    ms_json pages[MS_PAGE_LIKE]; /* its own first */
    uint32_t n_pages;
    struct ms_page_file *files; /* those of users that were read */
    bool is_ours;               /* built-in pages only */
    const ms_override *overrides;
    uint32_t n_overrides;
    ms_arena *arena;
    ms_fault *fault;

    const struct ms_field *keys; /* of a family: a table */
    uint32_t n_keys;
    const ms_value *values; /* one for each */

    const char *head;
    int64_t classes, mtp;
    int64_t i;          /* the number of the block */
    bool i_was_asked;   /* since it was last set to false */
    uint32_t n_bodies;  /* blocks that were written */
    uint32_t depth;     /* of lets that need lets */
    ms_text assumed;    /* ", a=1, b=2": class defaults that were needed */
    ms_page_kept *kept; /* values of lets that do not ask for i */
} ms_page;

/* "supported: bert bloom ...": the types that there are. */
void ms_page_types(char *text, size_t size);
/* Opens the pages of a type.  Faults: MS_EINPUT at the key that names it,
 * with the types that there are. */
ms_err ms_page_open(ms_page *page, const ms_known *type);
/* The same for a family: with the families that there are. */
ms_err ms_page_open_family(ms_page *page, const ms_known *family);
/* The names of the page for expression.h. */
ms_names ms_page_names(ms_page *page);
/* A key of the pages ("layers", "within"): the first page that has it; row
 * MS_NONE: none has. */
uint32_t ms_page_entry(const ms_page *page, const char *key,
                       const ms_json **json);
/* A key of the configuration, or its default; false: no page has one. */
ms_err ms_page_key(ms_page *page, const char *key, ms_known *value,
                   bool *known);
/* The same, where settings and the file are asked only; null: absent. */
ms_err ms_page_given(ms_page *page, const char *key, ms_known *value,
                     bool *given);
/* The override of a key, NULL: none. */
const ms_override *ms_page_override(const ms_page *page, const char *key);
/* The keys that pages have defaults for, their other names, and settings. */
uint32_t ms_page_keys(const ms_page *page, const char **keys, uint32_t room);
/* "0.1", "true", "silu" for a message. */
void ms_page_show(const ms_known *value, char *text, size_t size);

#endif
