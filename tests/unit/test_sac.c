/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkpoint:sac: which tensors of a small decoder stay, what runs again. */
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/checkpoint/selective/sac.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

static const char llama[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 3, "
    "\"hidden\": 64, \"heads\": 4, \"ffn\": 172, \"vocab\": 100, "
    "\"positions\": 64, \"norm_type\": \"rms_norm\", \"positions_type\": "
    "\"rotary\", \"activation\": \"swiglu\", \"bias\": false, \"dropout\": 0, "
    "\"tied\": false, \"code\": \"llama\"}}";
/* With biases, as GPT-2: aten::addmm, which the rule does not know. */
static const char gpt[] =
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 3, "
    "\"hidden\": 64, \"heads\": 4, \"vocab\": 100, \"positions\": 64}}";

static ms_arena keep, trial;
static ms_result result;

static void teardown(void)
{
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

static void simulate(const char *json, const char *policy, const char *kernels)
{
    ms_fault fault = {0};
    ms_job job;
    result = (ms_result){0};
    ms_settings_init(&job);
    job.model = "small";
    job.training.batch = 64;
    ck_assert_msg(
        ms_training_set(&job.training, "kernels", kernels, &fault) == MS_OK &&
            ms_read_model_bytes("small", json, strlen(json), NULL, 0, &keep,
                                &result.model, &fault) == MS_OK,
        "%s: %s", fault.where, fault.what);
    result.training = job.training;
    ck_assert_msg(
        ms_resolve_training(&result.training, &result.model, &fault) == MS_OK &&
            ms_dag_order(&result.model, &keep, &fault) == MS_OK &&
            ms_spec_parse(policy, &keep, &job.spec, &fault) == MS_OK &&
            ms_jobway_lower(&job, &keep, &result, &fault) == MS_OK &&
            ms_jobway_step(&job, &trial, &result, &fault) == MS_OK,
        "%s: %s", fault.where, fault.what);
}

/* ---- what stays ---------------------------------------------------------- */

static ms_keep choices(const char *policy)
{
    const ms_graph *graph = result.graph;
    ms_fault fault = {0};
    ms_spec spec = {0};
    ms_keep chosen;
    ck_assert_int_eq(ms_spec_parse(policy, &keep, &spec, &fault), MS_OK);
    ms_schedule schedule;
    ck_assert_int_eq(ms_schedule_default(graph, 1, &keep, &schedule, &fault),
                     MS_OK);
    ms_policy_context context = {.graph = graph,
                                 .schedule = &schedule,
                                 .values = spec.items[0].values,
                                 .arena = &keep};
    ck_assert_int_eq(ms_program_keep_all(graph, &keep, &chosen, &fault), MS_OK);
    ck_assert_int_eq(spec.items[0].policy->keep(&context, &chosen, &fault),
                     MS_OK);
    return chosen;
}

/* "LAYER:OP" of the forward ops of block 1 whose outputs stay, in order. */
static const char *kept_ops(const char *policy)
{
    const ms_graph *graph = result.graph;
    ms_keep chosen = choices(policy);
    ms_text text = {.arena = &keep};
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++) {
        uint32_t block = graph->unit_block[graph->op_unit[op]];
        uint32_t first = graph->out_at[op], kept = 0;
        if (block == MS_NONE ||
            strcmp(graph->block_name[block], "layers.1") != 0)
            continue;
        for (uint32_t i = first; i < graph->out_at[op + 1]; i++)
            kept += chosen.place[graph->out[i]] == MS_HERE;
        ck_assert(kept == 0 || kept == graph->out_at[op + 1] - first);
        if (kept > 0)
            ms_text_add(&text, "%s:%s ", graph->layer_name[graph->op_layer[op]],
                        graph->op_name[op]);
    }
    ck_assert(!text.failed);
    return text.bytes == NULL ? "" : text.bytes;
}

/* wq, wv, attention, w1, w2; not wk, wo, w3. */
START_TEST(attention_and_every_second_product_stay)
{
    simulate(llama, "none", "flash");
    ck_assert_str_eq(
        kept_ops("checkpoint:sac"),
        "layers.1.attention:aten::mm layers.1.attention:aten::mm "
        "layers.1.attention:aten::_scaled_dot_product_flash_attention "
        "layers.1.mlp.gate:aten::mm layers.1.mlp.down:aten::mm ");
    ck_assert_str_eq(
        kept_ops("checkpoint:sac,products=all"),
        "layers.1.attention:aten::mm layers.1.attention:aten::mm "
        "layers.1.attention:aten::mm "
        "layers.1.attention:aten::_scaled_dot_product_flash_attention "
        "layers.1.attention:aten::mm layers.1.mlp.gate:aten::mm "
        "layers.1.mlp.up:aten::mm layers.1.mlp.down:aten::mm ");
    ck_assert_str_eq(kept_ops("checkpoint:full"), "");
}
END_TEST

/* No product runs twice, and w2's output, which is only added, goes. */
START_TEST(a_traced_graph_keeps_all_products)
{
    uint64_t again[2], bytes[2];
    static const char *const which[] = {"checkpoint:sac",
                                        "checkpoint:sac,products=all"};
    for (size_t i = 0; i < 2; i++) {
        simulate(llama, which[i], "flash");
        again[i] = 0;
        for (uint32_t op = 0; op < result.plan->n_ops; op++) {
            uint32_t of = result.plan->op[op].of;
            again[i] += of != MS_NONE &&
                        result.plan->op[op].pass == MS_RECOMPUTE &&
                        strcmp(result.graph->op_name[of], "aten::mm") == 0;
        }
        bytes[i] = result.report->ranks[0].saved_for_backward_bytes;
    }
    ck_assert_uint_eq(again[0], 3 * 3);
    ck_assert_uint_eq(again[1], 0);
    ck_assert_uint_gt(bytes[1], bytes[0]);
}
END_TEST

START_TEST(products_with_a_bias_go)
{
    simulate(gpt, "none", "flash");
    ck_assert_str_eq(
        kept_ops("checkpoint:sac"),
        "layers.1.attention:aten::_scaled_dot_product_flash_attention ");
    simulate(gpt, "none", "eager");
    ck_assert_str_eq(kept_ops("checkpoint:sac"), "");
}
END_TEST

/* ---- the cache's own references ------------------------------------------ */

static const char *names_of(uint32_t set)
{
    const ms_program *program = result.program;
    char name[MS_STORAGE_NAME];
    ms_text text = {.arena = &trial};
    if (set == MS_NOTHING)
        return "";
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        ms_text_add(
            &text, "%s ",
            ms_graph_storage_name(result.graph, program->set_item[i], name));
    ck_assert(!text.failed);
    return text.bytes;
}

/* The calls that hold or drop around block 1, which is units 3 and 4. */
START_TEST(what_autograd_does_not_save_is_held)
{
    simulate(llama, "checkpoint:sac", "flash");
    const ms_program *program = result.program;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb == MS_RUN && call->run.pass == MS_FORWARD &&
            call->unit == 3)
            ck_assert_str_eq(names_of(call->set), "layers.1.attention:out ");
        if (call->verb == MS_RUN && call->run.pass == MS_FORWARD &&
            call->unit == 4)
            ck_assert_str_eq(names_of(call->set),
                             "layers.1.residual2:out layers.1.mlp.down:out ");
        if (call->verb == MS_RERUN && call->unit == 3) {
            ck_assert_int_eq(call[1].verb, MS_DROP_SET);
            ck_assert_str_eq(names_of(call[1].set), "layers.1.attention:out ");
        }
        if (call->verb == MS_RUN && call->run.pass != MS_FORWARD &&
            call->unit == 3) {
            ck_assert_int_eq(call[1].verb, MS_DROP_SET);
            ck_assert_str_eq(names_of(call[1].set), "layers.1.mlp.down:out ");
        }
    }
}
END_TEST

