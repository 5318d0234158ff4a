/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_H
#define MS_GRAPHS_H

/* graphs/ turns model files into graphs: readers, the tables of layers and
 * ops, shapes, autograd rules, the cost model, the layer DAG.
 *
 *     ms_model model;
 *     ms_training training;                      (defaults, then --set)
 *     MS_TRY(ms_read_model("gpt3.json", &keep, &model, fault));
 *     MS_TRY(ms_resolve_training(&training, &model, fault));
 *     MS_TRY(ms_dag_order(&model, &keep, fault));
 *     MS_TRY(ms_lower(&model, &training, device, &shape, &keep, &graph,
 *                     fault));
 *
 * A native model file, whole (a family; comments are not JSON, so none):
 *
 *     {"memsim": 1, "name": "tiny", "family": "decoder",
 *      "config": {"layers": 2, "hidden": 64, "heads": 4, "vocab": 1000,
 *                 "positions": 128}}
 *
 * or a layer list, where "inputs" default to the layer before and a
 * {"repeat": n, "name": "layers", "layers": [...]} element makes n blocks:
 *
 *     {"memsim": 1, "name": "mlp", "input": {"shape": [784]},
 *      "layers": [
 *        {"repeat": 8, "name": "hidden", "layers": [
 *          {"type": "linear", "out": 1024}, {"type": "relu"}]},
 *        {"type": "linear", "name": "head", "out": 10},
 *        {"type": "cross_entropy"}]}
 *
 * A built-in model with other numbers is {"like": "gpt3", "config": {...}}
 * (reader.h).  Another form is the op graph of a model that ran in PyTorch,
 * recognised by its "format" key (opgraph.h).
 *
 * For users outside this house; inside it each file includes what it speaks
 * of. */

#include "graphs/device.h"
#include "graphs/field.h"
#include "graphs/json/json.h"
#include "graphs/layertypes.h"
#include "graphs/machines/overheads.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/models/files/namewords.h"
#include "graphs/settings/settingwords.h"
#include "graphs/training.h"

#endif
