#include "reference/launch/error_file.h"

#include <nlohmann/json.hpp>
#include <span>

#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr std::uint64_t kFileBytesMax = 1 << 20;

std::string in_one_line(std::string text) {
  constexpr std::size_t kShown = 1000;
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

void write_error_file(Runtime& runtime, const std::string& message) {
  const std::optional<std::string> path = runtime.environment().get(kErrorFileVariable);
  if (!path || path->empty()) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(runtime.wall_clock());
  const nlohmann::json content = {
      {"message",
       {{"message", message},
        {"extraInfo",
         {{"py_callstack", message}, {"timestamp", std::to_string(seconds.count())}}}}}};
  const std::string text = content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  try {
    runtime.files().create(*path)->append(std::as_bytes(std::span(text)));
  } catch (const DataError&) {  // as the header says
  }
}

std::optional<std::string> read_error_file(FileSystem& files, const std::string& path) {
  std::string text;
  try {
    const std::unique_ptr<File> file = files.open(path);
    text.resize(std::min(file->size(), kFileBytesMax));
    text.resize(file->read_at(0, std::as_writable_bytes(std::span(text))));
  } catch (const DataError&) {
    return std::nullopt;
  }
  const auto content = nlohmann::json::parse(text, nullptr, false);
  if (!content.is_object() || !content.contains("message")) return std::nullopt;
  const nlohmann::json& outer = content["message"];
  const bool is_nested = outer.is_object() && outer.contains("message");
  const nlohmann::json& message = is_nested ? outer["message"] : outer;
  if (!message.is_string()) return std::nullopt;
  return in_one_line(message.get<std::string>());
}

}  // namespace ddproof
