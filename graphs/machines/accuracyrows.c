/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Made by tests/truth/accuracy.sh; do not edit. */
#include "graphs/machines/accuracy.h"

/* clang-format off */
/* device, ms_kernels, tokens, {runs, median, most} */
const ms_accuracy_times ms_accuracyrows_times[] = {
    {"a100-40gb-sxm", 1, 4096, {14, 2.3, 28.7}},
    {"a100-40gb-sxm", 1, MS_ACCURACY_ANY, {22, 2.2, 17.6}},
    {"a100-80gb-sxm", 1, 1024, {5, 6.9, 19.8}},
    {"a100-80gb-sxm", 1, 4096, {9, 3.2, 6.4}},
    {"a100-80gb-sxm", 1, 16384, {6, 2.5, 5.0}},
    {"a100-80gb-sxm", 1, MS_ACCURACY_ANY - 1, {8, 1.2, 3.0}},
    {"a100-80gb-sxm", 1, MS_ACCURACY_ANY, {28, 2.5, 8.2}},
    {"a100-80gb-sxm", 2, MS_ACCURACY_SPLIT, {45, 4.9, 34.7}},
    {"b200-180gb-sxm", 6, MS_ACCURACY_SPLIT, {19, 3.4, 11.0}},
    {"h100-80gb-sxm", 1, 1024, {8, 6.1, 15.0}},
    {"h100-80gb-sxm", 1, 4096, {10, 2.8, 7.3}},
    {"h100-80gb-sxm", 1, MS_ACCURACY_ANY, {25, 3.6, 8.5}},
    {"rtx3090-24gb", 1, 0, {26, 7.4, 32.0}},
};
const uint32_t ms_accuracyrows_n_times =
    sizeof ms_accuracyrows_times / sizeof *ms_accuracyrows_times;

/* ms_accuracy_library, again, {runs, median, most} */
const ms_accuracy_peaks ms_accuracyrows_peaks[] = {
    {0, 1, {6, 0.6, 2.1}},
    {0, MS_ACCURACY_ANY, {10, 0.4, 3.7}},
    {1, 1, {15, 0.4, 5.5}},
    {1, MS_ACCURACY_ANY, {17, 0.4, 5.5}},
    {2, 0, {13, 0.0, 0.1}},
    {2, MS_ACCURACY_ANY, {15, 0.0, 0.3}},
    {5, 0, {17, 0.0, 0.1}},
    {5, MS_ACCURACY_ANY, {17, 0.0, 0.1}},
    {6, 0, {105, 0.7, 2.6}},
    {6, MS_ACCURACY_ANY, {105, 0.7, 2.6}},
};
const uint32_t ms_accuracyrows_n_peaks =
    sizeof ms_accuracyrows_peaks / sizeof *ms_accuracyrows_peaks;
