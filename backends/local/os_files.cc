#include "backends/local/os_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& call, const std::string& why) {
  throw DataError(path + ": " + call + ": " + why);
}

[[noreturn]] void fail(const std::string& path, const std::string& call, int error) {
  fail(path, call, std::system_category().message(error));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(path, (flags & O_CREAT) != 0 ? "create" : "open", errno);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class OsFile final : public File {
 public:
  OsFile(std::string path, int flags) : path_(std::move(path)), descriptor_(path_, flags) {}

  void require_regular() const {
    const mode_t mode = status().st_mode;
    if (S_ISDIR(mode)) fail(path_, "open", EISDIR);
    if (!S_ISREG(mode)) fail(path_, "open", "is a FIFO or a device, expected a file");
  }

  std::uint64_t size() override { return static_cast<std::uint64_t>(status().st_size); }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      if (offset + done > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) break;
      const ssize_t n = ::pread(descriptor_.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, "read", errno);
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  void append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, "write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void sync() override {
    if (::fsync(descriptor_.get()) != 0) fail(path_, "fsync", errno);
  }

 private:
  struct stat status() const {
    struct stat result {};
    if (::fstat(descriptor_.get(), &result) != 0) fail(path_, "fstat", errno);
    return result;
  }

  std::string path_;
  Descriptor descriptor_;
};

}  // namespace

std::unique_ptr<File> OsFileSystem::open(const std::string& path) {
  // Without O_NONBLOCK a FIFO would keep us waiting for its writer.
  auto file = std::make_unique<OsFile>(path, O_RDONLY | O_NONBLOCK);
  file->require_regular();
  return file;
}

std::unique_ptr<File> OsFileSystem::create(const std::string& path) {
  return std::make_unique<OsFile>(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
}

bool OsFileSystem::exists(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail(path, "access", errno);
  return false;
}

std::vector<std::string> OsFileSystem::list(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) fail(directory, "list", error.value());
  std::ranges::sort(names);
  return names;
}

void OsFileSystem::make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "mkdir", error.value());
}

void OsFileSystem::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(from, "rename to " + to, errno);
}

void OsFileSystem::remove(const std::string& path) {
  if (::remove(path.c_str()) != 0 && errno != ENOENT) fail(path, "remove", errno);
}

void OsFileSystem::sync_directory(const std::string& path) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY);
  if (::fsync(directory.get()) != 0) fail(path, "fsync", errno);
}

}  // namespace ddproof
