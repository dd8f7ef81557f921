#!/bin/sh
# counts_only.sh HIGH STEP: throughput, then latency and PDV at half of it, where siitperf.conf and build are.
#
# In the manner of scripts that were made for siitperf: a trial's counts are all that is looked at. Neither
# "invalid" nor "Error:" nor an exit code is, and a count that is missing is a loss of everything.
low=0
high=$1

value() {
  awk -F': ' -v name="$1" '$1 == name {print $2}' temp.out
}

lost() {
  received=$(value "$1 frames received")
  echo $((rate - ${received:-0}))
}

while [ $((high - low)) -gt "$2" ]; do
  rate=$(((low + high) / 2))
  ./build/siitperf-tp 84 "$rate" 1 500 2 2 > temp.out
  cat temp.out >> all.out
  if [ "$(lost Forward)" -eq 0 ] && [ "$(lost Reverse)" -eq 0 ]; then low=$rate; else high=$rate; fi
done
echo "throughput: $low"

./build/siitperf-lat 84 $((low / 2)) 1 500 2 2 0 500 > temp.out
cat temp.out >> all.out
for name in 'Forward TL' 'Forward WCL' 'Reverse TL'; do echo "$name: $(value "$name")"; done

./build/siitperf-pdv 84 $((low / 2)) 1 500 2 0 0 > temp.out
cat temp.out >> all.out
for name in 'Forward PDV' 'Reverse PDV'; do echo "$name: $(value "$name")"; done
