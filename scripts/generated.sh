#!/usr/bin/env bash
# Fails when `make generate` changes a file: what is generated and checked in must be what its sources say now.
set -euo pipefail
cd "$(dirname "$0")/.."
sums() { { find shared internal functions scripts/modules -type f -exec cksum {} + 2>/dev/null || true; } | sort -k3; }
before=$(sums)
make --no-print-directory generate
if ! diff <(echo "$before") <(sums); then
  echo "the files above were not up to date; commit what make generate made" >&2
  exit 1
fi
