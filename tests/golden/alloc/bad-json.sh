# SPDX-License-Identifier: GPL-3.0-or-later
# Recorded histories that are wrong: the message names line and column.
try() {
    "$MEMSIM" alloc - -q 2>&1
    echo "$?"
}
echo '{"start": [], "events": []}' | try
echo '{"start": 5, "events": [], "final": []}' | try
echo '{"start": [], "events": [["f", 4096]], "final": []}' | try
echo '{"start": [], "events": [["fc", 4096]], "final": []}' | try
echo '{"start": [], "events": [["g", 4096]], "final": []}' | try
echo '{"start": [], "events": [["a", 4096, 5]], "final": []}' | try
echo '{"start": [], "events": [["a", 4096, -5, 0]], "final": []}' | try
echo '{"start": [], "events": [["e", [["alloc", 1]]]], "final": []}' | try
echo '{"start": [[0, 1024, 0, "small", [[0, 512, 5]]]], "events": [],
 "final": []}' | try
echo '{"start": [[0, 1024, 0, "small", [[512, 512, 5]]]], "events": [],
 "final": []}' | try
echo '{"start": [[0, 512, 0, "tiny", [[0, 512, 5]]]], "events": [],
 "final": []}' | try
echo '{"start": [[0, 512, 0, "small", [[0, 512, 5]]],
 [256, 512, 0, "small", [[0, 512, 5]]]], "events": [], "final": []}' | try
echo '{"start": [[0, 512, 0, "small", [[0, 512, 5]]]], "expandable": true,
 "events": [], "final": []}' | try
sed 's/"fc", 139637958901760/"f", 139637958901760/' recorded.json | try
sed 's/"fr", 139637958901760/"f", 139637958901760/' recorded.json | try
sed 's/"conf": ""/"conf": "max_split_size_mb:x"/' recorded.json | try
head -c 300 recorded.json | try
