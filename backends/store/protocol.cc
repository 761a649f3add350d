#include "backends/store/protocol.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace ddproof::protocol {
namespace {

constexpr std::string_view kMagic = "DDPS";

class Writer {
 public:
  // Leaves room for the size.
  Writer() : bytes_(kSizeBytes, '\0') {}

  template <class Number>
  void number(Number value) {
    auto bits = static_cast<std::make_unsigned_t<Number>>(value);
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      bytes_ += static_cast<char>(bits & 0xff);
      if constexpr (sizeof(Number) > 1) bits >>= 8;
    }
  }
  void string(const std::string& text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  std::string finish() {
    Writer size;
    size.number(static_cast<std::uint32_t>(bytes_.size() - kSizeBytes));
    std::copy_n(size.bytes_.begin() + kSizeBytes, kSizeBytes, bytes_.begin());
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads from the front; after a read past the end, ok() is false and all values are empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class Number>
  Number number() {
    std::make_unsigned_t<Number> bits = 0;
    const std::string_view bytes = take(sizeof(Number));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      bits = static_cast<decltype(bits)>(bits | (static_cast<std::uint64_t>(byte) << (8 * i)));
    }
    return static_cast<Number>(bits);
  }
  std::string string() { return std::string(take(number<std::uint32_t>())); }

  bool ok() const { return ok_; }
  bool finished() const { return ok_ && left_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (!ok_ || size > left_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  std::string_view left_;
  bool ok_ = true;
};

}  // namespace

Hello make_hello(const Greeting& greeting) {
  Hello hello{};
  std::ranges::copy(kMagic, hello.begin());
  hello[4] = static_cast<char>(greeting.version & 0xff);
  hello[5] = static_cast<char>(greeting.version >> 8);
  hello[6] = greeting.has_token ? 1 : 0;
  return hello;
}

std::optional<Greeting> parse_hello(const Hello& hello) {
  Reader reader(std::string_view(hello.data(), hello.size()).substr(kMagic.size()));
  const Greeting greeting{reader.number<std::uint16_t>(), reader.number<std::uint16_t>() == 1};
  if (hello != make_hello(greeting)) return std::nullopt;
  return greeting;
}

std::string encode(const Request& request) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(request.operation));
  writer.number(static_cast<std::uint32_t>(request.keys.size()));
  for (const std::string& key : request.keys) writer.string(key);
  writer.string(request.value);
  writer.string(request.expected);
  writer.number(request.delta);
  return writer.finish();
}

std::string encode(const Response& response) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(response.status));
  writer.string(response.value);
  writer.number(response.number);
  writer.number(static_cast<std::uint32_t>(response.values.size()));
  for (const auto& value : response.values) {
    writer.number(static_cast<std::uint8_t>(value ? 1 : 0));
    if (value) writer.string(*value);
  }
  return writer.finish();
}

std::size_t decode_size(const std::array<char, kSizeBytes>& bytes) {
  return Reader({bytes.data(), bytes.size()}).number<std::uint32_t>();
}

std::optional<Request> decode_request(std::string_view body) {
  Reader reader(body);
  Request request;
  const auto operation = reader.number<std::uint8_t>();
  if (operation > static_cast<std::uint8_t>(Operation::kGoodbye)) return std::nullopt;
  request.operation = static_cast<Operation>(operation);
  const auto key_count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < key_count && reader.ok(); ++i) {
    request.keys.push_back(reader.string());
  }
  request.value = reader.string();
  request.expected = reader.string();
  request.delta = reader.number<std::int64_t>();
  if (!reader.finished()) return std::nullopt;
  return request;
}

std::optional<Response> decode_response(std::string_view body) {
  Reader reader(body);
  Response response;
  const auto status = reader.number<std::uint8_t>();
  if (status > static_cast<std::uint8_t>(Status::kRefused)) return std::nullopt;
  response.status = static_cast<Status>(status);
  response.value = reader.string();
  response.number = reader.number<std::int64_t>();
  const auto value_count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < value_count && reader.ok(); ++i) {
    const auto present = reader.number<std::uint8_t>();
    if (present > 1) return std::nullopt;
    response.values.push_back(present == 1 ? std::optional(reader.string()) : std::nullopt);
  }
  if (!reader.finished()) return std::nullopt;
  return response;
}

}  // namespace ddproof::protocol
