// Who listens on a TCP port of this machine, from /proc. Internal to backends/local.
#pragma once

#include <cstdint>
#include <string>

namespace ddproof {

// "NAME (pid N)"; "a process of user N that cannot be seen from here" when a socket listens, but no
// process whose descriptors may be read has it; empty when nobody listens there.
std::string port_holder(std::uint16_t port);

}  // namespace ddproof
