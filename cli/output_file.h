// A file that is written as a stream, through the Runtime's files.
//
// Threads: one.
#pragma once

#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "backends/api/files.h"

namespace ddproof {

class OutputFile final : private std::streambuf {
 public:
  // Makes an empty file, replacing an existing one. Throws DataError.
  OutputFile(FileSystem& files, const std::string& path);

  std::ostream& stream() { return stream_; }
  // Call when all is written. Throws the first DataError of all that was written.
  void close();

 private:
  int_type overflow(int_type c) override;
  int sync() override;
  bool flush();

  std::unique_ptr<File> file_;
  std::vector<char> buffer_;
  std::exception_ptr error_;
  std::ostream stream_;
};

}  // namespace ddproof
