# SPDX-License-Identifier: GPL-3.0-or-later
# There are no completions for these shells; one word too many; no words at all.
for words in "" "bahs" "tcsh" "bash zsh"; do
    # shellcheck disable=SC2086 # words
    "$MEMSIM" completion $words 2>&1
    echo "status $?"
done
"$MEMSIM" completion words
echo "status $?"
