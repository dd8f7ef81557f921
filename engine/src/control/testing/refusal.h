// What a request is refused with.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "control/json.h"

namespace dutperf::control::testing {

inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const ProtocolError& error) {
    EXPECT_EQ(error.code(), kInvalidParams);
    return error.what();
  }
  return "accepted";
}

}  // namespace dutperf::control::testing
