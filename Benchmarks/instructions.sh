#!/bin/sh
# Instructions of each hot row, by callgrind: repeatable where times are not.
# Writes Benchmarks/Results/instructions.tsv. Usage: Benchmarks/instructions.sh   (needs valgrind)
set -eu
cd "$(dirname "$0")"
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 69; }
swift build -c release --product Benchmarks >/dev/null
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count() {
    valgrind --tool=callgrind --callgrind-out-file="$scratch/out" .build/release/Benchmarks --child repeat "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
mkdir -p Results
{
    printf 'row\tinstructions\n'
    for row in memory-hit memory-miss key store-memory store-drained disk-hit disk-hit-with-response session-hit session-constant; do
        few=$(count "$row" 1000)
        many=$(count "$row" 3000)
        printf '%s\t%s\n' "$row" $(((many - few) / 2000))
    done
} | tee Results/instructions.tsv
