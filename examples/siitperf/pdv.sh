#!/bin/sh
# pdv.sh RATE REPEATS: packet delay variation in ms (RFC 8219 7.3.1).
# Prints the median over the repeats with the least and the most; pdv.csv has them all.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

: > pdv.csv
for _ in $(seq "$2"); do
  # shellcheck disable=SC2086 # MIX is two numbers
  must_tell siitperf-pdv "$SIZE" "$1" "$DURATION" "$TIMEOUT" $MIX 0
  echo "$(figure 'Forward PDV');$(figure 'Reverse PDV')" >> pdv.csv
done
echo "Forward PDV $(spread 1 pdv.csv)"
echo "Reverse PDV $(spread 2 pdv.csv)"
