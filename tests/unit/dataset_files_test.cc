// The readers of published data sets: what they read, and one clear error for every bad file.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "backends/api/error.h"
#include "backends/local/os_files.h"
#include "reference/data/cifar10.h"
#include "reference/data/idx.h"
#include "tests/support/fnv.h"
#include "tests/support/memory_files.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr const char* kImages = "data/train-images-idx3-ubyte";
constexpr const char* kLabels = "data/train-labels-idx1-ubyte";

Bytes idx(std::vector<std::uint32_t> sizes, const Bytes& elements) {
  Bytes file{0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      file.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  file.insert(file.end(), elements.begin(), elements.end());
  return file;
}

Bytes counted(std::size_t count, unsigned modulus) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i % modulus);
  return bytes;
}

Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, plain.size()) + 32);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Writes the sample and returns its label.
std::int64_t read(const Dataset& data, std::int64_t index, std::span<float> values) {
  std::int64_t label = 0;
  data.read(index, values, std::span(&label, 1));
  return label;
}

// 20 images of 4x3 with labels.
Bytes image_file() { return idx({20, 4, 3}, counted(240, 256)); }
Bytes label_file() { return idx({20}, counted(20, 10)); }

std::string error_of(MemoryFiles& files) {
  try {
    read_idx_dataset(files, "data", Split::kTrain);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

std::string error_with_images(const Bytes& images) {
  MemoryFiles files;
  files.put(kImages, as_bytes_of(images));
  files.put(kLabels, as_bytes_of(label_file()));
  return error_of(files);
}

std::string error_with_packed_images(const Bytes& packed) {
  MemoryFiles files;
  files.put(std::string(kImages) + ".gz", as_bytes_of(packed));
  files.put(kLabels, as_bytes_of(label_file()));
  return error_of(files);
}

void expect_images(MemoryFiles& files) {
  const auto data = read_idx_dataset(files, "data", Split::kTrain);
  EXPECT_EQ(data->size(), 20);
  EXPECT_EQ(data->sample_shape(), (Shape{1, 4, 3}));
  EXPECT_EQ(data->class_count(), 10);
  std::vector<float> values(12);
  EXPECT_EQ(read(*data, 13, values), 3);
  for (std::size_t k = 0; k < 12; ++k) {
    EXPECT_EQ(values[k], static_cast<float>(13 * 12 + k) / 255.0f);
  }
}

TEST(IdxDataset, ReadsPlainFiles) {
  MemoryFiles files;
  files.put(kImages, as_bytes_of(image_file()));
  files.put(kLabels, as_bytes_of(label_file()));
  expect_images(files);
}

TEST(IdxDataset, ReadsGzipFiles) {
  MemoryFiles files;
  files.put(std::string(kImages) + ".gz", as_bytes_of(gzip(image_file())));
  files.put(std::string(kLabels) + ".gz", as_bytes_of(gzip(label_file())));
  expect_images(files);
}

TEST(IdxDataset, ReadsGzipFilesOfSeveralMembers) {
  const Bytes whole = image_file();
  Bytes packed = gzip(Bytes(whole.begin(), whole.begin() + 100));
  const Bytes rest = gzip(Bytes(whole.begin() + 100, whole.end()));
  packed.insert(packed.end(), rest.begin(), rest.end());
  EXPECT_EQ(error_with_packed_images(packed), "");
}

TEST(IdxDataset, ReadsTheTestSplitByItsNames) {
  MemoryFiles files;
  files.put("data/t10k-images-idx3-ubyte", as_bytes_of(image_file()));
  files.put("data/t10k-labels-idx1-ubyte", as_bytes_of(label_file()));
  EXPECT_EQ(read_idx_dataset(files, "data", Split::kTest)->size(), 20);
}

TEST(IdxDataset, AFileCutAnywhereNamesTheByteWhereItEnds) {
  const Bytes whole = image_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string text = error_with_images(Bytes(whole.begin(), whole.begin() + size));
    const std::string start =
        std::string(kImages) + ": byte " + std::to_string(size) + ": the data ends";
    // A cut in the elements is seen at the header already: they cannot hold what it claims.
    const bool refused = text == std::string(kImages) +
                                     ": byte 4: the header announces 20 x 4 x 3 bytes of elements, "
                                     "the file can hold at most " +
                                     std::to_string(size);
    EXPECT_TRUE(text.starts_with(start) || refused) << size << ": " << text;
  }
}

TEST(IdxDataset, APackedFileCutAnywhereIsRefused) {
  const Bytes whole = gzip(image_file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string text = error_with_packed_images(Bytes(whole.begin(), whole.begin() + size));
    EXPECT_EQ(text, std::string(kImages) + ".gz: byte " + std::to_string(size) +
                        ": the gzip data ends in the middle, expected gzip data");
  }
}

// Some bits of a gzip header say nothing about the data.
TEST(IdxDataset, APackedFileWithAnyBitFlippedIsRefusedOrReadsTheSame) {
  const Bytes whole = gzip(image_file());
  int refused = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes changed = whole;
    changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ (1 << bit % 8));
    MemoryFiles files;
    files.put("images.gz", as_bytes_of(changed));
    try {
      EXPECT_EQ(read_idx(files, "images.gz", 3).elements, counted(240, 256)) << bit;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size() - 10) * 7);
}

