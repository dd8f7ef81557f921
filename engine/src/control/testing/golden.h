// The golden messages of protocol/golden, which the Python side tests itself against too.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include "control/json.h"
#include "net/testing/source_tree.h"

namespace dutperf::control::testing {

// A whole message as it stands on the wire, by file name without ".json".
inline Json golden(const std::string& name) {
  const std::string path = net::testing::source_tree() + "/protocol/golden/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return Json::parse(file);
}

inline Json golden_params(const std::string& name) { return golden(name + ".params").at("params"); }
inline Json golden_result(const std::string& name) { return golden(name + ".result").at("result"); }

}  // namespace dutperf::control::testing
