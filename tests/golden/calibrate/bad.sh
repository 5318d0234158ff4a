# SPDX-License-Identifier: GPL-3.0-or-later
# Files that are wrong: the message says where and what next.
try() {
    "$MEMSIM" calibrate "$@" 2>&1
    echo "$?"
}
head -c 9000 kineto.json >cut.json
try cut.json
head -c 900 kineto.json.gz >cut.json.gz
try cut.json.gz
head -c 150 kineto.json >head.json
try head.json
grep -v '"cat": "kernel"\|gpu_memcpy' kineto.json >cpu.json
try cpu.json
"$MEMSIM" run gpt2 --trace simulated.json -q
try simulated.json
echo '{"traceEvents": [{"ph": "X", "cat": "kernel" "name": 1}]}' | try -
echo '{"traceEvents": 5}' | try -
echo '{"layers": []}' | try -
echo '[]' | try -
: | try -
try nothing.json
echo 'op,m,n,k,dtype' | try -
echo 'm,us' | try -
echo 'op,weight,us' | try -
printf 'op,m,n,k,dtype,us\ngemm,1,2,x,bf16,3\n' | try -
printf 'op,m,n,k,dtype,us\ngemm,1,2,,bf16,3\n' | try -
printf 'op,m,n,k,dtype,us\ngemm,1,2,3,int4,3\n' | try -
printf 'op,m,n,k,dtype,us\nfoo,1,2,3,bf16,3\n' | try -
printf 'op,m,n,k,dtype,us\ngemm,1,2,3,bf16,\n' | try -
printf 'op,bytes,gbps\nallreduce,100,5\n' | try -
printf 'op,us\n' | try -
sed 's/0.68/68/' simumax.json | try -
sed 's/m=4096, //' simumax.json | try -
try kineto.json --check -o mine.json
try kineto.json -o kineto.json
try kineto.json -o - --json
try shapes.csv --device a100
