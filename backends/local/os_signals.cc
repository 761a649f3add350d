#include "backends/local/os_signals.h"

#include <csignal>

namespace ddproof {

void make_file_size_limit_an_error() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // unlike "ignored", gone after an exec
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace ddproof
