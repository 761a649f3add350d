#include "reference/launch/worker_output.h"

#include <span>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {

WorkerOutput::WorkerOutput(const std::string& prefix)
    : routes_{Route{LinePrefix(prefix), true, nullptr}, Route{LinePrefix(prefix), true, nullptr}} {}

void WorkerOutput::add_file(Stream stream, std::unique_ptr<File> file) {
  route(stream).file = std::move(file);
}

std::string WorkerOutput::take(Stream stream, std::string_view bytes,
                               const std::function<void(const std::string&)>& on_full) {
  Route& to = route(stream);
  if (to.file != nullptr) {
    try {
      to.file->append(std::as_bytes(std::span(bytes)));
    } catch (const DataError& error) {
      to.file.reset();
      on_full(error.what());
    }
  }
  return to.is_shown ? to.lines.take(bytes) : "";
}

std::string WorkerOutput::finish(Stream stream) { return route(stream).lines.finish(); }

}  // namespace ddproof
