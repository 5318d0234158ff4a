/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Python for torch.utils.checkpoint (2.4 and later: CheckpointPolicy,
 * create_selective_checkpoint_contexts).  Checkpoints that lie in each other
 * need use_reentrant=False, which saves the inputs of inner ones through the
 * hooks of outer ones. */
#include "tools/systems/systems.h"

#include <string.h>

static ms_err check(const ms_checkpointas *choice, ms_fault *fault)
{
    bool inner = false;
    for (uint32_t i = 0; i < choice->tree.n; i++)
        for (uint32_t k = 0; k < choice->tree.pieces[i].n; k++)
            inner |= choice->tree.pieces[i].pieces[k].again;
    if (choice->modules != NULL || choice->selective)
        return ms_fail(fault, MS_EUSAGE, "--as torch",
                       "the nearest that it can: checkpoint:save= with the ops "
                       "to keep; or --as megatron",
                       "%.60s: torch checkpoints functions or chooses ops, not "
                       "modules within a block",
                       choice->policy);
    if (inner && choice->reentrant)
        return ms_fail(fault, MS_EUSAGE, "--as torch",
                       "the nearest that it can: variant=nonreentrant",
                       "%.60s: reentrant checkpoints do not lie in each other",
                       choice->policy);
    return MS_OK;
}

/* A name as a Python string: only what a reader could take for its end. */
static void put_string(const char *name, ms_text *text)
{
    ms_text_add(text, "\"");
    for (; *name != '\0'; name++) {
        if ((unsigned char)*name < 0x20)
            ms_text_add(text, "\\x%02x", (unsigned char)*name);
        else if (*name == '"' || *name == '\\')
            ms_text_add(text, "\\%c", *name);
        else
            ms_text_put(text, name, 1);
    }
    ms_text_add(text, "\"");
}

/* A comment or a docstring: no quotes, no ends of lines. */
static void put_plain(const char *name, ms_text *text)
{
    for (; *name != '\0'; name++)
        ms_text_add(text, "%c",
                    (unsigned char)*name < 0x20 || *name == '"' || *name == '\\'
                        ? '?'
                        : *name);
}

static void put_stages(const ms_sweeps *sweeps, ms_text *text)
{
    ms_text_add(text, "STAGES = [\n");
    for (uint32_t c = 0; c < sweeps->n_columns; c++) {
        ms_text_add(text, "    ");
        put_string(sweeps->names[c], text);
        ms_text_add(text, ",\n");
    }
    ms_text_add(text, "]\n\n");
}

/* (first, last), or (first, last, [...]) of what is made again. */
static void put_piece(const ms_plantree *piece, uint32_t depth, ms_text *text)
{
    ms_text_add(text, "%*s(%u, %u", (int)(4 * depth), "", piece->first,
                piece->last);
    if (piece->again && piece->n == 1 && !piece->pieces[0].again) {
        ms_text_add(text, ", [(%u, %u)]", piece->first, piece->last);
    } else if (piece->again) {
        ms_text_add(text, ", [\n");
        for (uint32_t i = 0; i < piece->n; i++)
            put_piece(&piece->pieces[i], depth + 1, text);
        ms_text_add(text, "%*s]", (int)(4 * depth), "");
    }
    ms_text_add(text, "),\n");
}

static void put_plan(const ms_plantree *tree, ms_text *text)
{
    ms_text_add(text, "PLAN = [\n");
    for (uint32_t i = 0; i < tree->n; i++)
        put_piece(&tree->pieces[i], 1, text);
    ms_text_add(text, "]\n\n");
}

/* ---- by op --------------------------------------------------------------- */

/* "aten.mm", "aten::mm", "torch.ops.aten.mm.default": torch.ops.aten.mm. */
static void put_op(const char *at, size_t length, ms_text *text)
{
    uint32_t dots = 0;
    if (length > 10 && strncmp(at, "torch.ops.", 10) == 0) {
        at += 10;
        length -= 10;
    }
    ms_text_add(text, "    torch.ops.");
    for (size_t i = 0; i < length; i++) {
        bool cut = at[i] == '.' || at[i] == ':';
        dots += cut;
        if (dots > 1 && at[i] == '.')
            break;
        if (!cut || at[i - 1] != ':')
            ms_text_add(text, "%c", cut ? '.' : at[i]);
    }
    ms_text_add(text, ",\n");
}

static void put_ops(const char *list, ms_text *text)
{
    ms_text_add(text, "OPS = {\n");
    for (bool more = true; more;) {
        size_t length = strcspn(list, "/");
        put_op(list, length, text);
        more = list[length] == '/';
        list += length + more;
    }
    ms_text_add(text, "}\n\n\n");
}

