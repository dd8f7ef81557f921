#!/bin/sh
# frame-loss.sh RATE...: percent of the frames that are lost at each rate, from the highest one on (RFC 2544 26.3).
# Ends after two rates in a row without a loss. Prints rate;forward;reverse.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

loss() {
  echo "$(figure "$1 frames sent")" "$(figure "$1 frames received")" |
    awk 'NF == 2 {printf "%.4f", 100 * ($1 - $2) / $1}'
}

lossless=0
for rate in $(printf '%s\n' "$@" | sort -rn); do
  # shellcheck disable=SC2086 # MIX is two numbers
  must_tell siitperf-tp "$SIZE" "$rate" "$DURATION" "$TIMEOUT" $MIX
  echo "$rate;$(loss Forward);$(loss Reverse)"
  if all_received; then lossless=$((lossless + 1)); else lossless=0; fi
  if [ "$lossless" -eq 2 ]; then break; fi
done
