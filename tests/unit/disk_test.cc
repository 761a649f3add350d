// The simulation's disk: names, errors, and what a power cut leaves.
#include "simulator/disk.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace ddproof::sim {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DiskError& error) {
    return error.what();
  }
  return "none";
}

TEST(Disk, TakesPathsAsTheOperatingSystemDoes) {
  Disk disk;
  disk.make_directory("/a/b");
  disk.create("/a//b/./c");
  EXPECT_TRUE(disk.exists("a/b/../b/c"));
  EXPECT_EQ(disk.list("/a"), std::vector<std::string>{"b"});
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{"a"});
}

TEST(Disk, SaysWhatIsWrong) {
  Disk disk;
  disk.make_directory("/a");
  disk.create("/f");
  EXPECT_EQ(error_of([&] { disk.open("/x"); }), "/x: open: no such file");
  EXPECT_EQ(error_of([&] { disk.open("/a"); }), "/a: open: is a directory");
  EXPECT_EQ(error_of([&] { disk.create("/no/x"); }), "/no/x: create: no such directory");
  EXPECT_EQ(error_of([&] { disk.list("/f"); }), "/f: list: no such directory");
  EXPECT_EQ(error_of([&] { disk.make_directory("/f/g"); }),
            "/f/g: make_directory: a file has that name");
  EXPECT_EQ(error_of([&] { disk.rename("/x", "/y"); }), "/x: rename: no such file");
  EXPECT_EQ(error_of([&] { disk.remove("/"); }), "/: remove: the directory is not empty");
}

TEST(Disk, RenameReplacesAndRemoveIsIdempotent) {
  Disk disk;
  disk.create("/a")->bytes = {std::byte{1}};
  disk.create("/b");
  disk.rename("/a", "/b");
  EXPECT_EQ(disk.open("/b")->bytes.size(), 1u);
  EXPECT_FALSE(disk.exists("/a"));
  disk.remove("/b");
  disk.remove("/b");
  EXPECT_FALSE(disk.exists("/b"));
}

TEST(Disk, APowerCutKeepsOnlyWhatWasSynced) {
  Disk disk;
  const auto kept = disk.create("/kept");
  kept->bytes.resize(10);
  kept->durable_bytes = 10;
  disk.sync_directory("/");
  kept->bytes.resize(15);                       // appended, not synced
  disk.create("/nameless")->durable_bytes = 0;  // its name was not synced
  disk.cut_power();
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{"kept"});
  EXPECT_EQ(disk.open("/kept")->bytes.size(), 10u);
}

TEST(Disk, APowerCutUndoesARenameThatWasNotSynced) {
  Disk disk;
  disk.create("/old");
  disk.sync_directory("/");
  disk.rename("/old", "/new");
  disk.cut_power();
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{"old"});
}

}  // namespace
}  // namespace ddproof::sim
