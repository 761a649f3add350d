// The file system as a rank sees it. Paths are as the operating system takes them.
//
// Every method throws DataError on failure; the text is "PATH: call: reason".
// Threads: a FileSystem may be used from any task of its rank; a File from one task at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ddproof {

class File {
 public:
  virtual ~File() = default;  // closes; a failed close after a successful sync() loses nothing
  virtual std::uint64_t size() = 0;
  // Reads up to out.size() bytes at `offset`; returns how many, fewer only at the end of the file.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) = 0;
  // Appends all of `bytes`.
  virtual void append(std::span<const std::byte> bytes) = 0;
  // Returns when what was appended is on stable storage.
  virtual void sync() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<File> open(const std::string& path) = 0;
  // Makes an empty file, replacing an existing one.
  virtual std::unique_ptr<File> create(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  // Names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& directory) = 0;
  // With parents; fine when it exists already.
  virtual void make_directory(const std::string& path) = 0;
  // Replaces `to` in one step.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Fine when it does not exist.
  virtual void remove(const std::string& path) = 0;
  // Makes the entries of a directory (new names, renames) durable.
  virtual void sync_directory(const std::string& path) = 0;
};

// The whole file.
std::vector<std::byte> read_file(FileSystem& files, const std::string& path);

}  // namespace ddproof
