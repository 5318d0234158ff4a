# SPDX-License-Identifier: GPL-3.0-or-later
# A policy from a shared library is one like the others.
cp "${MEMSIM%/*}/tests/plugin/stripe.so" mine.so
"$MEMSIM" help stripe --plugin mine.so
"$MEMSIM" help policies --plugin=mine.so | tail -n 3
"$MEMSIM" help stripe
"$MEMSIM" run gpt2 --plugin ./mine.so --batch 2 -p stripe:every=02 \
    -p microbatch:2 --dump policy
"$MEMSIM" compare gpt2 --plugin ./mine.so --batch 8 -p none \
    -p checkpoint:full -p stripe:every=2 | grep '^[0-9]:'
"$MEMSIM" explain gpt2 --plugin ./mine.so --batch 8 -p stripe:every=2 |
    grep '^policy'
"$MEMSIM" run gpt2 --plugin ./mine.so --batch 8 -p stripe:every=2 |
    sed -n '/^next/p'
