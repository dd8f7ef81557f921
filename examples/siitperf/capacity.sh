#!/bin/sh
# capacity.sh FIRST MOST STEP RATE: how many connections the device's table holds, within STEP (RFC 9693 4.9).
# RATE is one at which it surely opens them. What siitperf.conf and RESET need is in common.sh, at each_opened.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

rate=$4
fits() { each_opened "$1" "$rate"; }

held=0 tried=$1
while fits "$tried"; do
  held=$tried
  if [ "$tried" -eq "$2" ]; then echo "$held or more"; exit; fi
  tried=$((2 * tried < $2 ? 2 * tried : $2))
done
search fits "$held" "$tried" "$3"
echo "$low"
