// Who listens on a TCP port of this machine, from /proc. Internal to backends/local.
#pragma once

#include <cstdint>
#include <string>

namespace ddproof {

// "NAME (pid N)"; "a process of another user" when its descriptors may not be read; empty when
// nobody listens there.
std::string port_holder(std::uint16_t port);

}  // namespace ddproof
