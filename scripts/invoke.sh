#!/usr/bin/env bash
# Sends one event file to the native build of the api function under AWS's Runtime Interface Emulator and prints the reply.
# Called by make invoke, which builds what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."
event=${1:-}
if [ ! -f "$event" ]; then
  echo "usage: make invoke EVENT=events/function-url-tools-list-2026.json   (one of the files in events/)" >&2
  exit 2
fi
filled=$(go run ./functions/local event "$event") # puts a token where the file has {{token:...}}
(cd scripts/rie && go run ./invoke -rie ../../.tools/aws-lambda-rie -bootstrap ../../dist/native/api/bootstrap) <<<"$filled"
