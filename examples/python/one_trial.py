"""A few trials of a router, and its throughput: the shortest program with dutperf.

python one_trial.py                  # a simulated device; nothing is sent
python one_trial.py linux-router     # a lab (root)
"""

import sys

import dutperf

lab = sys.argv[1] if len(sys.argv) > 1 else None
place = {"lab": lab} if lab else {"simulated_fps": 120_000}
with dutperf.Tester(**place) as tester:
    with tester.traffic(ip=4, frame_size=64, direction="both") as traffic:
        for rate_fps in (10_000, 20_000, 40_000):
            trial = traffic.trial(rate_fps)
            print(f"{rate_fps:,} fps: {trial.verdict}, {trial.lost:,} lost")
        found = traffic.find(resolution="5%")
        print(f"{found.conclusion}: {found.rate_fps:,} fps, {len(found.trials)} trials")
    measured = tester.measure("throughput", preset="quick", ip=4, frame_size=64)
    for figure in measured.figures():
        print(f"{figure.name}: {figure.value:,} {figure.unit}")
    print(f"report: {measured.report}")
