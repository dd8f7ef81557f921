#include "control/announcement_messages.h"

#include <gtest/gtest.h>

#include <string>

namespace dutperf::control {
namespace {

constexpr uint64_t kDurationNs = 1000;
const std::string kPacket = "45" + std::string(78, '0');  // 40 bytes

Json announcement(const Json& changes = Json::object()) {
  Json json = {
      {"port", "right"}, {"at_ns", nullptr}, {"dst_mac", "01:00:5e:00:00:09"}, {"packet", kPacket}};
  json.update(changes);
  return json;
}

std::vector<Announcement> parsed(const Json& list) {
  const Json trial = {{"announcements", list}};
  ObjectReader reader(trial, "");
  std::vector<Announcement> result = parse_announcements(reader, kDurationNs);
  reader.finish();
  return result;
}

TEST(ParseAnnouncements, PutsThemInTheOrderInWhichTheyLeave) {
  const Json list = {announcement({{"at_ns", 999}}), announcement({{"at_ns", 0}}), announcement(),
                     announcement({{"at_ns", 0}, {"port", "left"}})};
  const std::vector<Announcement> found = parsed(list);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].at_ns, std::nullopt);
  EXPECT_EQ(found[1].at_ns, 0U);
  EXPECT_EQ(found[1].side, dataplane::Side::kRight);
  EXPECT_EQ(found[2].side, dataplane::Side::kLeft);
  EXPECT_EQ(found[3].at_ns, 999U);
}

TEST(ParseAnnouncements, AreNoneWhereNoneAreAskedFor) {
  const Json trial = Json::object();
  ObjectReader reader(trial, "");
  EXPECT_TRUE(parse_announcements(reader, kDurationNs).empty());
}

TEST(ParseAnnouncements, RefusesWhatCannotLeave) {
  const std::string longest = "45" + std::string(2 * 1499, '0');
  EXPECT_NO_THROW(parsed(Json::array({announcement({{"packet", longest}})})));
  for (const Json& wrong :
       {Json{{"port", "top"}}, Json{{"at_ns", kDurationNs}}, Json{{"at_ns", -1}},
        Json{{"dst_mac", "x"}}, Json{{"packet", ""}}, Json{{"answered_from", 0}},
        Json{{"answered_from", 65536}}, Json{{"packet", "6" + std::string(77, '0')}},
        Json{{"packet", kPacket + "0"}}, Json{{"packet", longest + "00"}},
        Json{{"packet", "4G" + std::string(78, '0')}}, Json{{"packet", std::string(80, '0')}},
        Json{{"more", 1}}}) {
    EXPECT_THROW(parsed(Json::array({announcement(wrong)})), ProtocolError) << wrong;
  }
  Json many = Json::array();
  for (int i = 0; i < 4096; ++i) many.push_back(announcement());
  EXPECT_EQ(parsed(many).size(), 4096U);
  many.push_back(announcement());
  EXPECT_THROW(parsed(many), ProtocolError);
}

TEST(ParseAnnouncements, WithoutAMacAreForTheNeighbourThatThePacketIsFor) {
  const std::string ipv4 = "45" + std::string(30, '0') + "c6120001";
  const std::string ipv6 = "60" + std::string(46, '0') + "20010002" + std::string(22, '0') + "01";
  const std::vector<Announcement> found =
      parsed({announcement({{"dst_mac", nullptr}, {"packet", ipv4}}),
              announcement({{"dst_mac", nullptr}, {"packet", ipv6}})});
  EXPECT_EQ(found[0].dst_mac, std::nullopt);
  EXPECT_EQ(found[0].destination().text(), "198.18.0.1");
  EXPECT_EQ(found[1].destination().text(), "2001:2::1");
}

TEST(AnswersTo, AreTwiceAsManyAsQuestionsOfThatSide) {
  const std::vector<Announcement> found =
      parsed({announcement(), announcement({{"answered_from", 161}}),
              announcement({{"answered_from", 161}}), announcement({{"answered_from", nullptr}})});
  EXPECT_EQ(answers_to(found, dataplane::Side::kRight).most, 4U);
  EXPECT_EQ(answers_to(found, dataplane::Side::kRight).from_port, 161);
  EXPECT_EQ(answers_to(found, dataplane::Side::kLeft).most, 0U);
  EXPECT_THROW(
      parsed({announcement({{"answered_from", 161}}), announcement({{"answered_from", 162}})}),
      ProtocolError);
}

TEST(AnswerLog, KeepsWhatHasRoom) {
  dataplane::AnswerLog log(2);
  const std::vector<uint8_t> packet = {0x45, 0x0f, 0xff};
  const std::vector<uint8_t> too_long(1501);
  log.keep(6, too_long);
  log.keep(7, packet);
  log.keep(8, {});
  log.keep(9, packet);
  EXPECT_EQ(to_json(log), Json({{{"received_ns", 7}, {"packet", "450fff"}},
                                {{"received_ns", 8}, {"packet", ""}}}));
  EXPECT_EQ(to_json(dataplane::AnswerLog()), Json::array());
}

TEST(FrameOfAnnouncement, HasItsAddressesAndIsAsLongAsTheShortestFrame) {
  const Announcement found = parsed(Json::array({announcement()}))[0];
  const net::Mac own{{2, 0, 0, 0, 0, 1}};
  const std::vector<uint8_t> frame = frame_of(found, found.dst_mac.value(), own, {});
  ASSERT_EQ(frame.size(), 60U);
  EXPECT_EQ(std::vector<uint8_t>(frame.begin(), frame.begin() + 15),
            (std::vector<uint8_t>{1, 0, 0x5e, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0, 0x45}));
}

TEST(FrameOfAnnouncement, OfIpv6BehindAVlanTag) {
  const Announcement found =
      parsed(Json::array({announcement({{"packet", "60" + std::string(2 * 99, '0')}})}))[0];
  const net::VlanTag tag{net::kEtherTypeVlan, 100, 0};
  const std::vector<uint8_t> frame = frame_of(found, {}, {}, net::VlanTags({&tag, 1}));
  ASSERT_EQ(frame.size(), 14U + 4 + 100);
  EXPECT_EQ(std::vector<uint8_t>(frame.begin() + 12, frame.begin() + 19),
            (std::vector<uint8_t>{0x81, 0, 0, 100, 0x86, 0xdd, 0x60}));
}

}  // namespace
}  // namespace dutperf::control
