#include "reference/checkpoint/checkpoint_directory.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "backends/api/error.h"
#include "reference/checkpoint/training_state.h"

namespace ddproof {
namespace {

constexpr std::string_view kTemporaryName = "checkpoint.safetensors.tmp-";

struct Attempt {
  std::vector<std::byte> bytes;
  std::string error;  // empty when the bytes are good
};

Attempt try_read(FileSystem& files, const std::string& path) {
  Attempt attempt;
  try {
    attempt.bytes = read_file(files, path);
    verify_state(path, attempt.bytes);
  } catch (const DataError& error) {
    attempt.error = error.what();
  }
  return attempt;
}

// When a file of this name was begun; empty when it is no temporary file.
std::optional<Duration> begin_of(std::string_view name) {
  if (!name.starts_with(kTemporaryName)) return std::nullopt;
  name.remove_prefix(kTemporaryName.size());
  Duration::rep begin = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), begin, 16);
  if (error != std::errc() || end == name.data() + name.size() || *end != '-') return std::nullopt;
  return Duration(begin);
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(Runtime& runtime, std::string directory)
    : runtime_(runtime), directory_(std::move(directory)) {}

bool CheckpointDirectory::exists() const {
  return runtime_.files().exists(newest_path()) || runtime_.files().exists(previous_path());
}

// Two jobs may have one seed, and two saves one time, but hardly both.
std::string CheckpointDirectory::temporary_path() const {
  return fmt::format("{}/{}{:x}-{:x}", directory_, kTemporaryName, runtime_.wall_clock().count(),
                     runtime_.random_u64());
}

void CheckpointDirectory::remove_stale_files() {
  const Duration now = runtime_.wall_clock();
  for (const std::string& name : runtime_.files().list(directory_)) {
    const std::optional<Duration> begin = begin_of(name);
    if (begin && now - *begin > kStaleAge) runtime_.files().remove(directory_ + "/" + name);
  }
}

void CheckpointDirectory::require_writable() {
  FileSystem& files = runtime_.files();
  const std::string temporary = temporary_path();
  try {
    files.make_directory(directory_);
    files.create(temporary);
    files.remove(temporary);
    remove_stale_files();
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("no checkpoints can be written to {}: {}", directory_, error.what()));
  }
}

void CheckpointDirectory::write_temporary(const std::string& path,
                                          std::span<const std::byte> state) {
  const std::unique_ptr<File> file = runtime_.files().create(path);
  file->append(state);
  file->sync();
}

void CheckpointDirectory::replace_newest(const std::string& path) {
  FileSystem& files = runtime_.files();
  // A damaged newest file must not push out a good previous one.
  if (files.exists(newest_path()) && try_read(files, newest_path()).error.empty()) {
    files.rename(newest_path(), previous_path());
  }
  files.rename(path, newest_path());
  files.sync_directory(directory_);
}

void CheckpointDirectory::save(std::span<const std::byte> state) {
  FileSystem& files = runtime_.files();
  files.make_directory(directory_);
  const std::string temporary = temporary_path();
  try {
    write_temporary(temporary, state);
    replace_newest(temporary);
  } catch (const DataError&) {
    try {
      files.remove(temporary);
    } catch (const DataError&) {
      // The first failure is the one to report.
    }
    throw;
  }
}

LoadedCheckpoint CheckpointDirectory::load() const {
  FileSystem& files = runtime_.files();
  Attempt newest = try_read(files, newest_path());
  if (newest.error.empty()) return {newest_path(), std::move(newest.bytes), ""};
  Attempt previous = try_read(files, previous_path());
  if (previous.error.empty()) {
    return {previous_path(), std::move(previous.bytes),
            fmt::format("{}; going on from {}", newest.error, previous_path())};
  }
  throw DataError(
      fmt::format("no good checkpoint in {}: {}; {}", directory_, newest.error, previous.error));
}

}  // namespace ddproof
