// The operating system's files.
//
// Invariants: a path is passed on as it is; no state but open descriptors, all close-on-exec.
// open() gives a file for reading, create() one for reading and appending.
// Threads: OsFileSystem from any; each File from one at a time. Every method throws DataError with
// the text "PATH: call: reason".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/files.h"

namespace ddproof {

class OsFileSystem final : public FileSystem {
 public:
  // Directories, FIFOs and devices are refused: they have no size, or make their reader wait.
  std::unique_ptr<File> open(const std::string& path) override;
  std::unique_ptr<File> create(const std::string& path) override;
  bool exists(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
};

}  // namespace ddproof
