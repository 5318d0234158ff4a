# SPDX-License-Identifier: GPL-3.0-or-later
# A page with its title, beside the text, beside JSON, and in place of both.
"$MEMSIM" diff stacks.pickle stacks-keeps.pickle -o page.html \
    --title '<b> & "mine"' | tail -n 1
sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' page.html
sed -n 's/.*\("cause":"[^"]*"\).*/\1/p' page.html
sed -n 's/.*\("groups":\[.*\]\),"facts.*/\1/p' page.html
"$MEMSIM" diff stacks.pickle stacks-keeps.pickle -q -o - | grep -c '</html>'
"$MEMSIM" diff stacks.pickle stacks-keeps.pickle --json -o page.html |
    jq -c '.differences | length'
"$MEMSIM" diff stacks.pickle tiny.json --batch 4 --top 3 -q -o page.html
sed -n 's/.*\("differences":[0-9]*\).*/\1/p' page.html
grep -o '"gap"' page.html | wc -l
