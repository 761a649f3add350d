#include "backends/api/files.h"

namespace ddproof {

std::vector<std::byte> read_file(FileSystem& files, const std::string& path) {
  const std::unique_ptr<File> file = files.open(path);
  std::vector<std::byte> bytes(file->size());
  bytes.resize(file->read_at(0, bytes));
  return bytes;
}

}  // namespace ddproof
