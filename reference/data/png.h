// PNG files of 8 bits a channel, as they are: no gamma, no palette, no scaling of grey levels, for
// a label image's numbers must come out as they went in.
//
// Decoded by libpng. Pure functions but for the file; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/files.h"

namespace ddproof {

// What a pixel holds.
enum class PngColor : std::uint8_t { kGrey, kRgb };

struct PngSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool operator==(const PngSize&) const = default;
};

struct PngImage {
  PngSize size;
  std::vector<std::uint8_t> pixels;  // row by row; red, green, blue of each pixel, or its grey
};

// Reads the header only.
// Throws DataError naming file, byte and expectation when it is none, or the file's pixels are not
// `color` of 8 bits.
PngSize read_png_size(FileSystem& files, const std::string& path, PngColor color);

// Throws DataError as read_png_size does, and when the file is cut, damaged, or too short for its
// size.
PngImage read_png(FileSystem& files, const std::string& path, PngColor color);

}  // namespace ddproof
