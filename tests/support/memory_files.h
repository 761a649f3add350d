// A FileSystem in memory that can die in the middle of any call.
//
// Paths are plain strings; a directory exists when it was made. Durability is not modelled: what
// was appended is there.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/files.h"

namespace ddproof {

class MemoryFiles final : public FileSystem {
 public:
  using Bytes = std::vector<std::byte>;

  // The n-th changing call from now on (0: the next) fails, an append after half of its bytes, and
  // so does every changing call after it: the process has died.
  void die_after(int calls) { calls_left_ = calls; }
  // The n-th changing call from now on fails, as on a full disk; later ones work.
  void fail_once(int calls) {
    calls_left_ = calls;
    recovers_ = true;
  }
  void revive() {
    calls_left_ = std::numeric_limits<int>::max();
    recovers_ = false;
  }
  bool died() const { return calls_left_ < 0; }

  // The changing calls so far, as "call path".
  const std::vector<std::string>& calls() const { return calls_; }

  // Direct access for tests.
  Bytes& bytes(const std::string& path) { return *files_.at(path); }
  void put(const std::string& path, Bytes bytes) {
    files_[path] = std::make_shared<Bytes>(std::move(bytes));
  }
  std::set<std::string> paths() const {
    std::set<std::string> names;
    for (const auto& [path, bytes] : files_) names.insert(path);
    return names;
  }

  std::unique_ptr<File> open(const std::string& path) override {
    const auto found = files_.find(path);
    if (found == files_.end()) throw DataError(path + ": open: no such file");
    return std::make_unique<MemoryFile>(*this, path, found->second);
  }
  std::unique_ptr<File> create(const std::string& path) override {
    change(path, "create");
    files_[path] = std::make_shared<Bytes>();
    return open(path);
  }
  bool exists(const std::string& path) override {
    return files_.count(path) != 0 || directories_.count(path) != 0;
  }
  std::vector<std::string> list(const std::string& directory) override {
    std::set<std::string> names;
    for (const auto& [path, bytes] : files_) {
      if (!path.starts_with(directory + "/")) continue;
      const std::string name = path.substr(directory.size() + 1);
      names.insert(name.substr(0, name.find('/')));
    }
    return {names.begin(), names.end()};
  }
  void make_directory(const std::string& path) override {
    change(path, "mkdir");
    directories_.insert(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    change(from, "rename");
    files_[to] = files_.at(from);
    files_.erase(from);
  }
  void remove(const std::string& path) override {
    change(path, "remove");
    files_.erase(path);
  }
  void sync_directory(const std::string& path) override { change(path, "fsync"); }

 private:
  class MemoryFile final : public File {
   public:
    MemoryFile(MemoryFiles& files, std::string path, std::shared_ptr<Bytes> bytes)
        : files_(files), path_(std::move(path)), bytes_(std::move(bytes)) {}
    std::uint64_t size() override { return bytes_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
      if (offset >= bytes_->size()) return 0;
      const std::size_t count = std::min<std::size_t>(out.size(), bytes_->size() - offset);
      std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
      return count;
    }
    void append(std::span<const std::byte> bytes) override {
      const bool dies = files_.calls_left_ == 0;
      const std::size_t count = files_.calls_left_ < 0 ? 0 : dies ? bytes.size() / 2 : bytes.size();
      bytes_->insert(bytes_->end(), bytes.begin(),
                     bytes.begin() + static_cast<std::ptrdiff_t>(count));
      files_.change(path_, "write");
    }
    void sync() override { files_.change(path_, "fsync"); }

   private:
    MemoryFiles& files_;
    std::string path_;
    std::shared_ptr<Bytes> bytes_;
  };

  void change(const std::string& path, const char* call) {
    calls_.push_back(std::string(call) + " " + path);
    if (calls_left_ >= 0 && calls_left_-- > 0) return;
    if (recovers_) revive();
    throw DataError(path + ": " + call + ": failed");
  }

  std::map<std::string, std::shared_ptr<Bytes>> files_;
  std::set<std::string> directories_;
  std::vector<std::string> calls_;
  int calls_left_ = std::numeric_limits<int>::max();
  bool recovers_ = false;
};

inline MemoryFiles::Bytes as_bytes_of(const std::vector<std::uint8_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace ddproof
