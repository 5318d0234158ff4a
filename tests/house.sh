#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The house rules that a script can check (CONTRIBUTING.md).
#
#   house.sh SOURCE BUILD rules|format|tidy     exit 77: a tool is missing
# shellcheck disable=SC2086 # lists of our own file names
set -u
export LC_ALL=C
build=$2
cd "$1" || exit 2
sources=$(find sim graphs policies plots tools tests -name '*.[ch]' | sort)
scripts=$(find .ci tools tests -name '*.sh' -o -path .ci/run | sort)

# These files may export other names than ms_f and ms_f_*: file, its names.
exceptions='
memsim main
layerkinds ms_layer_find ms_layer_kinds ms_layer_n_kinds'

includes() { # a room includes its own files, of sim what is not private to
             # it; tools that of all rooms
    private=$(grep -lE 'Private to' $sources | tr '\n' ' ')
    grep -nE '^ *# *include' $sources | sed -E 's/: *# *include */:/' |
        awk -F: -v private="$private" '
            BEGIN { n = split(private, file, " ")
                for (i = 1; i <= n; i++) hidden["\"" file[i] "\""] }
            { split($1, from, "/"); split($3, to, /["\/>]/); bad = 0
            if ($3 ~ /^<igraph/) bad = $1 != "graphs/lowering/dag.c"
            else if ($3 ~ /^<zlib/) bad = $1 != "graphs/models/files/inflate.c"
            else if ($3 ~ /^<yaml/) bad = $1 != "tools/from/pairs/yamlpairs.c"
            else if ($3 ~ /^"/ && from[1] != "tests" && to[2] != from[1])
                bad = $3 in hidden || (from[1] != "tools" && to[2] != "sim")
            if (bad) print }'
}

folders() { # a room is one screen
    find sim graphs policies plots tools -type d | while read -r folder; do
        n=$(find "$folder" -maxdepth 1 -name '*.[ch]' | wc -l)
        [ "$n" -le 25 ] || echo "$folder: $n source files, at most 25"
    done
}

shape() { # SPDX line, length of files and lines, no tabs; names are unique
    awk 'FNR <= 2 && /SPDX-License-Identifier: GPL-3\.0/ { spdx[FILENAME] }
        { n[FILENAME] = FNR }
        length($0) > 80 { print FILENAME ":" FNR ": " length($0) " columns" }
        /\t/ || / $/ { print FILENAME ":" FNR ": tab or trailing blank" }
        END { for (f in n) {
            if (n[f] > 600) print f ": " n[f] " lines"
            if (!(f in spdx)) print f ": no SPDX line" } }
        ' $sources $scripts CMakeLists.txt tests/CMakeLists.txt
    find sim graphs policies plots tools -name '*.c' | sed 's|.*/||' | sort |
        uniq -d | sed 's/$/: two files of this name/'
}

blanks() { # no blank line within a function: tools/format.sh takes them out
    awk '$0 == "{" { body = last !~ /\\$/ } /^}/ { body = 0 }
        body && $0 == "" { print FILENAME ":" FNR ": blank line in a function" }
        { last = $0 }' $sources
}

symbols() { # one per line: room file type name
    for room in sim graphs policies plots tools; do
        nm -A "$build/lib$room.a" | sed "s|^.*:\(.*\.o:\)|$room/\1|"
    done
    nm -A "$build/CMakeFiles/memsim.dir/tools/memsim.c.o" |
        sed 's|^.*/tools/|tools/|'
}

foreign() { # what may be called in one file or room only
    awk '$3 != "U" { next }
        $4 ~ /^(m|c|re)alloc$|^free$|^aligned_alloc$|^posix_memalign$/ ||
        $4 ~ /^strn?dup$|^getline$|^open_memstream$/ { bad = $2 != "arena" }
        $4 ~ /^exit$|^abort$|^perror$|^puts$|^putchar$|^stderr$/ ||
        $4 ~ /^(__)?v?printf(_chk)?$/ { bad = $1 != "tools" }
        $4 ~ /^igraph_/ { bad = $2 != "dag" }
        $4 ~ /^inflate/ { bad = $2 != "inflate" }
        $4 ~ /^yaml_/ { bad = $2 != "yamlpairs" }
        $4 ~ /^dl(open|sym|error|close)$/ {
            bad = $1 "/" $2 != "tools/pluginfile" }
        bad { print $1 "/" $2 ".c: " $4; bad = 0 }'
}

upward() { # a room calls itself and sim only, tools all
    awk '$4 !~ /^ms_/ || $1 == "tools" { next }
        $3 == "U" { call[$1 "/" $2 ".c: " $4] = $1 " " $4; next }
        { home[$4] = $1 }
        END { for (c in call) { split(call[c], to, " ")
            if (home[to[2]] != to[1] && home[to[2]] != "sim") print c } }'
}

circles() { # calls and references to data point down, inside rooms too: of
            # files (1), or of folders (2), that call each other in a circle
            # one line each
    awk -v level="$1" -v sources="$(printf '%s ' $sources)" '
        BEGIN { n = 0; m = split(sources, path, " ")
            for (i = 1; i <= m; i++) if (path[i] !~ /^tests/) {
                end = match(path[i], "/[^/]*$")
                folder[substr(path[i], end + 1)] = substr(path[i], 1, end - 1) }
        }
        function place(room, file) {
            if (level == 1 || folder[file] == "") return room "/" file
            return folder[file] }
        $4 !~ /^ms_/ { next }
        $3 != "U" { home[$4] = place($1, $2 ".c"); next }
        { user[n] = place($1, $2 ".c"); name[n++] = $4 }
        END { for (i = 0; i < n; i++)
            if (home[name[i]] != "" && home[name[i]] != user[i])
                print user[i], home[name[i]] }' | sort -u |
        tsort 2>&1 >/dev/null | sed 's/^tsort: //'
}

names() { # the file is the namespace
    awk -v exceptions="$exceptions" '
        BEGIN { n = split(exceptions, row, "\n")
            for (i = 1; i <= n; i++) { m = split(row[i], word, " ")
                for (j = 2; j <= m; j++) fine[word[1], word[j]] } }
        $3 !~ /[A-TV-Z]/ || ($2, $4) in fine { next }
        $4 == "ms_" $2 || index($4, "ms_" $2 "_") == 1 { next }
        $1 == "policies" && $4 == "ms_policy_" $2 { next }
        $2 == "library" && index($4, "memsim_") == 1 { next }
        { print $1 "/" $2 ".c: " $4 }'
}

registry() { # each policy has a golden case and a row in its room's README
    grep -oE '&ms_policy_[a-z0-9_]+' policies/registry.c |
        sed -E 's/&ms_policy_//; s/_ranks$//' |
        while read -r policy; do
            grep -qE "^\| *\`$policy" policies/README.md ||
                echo "policies/README.md: no table row begins with $policy"
            grep -rqE --include='*.args' \
                "(-p|--policy)[ =]['\"]?([^ ]*\+)?$policy([:+'\" ]|\$)" \
                tests/golden ||
                echo "tests/golden: no case with --policy $policy"
        done
}

cited() { # what a text refers to is in the tree: documents, sections, links
    texts=$(find sim graphs policies plots tools tests ./*.md \
        -name '*.[ch]' -o -name '*.sh' -o \
        -name '*.md' -o -name '*.py' -o -name '*.tsv' | sort)
    grep -nE '(^|[^a-z])specs/|design\.md' $texts | grep -v '^tests/house\.sh'
    awk 'FNR == 1 { before = "" }
        { line = $0; sub(/^[ *#]+/, "", line); text = before " " line
          before = line
          while (match(text, /[a-z]+\/[a-z\/]*[A-Za-z]+\.md`? [0-9]+/)) {
              print FILENAME, substr(text, RSTART, RLENGTH)
              text = substr(text, RSTART + RLENGTH) } }' $texts |
        tr -d '`' | sort -u | while read -r file document section; do
        grep -qsE "^##+ $section\. " "$document" ||
            echo "$file: there is no section $section in $document"
    done
    echo "$sources" | awk -F/ 'NF > 2 && $1 != "tests" { print $1 "/" $2 }' |
        sort -u | while read -r folder; do
        grep -q "\`${folder#*/}/\`" "${folder%/*}/README.md" ||
            echo "${folder%/*}/README.md does not say what $folder is for"
    done
    awk 'END { if (NR > 120) print "README.md: " NR " lines" }' README.md
    [ "$(wc -c <README.md)" -le 8192 ] || echo "README.md: more than 8 kB"
    for text in $(echo "$texts" | grep '\.md$'); do
        grep -oE '\]\([^):]+\)' "$text" | tr -d '])(' | while read -r link; do
            [ -e "$(dirname "$text")/${link%%#*}" ] || echo "$text: no $link"
        done
    done
}

vocabulary() { # what people read has one word for one thing: the glossary's
    printf '%s\n' $sources | grep -v '^tests/' | xargs grep -nE \
        -e '"[^"]*(peak live|is live|\<live (bytes|at)|reserved, unused)' \
        -e '"[^"]*(overhead |runs again|computed again|wait: coll)'
}

rules() {
    includes | sed 's/^/include: /'
    shape | sed 's/^/shape: /'
    blanks | sed 's/^/blanks: /'
    folders | sed 's/^/folder: /'
    symbols=$(symbols |
        sed -nE 's/^(.*)\/(.*)\.c\.o:[0-9a-f]* +(.) /\1 \2 \3 /p')
    echo "$symbols" | foreign | sed 's/^/foreign call: /'
    echo "$symbols" | upward | sed 's/^/upward call: /'
    echo "$symbols" | circles 1 | sed 's/^/circle of files: /'
    echo "$symbols" | circles 2 | sed 's/^/circle of folders: /'
    echo "$symbols" | names | sed 's/^/name: /'
    registry | sed 's/^/registry: /'
    vocabulary | sed 's/^/word: /'
    cited | sed 's/^/cited: /'
}

need() {
    command -v "$1" >/dev/null && return
    echo "house.sh: skipped, there is no $1"
    exit 77
}

case $3 in
rules)
    broken=$(rules 2>&1)
    [ -z "$broken" ] || { echo "$broken"; exit 1; }
    ;;
format)
    need clang-format
    clang-format --dry-run -Werror $sources
    ;;
tidy)
    need clang-tidy
    printf '%s\n' $sources | grep '^[^t].*\.c$\|^tools.*\.c$' |
        xargs -P 2 -n 4 clang-tidy --quiet -p "$build" 2>/dev/null
    ;;
esac
