#!/usr/bin/env bash
# The shipped queries, each run on its dataset's sample: what is asked, then the first rows of the answer.
# Usage: queries/demo.sh [path of the trends command]
set -euo pipefail

trends=$(realpath "${1:-.venv/bin/trends}")
cd "$(dirname "${BASH_SOURCE[0]}")"

run() {
    local query=$1 dataset=${1%%/*} types=type
    if [ "$dataset" = stock ]; then types=company,sector; fi
    printf '\n== %s\n' "$query"
    sed -n '/^--/!q; s/^-- \{0,1\}//p' "$query"
    echo
    "$trends" run "$query" --events "$dataset/sample.csv" --types "$types" |
        awk 'NR <= 8 { print "  " $0 } END { if (NR > 8) print "  … and " NR - 8 " more lines" }'
}

for query in */*.query; do
    run "$query"
done
# The E-Cube workloads are 36 queries of one kind: one with negation, one over sectors, one that mixes the two levels.
for number in 01 16 27; do
    run stock/e-cube/q"$number"-*.query
done
