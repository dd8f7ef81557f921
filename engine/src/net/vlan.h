// VLAN tags (IEEE 802.1Q, 802.1ad): what may stand between a frame's MAC addresses and its
// EtherType.
//
// A port has tags, outermost first, and all its frames carry them. Behind its tags a frame is like
// one without: who knows that the tags are there looks at the frame `bytes()` further on, and all
// offsets from the EtherType on are those of headers.h. Only MAC addresses are not there: slow code
// that needs them takes the tags out, and puts them into what it answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "net/headers.h"

namespace dutperf::net {

inline bool is_vlan_type(uint16_t ether_type) {
  constexpr uint16_t kBefore8021ad[] = {0x9100, 0x9200};
  return ether_type == kEtherTypeVlan || ether_type == kEtherTypeServiceVlan ||
         ether_type == kBefore8021ad[0] || ether_type == kBefore8021ad[1];
}

struct VlanTag {
  static constexpr uint16_t kMaxId = 4094;  // the highest is reserved

  uint16_t tpid = kEtherTypeVlan;
  uint16_t id = 0;
  uint8_t pcp = 0;  // priority code point
  // The highest id, where they vary from frame to frame from `id` on; of the outermost tag alone.
  std::optional<uint16_t> last_id;

  bool operator==(const VlanTag&) const = default;
};

class VlanTags {
 public:
  static constexpr size_t kMax = 2;
  static constexpr size_t kMaxBytes = kMax * sizeof(VlanHeader);

  VlanTags() = default;
  // REQUIRES: at most kMax, ids below 4096, pcps below 8, no last_id below its id.
  explicit VlanTags(std::span<const VlanTag> tags);

  bool operator==(const VlanTags&) const = default;

  std::span<const VlanTag> list() const { return {tags_.data(), bytes_ / sizeof(VlanHeader)}; }
  uint32_t bytes() const { return bytes_; }
  bool begin_with_8021q() const;
  // What they take of the MTU: a port carries one 802.1Q tag beside it (IEEE 802.3ac), no more.
  uint32_t bytes_of_mtu() const;

  // Whether the frame carries these tags: types and VLAN ids, the outermost in its range;
  // priorities are the device's to change. Whatever stands behind is not looked at. REQUIRES:
  // kMaxBytes behind the MAC addresses may be read.
  bool stand_in(const uint8_t* frame) const noexcept {
    uint64_t found = 0;
    std::memcpy(&found, frame + kMacBytes, sizeof(found));
    const uint16_t from_first = static_cast<uint16_t>(outermost_id(found) - first_id_);
    return ((found ^ wanted_) & mask_) == 0 && from_first <= more_ids_;
  }

  // The same of a frame of any size.
  bool stand_in(const uint8_t* frame, size_t size) const noexcept {
    return size >= kMacBytes + kMaxBytes && stand_in(frame);
  }

  // Out of a frame that carries them, into one that has room for them; return its new size. Of a
  // range the first id is put in, unless told otherwise.
  size_t take_out(uint8_t* frame, size_t size) const noexcept;
  size_t put_in(uint8_t* frame, size_t size) const noexcept;
  size_t put_in(uint8_t* frame, size_t size, uint16_t id) const noexcept;

  // Of the outermost tag. REQUIRES: as stand_in.
  static uint16_t id_in(const uint8_t* frame) noexcept {
    uint64_t found = 0;
    std::memcpy(&found, frame + kMacBytes, sizeof(found));
    return outermost_id(found);
  }

 private:
  static constexpr size_t kMacBytes = offsetof(EthernetHeader, ether_type);
  static_assert(kMaxBytes == sizeof(uint64_t));

  static uint16_t outermost_id(uint64_t tags) {
    return byte_swap(static_cast<uint16_t>(tags >> 16)) & kIdBits;
  }
  static constexpr uint16_t kIdBits = 0x0fff;

  std::array<VlanTag, kMax> tags_{};
  uint64_t wanted_ = 0;  // as in memory
  uint64_t mask_ = 0;
  uint16_t first_id_ = 0;
  uint16_t more_ids_ = kIdBits;  // without tags there may be anything
  uint32_t bytes_ = 0;
};

}  // namespace dutperf::net