TEST(IdxDataset, BytesAfterTheElementsAreRefused) {
  Bytes longer = image_file();
  longer.push_back(0);
  EXPECT_EQ(error_with_images(longer),
            "data/train-images-idx3-ubyte: byte 256: the data goes on, expected its end");
  Bytes packed = gzip(image_file());
  packed.push_back(0);
  EXPECT_NE(error_with_packed_images(packed), "");
}

TEST(IdxDataset, AnyHeaderBitFlippedIsRefused) {
  const Bytes whole = image_file();
  for (std::size_t i = 0; i < 16; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = whole;
      changed[i] = static_cast<std::uint8_t>(changed[i] ^ (1 << bit));
      EXPECT_TRUE(error_with_images(changed).starts_with("data/train-images-idx3-ubyte: byte "))
          << i << " bit " << bit;
    }
  }
}

TEST(IdxDataset, ErrorsNameByteAndExpectation) {
  EXPECT_EQ(error_with_images(Bytes{0, 0, 13, 3}),
            "data/train-images-idx3-ubyte: byte 2: found 13, expected 8 (unsigned bytes)");
  EXPECT_EQ(error_with_images(label_file()),
            "data/train-images-idx3-ubyte: byte 3: found 1, expected 3 (dimensions)");
  EXPECT_EQ(error_with_images({}),
            "data/train-images-idx3-ubyte: byte 0: the data ends, expected 4 bytes of IDX header "
            "from byte 0");
  EXPECT_EQ(error_with_images(idx({20, 0, 3}, {})),
            "data/train-images-idx3-ubyte: byte 8: found an image size of 0, expected at least 1");
  EXPECT_EQ(error_with_images(idx({0, 4, 3}, {})),
            "data/train-images-idx3-ubyte: byte 4: found 0 images, expected at least 1");
}

TEST(IdxDataset, AbsurdDimensionsTakeNoMemory) {
  const std::uint32_t huge = 0xffffffffu;
  const std::string text =
      "announces 4294967295 x 4294967295 x 4294967295 bytes of elements, the file can hold at "
      "most ";
  EXPECT_NE(error_with_images(idx({huge, huge, huge}, {})).find(text), std::string::npos);
  EXPECT_NE(error_with_packed_images(gzip(idx({huge, huge, huge}, {}))).find(text),
            std::string::npos);
  // Zero times anything is zero elements, wherever the zero stands.
  EXPECT_NE(error_with_images(idx({20, huge, 0}, {})), "");
}

TEST(IdxDataset, CountsOfImagesAndLabelsMustAgree) {
  MemoryFiles files;
  files.put(kImages, as_bytes_of(image_file()));
  files.put(kLabels, as_bytes_of(idx({19}, counted(19, 10))));
  EXPECT_EQ(error_of(files),
            "data/train-labels-idx1-ubyte: byte 4: found 19 labels, expected 20, the number of "
            "images in data/train-images-idx3-ubyte");
}

TEST(IdxDataset, LabelsAboveNineAreRefused) {
  MemoryFiles files;
  Bytes labels = label_file();
  labels[8 + 7] = 10;
  files.put(kImages, as_bytes_of(image_file()));
  files.put(kLabels, as_bytes_of(labels));
  EXPECT_EQ(error_of(files),
            "data/train-labels-idx1-ubyte: byte 15: found label 10, expected 0 to 9");
}

TEST(IdxDataset, AMissingFileIsNamed) {
  MemoryFiles files;
  EXPECT_EQ(error_of(files),
            "data/train-images-idx3-ubyte: no such file, and no train-images-idx3-ubyte.gz");
}

