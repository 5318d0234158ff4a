# SPDX-License-Identifier: GPL-3.0-or-later
# Where the blocks of a trace lie, by pool, by the code that made them, by
# category; two allocators one under another; hostile names are only shown.
words() {
    grep -o "^set label '[^']*'" "$1" | grep -v "'[0-9.]*'"
}
"$MEMSIM" alloc alloc.txt -q --plot=a.svg --keep-script
words a.gp
echo "== two"
"$MEMSIM" alloc alloc.txt -q --plot=b.svg --keep-script --allocator torch \
    --allocator torch,expandable_segments=True
words b.gp
echo "== recorded"
"$MEMSIM" alloc recorded.json -q --plot=c.svg --keep-script
words c.gp
echo "== snapshot"
"$MEMSIM" alloc snapshot.pickle -q --plot=d.svg --keep-script
words d.gp
echo "== its own"
"$MEMSIM" run tiny.json -q --snapshot s.pickle
"$MEMSIM" alloc s.pickle -q --plot=e.svg --keep-script
words e.gp
echo "== without categories"
LC_ALL=C sed s/category/kategory/ s.pickle >t.pickle
"$MEMSIM" alloc t.pickle -q --plot=f.svg --keep-script
words f.gp | sed '1,8d'
echo "== streams"
printf '%s\n' 'a 1 5000000 0' 'a 2 3000000 7' 'r 1 7' 'w 7' 'f 1' 'a 3 900 0' \
    'c 7' 'a 4 900 7' | "$MEMSIM" alloc - -q --plot=g.svg --keep-script
words g.gp | sed '1,8d'
# shellcheck disable=SC2016 # meant to stay as it is
name=$(printf 'a\033[31m$(touch pwned)`'"'"'\\ EOD')
cp alloc.txt "$name.txt"
for ending in svg png pdf; do
    "$MEMSIM" alloc "$name.txt" -q --plot="$name.$ending" --keep-script
    echo "$?"
done
"$MEMSIM" alloc alloc.txt --plot=- | grep -c '</svg>'
"$MEMSIM" run names.json -q --allocator torch --figure address \
    --plot="$name.svg"
echo "$?"
find . -name pwned
grep -l 'touch pwned' ./*.gp | wc -l
