# SPDX-License-Identifier: GPL-3.0-or-later
# Ways to say which layers a stage has, and what is wrong with some.
run() {
    "$MEMSIM" run gpt2 --batch 8 -p "microbatch:8+pipeline:$1" \
        --dump policy 2>&1
}
for good in 4,layers='Et*3|t*3|t*5|tL' 4,layers=0/6/6/0 2,per_stage=4 \
    4,less=1/1 2,account=embedding/loss 4,first=2,last=2 \
    2,decoder_first_pipeline_num_layers=5 \
    4,pipeline_model_parallel_layout='E|t*6|t*6|L' 4,layers=6/0/6/0 \
    2,layers='E||(t|)*4|t*8L'; do
    run "$good"
done
for bad in 4,layers='Et|t*2|tt|tttL' 3,layers='Et*6|t*6L' \
    4,layers='Et*3|t*3|t*3|t*3' 4,layers='t*3|t*3|t*3|t*3L' \
    4,layers='Et*3|t*3|t*x|L' 4,layers='Et*3|(t*3|(t*3|L' \
    2,layers='Et*6|mt*6L' 2,layers='Et*6|t*6mL' 3,layers='Et*6|t*6m|mL' \
    2,layers='Et*6,t|t*5L' 1,layers='E(|)*70t*12L' \
    4,layers='E(t*99999999999|)*9999999L' 4,layers='Et*3|t*3|q|L' \
    4,layers=3/3/x/3 4,layers=3/3/3/4 2,less=1 4,less=9/0 \
    4,less=1/1,account=loss 4,account=loss 2,chunks=4,account=embedding/loss \
    4,first=20 4,first=2 2,chunks=2,first=3 4,per_stage=5 \
    4,chunks=2,per_stage=4 2,first=5,last=6; do
    run "$bad"
done
