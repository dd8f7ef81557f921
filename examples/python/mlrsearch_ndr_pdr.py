"""NDR and PDR by the package MLRsearch, with dutperf as its measurer (RFC 9971).

python mlrsearch_ndr_pdr.py                  # a simulated device; nothing is sent
python mlrsearch_ndr_pdr.py linux-router     # a lab (root)
"""

import sys

from MLRsearch import Config, MultipleLossRatioSearch, SearchGoal

import dutperf
from dutperf.adapters.mlrsearch import Measurer

lab = sys.argv[1] if len(sys.argv) > 1 else None
place = {"lab": lab} if lab else {"simulated_fps": 120_000}
config = Config()
config.goals = [
    SearchGoal(loss_ratio=ratio, final_trial_duration=1.0, duration_sum=5.0)
    for ratio in (0.0, 0.005)
]
with (
    dutperf.Tester(**place) as tester,
    tester.traffic(ip=4, frame_size=64, direction="both") as traffic,
):
    config.max_load = min(traffic.max_rate_fps, 1_000_000)
    measurer = Measurer(traffic)
    search = MultipleLossRatioSearch(config=config)
    results = search.search(measurer=measurer, debug=lambda _text: None)
for goal, result in results.items():
    print(f"loss up to {goal.loss_ratio:.1%}: {result}")
print(f"{len(measurer.trials)} trials")
