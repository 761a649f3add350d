// A directory that holds the newest checkpoint and the one before it, and never a broken state.
//
// save() writes a temporary file of a name of its own, syncs it, moves the newest file to the
// previous one's name, moves the temporary file into place and syncs the directory. Whenever the
// process dies, load() finds the old state or the new one. Two jobs in one directory never write
// the same file; the last to finish wins. A job that dies in save() leaves its temporary file
// behind; require_writable() removes those older than kStaleAge, which no job can still be writing.
//
// Only one rank may save (rank 0, by custom). On several ranks, load on rank 0 and broadcast the
// bytes: ranks that read on their own may see different files while another job saves.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/api/runtime.h"

namespace ddproof {

struct LoadedCheckpoint {
  std::string path;
  std::vector<std::byte> bytes;  // verified: verify_state() accepts them
  // Why the newest file was not used; empty when it was.
  std::string warning;
};

class CheckpointDirectory {
 public:
  // Touches nothing yet. Requires: `runtime` outlives the object.
  CheckpointDirectory(Runtime& runtime, std::string directory);

  std::string newest_path() const { return directory_ + "/checkpoint.safetensors"; }
  std::string previous_path() const { return directory_ + "/checkpoint.previous.safetensors"; }

  // True when there is something to load, good or not.
  bool exists() const;

  static constexpr Duration kStaleAge = std::chrono::minutes(10);

  // Makes the directory if needed, and for a moment a file in it. Removes what dead jobs left.
  // Throws DataError when that fails; save() would fail, too.
  void require_writable();

  // Makes `state` (of encode_state()) the newest checkpoint; makes the directory if needed. A
  // newest file that is damaged is replaced; it does not become the previous one.
  // Throws DataError when the file system fails; load() then gives the old state or the new one.
  void save(std::span<const std::byte> state);

  // The newest checkpoint, or the previous one, with a warning, when the newest is missing or
  // damaged.
  // Throws DataError when neither is good; the text says what is wrong with each.
  LoadedCheckpoint load() const;

 private:
  std::string temporary_path() const;
  void remove_stale_files();
  void write_temporary(const std::string& path, std::span<const std::byte> state);
  void replace_newest(const std::string& path);

  Runtime& runtime_;
  std::string directory_;
};

}  // namespace ddproof
