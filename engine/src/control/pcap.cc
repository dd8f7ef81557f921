#include "control/pcap.h"

#include <cerrno>
#include <cstring>

#include "control/json.h"

namespace dutperf::control {
namespace {

constexpr uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr uint32_t kVersion24 = 2 | (4U << 16);
constexpr uint32_t kLinkTypeEthernet = 1;
constexpr uint32_t kSnapLength = 65535;

}  // namespace

PcapWriter::PcapWriter(const std::string& path)
    : path_(path), file_(path, std::ios::binary | std::ios::trunc) {
  write_words({kMagicNanoseconds, kVersion24, 0, 0, kSnapLength, kLinkTypeEthernet});
}

void PcapWriter::write(uint64_t time_ns, const std::vector<uint8_t>& frame) {
  const auto size = static_cast<uint32_t>(frame.size());
  write_words({static_cast<uint32_t>(time_ns / 1'000'000'000),
               static_cast<uint32_t>(time_ns % 1'000'000'000), size, size});
  file_.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(size));
  check();
}

void PcapWriter::close() {
  file_.close();
  check();
}

void PcapWriter::write_words(std::initializer_list<uint32_t> words) {
  for (const uint32_t word : words) {
    file_.write(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  check();
}

void PcapWriter::check() {
  if (file_.good()) return;
  throw ProtocolError(kEnvironmentError, "cannot write " + path_ + ": " + std::strerror(errno),
                      "choose a file in a directory that exists and has room");
}

}  // namespace dutperf::control