/* ---- what runs again ----------------------------------------------------- */

static uint32_t replayed(const char *name)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < result.plan->n_ops; i++) {
        const ms_plan_op *op = &result.plan->op[i];
        n += op->pass == MS_RECOMPUTE && op->of != MS_NONE &&
             strcmp(result.graph->op_name[op->of], name) == 0;
    }
    return n;
}

START_TEST(kept_ops_do_not_run_again)
{
    simulate(llama, "checkpoint:sac", "flash");
    ck_assert_uint_eq(replayed("aten::_scaled_dot_product_flash_attention"), 0);
    ck_assert_uint_eq(replayed("aten::silu"), 3);
    simulate(llama, "checkpoint:full", "flash");
    ck_assert_uint_eq(replayed("aten::_scaled_dot_product_flash_attention"), 3);
    ck_assert_uint_eq(replayed("aten::mm"), 18); /* all but w2 */
}
END_TEST

/* ---- laws ---------------------------------------------------------------- */

static const struct {
    const char *json, *kernels;
} cases[] = {{llama, "flash"}, {llama, "eager"}, {gpt, "flash"}};

START_TEST(between_none_and_full)
{
    static const char *const policies[] = {"none", "checkpoint:sac",
                                           "checkpoint:full"};
    uint64_t peak[3];
    double redone[3];
    for (int i = 0; i < 3; i++) {
        simulate(cases[_i].json, policies[i], cases[_i].kernels);
        peak[i] = result.report->ranks[0].peak.allocated_bytes;
        redone[i] = result.report->recompute_flops;
    }
    ck_assert_uint_gt(peak[0], peak[1]);
    ck_assert_uint_gt(peak[1], peak[2]);
    ck_assert(redone[0] == 0);
    ck_assert(redone[0] < redone[1] && redone[1] < redone[2]);
}
END_TEST

/* Where weights are gathered for each unit of a replay, what its last unit
 * reads is there as long: the same runs again. */
START_TEST(replays_in_parts)
{
    static const char *const saves[] = {"sac", "save=aten.addmm",
                                        "save=aten.addmm/aten.gelu"};
    static const char *const shares[] = {"zero:3,dp=4", "fsdp:dp=4"};
    static const char decoder[] =
        "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", "
        "\"config\": {\"layers\": 3, \"hidden\": 64, \"heads\": 4, "
        "\"vocab\": 128, \"positions\": 16}}";
    for (size_t i = 0; i < sizeof saves / sizeof *saves; i++) {
        char words[96];
        snprintf(words, sizeof words, "checkpoint:%s", saves[i]);
        simulate(decoder, words, "flash");
        double again = result.report->recompute_flops;
        ck_assert(again > 0);
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            snprintf(words, sizeof words, "checkpoint:%s+%s", saves[i],
                     shares[k]);
            simulate(decoder, words, "flash");
            ck_assert(result.report->recompute_flops == again);
        }
    }
}
END_TEST

Suite *suite_sac(void)
{
    Suite *suite = suite_create("sac");
    TCase *tcase = tcase_create("sac");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, attention_and_every_second_product_stay);
    tcase_add_test(tcase, a_traced_graph_keeps_all_products);
    tcase_add_test(tcase, products_with_a_bias_go);
    tcase_add_test(tcase, what_autograd_does_not_save_is_held);
    tcase_add_test(tcase, kept_ops_do_not_run_again);
    tcase_add_test(tcase, replays_in_parts);
    tcase_add_loop_test(tcase, between_none_and_full, 0,
                        (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tcase);
    return suite;
}
