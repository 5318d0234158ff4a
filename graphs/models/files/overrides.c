/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/files/reader.h"

#include <stdio.h>
#include <string.h>

/* The name of a model is no field of its family, but it can be set as well. */
ms_err ms_overrides_apply(const ms_reader *r, const ms_fields *keys,
                          ms_fields_values *out)
{
    for (uint32_t i = 0; i < r->n_overrides; i++) {
        const ms_override *set = &r->overrides[i];
        char where[256], hint[384];
        snprintf(where, sizeof where, "--set model.%s=%s", set->key,
                 set->value);
        uint32_t row = ms_fields_find(keys->rows, keys->n, set->key);
        if (row != MS_NONE) {
            MS_TRY(ms_fields_from_text(set->value, where, &keys->rows[row],
                                       r->arena, &out->values[row], r->fault));
            out->given |= UINT64_C(1) << row;
        } else if (strcmp(set->key, "name") == 0) {
            r->model->name =
                ms_arena_text(r->arena, set->value, strlen(set->value));
            if (r->model->name == NULL)
                return ms_fail_nomem(r->fault);
        } else {
            ms_fields_hint(keys, set->key, hint, sizeof hint);
            return ms_fail(r->fault, MS_EUSAGE, where, hint,
                           "the model has no setting \"%s\"", set->key);
        }
    }
    return MS_OK;
}
