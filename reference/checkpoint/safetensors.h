// The safetensors format: named tensors with a table in front.
//
// Format (huggingface/safetensors, README "Format"): the length of the header as a little-endian
// 64-bit number, the header (a JSON object, padded with spaces), then the tensors' bytes without
// holes. Little-endian, row-major. Pure functions on bytes; safe from any thread.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/element.h"
#include "reference/compute/tensor.h"

namespace ddproof {

using Metadata = std::map<std::string, std::string>;

// One tensor, borrowed.
struct TensorView {
  std::string name;
  std::string dtype;  // "F32", "BF16", "I64", ...
  Shape shape;
  std::span<const std::byte> bytes;
};

// "F32" for kFloat32 and so on. Throws ConfigError for kCustom, which has no name there.
std::string safetensors_dtype(DType dtype);

// The whole file. The tensors' bytes follow each other as given.
// Requires: each tensor's bytes are as many as its dtype and shape say.
// Throws ConfigError when two tensors have one name, a name is "__metadata__", or a text is not
// UTF-8.
std::vector<std::byte> encode_safetensors(const Metadata& metadata,
                                          std::span<const TensorView> tensors);

// A decoded file; owns its bytes. Movable, not copyable: the views point into it.
class Safetensors {
 public:
  // Throws DataError, naming `path` and the byte, for everything that the format does not allow:
  // a header that is cut, too long, no JSON or has a key twice; an unknown dtype or field; tensors
  // that overlap, leave holes, do not fit their shape, or do not end where the file ends.
  static Safetensors decode(std::string path, std::vector<std::byte> bytes);

  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  // In the order of their bytes.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  // Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  // The header's JSON, with its padding.
  std::string_view header() const { return header_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Safetensors(std::string path, std::vector<std::byte> bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {}

  std::string path_;
  std::vector<std::byte> bytes_;
  std::string_view header_;  // into bytes_
  Metadata metadata_;
  std::vector<TensorView> tensors_;
};

}  // namespace ddproof
