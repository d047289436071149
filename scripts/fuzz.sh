#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (3s): long enough to find a seed that no longer holds, not to search.
# A target that fails leaves its input under testdata/fuzz; commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-3s}
targets=0
while IFS=: read -r file name; do
  package=./$(dirname "$file")
  echo "fuzz $package $name ($time)"
  # Shrinking an interesting input is not worth the time here: it may take a minute, and nothing else runs meanwhile.
  if ! output=$(go test -run='^$' -fuzz="^$name\$" -fuzztime="$time" -fuzzminimizetime=10x "$package" 2>&1 </dev/null); then
    echo "$output"
    exit 1
  fi
  targets=$((targets + 1))
done < <(find shared internal functions -name '*_test.go' -exec grep -HoE '^func Fuzz[A-Za-z0-9_]+' {} + 2>/dev/null | sed 's/func //' | sort)
echo "fuzz: $targets targets"