/* Ops of an extension have a name of their own in torch. */
static ms_err check_ops(const char *list, ms_fault *fault)
{
    for (bool more = true; more;) {
        size_t length = strcspn(list, "/");
        if (memchr(list, '.', length) == NULL &&
            memchr(list, ':', length) == NULL)
            return ms_fail(fault, MS_EUSAGE, "--as torch",
                           "the nearest that it can: the aten ops of the list",
                           "torch does not know %.*s by this name, which is a "
                           "kernel of an extension",
                           (int)(length < 60 ? length : 60), list);
        more = list[length] == '/';
        list += length + more;
    }
    return MS_OK;
}

static void put_policy(const ms_checkpointas *choice, ms_text *text)
{
    const char *list = choice->save;
    if (choice->sac)
        list = "aten._scaled_dot_product_flash_attention/"
               "aten._scaled_dot_product_efficient_attention";
    if (choice->redo != NULL)
        list = choice->redo;
    put_ops(list, text);
    ms_text_add(text, "def contexts():\n");
    if (choice->sac)
        ms_text_add(text, "    products = {False: 0, True: 0}\n\n");
    ms_text_add(text, "    def policy(ctx, op, *args, **kwargs):\n"
                      "        listed = op.overloadpacket in OPS\n");
    if (choice->sac)
        ms_text_add(text,
                    "        if op.overloadpacket == torch.ops.aten.mm:\n"
                    "            products[ctx.is_recompute] += 1\n"
                    "            listed = products[ctx.is_recompute] %% 2 == "
                    "1\n");
    ms_text_add(text,
                "        if listed:\n            return "
                "CheckpointPolicy.%s\n        return "
                "CheckpointPolicy.%s\n\n"
                "    return create_selective_checkpoint_contexts("
                "policy)\n\n\n",
                choice->redo != NULL ? "MUST_RECOMPUTE" : "MUST_SAVE",
                choice->redo != NULL ? "PREFER_SAVE" : "PREFER_RECOMPUTE");
}

/* ---- the module ---------------------------------------------------------- */

static void put_head(const ms_checkpointas *choice, bool ops, ms_text *text)
{
    ms_text_add(text, "\"\"\"");
    put_plain(choice->policy, text);
    ms_text_add(text, " of ");
    put_plain(choice->model, text);
    ms_text_add(text,
                ".\n\nSTAGES are the parts of the model in the order in which "
                "forward runs them, each a\ncallable of what the one before it "
                "returns:\n\n    output = run([part_of(model, name) for name "
                "in STAGES], input)\n\n"
                "PLAN has (first, last) of stages that autograd saves, and "
                "(first, last, [...]) of those\nthat are checkpointed, with "
                "the plan by which they run when they are made again.\n"
                "\"\"\"\n\n");
    ms_text_add(text, "%s",
                ops ? "import torch\nfrom torch.utils.checkpoint import (\n"
                      "    CheckpointPolicy,\n    checkpoint,\n    "
                      "create_selective_checkpoint_contexts,\n"
                : choice->to_the_end
                    ? "from torch.utils.checkpoint import (\n    checkpoint,\n"
                    : "from torch.utils.checkpoint import checkpoint\n\n");
    if (choice->to_the_end)
        ms_text_add(text, "    set_checkpoint_early_stop,\n");
    if (ops || choice->to_the_end)
        ms_text_add(text, ")\n\n");
}

ms_err ms_astorch_write(const ms_checkpointas *choice, ms_text *text,
                        ms_fault *fault)
{
    bool ops = choice->sac || choice->save != NULL || choice->redo != NULL;
    MS_TRY(check(choice, fault));
    if (choice->save != NULL || choice->redo != NULL)
        MS_TRY(check_ops(choice->save != NULL ? choice->save : choice->redo,
                         fault));
    put_head(choice, ops, text);
    put_stages(&choice->sweeps, text);
    put_plan(&choice->tree, text);
    if (ops)
        put_policy(choice, text);
    else
        ms_text_add(text, "\n");
    ms_text_add(text, "def run(stages, x, plan=PLAN):\n"
                      "    for first, last, *inner in plan:\n"
                      "        if not inner:\n"
                      "            for stage in stages[first:last + 1]:\n"
                      "                x = stage(x)\n");
    ms_text_add(text, "%s",
                choice->to_the_end
                    ? "            continue\n"
                      "        with set_checkpoint_early_stop(False):\n"
                    : "        else:\n");
    ms_text_add(text,
                "            x = checkpoint(run, stages, x, inner[0], "
                "use_reentrant=%s%s)\n    return x\n",
                choice->reentrant ? "True" : "False",
                ops ? ",\n                           context_fn=contexts" : "");
    return MS_OK;
}
