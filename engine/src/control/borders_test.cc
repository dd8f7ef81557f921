// Where requests end to be accepted.
#include <gtest/gtest.h>

#include "control/messages.h"
#include "control/testing/golden.h"

namespace dutperf::control {
namespace {

using testing::golden;
using testing::golden_params;

void parse(const std::string& method, const Json& params) {
  if (method == "ports.open") {
    parse_ports_open(params);
  } else if (method == "neighbours.set") {
    parse_neighbours(params);
  } else if (method == "trial.run") {
    parse_trial(params);
  } else if (method == "frames.preview") {
    parse_preview(params);
  } else {
    FAIL() << method << " has no parameters";
  }
}

// Each case of borders.json changes one value of a golden request; "refused" is the path to blame,
// or null for the last good value. The Python models are tested with the same cases.
class Border : public ::testing::TestWithParam<Json> {
 protected:
  std::string request() const { return GetParam().at("request").get<std::string>(); }
  std::string method() const { return request().substr(0, request().find('-')); }

  Json changed_params() const {
    Json params = golden_params(request());
    const std::string path = GetParam().at("path").get<std::string>();
    if (GetParam().contains("remove")) {
      return params.patch(Json::array({{{"op", "remove"}, {"path", path}}}));
    }
    params[Json::json_pointer(path)] = GetParam().at("value");
    return params;
  }
};

TEST_P(Border, IsWhereTheModelsHaveIt) {
  if (GetParam().at("refused").is_null()) {
    EXPECT_NO_THROW(parse(method(), changed_params()));
    return;
  }
  const std::string where = GetParam().at("refused").get<std::string>();
  try {
    parse(method(), changed_params());
    FAIL() << "accepted";
  } catch (const ProtocolError& error) {
    EXPECT_EQ(error.code(), kInvalidParams);
    const std::string message = error.what();
    EXPECT_EQ(message.substr(0, where.size()), where);
    EXPECT_NE(std::string(" .[").find(message.at(where.size())), std::string::npos) << message;
  }
}

std::vector<Json> borders() { return golden("borders").get<std::vector<Json>>(); }

INSTANTIATE_TEST_SUITE_P(Golden, Border, ::testing::ValuesIn(borders()));

}  // namespace
}  // namespace dutperf::control
