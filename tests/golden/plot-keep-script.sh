"$MEMSIM" run tiny.json -q --plot=figure.svg --keep-script
ls figure.*
