// Writes frames to a pcap file with nanosecond times (no library: 40 bytes of format).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace dutperf::control {

class PcapWriter {
 public:
  // Throws ProtocolError when the file cannot be written.
  explicit PcapWriter(const std::string& path);

  void write(uint64_t time_ns, const std::vector<uint8_t>& frame);
  void close();

 private:
  void write_words(std::initializer_list<uint32_t> words);
  void check();

  std::string path_;
  std::ofstream file_;
};

}  // namespace dutperf::control
