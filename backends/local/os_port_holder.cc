#include "backends/local/os_port_holder.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace ddproof {
namespace {

struct Listener {
  std::string user;  // its number
  std::string inode;
};

// The socket that listens on `port`, from a table like /proc/net/tcp: column 2 is ADDRESS:PORT in
// hexadecimal, column 4 the state (0A: listening), column 8 the user, column 10 the inode.
std::optional<Listener> find_listener(const char* table, std::uint16_t port) {
  std::ifstream lines(table);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    const auto colon = local.rfind(':');
    if (!words || state != "0A" || colon == std::string::npos) continue;
    if (std::stoul(local.substr(colon + 1), nullptr, 16) == port) return Listener{user, inode};
  }
  return std::nullopt;
}

bool holds(const std::filesystem::path& process, const std::string& link) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(process / "fd", error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (std::filesystem::read_symlink(entry->path(), unreadable) == link) return true;
  }
  return false;
}

}  // namespace

std::string port_holder(std::uint16_t port) {
  auto listener = find_listener("/proc/net/tcp", port);
  if (!listener) listener = find_listener("/proc/net/tcp6", port);
  if (!listener) return "";
  const std::string link = "socket:[" + listener->inode + "]";
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string pid = entry->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds(entry->path(), link)) continue;
    std::ifstream file(entry->path() / "comm");
    std::string name;
    std::getline(file, name);
    return name + " (pid " + pid + ")";
  }
  return "a process of user " + listener->user + " that cannot be seen from here";
}

}  // namespace ddproof
