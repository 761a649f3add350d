// A port that was free a moment ago: for programs that must be told one port before they start.
#pragma once

#include <string>

#include "backends/local/os_runtime.h"
#include "backends/store/tcp_store_server.h"

namespace ddproof {

inline std::string free_port() {
  OsRuntime runtime;
  return std::to_string(TcpStoreServer(runtime, {.host = "127.0.0.1"}).port());
}

}  // namespace ddproof
