// Addresses as the tests write them.
#pragma once

#include "net/address.h"

namespace dutperf::control::testing {

inline net::IpAddress ip(const char* text) { return *net::IpAddress::parse(text); }
inline net::Mac mac(const char* text) { return *net::Mac::parse(text); }

}  // namespace dutperf::control::testing
