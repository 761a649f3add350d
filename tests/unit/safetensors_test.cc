// The safetensors format: what is written, and every malformed file refused by name and byte.
#include "reference/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using Bytes = std::vector<std::byte>;

Bytes file_of(const std::string& header, std::size_t data_size,
              std::optional<std::uint64_t> length = {}) {
  const std::uint64_t size = length.value_or(header.size());
  Bytes bytes(8 + header.size() + data_size);
  std::memcpy(bytes.data(), &size, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string error_of(Bytes bytes) {
  try {
    Safetensors::decode("f", std::move(bytes));
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

std::string header_error(const std::string& header, std::size_t data_size) {
  return error_of(file_of(header, data_size));
}

Bytes sample() {
  const float weights[] = {1, 2, 3, 4, 5, 6};
  const double bias[] = {0.5, -0.5};
  const TensorView tensors[] = {
      {"z.weight", "F32", {2, 3}, std::as_bytes(std::span(weights))},
      {"empty", "I64", {0, 4}, {}},
      {"a.bias", "F64", {2}, std::as_bytes(std::span(bias))},
      {"scalar", "F32", {}, std::as_bytes(std::span(weights).first(1))},
  };
  return encode_safetensors({{"format", "pt"}, {"note", "\"quoted\""}}, tensors);
}

TEST(Safetensors, ReadsWhatItWrites) {
  const Safetensors file = Safetensors::decode("f", sample());
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"note", "\"quoted\""}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  const TensorView* weight = file.find("z.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->dtype, "F32");
  EXPECT_EQ(weight->shape, (Shape{2, 3}));
  float last = 0;
  std::memcpy(&last, weight->bytes.data() + 20, 4);
  EXPECT_EQ(last, 6.0f);
  EXPECT_EQ(file.find("empty")->shape, (Shape{0, 4}));
  EXPECT_EQ(file.find("scalar")->shape, Shape{});
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(Safetensors, WritesTheFormatByteForByte) {
  const std::uint8_t value[] = {7};
  const TensorView tensor{"t", "U8", {1}, std::as_bytes(std::span(value))};
  const Bytes bytes = encode_safetensors({}, std::span(&tensor, 1));
  const std::string header = R"({"t":{"data_offsets":[0,1],"dtype":"U8","shape":[1]}})";
  Bytes expected = file_of(header + std::string(56 - header.size(), ' '), 1);
  expected.back() = std::byte{7};
  EXPECT_EQ(bytes, expected);
}

TEST(Safetensors, AFileCutAnywhereIsRefused) {
  const Bytes whole = sample();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(error_of(Bytes(whole.begin(), whole.begin() + size)).starts_with("f: byte "))
        << size;
  }
}

TEST(Safetensors, AcceptsAnEmptyObject) { EXPECT_EQ(header_error("{}   ", 0), ""); }

TEST(Safetensors, RefusesBadHeaders) {
  EXPECT_EQ(error_of({}), "f: byte 0: the file ends, expected 8 bytes of header length");
  EXPECT_EQ(error_of(file_of("{}", 0, 3)), "f: byte 10: the file ends, expected 3 bytes of header");
  EXPECT_EQ(error_of(file_of("{}", 0, 100'000'001)),
            "f: byte 0: a header of 100000001 bytes, expected at most 100000000");
  EXPECT_EQ(error_of(file_of("{}", 0, ~std::uint64_t{0})),
            "f: byte 0: a header of 18446744073709551615 bytes, expected at most 100000000");
  EXPECT_EQ(header_error("", 0), "f: byte 8: expected the header's JSON object");
  EXPECT_EQ(header_error(" {}", 0), "f: byte 8: expected the header's JSON object");
  EXPECT_EQ(header_error("[]", 0), "f: byte 8: expected the header's JSON object");
  EXPECT_EQ(header_error("{]", 0), "f: byte 10: the header is no valid JSON");
  EXPECT_NE(header_error("{} x", 0), "");
  EXPECT_NE(header_error("{\"\xff\":1}", 0), "");
  EXPECT_NE(header_error(std::string(100000, '{'), 0), "");
  EXPECT_EQ(header_error("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0),
            "f: byte 8: header: tensor a: expected dtype, shape and data_offsets");
}

TEST(Safetensors, RefusesKeysThatStandTwice) {
  const std::string tensor = R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(header_error("{" + tensor + "}", 0), "");
  EXPECT_EQ(header_error("{" + tensor + "," + tensor + "}", 0),
            "f: byte 8: header: key \"t\" stands there twice");
  EXPECT_NE(header_error(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "");
}

std::string tensor_error(const std::string& dtype, const std::string& shape,
                         const std::string& offsets, std::size_t data_size) {
  return header_error(
      R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
      data_size);
}

TEST(Safetensors, RefusesBadTensors) {
  const std::string t = "f: byte 8: header: tensor t: ";
  EXPECT_EQ(tensor_error(R"("F32")", "[2]", "[0,8]", 8), "");
  EXPECT_EQ(tensor_error(R"("F31")", "[2]", "[0,8]", 8), t + "unknown dtype \"F31\"");
  EXPECT_EQ(tensor_error("7", "[2]", "[0,8]", 8), t + "unknown dtype 7");
  EXPECT_EQ(tensor_error(R"("F32")", "2", "[0,8]", 8), t + "shape is no list");
  EXPECT_EQ(tensor_error(R"("F32")", "[-2]", "[0,8]", 8), t + "-2 is no size");
  EXPECT_EQ(tensor_error(R"("F32")", "[2.0]", "[0,8]", 8), t + "2.0 is no size");
  EXPECT_EQ(tensor_error(R"("F32")", "[18446744073709551616]", "[0,8]", 8),
            t + "1.8446744073709552e+19 is no size");
  EXPECT_EQ(tensor_error(R"("F32")", "[2]", "[0]", 8), t + "data_offsets is no pair");
  EXPECT_EQ(tensor_error(R"("F32")", "[2]", "[8,0]", 8),
            t + "bytes 8 to 0 are not in the 8 bytes of data");
  EXPECT_EQ(tensor_error(R"("F32")", "[3]", "[0,12]", 8),
            t + "bytes 0 to 12 are not in the 8 bytes of data");
  EXPECT_EQ(tensor_error(R"("F32")", "[3]", "[0,8]", 8),
            t + "8 bytes, expected 12 for its shape and dtype F32");
  EXPECT_EQ(tensor_error(R"("F64")", "[4611686018427387904,4]", "[0,0]", 0),
            t + "its shape is too large");
  EXPECT_EQ(header_error(R"({"t":{"dtype":"U8","shape":[0]}})", 0),
            t + "expected dtype, shape and data_offsets");
  EXPECT_NE(header_error(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0), "");
  EXPECT_NE(header_error(R"({"__metadata__":{"a":1}})", 0), "");
  EXPECT_NE(header_error(R"({"__metadata__":[]})", 0), "");
}

std::string two_tensors(const std::string& a, const std::string& b, std::size_t data_size) {
  return header_error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                          R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                      data_size);
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  EXPECT_EQ(two_tensors("[4,8]", "[0,4]", 8), "");
  EXPECT_NE(two_tensors("[0,4]", "[3,7]", 8), "");
  EXPECT_NE(two_tensors("[0,4]", "[0,4]", 4), "");
  EXPECT_NE(two_tensors("[0,4]", "[5,9]", 9), "");
  EXPECT_NE(two_tensors("[1,5]", "[5,9]", 9), "");
  EXPECT_EQ(two_tensors("[0,4]", "[4,8]", 9),
            "f: byte 121: the data goes on, expected its end after the last tensor");
}

TEST(Safetensors, RefusesToWriteNamesThatClash) {
  const TensorView twice[] = {{"t", "U8", {0}, {}}, {"t", "U8", {0}, {}}};
  EXPECT_THROW(encode_safetensors({}, twice), ConfigError);
  const TensorView reserved[] = {{"__metadata__", "U8", {0}, {}}};
  EXPECT_THROW(encode_safetensors({}, reserved), ConfigError);
  const TensorView binary[] = {{"\xff", "U8", {0}, {}}};
  EXPECT_THROW(encode_safetensors({}, binary), ConfigError);
  EXPECT_THROW(safetensors_dtype(DType::kCustom), ConfigError);
}

}  // namespace
}  // namespace ddproof
