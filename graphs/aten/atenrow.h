/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_ATENROW_H
#define MS_GRAPHS_ATENROW_H

/* Private to graphs/aten*.c: how rows of the op tables are written.  shape is
 * the end of a shape rule's name: shape_same, window_planes. */

#include "graphs/aten/aten.h"
#include "graphs/ops/ops.h"

/* No gradient flows through it. */
#define CONSTANT(name, form)                                                   \
    {                                                                          \
        .op = (name), .inputs = "", .saves = "", .makes = "",                  \
        .shape = &ms_aten##form                                                \
    }
#define ANY_SHAPE(name)                                                        \
    {                                                                          \
        .op = (name), .inputs = "", .saves = "", .makes = ""                   \
    }
/* A view of input 0; backward makes a view of the gradient. */
#define VIEW(name, backward, form)                                             \
    {                                                                          \
        .op = (name), .rule = &(backward), .inputs = "0", .saves = "",         \
        .makes = "", .shape = &ms_aten##form                                   \
    }
/* One backward kernel that makes the gradient of input 0. */
#define KERNEL(name, variant, node, kernel, keeps, form)                       \
    {                                                                          \
        .op = (name), .overload = (variant),                                   \
        .rule = &(const ms_rule){node "Backward0", "aten::" kernel,            \
                                 ms_pointwise_one_kernel},                     \
        .inputs = "0", .saves = (keeps), .makes = "0: " kernel ".i0!",         \
        .shape = &ms_aten##form                                                \
    }
/* Backward as text. */
#define FORMULA(name, variant, node, wants, keeps, form, formula)              \
    {                                                                          \
        .op = (name), .overload = (variant),                                   \
        .rule =                                                                \
            &(const ms_formula){{node "Backward0", NULL, ms_formula_backward}, \
                                (formula)}                                     \
                 .rule,                                                        \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_aten##form                                                \
    }
/* A rule of graphs/ops, described by formula. */
#define RULE(name, variant, backward, wants, keeps, form, formula)             \
    {                                                                          \
        .op = (name), .overload = (variant), .rule = &(backward),              \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_aten##form                                                \
    }
/* The same with exceptions, or rated as a matrix product. */
#define RULE_ALSO(name, variant, backward, wants, keeps, form, formula,        \
                  exception)                                                   \
    {                                                                          \
        .op = (name), .overload = (variant), .rule = &(backward),              \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_aten##form, .also = ms_atenalso_##exception               \
    }
#define FORMULA_ALSO(name, variant, node, wants, keeps, form, formula,         \
                     exception)                                                \
    {                                                                          \
        .op = (name), .overload = (variant),                                   \
        .rule =                                                                \
            &(const ms_formula){{node "Backward0", NULL, ms_formula_backward}, \
                                (formula)}                                     \
                 .rule,                                                        \
        .inputs = (wants), .saves = (keeps), .makes = (formula),               \
        .shape = &ms_aten##form, .also = ms_atenalso_##exception               \
    }
#define PRODUCT(name, backward, wants, keeps, formula)                         \
    {                                                                          \
        .op = (name), .rule = &(backward), .inputs = (wants),                  \
        .saves = (keeps), .makes = (formula), .shape = &ms_atenshape_product,  \
        .matrix = true, .crossed = true                                        \
    }
/* Every output has a gradient. */
#define PIECES(name, backward, form, formula)                                  \
    {                                                                          \
        .op = (name), .rule = &(backward), .inputs = "0", .saves = "",         \
        .makes = (formula), .shape = &ms_aten##form, .every_output = true      \
    }

#endif
