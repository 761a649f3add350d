// A file as a stream of bytes, plain or gzip: what the data set readers read from.
//
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/api/files.h"

namespace ddproof {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual const std::string& path() const = 0;
  // Fills `out`; returns how many bytes, fewer only at the end.
  // Throws DataError naming path, offset in the file and what is wrong with it.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  // No file of this size on disk can hold more bytes than this: the guard before memory is taken.
  virtual std::uint64_t size_limit() const = 0;
};

// A name that ends in ".gz" is gzip (RFC 1952, one or more members), any other is plain.
// Requires: `files` outlives the source. Throws DataError when the file cannot be opened.
std::unique_ptr<ByteSource> open_bytes(FileSystem& files, const std::string& path);

// Fills `out`. Throws DataError when the file ends before; `offset` is where `out` begins and
// `what` says what is read, both for the text.
void read_exactly(ByteSource& source, std::span<std::uint8_t> out, std::uint64_t offset,
                  const std::string& what);

// Throws DataError when the source goes on. `offset` is how much was read, for the text.
void expect_end(ByteSource& source, std::uint64_t offset);

}  // namespace ddproof
