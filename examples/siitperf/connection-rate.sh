#!/bin/sh
# connection-rate.sh CONNECTIONS LOW HIGH STEP: the highest rate, within STEP, at which so many connections open and are
# there afterwards (RFC 9693 4.5, 4.6). What siitperf.conf and RESET need is in common.sh, at each_opened.
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

connections=$1
opened_at() { each_opened "$connections" "$1"; }

search opened_at "$2" "$3" "$4"
echo "$low"
