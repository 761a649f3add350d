// The simulation's disk as the FileSystem that ranks see. All ranks share one.
//
// Errors: DataError, as FileSystem says. Threads: that of the Simulation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/files.h"
#include "simulator/disk.h"

namespace ddproof {

class SimFileSystem final : public FileSystem {
 public:
  // `disk` must outlive this and all its files.
  explicit SimFileSystem(sim::Disk& disk) : disk_(disk) {}

  std::unique_ptr<File> open(const std::string& path) override;
  std::unique_ptr<File> create(const std::string& path) override;
  bool exists(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;

 private:
  sim::Disk& disk_;
};

}  // namespace ddproof
