// Where what one worker writes goes: to the launcher's own output, in whole lines with the rank
// before them, to files of its own, byte for byte, or to both; as torchrun's --redirects and --tee
// say (SEMANTICS 10.1). Threads: one.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backends/api/files.h"
#include "backends/api/processes.h"
#include "reference/launch/line_prefix.h"

namespace ddproof {

class WorkerOutput {
 public:
  // To the launcher's output.
  explicit WorkerOutput(const std::string& prefix);

  // Also to the file, which must be open for appending.
  void add_file(Stream stream, std::unique_ptr<File> file);
  // No longer to the launcher's output.
  void hide(Stream stream) { route(stream).is_shown = false; }

  // Returns what to show now. Where a file takes no more, calls `on_full` with the reason, and goes
  // on without that file.
  std::string take(Stream stream, std::string_view bytes,
                   const std::function<void(const std::string&)>& on_full);
  // The last line, if it has no newline.
  std::string finish(Stream stream);

 private:
  struct Route {
    LinePrefix lines;
    bool is_shown = true;
    std::unique_ptr<File> file;
  };
  Route& route(Stream stream) { return routes_[static_cast<std::size_t>(stream)]; }

  std::array<Route, 2> routes_;
};

}  // namespace ddproof
