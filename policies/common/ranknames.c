/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/ranknames.h"

#include <string.h>

static const char names[MS_N_RANK_DIMS][3] = {[MS_RANK_TENSOR] = "tp",
                                              [MS_RANK_CONTEXT] = "cp",
                                              [MS_RANK_EXPERT] = "ep",
                                              [MS_RANK_DATA] = "dp",
                                              [MS_RANK_PIPELINE] = "pp"};

static uint8_t dim_of(const char *name, size_t length)
{
    for (uint32_t d = 1; d < MS_N_RANK_DIMS; d++)
        if (length == 2 && memcmp(name, names[d], 2) == 0)
            return (uint8_t)d;
    return 0;
}

static ms_err read(const char *where, const char *text, uint8_t *order,
                   ms_fault *fault)
{
    static const char hint[] = "name each once, as tp-cp-ep-dp-pp or tp-pp-dp";
    uint32_t n = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, "-/");
        uint8_t dim = dim_of(text, length);
        if (dim == 0)
            return ms_fail(fault, MS_EUSAGE, where, hint,
                           "\"%.*s\" is none of tp, cp, ep, dp and pp",
                           (int)length, text);
        if (memchr(order, dim, n) != NULL)
            return ms_fail(fault, MS_EUSAGE, where, hint, "%s is there twice",
                           names[dim]);
        order[n++] = dim;
        text += length;
        text += *text != '\0' && text[1] != '\0';
    }
    return MS_OK;
}

ms_err ms_ranknames_read(const char *policy, const ms_policy_value *value,
                         ms_shape *shape, ms_fault *fault)
{
    uint8_t order[MS_N_RANK_DIMS] = {0};
    if (!value->given)
        return MS_OK;
    MS_TRY(read(policy, value->text, order, fault));
    if (shape->rank_order[0] != 0 &&
        memcmp(shape->rank_order, order, sizeof order) != 0)
        return ms_fail(fault, MS_EUSAGE, policy, "give one policy an order",
                       "another policy has given another order of the ranks");
    memcpy(shape->rank_order, order, sizeof order);
    return MS_OK;
}
