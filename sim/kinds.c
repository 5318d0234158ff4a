/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/kinds.h"

bool ms_kinds_is_product(uint8_t kind)
{
    return kind >= MS_KIND_MM && kind <= MS_KIND_GROUPED;
}

bool ms_kinds_is_attention(uint8_t kind)
{
    return kind >= MS_KIND_FLASH && kind <= MS_KIND_ATTENTION;
}
