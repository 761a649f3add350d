#include "cli/output_file.h"

#include <exception>
#include <span>

namespace ddproof {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

}  // namespace

OutputFile::OutputFile(FileSystem& files, const std::string& path)
    : file_(files.create(path)), buffer_(kBufferBytes), stream_(this) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

bool OutputFile::flush() {
  const auto written = static_cast<std::size_t>(pptr() - pbase());
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  if (error_) return false;
  try {
    file_->append(std::as_bytes(std::span(buffer_.data(), written)));
  } catch (...) {
    error_ = std::current_exception();
  }
  return !error_;
}

OutputFile::int_type OutputFile::overflow(int_type c) {
  if (!flush()) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

int OutputFile::sync() { return flush() ? 0 : -1; }

void OutputFile::close() {
  stream_.flush();
  if (error_) std::rethrow_exception(error_);
}

}  // namespace ddproof
