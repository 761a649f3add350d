#include "backends/sim/sim_files.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

class SimFile final : public File {
 public:
  SimFile(SimFileSystem& files, std::string path, sim::Disk::FilePtr file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}

  std::uint64_t size() override {
    files_.touch(sim::Access::kRead);
    return file_->bytes.size();
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
    files_.touch(sim::Access::kRead);
    const auto& bytes = file_->bytes;
    if (offset >= bytes.size()) return 0;
    const std::size_t count = std::min<std::uint64_t>(out.size(), bytes.size() - offset);
    if (count > 0) std::memcpy(out.data(), bytes.data() + offset, count);
    return count;
  }

  void append(std::span<const std::byte> bytes) override {
    if (!files_.may_change()) return;
    const sim::WriteFate fate = files_.fate_of_write();
    const auto written = fate.fails ? bytes.first(std::min(fate.bytes_max, bytes.size())) : bytes;
    file_->bytes.insert(file_->bytes.end(), written.begin(), written.end());
    if (!fate.fails) return;
    throw DataError(path_ + ": append: " + fate.reason + " after " +
                    std::to_string(written.size()) + " of " + std::to_string(bytes.size()) +
                    " bytes");
  }

  void sync() override {
    if (!files_.may_change()) return;
    if (files_.sync_fails()) {
      file_->has_lost_pages = true;
      throw DataError(path_ + ": sync: input/output error");
    }
    file_->sync();
  }

 private:
  SimFileSystem& files_;
  std::string path_;
  sim::Disk::FilePtr file_;
};

template <class Call>
auto with_data_errors(Call&& call) {
  try {
    return call();
  } catch (const sim::DiskError& error) {
    throw DataError(error.what());
  }
}

}  // namespace

// -1: outside of the run.
int SimFileSystem::running_rank() const {
  const sim::Fiber* fiber = simulation_.current();
  return fiber == nullptr ? -1 : fiber->rank();
}

bool SimFileSystem::may_change() {
  touch(sim::Access::kWrite);
  const int mine = running_rank();
  if (mine < 0) return true;
  if (simulation_.has_crashed(mine)) return false;
  const std::uint64_t number = ++simulation_.report_of(mine).disk.changes;
  if (simulation_.faults() == nullptr) return true;
  const std::optional<std::uint64_t> seed = simulation_.faults()->on_disk_change(mine, number);
  if (!seed) return true;
  disk_.cut_power(*seed);
  for (int rank = 0; rank < simulation_.ranks(); ++rank) {
    if (rank != mine) simulation_.crash(rank);
  }
  simulation_.crash(mine);  // throws, unless this rank is unwinding
  return false;
}

sim::WriteFate SimFileSystem::fate_of_write() {
  const int mine = running_rank();
  if (mine < 0) return {};
  const std::uint64_t number = ++simulation_.report_of(mine).disk.writes;
  sim::FaultHook* faults = simulation_.faults();
  return faults == nullptr ? sim::WriteFate{} : faults->on_write(mine, number);
}

bool SimFileSystem::sync_fails() {
  const int mine = running_rank();
  if (mine < 0) return false;
  const std::uint64_t number = ++simulation_.report_of(mine).disk.syncs;
  sim::FaultHook* faults = simulation_.faults();
  return faults != nullptr && faults->on_sync(mine, number);
}

std::unique_ptr<File> SimFileSystem::open(const std::string& path) {
  touch(sim::Access::kRead);
  return with_data_errors([&] { return std::make_unique<SimFile>(*this, path, disk_.open(path)); });
}

std::unique_ptr<File> SimFileSystem::create(const std::string& path) {
  // The dead get a file that has no name.
  if (!may_change()) {
    return std::make_unique<SimFile>(*this, path, std::make_shared<sim::DiskFile>());
  }
  return with_data_errors(
      [&] { return std::make_unique<SimFile>(*this, path, disk_.create(path)); });
}

bool SimFileSystem::exists(const std::string& path) {
  touch(sim::Access::kRead);
  return disk_.exists(path);
}

std::vector<std::string> SimFileSystem::list(const std::string& directory) {
  touch(sim::Access::kRead);
  return with_data_errors([&] { return disk_.list(directory); });
}

void SimFileSystem::make_directory(const std::string& path) {
  if (may_change()) with_data_errors([&] { disk_.make_directory(path); });
}

void SimFileSystem::rename(const std::string& from, const std::string& to) {
  if (may_change()) with_data_errors([&] { disk_.rename(from, to); });
}

void SimFileSystem::remove(const std::string& path) {
  if (may_change()) with_data_errors([&] { disk_.remove(path); });
}

void SimFileSystem::sync_directory(const std::string& path) {
  if (!may_change()) return;
  if (sync_fails()) throw DataError(path + ": sync_directory: input/output error");
  with_data_errors([&] { disk_.sync_directory(path); });
}

}  // namespace ddproof
