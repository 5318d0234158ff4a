# SPDX-License-Identifier: GPL-3.0-or-later
# Predicted against measured step times, a point a run; accuracy.sh calls it with
# points, file, terminal, and what its function key tells.
reset
if (terminal eq 'pngcairo') {
    set terminal pngcairo size 1600,1120 font 'Liberation Sans,17' linewidth 1.6
} else { if (terminal eq 'svg') {
    set terminal svg size 1066,746 font 'Liberation Sans,15' background 'white'
} else {
    set terminal pdfcairo size 11in,7.7in font 'Liberation Sans,13'
} }
set output file
set datafile separator '\t'

# By source, in the order of names: words, colour, point of the report half
# (filled), of the fit half.
array words[18] = ['MPT, llm-foundry', 'GPT, vTrain', \
    'GPT, vTrain, split layers', 'GPT, vTrain, pipelines', \
    'images, timm', 'Llama, torchtitan', \
    'GPT, FlashAttention', 'GPT of 64 M, Megatron', 'GPT-2, llm.c', \
    'GPT-2, nanoGPT', 'DeepLearningExamples', 'BERT, DeepSpeed', \
    'Lambda Labs', 'states on the host', \
    'Llama on B200, SimuMax', 'DeepSeek on B200, SimuMax', \
    'GPT, Korthikanti et al.', 'one H100, PyTorch 2.11']
array colour[18] = ['#0072B2', '#E69F00', '#C9A227', '#B8860B', '#009E73', \
    '#D55E00', '#CC79A7', '#56B4E9', '#7A1FA2', '#1A1A1A', '#8C6D1F', \
    '#C2185B', '#607D8B', '#33691E', '#5D4037', '#00838F', '#9E9D24', '#EF5350']
array filled[18] = [7, 7, 5, 13, 5, 11, 13, 9, 11, 13, 5, 9, 13, 5, 7, 7, 11, 5]
array hollow[18] = [6, 6, 4, 12, 4, 10, 12, 8, 10, 12, 4, 8, 12, 4, 6, 6, 10, 4]

# The ranges hold every run, with some room.
stats points using 4:5 nooutput
least = (STATS_min_x < STATS_min_y ? STATS_min_x : STATS_min_y) / 1e6 / 1.4
most = (STATS_max_x > STATS_max_y ? STATS_max_x : STATS_max_y) / 1e6 * 1.4
stats points using ($5 / $4) nooutput
widest = 1.15 * (STATS_max > 1 / STATS_min ? STATS_max : 1 / STATS_min)
ms(half, i) = (strcol(2) eq half && strcol(3) eq word(names, i)) ? $4 / 1e6 : NaN

set multiplot
set border linewidth 0.8 linecolor rgb '#555555'
set tics nomirror textcolor rgb '#333333' scale 0.6, 0.3
set logscale x
set xrange [least:most]
set samples 200
unset key

# ---- predicted against measured ----
set lmargin at screen 0.075
set rmargin at screen 0.665
set tmargin at screen 0.900
set bmargin at screen 0.420
set logscale y
set yrange [least:most]
set format x ''
set format y ''
set xtics ('' 1e-3, '' 1e-2, '' 0.1, '' 1, '' 10, '' 100)
set ytics ('1 ms' 1e-3, '10 ms' 1e-2, '100 ms' 0.1, '1 s' 1, '10 s' 10, \
    '100 s' 100)
set grid xtics ytics linecolor rgb '#E6E6E6' linewidth 0.6 linetype 1
set ylabel 'predicted step' offset 0.5, 0 textcolor rgb '#333333'
set label 1 "{/:Bold Predicted against measured step times}" \
    at screen 0.075, 0.962 font ',21'
set label 2 subtitle at screen 0.075, 0.932 textcolor rgb '#666666' font ',15'
plot '+' using 1:($1 * 0.9):($1 * 1.1) with filledcurves \
        fillcolor rgb '#DCDCDC' notitle, \
    x with lines linecolor rgb '#777777' linewidth 0.8 notitle, \
    for [i = 1:18] points using (ms('fit', i)):($5 / 1e6) with points \
        pointtype hollow[i] pointsize 1.0 linewidth 1 \
        linecolor rgb colour[i] notitle, \
    for [i = 1:18] points using (ms('report', i)):($5 / 1e6) with points \
        pointtype filled[i] pointsize 1.15 linecolor rgb colour[i] notitle
unset label 1
unset label 2

# ---- their ratio ----
set tmargin at screen 0.390
set bmargin at screen 0.09
set yrange [1 / widest:widest]
set xtics ('1 ms' 1e-3, '10 ms' 1e-2, '100 ms' 0.1, '1 s' 1, '10 s' 10, \
    '100 s' 100)
set ytics ('x 1/4' 0.25, 'x 1/3' 1.0 / 3, 'x 1/2' 0.5, 'x 2/3' 2.0 / 3, \
    'x 1' 1, 'x 1.5' 1.5, 'x 2' 2, 'x 3' 3, 'x 4' 4)
set xlabel 'measured step' offset 0, 0.3 textcolor rgb '#333333'
set ylabel 'predicted : measured' offset 0.5, 0
plot '+' using 1:(0.9):(1.1) with filledcurves fillcolor rgb '#DCDCDC' \
        notitle, \
    1 with lines linecolor rgb '#777777' linewidth 0.8 notitle, \
    for [i = 1:18] points using (ms('fit', i)):($5 / $4) with points \
        pointtype hollow[i] pointsize 1.0 linewidth 1 \
        linecolor rgb colour[i] notitle, \
    for [i = 1:18] points using (ms('report', i)):($5 / $4) with points \
        pointtype filled[i] pointsize 1.15 linecolor rgb colour[i] notitle

# ---- the legend: runs that were only reported, and their median error ----
set lmargin at screen 0.69
set rmargin at screen 0.995
set tmargin at screen 0.915
set bmargin at screen 0.09
unset logscale
unset tics
unset border
unset xlabel
unset ylabel
unset grid
set xrange [0:1]
set yrange [0:1]
set label 1 "{/:Bold source}" at 0.07, 0.985
set label 2 "{/:Bold runs}" at 0.79, 0.985 right
set label 3 "{/:Bold error}" at 0.99, 0.985 right
row(i) = 0.985 - 0.0405 * i
do for [i = 1:18] {
    set label 10 + i words[i] at 0.07, row(i)
    set label 30 + i word(runs, i) at 0.79, row(i) right
    set label 50 + i word(error, i) eq '-' ? '-' : word(error, i) . ' %' \
        at 0.99, row(i) right
    set label 70 + i '' at 0.025, row(i) point pointtype filled[i] \
        pointsize 1.2 linecolor rgb colour[i]
}
set label 90 '' at 0.025, 0.160 point pointtype 7 pointsize 1.2 \
    linecolor rgb '#555555'
set label 91 'no rate was fitted on it: these' at 0.07, 0.160
set label 92 'are counted here; error at the median' at 0.07, 0.125
set label 93 '' at 0.025, 0.085 point pointtype 6 pointsize 1.0 linewidth 1 \
    linecolor rgb '#555555'
set label 94 'rates were fitted on it' at 0.07, 0.085
set object 1 rectangle from 0.008, 0.025 to 0.042, 0.045 \
    fillcolor rgb '#DCDCDC' fillstyle solid noborder
set label 95 'within 10 %' at 0.07, 0.035
plot NaN notitle
unset multiplot
