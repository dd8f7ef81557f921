#include "control/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "control/testing/refusal.h"

namespace dutperf::control {
namespace {

using testing::refusal;

const Json kObject = Json::parse(R"({
  "zero": 0, "large": 18446744073709551615, "negative": -1, "fraction": 1.5, "whole": 1.0,
  "huge": 18446744073709551616, "text": "word", "yes": true, "none": null, "list": [1, 2],
  "ip": "198.18.0.1", "mac": "02:00:00:00:00:01"
})");

TEST(ParsingText, TakesWhatMessagesAre) {
  EXPECT_EQ(parse_text(R"({"a": [[[1]]]})"), Json({{"a", {{{1}}}}}));
}

// Values are copied, compared and written by functions that call themselves: a megabyte of brackets
// must not come so far.
TEST(ParsingText, RefusesWhatIsNoJsonOrNoMessage) {
  const std::string deep(1'000'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("1e999"), std::string("\xff"), deep,
        deep + std::string(deep.size(), ']'), R"({"a":)" + deep}) {
    try {
      parse_text(text);
      ADD_FAILURE() << text.substr(0, 20);
    } catch (const ProtocolError& error) {
      EXPECT_EQ(error.code(), kParseError);
      EXPECT_LT(std::string(error.what()).size(), 300U);
    }
  }
}

class Reading : public ::testing::Test {
 protected:
  ObjectReader reader_{kObject, "outer[1]"};
};

TEST_F(Reading, GivesWhatIsThere) {
  EXPECT_EQ(reader_.number("zero", 0, 0), 0U);
  EXPECT_EQ(reader_.number("large", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(reader_.text("text"), "word");
  EXPECT_TRUE(reader_.flag_or("yes", false));
  EXPECT_EQ(reader_.array("list", 1, 2).size(), 2U);
  EXPECT_EQ(reader_.ip("ip"), net::IpAddress::parse("198.18.0.1"));
  EXPECT_EQ(reader_.mac_or_none("mac"), net::Mac::parse("02:00:00:00:00:01"));
}

TEST_F(Reading, FallsBackForWhatIsNotThere) {
  EXPECT_EQ(reader_.number_or("absent", 7, 0, 1), 7U);
  EXPECT_EQ(reader_.text_or("absent", "else"), "else");
  EXPECT_TRUE(reader_.flag_or("absent", true));
  EXPECT_EQ(reader_.mac_or_none("absent"), std::nullopt);
  EXPECT_EQ(reader_.mac_or_none("none"), std::nullopt);
  EXPECT_FALSE(reader_.has("absent"));
}

TEST_F(Reading, NamesThePathOfWhatIsMissing) {
  EXPECT_EQ(refusal([&] { reader_.number("absent", 0, 1); }), "outer[1].absent is missing");
  EXPECT_EQ(refusal([&] { reader_.ip("absent"); }), "outer[1].absent is missing");
  EXPECT_EQ(refusal([&] { reader_.array("absent", 0, 1); }), "outer[1].absent is missing");
}

TEST_F(Reading, RefusesWhatIsNoWholeNumber) {
  for (const char* key : {"negative", "fraction", "whole", "huge", "text", "yes", "none", "list"}) {
    EXPECT_EQ(refusal([&] { reader_.number(key, 0, UINT64_MAX); }),
              std::string("outer[1].") + key + " must be a whole number of 0 or more");
    EXPECT_NE(refusal([&] { reader_.number_or(key, 0, 0, UINT64_MAX); }), "accepted");
  }
}

TEST_F(Reading, NamesTheRangeThatANumberLeaves) {
  EXPECT_EQ(refusal([&] { reader_.number("zero", 1, 255); }),
            "outer[1].zero must be between 1 and 255");
  EXPECT_EQ(refusal([&] { reader_.number_or("large", 1, 1, UINT64_MAX - 1); }),
            "outer[1].large must be between 1 and 18446744073709551614");
}

TEST_F(Reading, RefusesOtherTypes) {
  EXPECT_EQ(refusal([&] { reader_.text("zero"); }), "outer[1].zero must be a string");
  EXPECT_EQ(refusal([&] { reader_.text_or("none", ""); }), "outer[1].none must be a string");
  EXPECT_EQ(refusal([&] { reader_.flag_or("zero", true); }), "outer[1].zero must be true or false");
  EXPECT_EQ(refusal([&] { reader_.flag_or("none", true); }), "outer[1].none must be true or false");
  EXPECT_EQ(refusal([&] { reader_.array("text", 0, 9); }),
            "outer[1].text must be a list of 0 to 9");
  EXPECT_EQ(refusal([&] { reader_.array("list", 0, 1); }),
            "outer[1].list must be a list of 0 to 1");
  EXPECT_EQ(refusal([&] { reader_.array("list", 3, 4); }),
            "outer[1].list must be a list of 3 to 4");
  EXPECT_EQ(refusal([&] { reader_.ip("mac"); }), "outer[1].mac is not an IP address");
  EXPECT_EQ(refusal([&] { reader_.mac_or_none("ip"); }), "outer[1].ip is not a MAC address");
}

TEST(ObjectReader, RefusesKeysThatNobodyAskedFor) {
  const Json object = {{"known", 1}, {"unknown", 2}};
  ObjectReader reader(object, "");
  reader.number("known", 0, 9);
  EXPECT_EQ(refusal([&] { reader.finish(); }), "unknown is not a known key");
  reader.has("unknown");
  EXPECT_EQ(refusal([&] { reader.finish(); }), "accepted");
}

TEST(ObjectReader, TellsKeysThatWouldCutTheMessageShort) {
  const Json object = Json::parse(R"({"\u0000\u0000st": 1})");
  EXPECT_EQ(refusal([&] { ObjectReader(object, "").finish(); }),
            R"(\u0000\u0000st is not a known key)");
}

TEST(ObjectReader, RefusesWhatIsNoObject) {
  for (const Json& value : {Json(), Json(1), Json("text"), Json::array()}) {
    EXPECT_EQ(refusal([&] { ObjectReader(value, ""); }), "params must be an object");
    EXPECT_EQ(refusal([&] { ObjectReader(value, "ports[0]"); }), "ports[0] must be an object");
  }
}

}  // namespace
}  // namespace dutperf::control
