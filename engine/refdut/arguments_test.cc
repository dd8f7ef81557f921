#include "arguments.h"

#include <gtest/gtest.h>

namespace dutperf::refdut {
namespace {

Arguments parse(std::vector<std::string> words) {
  words.insert(words.begin(), "dutperf-refdut");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return parse_arguments(static_cast<int>(words.size()), pointers.data());
}

TEST(Arguments, AreTwoPortsAndDefaults) {
  const Arguments arguments = parse({"--left=memif:/tmp/l", "--right", "af_packet:eth1"});
  EXPECT_EQ(arguments.pairs(), 1U);
  EXPECT_EQ(arguments.ports[0].at(0), (PortArgument{PortKind::kMemif, "/tmp/l"}));
  EXPECT_EQ(arguments.ports[1].at(0), (PortArgument{PortKind::kAfPacket, "eth1"}));
  EXPECT_EQ(arguments.frames_held, 32768U);
  EXPECT_EQ(arguments.queues, 1);
  EXPECT_EQ(arguments.mtu, 1500U);
  EXPECT_FALSE(arguments.check);
}

TEST(Arguments, MayBeSeveralPairsInOrder) {
  const Arguments arguments =
      parse({"--left=memif:/tmp/1", "--left=memif:/tmp/2", "--right=af_xdp:eth3", "--mtu=9198",
             "--right=af_packet:eth4", "--config=c", "--control=s", "--cpu=3", "--frames-held=9"});
  EXPECT_EQ(arguments.pairs(), 2U);
  EXPECT_EQ(arguments.ports[0].at(1), (PortArgument{PortKind::kMemif, "/tmp/2"}));
  EXPECT_EQ(arguments.ports[1].at(0), (PortArgument{PortKind::kAfXdp, "eth3"}));
  EXPECT_EQ(arguments.ports[1].at(1), (PortArgument{PortKind::kAfPacket, "eth4"}));
  EXPECT_EQ(arguments.mtu, 9198U);
  EXPECT_EQ(arguments.config, "c");
  EXPECT_EQ(arguments.control, "s");
  EXPECT_EQ(arguments.cpu, 3);
  EXPECT_EQ(arguments.frames_held, 9U);
}

TEST(Arguments, NeedNoPortsToCheckABehaviour) {
  EXPECT_EQ(parse({"--check"}).pairs(), 0U);
  EXPECT_EQ(parse({"--check", "--left=memif:l", "--right=memif:r"}).pairs(), 1U);
}

TEST(Arguments, AreRefusedWithWhatIsWrong) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{}, "--left and --right are missing"},
      {{"--left=memif:l"}, "--left and --right must be given equally often"},
      {{"--left=memif:l", "--left=memif:m", "--right=memif:r"}, "equally often"},
      {{"--check", "--right=memif:r"}, "equally often"},
      {{"--left=memif:1", "--left=memif:2", "--left=memif:3", "--left=memif:4", "--left=memif:5",
        "--right=memif:6", "--right=memif:7", "--right=memif:8", "--right=memif:9",
        "--right=memif:10"},
       "may be given 4 times"},
      {{"--left=memif:l", "--right=memif:l"}, "l can be one port only"},
      {{"--left=memif:l", "--left=memif:l", "--right=memif:m", "--right=memif:n"},
       "l can be one port only"},
      {{"--left=memif:", "--right=memif:r"}, "\"memif:\" is no port"},
      {{"--left=eth0", "--right=memif:r"}, "\"eth0\" is no port"},
      {{"--left=pci:0", "--right=memif:r"}, "\"pci:0\" is no port"},
      {{"--left=memif:l", "--right=memif:r", "--mtu=67"}, "--mtu must be a number from 68"},
      {{"--left=memif:l", "--right=memif:r", "--cpu=-1"}, "--cpu must be a number from 0"},
      {{"--left=memif:l", "--right=memif:r", "--frames-held=9x"}, "--frames-held must be"},
      {{"--left=memif:l", "--right=memif:r", "--queues=0"}, "--queues must be"},
      {{"--left=memif:l", "--right=af_xdp:r", "--queues=2"}, "--queues is for memif"},
      {{"--left=memif:l", "--right=memif:r", "more"}, "more is no option"},
      {{"--left=memif:l", "--right=memif:r", "--middle=memif:m"}, "an option is unknown"},
  };
  for (const auto& [words, message] : refused) {
    try {
      parse(words);
      ADD_FAILURE() << "taken, and should be refused: " << message;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace dutperf::refdut
