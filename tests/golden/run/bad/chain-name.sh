# SPDX-License-Identifier: GPL-3.0-or-later
sed 's/"s3"/"input"/' chain.json >input.json
"$MEMSIM" run input.json
