#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (2s): long enough to find a seed that no longer holds, not to search.
# A target that fails leaves its input under testdata/fuzz; commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-2s}
# Each run starts from the committed seeds: what this machine found interesting before would make a run here another one than
# elsewhere. To search, run go test -fuzz on one target for longer.
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT

# Up to Go 1.26 a target may fail for nothing but that its time is over (go.dev/issue/75804): then the deadline is all that
# stands below its name. Whatever a target finds, it says more. Goes when go.mod says 1.27.
only_late() {
  [ "$(sed -n '/^--- FAIL:/,/^FAIL$/p' <<<"$1" | sed '1d;$d')" = "    context deadline exceeded" ]
}

# fuzz runs one target; it is quiet when nothing was found.
fuzz() {
  local package=$1 name=$2 time=$3
  # Shrinking an interesting input is not worth the time here: it may take a minute, and nothing else runs meanwhile.
  if ! output=$(go test -run='^$' -fuzz="^$name\$" -fuzztime="$time" -fuzzminimizetime=10x "$package" \
    -test.fuzzcachedir="$cache" 2>&1 </dev/null) &&
    ! only_late "$output"; then
    echo "$output"
    exit 1
  fi
}

# fuzzed tells a run that made inputs from one that ended, or found no target, before it could.
fuzzed() { grep -q '^fuzz: elapsed: .*, execs: ' <<<"$output"; }

list=$(find shared internal functions scripts -name '*_test.go' -exec grep -HoE '^func Fuzz[A-Za-z0-9_]+' {} + | sed 's/func //' | sort)
targets=0
while IFS=: read -r file name; do
  package=./$(dirname "$file")
  echo "fuzz $package $name ($time)"
  fuzz "$package" "$name" "$time"
  if ! fuzzed; then # on a busy machine the seeds alone may take all of a short time
    fuzz "$package" "$name" 30s
  fi
  if ! fuzzed; then
    echo "$output"
    echo "fuzz: $package $name did not run" >&2
    exit 1
  fi
  targets=$((targets + 1))
done <<<"$list"
echo "fuzz: $targets targets"
