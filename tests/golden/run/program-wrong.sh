# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run tiny.json --batch 4 -p microbatch:2 --dump program >two.txt
"$MEMSIM" run tiny.json --batch 4 --program two.txt
echo $?
sed 's/^run forward unit 0 /run forwrad unit 0 /' two.txt >typo.txt
"$MEMSIM" run tiny.json --batch 4 -p microbatch:2 --program typo.txt
echo $?
grep -v '^run forward unit 0 ' two.txt >gap.txt
"$MEMSIM" run tiny.json --batch 4 -p microbatch:2 --program gap.txt
echo $?
"$MEMSIM" run tiny.json --program nowhere.txt
