#!/usr/bin/env bash
# Sends one event file to the native build of the function that it is for, under AWS's Runtime Interface Emulator, and prints
# the reply. Called by make invoke, which builds what it needs. With --function it only names the function.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" = --function ] && only=1 && shift || only=
event=${1:-}
case $(basename "$event") in
  ses-*) function=inbound ;;
  sqs-* | schedule-*) function=worker ;;
  *) function=api ;;
esac
if [ -n "$only" ]; then
  echo "$function"
  exit
fi
if [ ! -f "$event" ]; then
  echo "usage: make invoke EVENT=events/function-url-tools-list-2026.json   (one of the files in events/)" >&2
  exit 2
fi
filled=$(cat "$event")
if [ "$function" = api ]; then
  filled=$(go run ./functions/local event "$event") # puts a token where the file has {{token:...}}
fi
(cd scripts/rie && go run ./invoke -rie ../../.tools/aws-lambda-rie -bootstrap "../../dist/native/$function/bootstrap") <<<"$filled"
