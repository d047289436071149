#!/usr/bin/env bash
# Compares the modules that each function links with the list in scripts/modules, so that a new dependency is seen in
# review. With -update it writes the lists.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
for dir in functions/*/; do
  [ -f "$dir/main.go" ] || continue
  name=$(basename "$dir")
  list=scripts/modules/$name.txt
  now=$(GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go list -deps -tags lambda.norpc,nethttpomithttp2 \
    -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}' "./functions/$name" | sort -u)
  if [ "${1:-}" = -update ]; then
    mkdir -p scripts/modules
    printf '%s\n' "$now" >"$list"
  elif ! diff -u "$list" - <<<"$now"; then
    echo "functions/$name links other modules than $list says; if that is meant, run: make generate" >&2
    failed=1
  fi
done
exit $failed
