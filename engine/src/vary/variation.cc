#include "vary/variation.h"

#include <algorithm>

namespace dutperf::vary {

bool Variations::enumerates() const {
  return std::any_of(list.begin(), list.end(),
                     [](const Variation& v) { return v.mode == Mode::kEnumerate; });
}

uint64_t Variations::combinations() const {
  unsigned __int128 product = 1;
  for (const Variation& variation : list) {
    if (variation.mode == Mode::kEnumerate) product *= variation.size();
    if (product > UINT64_MAX) return UINT64_MAX;
  }
  return static_cast<uint64_t>(product);
}

uint32_t bits_of(Field field, int ip_version) {
  switch (field) {
    case Field::kSrcMac:
    case Field::kDstMac: return 48;
    case Field::kVlanId: return 12;
    case Field::kFlowLabel: return 20;
    case Field::kSrcIp:
    case Field::kDstIp: return ip_version == 4 ? 32 : 128;
    case Field::kSrcPort:
    case Field::kDstPort:
    case Field::kOuterSrcPort: return 16;
    case Field::kOuterFlowLabel: return 20;
    case Field::kOuterSrc: return 128;
  }
  return 0;
}

}  // namespace dutperf::vary
