# SPDX-License-Identifier: GPL-3.0-or-later
# A process for each rank, and an arrow for each send: from its slice, on the
# sender's queue, to the slice of the other rank that first waits for it.
"$MEMSIM" run gpt2 --batch 3 -p microbatch:3+pipeline:3 --allocator exact \
    --trace trace.json -q
grep -c '"process_name"' trace.json
grep -c '"name":"send","cat":"collective"' trace.json
awk '{ match($0, /"pid":[0-9]+,"tid":[0-9]+,"ts":[0-9.]+/)
       place = substr($0, RSTART, RLENGTH) }
    /"ph":"X"/ { slice[place] = $0 }
    /"ph":"[sf]"/ { match($0, /"id":[0-9]+/); id = substr($0, RSTART, RLENGTH)
        if (/"ph":"s"/) from[id] = place; else to[id] = place }
    function part(line, key) {
        match(line, "\"" key "\":[0-9]+")
        return substr(line, RSTART, RLENGTH)
    }
    END { for (id in from) {
            a = slice[from[id]]; b = slice[to[id]]
            n += a ~ /"name":"send"/ && part(a, "pid") != part(b, "pid") &&
                part(a, "micro_batch") == part(b, "micro_batch")
        }
        print n, "arrows from a send to another rank" }' trace.json
