// The bytes between a TCP store's client and server.
//
//   hello    8 bytes each way: "DDPS", version (u16), 1 with a token, else 0 (u16). The server
//            answers with its own; on any difference both sides close.
//   token    with one, the client sends a nonce (16 bytes), the server its own, the client its
//            proof (token.h, 32 bytes), and the server, unless that is wrong, its own
//   request  u32 size of the body, then the body: operation (u8), keys (u32 count, strings), value
//            and expected (strings), delta (i64)
//   response u32 size of the body, then the body: status (u8), value (string), number (i64), values
//            (u32 count, each 0 (u8) for none or 1 and a string)
//   string   u32 size, bytes. All numbers little-endian.
//
// One request at a time per connection: a client sends the next one after the response. While kGet,
// kWait or kWaitAny is pending it may send kCancel, which has no response of its own: the pending
// call is answered either way, with kCancelled unless its answer was on the way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddproof::protocol {

inline constexpr std::uint16_t kVersion = 4;
// Larger than any legal set or compare_set; a larger one closes the connection.
inline constexpr std::size_t kBodyBytesMax = 33 * 1024 * 1024;
inline constexpr std::size_t kSizeBytes = 4;

using Hello = std::array<char, 8>;
struct Greeting {
  std::uint16_t version = kVersion;
  bool has_token = false;
  friend bool operator==(const Greeting&, const Greeting&) = default;
};
Hello make_hello(const Greeting& greeting);
// Empty when it is no hello of ddproof.
std::optional<Greeting> parse_hello(const Hello& hello);

enum class Operation : std::uint8_t {
  kSet,
  kGet,
  kTryGet,
  kAdd,
  kCompareSet,
  kWait,
  kCheck,
  kRemove,
  kNumKeys,
  kSetLastWill,
  kMultiGet,
  kWaitAny,
  kAppend,
  kCancel,
  kGoodbye,
};

struct Request {
  Operation operation = Operation::kGoodbye;
  std::vector<std::string> keys;
  std::string value;     // set, append, compare_set (desired), set_last_will
  std::string expected;  // compare_set
  std::int64_t delta = 0;
};

enum class Status : std::uint8_t {
  kOk,
  kMissing,    // try_get: no such key
  kCancelled,  // get, wait, wait_any: cancelled; value is the first key that is missing
  kRefused,    // ConfigError with the text in value
};

struct Response {
  Status status = Status::kOk;
  std::string value;                               // get, try_get, compare_set
  std::int64_t number = 0;                         // add, num_keys; check and remove: 0 or 1
  std::vector<std::optional<std::string>> values;  // multi_get
};

// Size and body, ready to send.
std::string encode(const Request& request);
std::string encode(const Response& response);
std::size_t decode_size(const std::array<char, kSizeBytes>& bytes);
// From a body; empty when it is malformed: wrong sizes, unknown values, bytes left over.
std::optional<Request> decode_request(std::string_view body);
std::optional<Response> decode_response(std::string_view body);

}  // namespace ddproof::protocol
