// "HOST:PORT" for messages; an IPv6 address in brackets.
#pragma once

#include <cstdint>
#include <string>

namespace ddproof {

inline std::string host_and_port(const std::string& host, std::uint16_t port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace ddproof
