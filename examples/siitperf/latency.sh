#!/bin/sh
# latency.sh RATE REPEATS [FIRST TAGS]: typical and worst case latency in ms (RFC 8219 7.2).
# Of TAGS tagged frames, the first one FIRST seconds after the start. Prints of each the median over the repeats with
# the least and the most; latency.csv has them all.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

: > latency.csv
for _ in $(seq "$2"); do
  # shellcheck disable=SC2086 # MIX is two numbers
  must_tell siitperf-lat "$SIZE" "$1" "$DURATION" "$TIMEOUT" $MIX "${3:-60}" "${4:-500}"
  echo "$(figure 'Forward TL');$(figure 'Forward WCL');$(figure 'Reverse TL');$(figure 'Reverse WCL')" >> latency.csv
done
echo "Forward TL $(spread 1 latency.csv)"
echo "Forward WCL $(spread 2 latency.csv)"
echo "Reverse TL $(spread 3 latency.csv)"
echo "Reverse WCL $(spread 4 latency.csv)"
