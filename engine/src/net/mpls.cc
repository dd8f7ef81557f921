#include "net/mpls.h"

#include <algorithm>

namespace dutperf::net {
namespace {

constexpr uint32_t kLabel = 0xfffff000;
constexpr uint32_t kBottomOfStack = 0x100;

uint32_t entry_of(const MplsLabel& label, bool is_last) {
  return label.label << 12 | uint32_t{label.tc} << 9 | (is_last ? kBottomOfStack : 0) | label.ttl;
}

}  // namespace

LabelStack::LabelStack(std::span<const MplsLabel> labels)
    : bytes_(static_cast<uint32_t>(labels.size() * kEntryBytes)) {
  std::copy(labels.begin(), labels.end(), labels_.begin());
}

void LabelStack::write(uint8_t* ether_type) const noexcept {
  const std::span<const MplsLabel> labels = list();
  if (labels.empty()) return;
  *reinterpret_cast<Be16*>(ether_type) = kEtherTypeMpls;
  auto* entry = reinterpret_cast<Be32*>(ether_type + sizeof(Be16));
  for (const MplsLabel& label : labels) *entry++ = entry_of(label, &label == &labels.back());
}

bool LabelStack::stands_at(const uint8_t* ether_type) const noexcept {
  if (*reinterpret_cast<const Be16*>(ether_type) != kEtherTypeMpls) return false;
  const auto* entry = reinterpret_cast<const Be32*>(ether_type + sizeof(Be16));
  const std::span<const MplsLabel> labels = list();
  return std::all_of(labels.begin(), labels.end(), [&](const MplsLabel& label) {
    const uint32_t wanted = entry_of(label, &label == &labels.back());
    return ((*entry++ ^ wanted) & (kLabel | kBottomOfStack)) == 0;
  });
}

}  // namespace dutperf::net
