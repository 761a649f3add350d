// The simulation's disk: a file system in memory that all ranks share, as they would a network
// drive. It keeps apart what is there now and what would survive a power cut: the bytes of a file
// up to its last sync, and the names of a directory as of its last sync.
//
// Paths: '/' between names; "", "." and ".." as usual; a relative path starts at the root. The root
// exists from the beginning. Directories always survive.
// Every method throws DiskError, text "PATH: call: reason".
// Threads: that of the Simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddproof::sim {

class DiskError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a rank did on the disk, as fault_plan.h counts it.
struct DiskCalls {
  std::uint64_t changes = 0;  // the other two among them
  std::uint64_t writes = 0;
  std::uint64_t syncs = 0;

  bool operator==(const DiskCalls&) const = default;
};

struct DiskFile {
  std::vector<std::byte> bytes;
  std::size_t durable_bytes = 0;  // so many survive
  bool has_lost_pages = false;    // a sync failed: no later one makes more of the file durable

  void sync() {
    if (!has_lost_pages) durable_bytes = bytes.size();
  }
};

class Disk {
 public:
  using FilePtr = std::shared_ptr<DiskFile>;

  FilePtr open(const std::string& path);
  // An empty file, in place of an existing one. Its directory must exist.
  FilePtr create(const std::string& path);
  bool exists(const std::string& path) const;
  // Names in a directory, sorted.
  std::vector<std::string> list(const std::string& path) const;
  // With parents; fine when it exists.
  void make_directory(const std::string& path);
  // A file; replaces `to` in one step.
  void rename(const std::string& from, const std::string& to);
  // A file or an empty directory; fine when it does not exist.
  void remove(const std::string& path);
  void sync_directory(const std::string& path);
  // What was synced survives; of the rest the seed decides. Of a directory: all changes of names
  // since its last sync, or none. Of a file's bytes behind the synced ones: none, all, only the
  // first ones, or all with the last ones zeroed (torn). Open files stay open, and lose it too.
  void cut_power(std::uint64_t seed);

 private:
  using Entries = std::map<std::string, FilePtr>;  // by normal path
  std::string existing_directory_of(const std::string& path, const char* call) const;

  Entries files_;
  Entries durable_files_;
  std::set<std::string> directories_{"/"};
};

}  // namespace ddproof::sim
