// Addresses as the tests write them.
#pragma once

#include "net/address.h"

namespace dutperf::net::testing {

inline IpAddress ip(const char* text) { return *IpAddress::parse(text); }
inline Mac mac(const char* text) { return *Mac::parse(text); }

}  // namespace dutperf::net::testing
