#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/store/key_value_table.h"
#include "backends/store/protocol.h"

namespace ddproof::protocol {
namespace {

// The body of an encoded message, after checking its size.
std::string body_of(const std::string& message) {
  std::array<char, kSizeBytes> size{};
  std::copy_n(message.begin(), kSizeBytes, size.begin());
  EXPECT_EQ(decode_size(size), message.size() - kSizeBytes);
  return message.substr(kSizeBytes);
}

Request any_request() {
  Request request;
  request.operation = static_cast<Operation>(*rc::gen::inRange(0, 14));
  request.keys = *rc::gen::arbitrary<std::vector<std::string>>();
  request.value = *rc::gen::arbitrary<std::string>();
  request.expected = *rc::gen::arbitrary<std::string>();
  request.delta = *rc::gen::arbitrary<std::int64_t>();
  return request;
}

std::vector<std::optional<std::string>> any_values() {
  std::vector<std::optional<std::string>> values;
  const auto present = *rc::gen::arbitrary<std::vector<bool>>();
  for (const bool is_present : present) {
    values.emplace_back();
    if (is_present) values.back() = *rc::gen::arbitrary<std::string>();
  }
  return values;
}

RC_GTEST_PROP(StoreProtocol, RequestsComeBackAsTheyWere, ()) {
  const Request request = any_request();
  const auto decoded = decode_request(body_of(encode(request)));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(decoded->operation == request.operation);
  RC_ASSERT(decoded->keys == request.keys);
  RC_ASSERT(decoded->value == request.value);
  RC_ASSERT(decoded->expected == request.expected);
  RC_ASSERT(decoded->delta == request.delta);
}

RC_GTEST_PROP(StoreProtocol, ResponsesComeBackAsTheyWere, ()) {
  Response response;
  response.status = static_cast<Status>(*rc::gen::inRange(0, 4));
  response.value = *rc::gen::arbitrary<std::string>();
  response.number = *rc::gen::arbitrary<std::int64_t>();
  response.values = any_values();
  const auto decoded = decode_response(body_of(encode(response)));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(decoded->status == response.status);
  RC_ASSERT(decoded->value == response.value);
  RC_ASSERT(decoded->number == response.number);
  RC_ASSERT(decoded->values == response.values);
}

RC_GTEST_PROP(StoreProtocol, CutAndLengthenedMessagesAreRefused, ()) {
  const std::string body = body_of(encode(any_request()));
  const auto length = *rc::gen::inRange<std::size_t>(0, body.size());
  RC_ASSERT(!decode_request(body.substr(0, length)).has_value());
  RC_ASSERT(!decode_request(body + "x").has_value());
}

// Nothing but a crash or a hang could fail here; sanitizers see the rest.
RC_GTEST_PROP(StoreProtocol, AnyBytesAreDecodedOrRefused, (const std::string& bytes)) {
  const auto request = decode_request(bytes);
  if (request) RC_ASSERT(body_of(encode(*request)) == bytes);
  const auto response = decode_response(bytes);
  if (response) RC_ASSERT(body_of(encode(*response)) == bytes);
}

TEST(StoreProtocol, ForeignHellosAreNone) {
  for (const Greeting& greeting : {Greeting{}, Greeting{0x1234, false}, Greeting{5, true}}) {
    EXPECT_EQ(parse_hello(make_hello(greeting)), greeting);
  }
  for (std::size_t i : {0, 3, 6, 7}) {
    Hello hello = make_hello({});
    hello[i] = '?';
    EXPECT_EQ(parse_hello(hello), std::nullopt) << "byte " << i;
  }
}

TEST(StoreProtocol, TheLargestLegalRequestFits) {
  const std::string value(kValueBytesMax, 'v');
  const Request request{.operation = Operation::kCompareSet,
                        .keys = {std::string(kKeyBytesMax, 'k')},
                        .value = value,
                        .expected = value};
  EXPECT_LE(encode(request).size(), kBodyBytesMax);
}

}  // namespace
}  // namespace ddproof::protocol
