#include "net/testing/source_tree.h"

namespace dutperf::net::testing {

std::string source_tree() { return DUTPERF_SOURCE_TREE; }

}  // namespace dutperf::net::testing
