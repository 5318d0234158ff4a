ln -s nowhere out.csv
"$MEMSIM" run tiny.json -q --csv out.csv
status=$?
ls nowhere
exit $status
