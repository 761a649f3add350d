#include "reference/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

constexpr std::size_t kLengthSize = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadataKey = "__metadata__";

struct NamedSize {
  std::string_view name;
  std::size_t size;
};

constexpr std::array kDtypes{
    NamedSize{"BOOL", 1},    NamedSize{"U8", 1},  NamedSize{"I8", 1},  NamedSize{"F8_E5M2", 1},
    NamedSize{"F8_E4M3", 1}, NamedSize{"I16", 2}, NamedSize{"U16", 2}, NamedSize{"F16", 2},
    NamedSize{"BF16", 2},    NamedSize{"I32", 4}, NamedSize{"U32", 4}, NamedSize{"F32", 4},
    NamedSize{"F64", 8},     NamedSize{"I64", 8}, NamedSize{"U64", 8}, NamedSize{"C64", 8},
};

// 0 for an unknown dtype.
std::size_t dtype_size(std::string_view dtype) {
  for (const NamedSize& known : kDtypes) {
    if (known.name == dtype) return known.size;
  }
  return 0;
}

[[noreturn]] void fail(const std::string& path, std::uint64_t offset, const std::string& what) {
  throw DataError(fmt::format("{}: byte {}: {}", path, offset, what));
}

// Everything about one header that its errors need.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view header) : path_(path), header_(header) {}

  json parse() const {
    if (header_.empty() || header_.front() != '{') {
      fail(path_, kLengthSize, "expected the header's JSON object");
    }
    std::vector<std::set<std::string>> keys;
    const auto check_keys = [&](int, json::parse_event_t event, json& value) {
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.back().insert(value).second) {
        header_error(fmt::format("key {} stands there twice", value.dump()));
      }
      return true;
    };
    try {
      return json::parse(header_, check_keys);
    } catch (const json::parse_error& error) {
      fail(path_, kLengthSize + error.byte, "the header is no valid JSON");
    }
  }

  [[noreturn]] void header_error(const std::string& what) const {
    fail(path_, kLengthSize, "header: " + what);
  }

  Metadata metadata(const json& value) const {
    if (!value.is_object()) header_error("__metadata__ is no object");
    Metadata metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) header_error(fmt::format("__metadata__ {} is no string", key));
      metadata[key] = text;
    }
    return metadata;
  }

  // A non-negative integer that fits 63 bits.
  std::uint64_t number(const json& value, const std::string& name) const {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
      header_error(fmt::format("tensor {}: {} is no size", name, value.dump()));
    }
    return value.get<std::uint64_t>();
  }

  // `data` is what follows the header.
  TensorView tensor(const std::string& name, const json& value,
                    std::span<const std::byte> data) const {
    const auto has = [&](const char* key) { return value.contains(key); };
    if (!value.is_object() || value.size() != 3 || !has("dtype") || !has("shape") ||
        !has("data_offsets")) {
      header_error(fmt::format("tensor {}: expected dtype, shape and data_offsets", name));
    }
    TensorView view{name, {}, {}, {}};
    if (!value["dtype"].is_string() || dtype_size(value["dtype"].get<std::string>()) == 0) {
      header_error(fmt::format("tensor {}: unknown dtype {}", name, value["dtype"].dump()));
    }
    view.dtype = value["dtype"];
    const json& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2) {
      header_error(fmt::format("tensor {}: data_offsets is no pair", name));
    }
    const std::uint64_t begin = number(offsets[0], name);
    const std::uint64_t end = number(offsets[1], name);
    if (begin > end || end > data.size()) {
      header_error(fmt::format("tensor {}: bytes {} to {} are not in the {} bytes of data", name,
                               begin, end, data.size()));
    }
    view.shape = shape(value["shape"], name);
    check_size(view, end - begin);
    view.bytes = data.subspan(begin, end - begin);
    return view;
  }

 private:
  Shape shape(const json& value, const std::string& name) const {
    if (!value.is_array()) header_error(fmt::format("tensor {}: shape is no list", name));
    Shape shape;
    for (const json& size : value) shape.push_back(static_cast<std::int64_t>(number(size, name)));
    return shape;
  }

  void check_size(const TensorView& view, std::uint64_t bytes) const {
    std::uint64_t expected = dtype_size(view.dtype);
    for (const std::int64_t size : view.shape) {
      if (__builtin_mul_overflow(expected, static_cast<std::uint64_t>(size), &expected)) {
        header_error(fmt::format("tensor {}: its shape is too large", view.name));
      }
    }
    if (expected != bytes) {
      header_error(fmt::format("tensor {}: {} bytes, expected {} for its shape and dtype {}",
                               view.name, bytes, expected, view.dtype));
    }
  }

  const std::string& path_;
  std::string_view header_;
};

