# Read by the scripts beside it: what all trials have in common, and one trial.
# shellcheck shell=sh

: "${SIZE:=84}"        # bytes of an IPv6 frame with FCS
: "${DURATION:=60}"    # s
: "${TIMEOUT:=2000}"   # ms, global timeout
: "${MIX:=1 1}"        # n and m: "2 1" has a background frame for each foreground frame
: "${RESET:=true}"     # run before each trial, for example: ssh dut conntrack -F
: "${ATTEMPTS:=10}"    # of a trial that is invalid
: "${OUT:=temp.out}"   # where a trial prints

# trial COMMAND ARGUMENT...: 0 it has figures, 1 the state table was not filled, 2 it stayed invalid.
#
# A trial is invalid if the tester could not do its own part, because something else had its CPU, say. That
# tells nothing of the device, so the trial is repeated; but not for ever, for a rate may be too much for the
# tester each time. "invalid" is looked for first: such a trial may have failed to fill the table, too.
trial() {
  for _ in $(seq "$ATTEMPTS"); do
    $RESET > /dev/null || { echo "RESET failed: $RESET" >&2; exit 9; }
    "$@" > "$OUT" 2>&1
    if grep -q 'Error:' "$OUT"; then cat "$OUT" >&2; exit 9; fi
    if grep -q 'invalid' "$OUT"; then continue; fi
    if grep -q 'Failed to fill state table' "$OUT"; then return 1; fi
    if grep -q 'Test finished' "$OUT"; then return 0; fi
    cat "$OUT" >&2; exit 9    # killed: without figures nothing looks lost
  done
  echo "invalid in $ATTEMPTS attempts: $*" >&2
  return 2
}

# must_tell COMMAND ARGUMENT...: a trial without which the script cannot go on.
must_tell() {
  trial "$@" || { cat "$OUT" >&2; exit 1; }
}

# figure NAME: what stands behind "NAME: ", nothing if there is no such line.
figure() {
  grep "^$1: " "$OUT" | awk -F': ' '{print $2}'
}

# all_received: each frame arrived, of both directions or of the one that is active.
all_received() {
  for direction in Forward Reverse; do
    sent=$(figure "$direction frames sent")
    received=$(figure "$direction frames received")
    if [ "${sent:-0}" -ne "${received:-0}" ]; then return 1; fi
  done
}

# search TEST LOW HIGH STEP: the highest value, within STEP, with which "TEST value" succeeds.
#
# LOW is taken to succeed. A trial that stayed invalid counts as failed, as in scripts that do not repeat it: the
# tester cannot do more, so what is found may be its own limit. Standard error tells it.
search() {
  test=$1 low=$2 high=$3 step=$4
  while [ $((high - low)) -gt "$step" ]; do
    value=$(((low + high) / 2))
    if "$test" "$value"; then low=$value; else high=$value; fi
  done
}

# spread COLUMN FILE: median, least and most of a column of numbers.
spread() {
  cut -d ';' -f "$1" "$2" | grep . | sort -n | awk '{v[NR] = $1}
    END {m = int((NR + 1) / 2); if (NR) print (v[m] + v[NR + 1 - m]) / 2, v[1], v[NR]}'
}

# each_opened COUNT RATE: COUNT connections open at RATE, and each is there afterwards (RFC 9693 4.6).
#
# Phase 1 alone does not tell: a device may forward a frame and keep no connection, or forget another one for it.
# So in phase 2 the responder sends through each of them, ALPHA percent as fast. siitperf.conf needs the
# responder's direction alone (Stateful 1: Forward 0, Reverse 1), for the initiator's frames would open again what was
# forgotten; Responder-tuples 1, so that none is left out; and Enumerate-ports or Enumerate-ips. RESET has to empty
# the device's table: connections of the last trial need no opening.
: "${ALPHA:=50}"
each_opened() {
  slower=$((($2 * ALPHA + 99) / 100))
  seconds=$((($1 + slower - 1) / slower))
  back=$((($1 + seconds - 1) / seconds))
  gap=$((1000 * $1 / $2 + 1 + TIMEOUT))
  # shellcheck disable=SC2086 # MIX is two numbers
  trial siitperf-tp "$SIZE" "$back" "$seconds" "$TIMEOUT" $MIX "$1" "$1" "$2" "$TIMEOUT" "$gap" && all_received
}
