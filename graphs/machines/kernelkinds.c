/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/kernelkinds.h"

#include <string.h>

const char *const ms_kernelkinds_words[MS_N_MEMORY_KINDS] = {
    "pointwise", "norm", "softmax", "reduction", "lookup", "optimizer", "copy",
};

/* Words between blanks, without "aten::" and without the underscore of what
 * works in place; "*" stands for any ending. */
static const struct {
    ms_memory_kind kind;
    const char *ops;
} rows[] = {
    {MS_MEMORY_OPTIMIZER, " _foreach* _fused_adam* _fused_sgd* _fused_adagrad* "
                          "addcdiv addcmul lerp "},
    {MS_MEMORY_NORM, " native_layer_norm* native_batch_norm* native_group_norm*"
                     " _fused_rms_norm* cudnn_batch_norm* "},
    {MS_MEMORY_SOFTMAX, " _softmax* _log_softmax* "},
    {MS_MEMORY_REDUCTION, " sum mean linalg_vector_norm norm max min amax amin "
                          "argmax argmin var std prod any all "},
    {MS_MEMORY_LOOKUP, " embedding "},
    {MS_MEMORY_COPY, " copy cat stack clone fill zero _to_copy contiguous "},
    {MS_MEMORY_POINTWISE,
     " add sub mul div neg abs pow exp log sqrt rsqrt reciprocal tanh sigmoid "
     "sin cos relu gelu silu mish where masked_fill clamp clamp_min clamp_max "
     "threshold_backward gelu_backward silu_backward tanh_backward "
     "sigmoid_backward native_dropout native_dropout_backward bernoulli "
     "leaky_relu leaky_relu_backward hardtanh hardtanh_backward hardswish "
     "hardswish_backward eq ne lt le gt ge logical_and logical_or logical_not "
     "bitwise_and bitwise_or bitwise_not maximum minimum tril triu "},
};

/* Is the word of n bytes one of the list's? */
static bool is_listed(const char *list, const char *word, size_t n)
{
    for (const char *at = list + 1; *at != '\0';) {
        size_t length = strcspn(at, " ");
        bool open = length > 0 && at[length - 1] == '*';
        if (open ? n >= length - 1 && memcmp(at, word, length - 1) == 0
                 : n == length && memcmp(at, word, n) == 0)
            return true;
        at += length + 1;
    }
    return false;
}

uint32_t ms_kernelkinds_of(const char *op)
{
    if (strncmp(op, "aten::", 6) != 0)
        return MS_NONE;
    const char *word = op + 6;
    size_t n = strlen(word);
    if (n > 1 && word[n - 1] == '_')
        n--;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_listed(rows[i].ops, word, n))
            return rows[i].kind;
    return MS_NONE;
}
