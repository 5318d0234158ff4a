mkdir figure.svg
"$MEMSIM" run tiny.json -q --plot=figure.svg
status=$?
ls -a figure.svg
exit $status
