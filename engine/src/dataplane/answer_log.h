// What a device answers to the questions among a trial's announcements: SNMP, for example. Whole
// packets are kept, up to a number that was told before; control reads them after the trial.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace dutperf::dataplane {

// Which frames are answers, and how many of them are kept.
struct AnswerSpec {
  uint16_t from_port = 0;  // of UDP
  uint64_t most = 0;       // 0: nothing was asked
};

struct Answer {
  static constexpr size_t kMostBytes = 1500;

  uint64_t received_ns = 0;  // since the trial's start
  uint16_t bytes = 0;
  std::array<uint8_t, kMostBytes> packet;  // from the IP header on

  std::span<const uint8_t> ip_packet() const { return {packet.data(), bytes}; }
};

// `keep` allocates nothing.
class AnswerLog {
 public:
  AnswerLog() = default;
  explicit AnswerLog(uint64_t most) { answers_.reserve(most); }

  // Longer ones than fit are not kept: the answer must fit into one frame (RFC 2544 11.2).
  void keep(uint64_t received_ns, std::span<const uint8_t> packet) {
    if (answers_.size() == answers_.capacity() || packet.size() > Answer::kMostBytes) return;
    Answer& answer = answers_.emplace_back();
    answer.received_ns = received_ns;
    answer.bytes = static_cast<uint16_t>(packet.size());
    std::copy(packet.begin(), packet.end(), answer.packet.begin());
  }

  void add(const AnswerLog& other) {
    answers_.insert(answers_.end(), other.answers_.begin(), other.answers_.end());
  }

  const std::vector<Answer>& answers() const { return answers_; }

 private:
  std::vector<Answer> answers_;
};

}  // namespace dutperf::dataplane
