// The simulation's disk as the FileSystem that ranks see. All ranks share one. Asks the run's
// FaultHook before every write, sync and change; what a dead rank's destructors do changes nothing.
// A write that fails says how much of it reached the file. Counts what ranks do into the report.
//
// Errors: DataError, as FileSystem says; sim::RankKilled when the power is cut.
// Threads: that of the Simulation; it may also be used before and after the run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/files.h"
#include "simulator/disk.h"
#include "simulator/simulation.h"

namespace ddproof {

class SimFileSystem final : public FileSystem {
 public:
  // Both must outlive this and all its files.
  SimFileSystem(sim::Simulation& simulation, sim::Disk& disk)
      : simulation_(simulation), disk_(disk), key_(simulation.new_object()) {}

  std::unique_ptr<File> open(const std::string& path) override;
  std::unique_ptr<File> create(const std::string& path) override;
  bool exists(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;

  // To be called before every use. Changes do it by themselves.
  void touch(sim::Access access) { simulation_.touch(key_, access); }
  // To be called before every change, once. False: the rank is dead, and nothing may change.
  bool may_change();
  // To be called before every write and every sync of the running rank, once, after may_change().
  sim::WriteFate fate_of_write();
  bool sync_fails();

 private:
  int running_rank() const;

  sim::Simulation& simulation_;
  sim::Disk& disk_;
  sim::ObjectKey key_;  // all files are one object to a search
};

}  // namespace ddproof
