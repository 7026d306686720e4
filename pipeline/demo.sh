#!/usr/bin/env bash
# One generated day of each dataset, from raw files to checked tables.
# Usage: pipeline/demo.sh [path of the trends command]
set -euo pipefail

trends=$(realpath "${1:-.venv/bin/trends}")
day=2030-01-07
say() { printf '\n== %s\n' "$*"; }

say "trends generate all --from $day: files as exchanges, taxi commissions and studies publish them"
"$trends" generate all --from "$day"
say "trends ingest all --from $day: raw rows, typed events, quarantine; checked before readers see them"
"$trends" ingest all --from "$day"
say "trends tables"
"$trends" tables
say "trends show silver.taxi --rows 5: who rode and drove is masked"
"$trends" show silver.taxi --rows 5 --format jsonl
say "Where to look"
echo "  $PWD/landing             the raw files"
echo "  $PWD/lake                the Delta tables: trends tables, trends show quarantine.stock"
echo "  $PWD/site/quality/index.html  what the data checks found: trends quality"
