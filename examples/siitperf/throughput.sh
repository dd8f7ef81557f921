#!/bin/sh
# throughput.sh HIGH STEP: the highest rate, within STEP, at which every frame comes back (RFC 2544 26.1).
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

lossless() {
  # shellcheck disable=SC2086 # MIX is two numbers
  trial siitperf-tp "$SIZE" "$1" "$DURATION" "$TIMEOUT" $MIX && all_received
}

search lossless 0 "$1" "$2"
echo "$low"
