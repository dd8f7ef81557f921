#include "net/vlan.h"

#include <algorithm>

namespace dutperf::net {
namespace {

void write(const VlanTag& tag, uint8_t* out) {
  auto* header = reinterpret_cast<VlanHeader*>(out);
  header->tpid = tag.tpid;
  header->pcp_dei_id = static_cast<uint16_t>((tag.pcp << 13) | tag.id);
}

}  // namespace

VlanTags::VlanTags(std::span<const VlanTag> tags)
    : bytes_(static_cast<uint32_t>(tags.size() * sizeof(VlanHeader))) {
  std::copy(tags.begin(), tags.end(), tags_.begin());
  constexpr VlanTag kCompared{0xffff, 0x0fff, 0};
  uint8_t wanted[kMaxBytes] = {};
  uint8_t mask[kMaxBytes] = {};
  for (size_t i = 0; i < tags.size(); ++i) {
    write({tags[i].tpid, tags[i].id, 0}, wanted + i * sizeof(VlanHeader));
    write(kCompared, mask + i * sizeof(VlanHeader));
  }
  if (!tags.empty()) {  // its range is looked at beside
    wanted[3] = mask[3] = 0;
    wanted[2] = mask[2] = 0;
    first_id_ = tags[0].id;
    more_ids_ = static_cast<uint16_t>(tags[0].last_id.value_or(first_id_) - first_id_);
  }
  std::memcpy(&wanted_, wanted, sizeof(wanted_));
  std::memcpy(&mask_, mask, sizeof(mask_));
}

bool VlanTags::begin_with_8021q() const { return bytes_ > 0 && tags_[0].tpid == kEtherTypeVlan; }

uint32_t VlanTags::bytes_of_mtu() const {
  return begin_with_8021q() ? bytes_ - static_cast<uint32_t>(sizeof(VlanHeader)) : bytes_;
}

size_t VlanTags::take_out(uint8_t* frame, size_t size) const noexcept {
  std::memmove(frame + kMacBytes, frame + kMacBytes + bytes_, size - kMacBytes - bytes_);
  return size - bytes_;
}

size_t VlanTags::put_in(uint8_t* frame, size_t size) const noexcept {
  return put_in(frame, size, first_id_);
}

size_t VlanTags::put_in(uint8_t* frame, size_t size, uint16_t id) const noexcept {
  std::memmove(frame + kMacBytes + bytes_, frame + kMacBytes, size - kMacBytes);
  uint8_t* out = frame + kMacBytes;
  for (VlanTag tag : list()) {
    if (out == frame + kMacBytes) tag.id = id;
    write(tag, out);
    out += sizeof(VlanHeader);
  }
  return size + bytes_;
}

}  // namespace dutperf::net
