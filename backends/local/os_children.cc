#include "backends/local/os_children.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace ddproof {
namespace {

// From /proc/PID/stat: "PID (NAME) STATE PARENT ...", where NAME may hold anything. 0: it is gone.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream words(text.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  words >> state >> parent;
  return parent;
}

}  // namespace

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (parent_of(entry->path()) == ::getpid()) children.push_back(std::stoi(name));
  }
  return children;
}

}  // namespace ddproof
