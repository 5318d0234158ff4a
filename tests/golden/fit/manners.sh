# SPDX-License-Identifier: GPL-3.0-or-later
# The same for any number of threads; a file beside the text; quiet; a figure;
# the command that is named runs, and fits.
set -- tiny16.json --batch 4 --memory 590MiB
"$MEMSIM" fit "$@" -j 1 >one && "$MEMSIM" fit "$@" --jobs=3 >three &&
    cmp one three && echo same
"$MEMSIM" fit "$@" --csv rows.csv -q && wc -l <rows.csv
"$MEMSIM" fit "$@" --json --csv rows2.csv 2>/dev/null |
    tr ',' '\n' | grep '^ "fits"' | head -n 1
cmp rows.csv rows2.csv && echo same
"$MEMSIM" fit "$@" --plot=fit.svg --keep-script >/dev/null
grep -c '<svg' fit.svg
ls fit.*
# Of one batch the steps do the same; of any the figure ranks tokens a second.
"$MEMSIM" fit tiny16.json --memory 590MiB -q --plot=any.svg --keep-script
for words in "'step time" "'throughput" "'any batch × [0-9]* tokens"; do
    grep -o "$words" fit.gp any.gp
done
line=$(sed -n 's/^run: *memsim //p' one)
eval "\"\$MEMSIM\" $line --check -q" && echo fits
"$MEMSIM" fit tiny.json --memory 505MiB -q
echo "status $?"
