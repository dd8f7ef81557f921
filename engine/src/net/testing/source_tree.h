// Where this project's files are, for tests that read some of them.
#pragma once

#include <string>

namespace dutperf::net::testing {

// The folder that README.md is in, without a slash at its end.
std::string source_tree();

}  // namespace dutperf::net::testing