TEST(IdxDataset, ADirectoryInPlaceOfAFileIsRefused) {
  OsFileSystem files;
  const TemporaryFolder folder;
  files.make_directory(folder.path() + "/train-images-idx3-ubyte");
  EXPECT_THROW(read_idx_dataset(files, folder.path(), Split::kTrain), DataError);
}

// The data set that the demo trains on: 6,000 images of each class. The checksum of every hundredth
// test image was computed from the file by another program.
TEST(IdxDataset, ReadsFashionMnist) {
  const std::string root = "/usr/share/datasets/fashion-mnist";
  OsFileSystem files;
  if (!files.exists(root)) GTEST_SKIP() << root << " is missing: install dataset-fashion-mnist";
  const auto train = read_idx_dataset(files, root, Split::kTrain);
  const auto test = read_idx_dataset(files, root, Split::kTest);
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(train->sample_shape(), (Shape{1, 28, 28}));
  std::vector<int> per_class(10);
  std::vector<float> values(784);
  for (std::int64_t i = 0; i < train->size(); ++i) {
    ++per_class[static_cast<std::size_t>(read(*train, i, values))];
  }
  EXPECT_EQ(per_class, std::vector<int>(10, 6000));
  Fnv1a64 pixels;
  for (std::int64_t i = 0; i < test->size(); i += 100) {
    read(*test, i, values);
    for (const float value : values) pixels.add(static_cast<std::int64_t>(value * 255.0f + 0.5f));
  }
  EXPECT_EQ(pixels.value(), 0x9fbbdde91f0d89eeu);
}

Bytes cifar_file(std::size_t records) {
  Bytes file;
  for (std::size_t i = 0; i < records; ++i) {
    file.push_back(static_cast<std::uint8_t>(i % 10));
    const Bytes pixels = counted(3072, 251);
    file.insert(file.end(), pixels.begin(), pixels.end());
  }
  return file;
}

std::string cifar_error(const Bytes& test_batch) {
  MemoryFiles files;
  files.put("c/test_batch.bin", as_bytes_of(test_batch));
  try {
    read_cifar10(files, "c", Split::kTest, 3);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Cifar10, ReadsFiveTrainingFilesInOrder) {
  MemoryFiles files;
  for (int i = 1; i <= 5; ++i) {
    Bytes file = cifar_file(3);
    file[1] = static_cast<std::uint8_t>(i);
    files.put("c/data_batch_" + std::to_string(i) + ".bin", as_bytes_of(file));
  }
  const auto data = read_cifar10(files, "c", Split::kTrain, 3);
  EXPECT_EQ(data->size(), 15);
  EXPECT_EQ(data->sample_shape(), (Shape{3, 32, 32}));
  std::vector<float> values(3072);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(read(*data, (i - 1) * 3, values), 0);
    EXPECT_EQ(values[0], static_cast<float>(i) / 255.0f);
  }
  EXPECT_EQ(read(*data, 4, values), 1);
  EXPECT_EQ(values[300], static_cast<float>(300 - 251) / 255.0f);
}

TEST(Cifar10, AFileCutAnywhereIsRefused) {
  const Bytes whole = cifar_file(3);
  EXPECT_EQ(cifar_error(whole), "");
  for (std::size_t size = 0; size < whole.size(); size += 100) {
    EXPECT_TRUE(cifar_error(Bytes(whole.begin(), whole.begin() + size))
                    .starts_with("c/test_batch.bin: byte " + std::to_string(size) +
                                 ": the data ends, expected 3073 bytes of record "));
  }
  EXPECT_NE(cifar_error(Bytes(whole.begin(), whole.begin() + 2 * 3073)), "");
}

TEST(Cifar10, BadLabelsAndLongFilesAreRefused) {
  Bytes bad = cifar_file(3);
  bad[3073] = 10;
  EXPECT_EQ(cifar_error(bad), "c/test_batch.bin: byte 3073: found label 10, expected 0 to 9");
  EXPECT_EQ(cifar_error(cifar_file(4)),
            "c/test_batch.bin: byte 9219: the data goes on, expected its end");
}

TEST(ImageDataset, RefusesSamplesThatDoNotFit) {
  EXPECT_THROW(ImageDataset({1, 2, 2}, 10, Bytes(7), Bytes(2)), ConfigError);
  EXPECT_THROW(ImageDataset({1, 0, 2}, 10, Bytes(0), Bytes(2)), ConfigError);
  EXPECT_THROW(ImageDataset({1, 1, 1}, 10, Bytes(1), Bytes{10}), ConfigError);
  EXPECT_THROW(TensorDataset({1}, 2, {0.5f}, {-1}), ConfigError);
}

}  // namespace
}  // namespace ddproof