// The tensors must tile the data: each begins where the one before ends.
void check_tiling(const std::string& path, std::uint64_t data_begin,
                  std::span<const std::byte> data, const std::vector<TensorView>& tensors) {
  const std::byte* expected = data.data();
  for (const TensorView& tensor : tensors) {
    if (tensor.bytes.data() != expected) {
      fail(path, data_begin + static_cast<std::uint64_t>(expected - data.data()),
           fmt::format("tensor {} begins at data byte {}, expected no hole and no overlap",
                       tensor.name, tensor.bytes.data() - data.data()));
    }
    expected += tensor.bytes.size();
  }
  const auto used = static_cast<std::uint64_t>(expected - data.data());
  if (used != data.size()) {
    fail(path, data_begin + used, "the data goes on, expected its end after the last tensor");
  }
}

std::uint64_t header_size(const std::string& path, std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthSize) {
    fail(path, bytes.size(), "the file ends, expected 8 bytes of header length");
  }
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), kLengthSize);
  if (size > kMaxHeader) {
    fail(path, 0, fmt::format("a header of {} bytes, expected at most {}", size, kMaxHeader));
  }
  if (size > bytes.size() - kLengthSize) {
    fail(path, bytes.size(), fmt::format("the file ends, expected {} bytes of header", size));
  }
  return size;
}

}  // namespace

std::string safetensors_dtype(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return "I8";
    case DType::kUint8: return "U8";
    case DType::kInt32: return "I32";
    case DType::kUint32: return "U32";
    case DType::kInt64: return "I64";
    case DType::kUint64: return "U64";
    case DType::kFloat16: return "F16";
    case DType::kBFloat16: return "BF16";
    case DType::kFloat32: return "F32";
    case DType::kFloat64: return "F64";
    case DType::kCustom: break;
  }
  throw ConfigError("safetensors: a caller-defined element has no dtype there");
}

std::vector<std::byte> encode_safetensors(const Metadata& metadata,
                                          std::span<const TensorView> tensors) {
  json header = json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::uint64_t end = 0;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == kMetadataKey || header.contains(tensor.name)) {
      throw ConfigError(fmt::format("safetensors: the name {} is taken", tensor.name));
    }
    DDPROOF_CHECK(tensor.bytes.size() ==
                  dtype_size(tensor.dtype) * static_cast<std::size_t>(element_count(tensor.shape)));
    const std::uint64_t begin = end;
    end += tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    throw ConfigError(
        fmt::format("safetensors: a name or metadata is not UTF-8: {}", error.what()));
  }
  // The data begins at a multiple of 8, so that a mapped file can be used in place.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::vector<std::byte> file(kLengthSize + text.size() + end);
  std::memcpy(file.data(), &size, kLengthSize);
  std::memcpy(file.data() + kLengthSize, text.data(), text.size());
  std::byte* to = file.data() + kLengthSize + text.size();
  for (const TensorView& tensor : tensors) {
    to = std::copy(tensor.bytes.begin(), tensor.bytes.end(), to);
  }
  return file;
}

Safetensors Safetensors::decode(std::string path, std::vector<std::byte> bytes) {
  Safetensors file(std::move(path), std::move(bytes));
  const std::uint64_t size = header_size(file.path_, file.bytes_);
  file.header_ = {reinterpret_cast<const char*>(file.bytes_.data()) + kLengthSize, size};
  const std::span<const std::byte> data = std::span(file.bytes_).subspan(kLengthSize + size);

  const HeaderReader reader(file.path_, file.header_);
  const json header = reader.parse();
  for (const auto& [key, value] : header.items()) {
    if (key == kMetadataKey) {
      file.metadata_ = reader.metadata(value);
    } else {
      file.tensors_.push_back(reader.tensor(key, value, data));
    }
  }
  // Empty tensors stand where they begin, before a tensor with bytes at the same place.
  std::stable_sort(file.tensors_.begin(), file.tensors_.end(),
                   [](const TensorView& a, const TensorView& b) {
                     return std::pair(a.bytes.data(), a.bytes.size()) <
                            std::pair(b.bytes.data(), b.bytes.size());
                   });
  check_tiling(file.path_, kLengthSize + size, data, file.tensors_);
  return file;
}

const TensorView* Safetensors::find(std::string_view name) const {
  for (const TensorView& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace ddproof
