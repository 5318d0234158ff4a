/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A larger product never takes less time, on any device, by tensor cores or
 * not; nor does a convolution, nor attention to more keys. */
#include "graphs/machines/times/convolutiontime.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#define N_SHAPES 4000

static double some(laws_random *random)
{
    uint32_t most = 1u << (1 + laws_below(random, 16));
    return 1 + laws_below(random, most);
}

static double ns_of(const ms_device *device, ms_product_shape shape,
                    bool tensor)
{
    double elements = shape.batch * (shape.m * shape.n + shape.m * shape.k +
                                     shape.n * shape.k);
    return ms_producttime_ns(
        device, shape, tensor ? device->half_flops : device->fp32_flops,
        (tensor ? 2 : 4) * elements, tensor ? MS_UNIT_TENSOR : MS_UNIT_PLAIN);
}

START_TEST(more_takes_longer)
{
    laws_random random = {laws_seed = 77 + (uint64_t)_i};
    const ms_device *device = ms_devicerows_at((uint32_t)_i);
    ck_assert_ptr_nonnull(device);
    for (uint32_t i = 0; i < N_SHAPES; i++) {
        ms_product_shape a = {1 + laws_below(&random, 64), some(&random),
                              some(&random), some(&random)};
        ms_product_shape b = a;
        bool tensor = laws_chance(&random, 50);
        double *grows[] = {&b.batch, &b.m, &b.n, &b.k};
        *grows[laws_below(&random, 4)] += some(&random);
        double before = ns_of(device, a, tensor);
        ck_assert_double_gt(before, 0);
        ck_assert(ns_of(device, b, tensor) >= before * (1 - 1e-12));
        double least = 2 * a.batch * a.m * a.n * a.k / device->half_flops;
        ck_assert(!tensor || before >= 1e9 * least);
    }
}
END_TEST

/* ---- convolutions -------------------------------------------------------- */

/* What a convolution is by its own dimensions. */
typedef struct filtered {
    double images, inputs, outputs, side, taps, stride;
} filtered;

static double convolution_ns(const ms_device *device, const filtered *f,
                             ms_convolution c, bool tensor)
{
    double positions = f->images * f->side * f->side;
    double read = positions * f->stride * f->stride;
    double bytes =
        (tensor ? 2 : 4) * (read * f->inputs + positions * f->outputs +
                            f->inputs * f->outputs * f->taps);
    c.product =
        (ms_product_shape){1, positions, f->outputs, f->inputs * f->taps};
    if (c.pass == MS_CONVOLUTION_INPUT)
        c.product = (ms_product_shape){
            1, read, f->inputs, f->outputs * f->taps / (f->stride * f->stride)};
    else if (c.pass == MS_CONVOLUTION_WEIGHT)
        c.product =
            (ms_product_shape){1, f->outputs, f->inputs * f->taps, positions};
    c.taps = f->taps;
    c.stride = f->stride;
    c.side = f->side;
    return ms_convolutiontime_ns(
        device, &c, tensor ? device->half_flops : device->fp32_flops, bytes,
        tensor ? MS_UNIT_TENSOR : MS_UNIT_PLAIN);
}

START_TEST(larger_convolutions_take_longer)
{
    laws_random random = {laws_seed = 177 + (uint64_t)_i};
    const ms_device *device = ms_devicerows_at((uint32_t)_i);
    for (uint32_t i = 0; i < N_SHAPES; i++) {
        bool three = laws_chance(&random, 50), tensor = i % 2 == 0;
        filtered a = {.images = 1 + laws_below(&random, 64),
                      .inputs = 1 + laws_below(&random, 600),
                      .outputs = 1 + laws_below(&random, 600),
                      .side = 1 + laws_below(&random, 120),
                      .taps = three ? 9 : 1 + laws_below(&random, 25),
                      .stride = three ? 1 : 1 + laws_below(&random, 2)};
        ms_convolution c = {.pass = (ms_convolution_pass)laws_below(
                                &random, MS_N_CONVOLUTION_PASSES),
                            .is_innermost = laws_chance(&random, 50),
                            .is_three = three && !tensor};
        filtered b = a;
        double *grows[] = {&b.images, &b.inputs, &b.outputs, &b.side};
        *grows[laws_below(&random, 4)] += 1 + laws_below(&random, 40);
        c.is_turned = tensor && !c.is_innermost && laws_chance(&random, 50);
        double before = convolution_ns(device, &a, c, tensor);
        ck_assert_double_gt(before, 0);
        ck_assert(convolution_ns(device, &b, c, tensor) >=
                  before * (1 - 1e-12));
    }
}
END_TEST

/* ---- attention ----------------------------------------------------------- */

/* FLOPs grow with keys, and the rate at which they are done. */
START_TEST(longer_sequences_take_longer)
{
    const ms_device *device = ms_devicerows_at((uint32_t)_i);
    for (uint32_t code = 0; code < MS_N_ATTENTION_CODES; code++)
        for (double keys = 1; keys < 1e6; keys *= 1.5) {
            double ns = ms_producttime_attention_ns(
                device, (ms_attention_code)code, false,
                (ms_attention_shape){1024, keys, 128, 0}, 1e9 * keys,
                device->half_flops);
            double more = ms_producttime_attention_ns(
                device, (ms_attention_code)code, false,
                (ms_attention_shape){1024, 1.1 * keys, 128, 0}, 1.1e9 * keys,
                device->half_flops);
            ck_assert_double_gt(more, ns);
            ck_assert_double_lt(more, 1.1 * ns);
        }
}
END_TEST

/* The worked example of producttime.h. */
START_TEST(by_hand)
{
    const ms_device *h100 = NULL;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_device_find("h100", &h100, &fault), MS_OK);
    ms_product_shape shape = {1, 4096, 4096, 4096};
    double waves_ns =
        8.0 * 128 * 128 * (4096 + 154) * 2 * 132 / (989e12 * 0.847) * 1e9;
    double bytes = 2 * 3.0 * 4096 * 4096;
    double ns = ms_producttime_ns(h100, shape, 989e12, bytes, MS_UNIT_TENSOR);
    ck_assert_double_eq_tol(waves_ns, 175559, 1);
    ck_assert_double_ge(ns, 2530 + waves_ns);
    ck_assert_double_lt(ns, 2530 + 1.001 * waves_ns);
}
END_TEST

Suite *suite_producttime(void)
{
    Suite *suite = suite_create("producttime");
    TCase *tcase = tcase_create("producttime");
    tcase_add_loop_test(tcase, more_takes_longer, 0, (int)ms_devices_n);
    tcase_add_loop_test(tcase, longer_sequences_take_longer, 0,
                        (int)ms_devices_n);
    tcase_add_loop_test(tcase, larger_convolutions_take_longer, 0,
                        (int)ms_devices_n);
    tcase_add_test(tcase, by_hand);
    suite_add_tcase(suite, tcase);
    return suite;
}
