// PNG files made by hand (ISO/IEC 15948), of any bit depth and colour type, so that tests can make
// what a reader must refuse.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ddproof {

using PngRows = std::vector<std::vector<std::uint8_t>>;  // packed as the depth has them

struct PngLook {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint8_t depth = 8;
  std::uint8_t color = 0;  // 0 grey, 2 RGB, 3 palette, 6 RGB with alpha
  std::uint8_t interlace = 0;
  std::string between;  // whole chunks between the header and the pixels
};

namespace internal {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

}  // namespace internal

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return internal::big_endian(static_cast<std::uint32_t>(data.size())) + body +
         internal::big_endian(static_cast<std::uint32_t>(crc));
}

// `rows` are those of the picture, or with interlace those of its passes.
inline std::vector<std::byte> png_bytes(const PngLook& look, const PngRows& rows) {
  std::string plain;
  for (const auto& row : rows) {
    plain += '\0';  // no filter
    plain.append(row.begin(), row.end());
  }
  std::string packed(compressBound(plain.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(plain.data()), plain.size());
  packed.resize(size);
  std::string header = internal::big_endian(look.width) + internal::big_endian(look.height);
  for (const std::uint8_t byte : {look.depth, look.color, std::uint8_t{0}, std::uint8_t{0}}) {
    header += static_cast<char>(byte);
  }
  header += static_cast<char>(look.interlace);
  const std::string file = "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + look.between +
                           png_chunk("IDAT", packed) + png_chunk("IEND", "");
  const auto bytes = std::as_bytes(std::span(file));
  return {bytes.begin(), bytes.end()};
}

// A picture of 8 bits whose rows lie one after another.
inline std::vector<std::byte> png_bytes(std::uint32_t width, std::uint32_t height, bool is_rgb,
                                        const std::vector<std::uint8_t>& pixels) {
  const std::size_t row = std::size_t{width} * (is_rgb ? 3 : 1);
  PngRows rows;
  for (std::size_t at = 0; at < pixels.size(); at += row) {
    rows.emplace_back(pixels.begin() + static_cast<std::ptrdiff_t>(at),
                      pixels.begin() + static_cast<std::ptrdiff_t>(at + row));
  }
  return png_bytes(
      {.width = width, .height = height, .color = is_rgb ? std::uint8_t{2} : std::uint8_t{0}},
      rows);
}

}  // namespace ddproof
