#include "backends/sim/sim_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

class SimFile final : public File {
 public:
  explicit SimFile(sim::Disk::FilePtr file) : file_(std::move(file)) {}

  std::uint64_t size() override { return file_->bytes.size(); }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
    const auto& bytes = file_->bytes;
    if (offset >= bytes.size()) return 0;
    const std::size_t count = std::min<std::uint64_t>(out.size(), bytes.size() - offset);
    if (count > 0) std::memcpy(out.data(), bytes.data() + offset, count);
    return count;
  }

  void append(std::span<const std::byte> bytes) override {
    file_->bytes.insert(file_->bytes.end(), bytes.begin(), bytes.end());
  }

  void sync() override { file_->durable_bytes = file_->bytes.size(); }

 private:
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

std::unique_ptr<File> SimFileSystem::open(const std::string& path) {
  return with_data_errors([&] { return std::make_unique<SimFile>(disk_.open(path)); });
}

std::unique_ptr<File> SimFileSystem::create(const std::string& path) {
  return with_data_errors([&] { return std::make_unique<SimFile>(disk_.create(path)); });
}

bool SimFileSystem::exists(const std::string& path) { return disk_.exists(path); }

std::vector<std::string> SimFileSystem::list(const std::string& directory) {
  return with_data_errors([&] { return disk_.list(directory); });
}

void SimFileSystem::make_directory(const std::string& path) {
  with_data_errors([&] { disk_.make_directory(path); });
}

void SimFileSystem::rename(const std::string& from, const std::string& to) {
  with_data_errors([&] { disk_.rename(from, to); });
}

void SimFileSystem::remove(const std::string& path) {
  with_data_errors([&] { disk_.remove(path); });
}

void SimFileSystem::sync_directory(const std::string& path) {
  with_data_errors([&] { disk_.sync_directory(path); });
}

}  // namespace ddproof
