#!/usr/bin/env bash
# One generated night of each dataset through Airflow's DAGs: raw files, checked tables, published answers.
# Usage: pipeline/demo.sh [path of the trends command]
set -euo pipefail

trends=$(realpath "${1:-.venv/bin/trends}")
"$(dirname "$trends")/python" -m dags.parts.demo
