// PNG files: their bytes come out as they went in, and every bad file has one clear error.
#include "reference/data/png.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/api/error.h"
#include "tests/support/memory_files.h"
#include "tests/support/png_bytes.h"

namespace ddproof {
namespace {

using Bytes = std::vector<std::byte>;
using Pixels = std::vector<std::uint8_t>;

Pixels counted(std::size_t count) {
  Pixels pixels(count);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  return pixels;
}

PngImage read(Bytes file, PngColor color) {
  MemoryFiles files;
  files.put("a.png", std::move(file));
  EXPECT_EQ(read_png_size(files, "a.png", color), read_png(files, "a.png", color).size);
  return read_png(files, "a.png", color);
}

std::string error_of(Bytes file, PngColor color = PngColor::kGrey) {
  MemoryFiles files;
  files.put("a.png", std::move(file));
  try {
    read_png(files, "a.png", color);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Png, GreyComesOutAsItWentIn) {
  const PngImage image = read(png_bytes(32, 8, false, counted(256)), PngColor::kGrey);
  EXPECT_EQ(image.size, (PngSize{32, 8}));
  EXPECT_EQ(image.pixels, counted(256));
}

TEST(Png, ColoursComeRedGreenBlue) {
  const PngImage image = read(png_bytes(3, 2, true, counted(18)), PngColor::kRgb);
  EXPECT_EQ(image.size, (PngSize{3, 2}));
  EXPECT_EQ(image.pixels, counted(18));
}

// A reader for pictures would brighten these: label ids would change.
TEST(Png, AGammaChangesNothing) {
  const std::string linear = png_chunk("gAMA", internal::big_endian(100000));
  const PngLook look{.width = 256, .height = 1, .between = linear};
  EXPECT_EQ(read(png_bytes(look, {counted(256)}), PngColor::kGrey).pixels, counted(256));
}

// Adam7 of 2 x 2: pass 1 has the first pixel, pass 6 the second, pass 7 the second row.
TEST(Png, InterlacedRowsAreSorted) {
  const PngLook look{.width = 2, .height = 2, .interlace = 1};
  EXPECT_EQ(read(png_bytes(look, {{10}, {11}, {12, 13}}), PngColor::kGrey).pixels,
            (Pixels{10, 11, 12, 13}));
}

TEST(Png, RefusesOtherPixels) {
  const auto with = [](std::uint8_t depth, std::uint8_t color) {
    return error_of(png_bytes({.width = 1, .height = 1, .depth = depth, .color = color}, {{0}}));
  };
  EXPECT_EQ(with(4, 0), "a.png: byte 24: found pixels of grey of 4 bits, expected grey of 8 bits");
  EXPECT_EQ(with(16, 0),
            "a.png: byte 24: found pixels of grey of 16 bits, expected grey of 8 bits");
  EXPECT_EQ(with(8, 3),
            "a.png: byte 24: found pixels of palette of 8 bits, expected grey of 8 bits");
  EXPECT_EQ(with(8, 9),
            "a.png: byte 24: found pixels of unknown of 8 bits, expected grey of 8 bits");
  EXPECT_EQ(error_of(png_bytes({.width = 1, .height = 1, .color = 6}, {{0}}), PngColor::kRgb),
            "a.png: byte 24: found pixels of RGB with alpha of 8 bits, expected RGB of 8 bits");
}

TEST(Png, RefusesWhatIsNone) {
  EXPECT_EQ(error_of({}), "a.png: byte 0: the file ends, expected the 29 bytes of a PNG header");
  EXPECT_EQ(error_of(Bytes(100, std::byte{'x'})),
            "a.png: byte 0: found no PNG signature and header, expected them");
  EXPECT_EQ(error_of(png_bytes({.width = 0, .height = 3}, {})),
            "a.png: byte 16: found 0 x 3 pixels, expected at least one");
}

TEST(Png, RefusesEveryCut) {
  const Bytes whole = png_bytes(5, 4, true, counted(60));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string error = error_of(cut, PngColor::kRgb);
    EXPECT_TRUE(error.starts_with("a.png: byte " + std::to_string(size) + ": the file ends"))
        << size << ": " << error;
  }
}

// Checksums tell: nothing of a damaged file is ever taken for pixels.
TEST(Png, RefusesEveryChangedByte) {
  const Bytes whole = png_bytes(5, 4, true, counted(60));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= std::byte{1};
    EXPECT_TRUE(error_of(changed, PngColor::kRgb).starts_with("a.png: byte ")) << at;
  }
}

// Memory is not taken for what a header claims.
TEST(Png, RefusesASizeThatTheFileCannotHold) {
  const Bytes file = png_bytes({.width = 60000, .height = 60000}, {{0}});
  EXPECT_EQ(error_of(file), "a.png: byte 16: found 60000 x 60000 pixels, which " +
                                std::to_string(file.size()) + " bytes cannot hold");
}

TEST(Png, RefusesTooFewRows) {
  EXPECT_NE(error_of(png_bytes({.width = 4, .height = 4}, {{1, 2, 3, 4}})), "");
}

}  // namespace
}  // namespace ddproof
