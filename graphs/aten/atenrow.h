/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ATENROW_H
#define MS_GRAPHS_ATENROW_H

/* Private to graphs/aten: how rows of the op tables are written.  shape is
 * the end of a shape rule's name: shape_same, window_planes. */

#include "graphs/aten/aten.h"
#include "graphs/ops/ops.h"

/* No gradient flows through it. */
#define CONSTANT(type, name, form)                                             \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .inputs = "", .saves = "",       \
        .makes = "", .shape = &ms_aten##form                                   \
    }
#define ANY_SHAPE(type, name)                                                  \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .inputs = "", .saves = "",       \
        .makes = ""                                                            \
    }
/* A view of input 0; backward makes a view of the gradient. */
#define VIEW(type, name, backward, form)                                       \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .rule = &(backward),             \
        .inputs = "0", .saves = "", .makes = "", .shape = &ms_aten##form       \
    }
/* One backward kernel that makes the gradient of input 0. */
#define KERNEL(type, name, variant, node, kernel, keeps, form)                 \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .overload = (variant),           \
        .rule = &(const ms_rule){node "Backward0", "aten::" kernel,            \
                                 ms_pointwise_one_kernel},                     \
        .inputs = "0", .saves = (keeps), .makes = "0: " kernel ".i0!",         \
        .shape = &ms_aten##form                                                \
    }
/* Backward as text. */
#define FORMULA(type, name, variant, node, wants, keeps, form, formula)        \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .overload = (variant),           \
        .rule =                                                                \
            &(const ms_formula){{node "Backward0", NULL, ms_formula_backward}, \
                                (formula)}                                     \
                 .rule,                                                        \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_aten##form                                                \
    }
/* A rule of graphs/ops, described by formula. */
#define RULE(type, name, variant, backward, wants, keeps, form, formula)       \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .overload = (variant),           \
        .rule = &(backward), .inputs = (wants), .saves = (keeps),              \
        .makes = (formula), .shape = &ms_aten##form                            \
    }
/* The same with exceptions, or rated as a matrix product. */
#define RULE_ALSO(type, name, variant, backward, wants, keeps, form, formula,  \
                  exception)                                                   \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .overload = (variant),           \
        .rule = &(backward), .inputs = (wants), .saves = (keeps),              \
        .makes = (formula), .shape = &ms_aten##form,                           \
        .also = ms_atenexceptions_##exception                                  \
    }
#define FORMULA_ALSO(type, name, variant, node, wants, keeps, form, formula,   \
                     exception)                                                \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .overload = (variant),           \
        .rule =                                                                \
            &(const ms_formula){{node "Backward0", NULL, ms_formula_backward}, \
                                (formula)}                                     \
                 .rule,                                                        \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_aten##form, .also = ms_atenexceptions_##exception         \
    }
#define PRODUCT(type, name, backward, wants, keeps, formula)                   \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .rule = &(backward),             \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_atenshape_product, .matrix = true, .crossed = true        \
    }
/* Every output has a gradient. */
#define PIECES(type, name, backward, form, formula)                            \
    {                                                                          \
        .op = (name), .kind = MS_KIND_##type, .rule = &(backward),             \
        .inputs = "0", .saves = "", .makes = (formula),                        \
        .shape = &ms_aten##form, .every_output = true                          \
    }

#endif
