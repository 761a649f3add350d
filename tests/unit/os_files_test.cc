#include "backends/local/os_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <span>
#include <string_view>

#include "backends/api/error.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

class OsFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  void write(const std::string& name, std::string_view text) {
    const auto file = files_.create(path(name));
    file->append(std::as_bytes(std::span(text)));
    file->sync();
  }
  std::string read(const std::string& name) {
    const std::vector<std::byte> bytes = read_file(files_, path(name));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static void expect_data_error(const std::function<void()>& action, const std::string& text) {
    try {
      action();
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), text);
    }
  }

  OsFileSystem files_;
  const TemporaryFolder folder_;
  const std::string& directory_ = folder_.path();
};

TEST_F(OsFiles, ReadsBackWhatWasAppended) {
  const auto file = files_.create(path("a"));
  for (std::string_view piece : {"hello", "", " world"}) {
    file->append(std::as_bytes(std::span(piece)));
  }
  EXPECT_EQ(file->size(), 11u);
  EXPECT_EQ(read("a"), "hello world");
}

TEST_F(OsFiles, ReadsFewerBytesOnlyAtTheEnd) {
  write("a", "0123456789");
  const auto file = files_.open(path("a"));
  std::vector<std::byte> bytes(8);
  EXPECT_EQ(file->read_at(0, bytes), 8u);
  EXPECT_EQ(file->read_at(6, bytes), 4u);
  EXPECT_EQ(bytes[3], std::byte{'9'});
  EXPECT_EQ(file->read_at(10, bytes), 0u);
  EXPECT_EQ(file->read_at(~std::uint64_t{0} - 100, bytes), 0u);
}

TEST_F(OsFiles, CreateEmptiesAnExistingFile) {
  write("a", "old");
  write("a", "");
  EXPECT_EQ(read("a"), "");
}

TEST_F(OsFiles, RenameReplacesTheTarget) {
  write("a", "new");
  write("b", "old");
  files_.rename(path("a"), path("b"));
  files_.sync_directory(directory_);
  EXPECT_FALSE(files_.exists(path("a")));
  EXPECT_EQ(read("b"), "new");
}

TEST_F(OsFiles, ListsNamesSorted) {
  for (const char* name : {"c", "a", "b"}) write(name, "");
  EXPECT_EQ(files_.list(directory_), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(OsFiles, MakeDirectoryMakesParentsAndMayRepeat) {
  files_.make_directory(path("x/y"));
  files_.make_directory(path("x/y"));
  EXPECT_TRUE(files_.exists(path("x/y")));
  files_.remove(path("x/y"));
}

TEST_F(OsFiles, RemoveOfAMissingFileIsFine) { EXPECT_NO_THROW(files_.remove(path("missing"))); }

TEST_F(OsFiles, ExistsIsFalseBelowAFile) {
  write("a", "");
  EXPECT_FALSE(files_.exists(path("a/b")));
}

TEST_F(OsFiles, WhatIsNoFileIsRefusedAtOnce) {
  const std::string reason = ": open: is a FIFO or a device, expected a file";
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const std::string& name : {path("fifo"), std::string("/dev/zero")}) {
    expect_data_error([&] { files_.open(name); }, name + reason);
  }
}

TEST_F(OsFiles, ErrorsNamePathCallAndReason) {
  write("a", "");
  const std::string missing = path("missing"), a = path("a");
  expect_data_error([&] { files_.open(missing); }, missing + ": open: No such file or directory");
  expect_data_error([&] { files_.open(directory_); }, directory_ + ": open: Is a directory");
  expect_data_error([&] { files_.create(a + "/b"); }, a + "/b: create: Not a directory");
  expect_data_error([&] { files_.list(missing); }, missing + ": list: No such file or directory");
  expect_data_error([&] { files_.make_directory(a + "/b"); }, a + "/b: mkdir: Not a directory");
  expect_data_error([&] { files_.rename(missing, a); },
                    missing + ": rename to " + a + ": No such file or directory");
  expect_data_error([&] { files_.remove(a + "/b"); }, a + "/b: remove: Not a directory");
  expect_data_error([&] { files_.sync_directory(a); }, a + ": open: Not a directory");
  const std::string_view text = "x";
  expect_data_error([&] { files_.open(a)->append(std::as_bytes(std::span(text))); },
                    a + ": write: Bad file descriptor");
}

}  // namespace
}  // namespace ddproof
