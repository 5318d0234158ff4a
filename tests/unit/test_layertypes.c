/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of layer types against the table of ops. */
#include "graphs/aten/aten.h"
#include "graphs/layertypes.h"
#include "tests/tests.h"

#include <stdio.h>
#include <string.h>

static bool known(const ms_index *rows, const char *op, const char *in_place)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", op + strlen("aten::"), in_place);
    if (ms_atentable_find(rows, name, "default") != NULL ||
        ms_atentable_find(rows, name, "Scalar") != NULL)
        return true;
    fprintf(stderr, "no row %s\n", name);
    return false;
}

START_TEST(every_op_has_a_row)
{
    ms_arena arena = {0};
    ms_fault fault;
    ms_index rows;
    bool all = true;
    ck_assert_int_eq(ms_atentable_open(&rows, &arena, &fault), MS_OK);
    for (uint32_t k = 0; k < ms_layer_n_kinds; k++) {
        const ms_layer_kind *kind = &ms_layer_kinds[k];
        bool in_place =
            kind->n_fields > 0 && strcmp(kind->fields[0].name, "inplace") == 0;
        if (kind->op == NULL)
            continue;
        all &= known(&rows, kind->op, "");
        all &= !in_place || known(&rows, kind->op, "_");
    }
    ms_arena_free(&arena);
    ck_assert(all);
}
END_TEST

START_TEST(types_are_unique)
{
    for (uint32_t k = 0; k < ms_layer_n_kinds; k++)
        ck_assert_uint_eq(ms_layer_find(ms_layer_kinds[k].type), k);
}
END_TEST

Suite *suite_layertypes(void)
{
    Suite *suite = suite_create("layertypes");
    TCase *tcase = tcase_create("layertypes");
    tcase_add_test(tcase, every_op_has_a_row);
    tcase_add_test(tcase, types_are_unique);
    suite_add_tcase(suite, tcase);
    return suite;
}
