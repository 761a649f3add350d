// The simulation's disk: names, errors, and what a power cut leaves.
#include "simulator/disk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
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

// What is on a disk with 10 durable bytes of 1 and 10 unsynced ones of 2 after the power was cut.
std::string state_after_cut(std::uint64_t seed) {
  Disk disk;
  const auto file = disk.create("/kept");
  file->bytes.assign(10, std::byte{1});
  file->sync();
  disk.sync_directory("/");
  file->bytes.resize(20, std::byte{2});
  disk.cut_power(seed);
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{"kept"});
  EXPECT_EQ(disk.open("/kept"), file);
  std::string digits;
  for (const std::byte byte : file->bytes) digits += std::to_string(std::to_integer<int>(byte));
  return digits;
}

TEST(Disk, WhatWasSyncedSurvivesEveryPowerCutAndTheRestMayBeLostOrTorn) {
  const std::string synced(10, '1');
  std::set<std::string> states;
  for (std::uint64_t seed = 0; seed < 500; ++seed) states.insert(state_after_cut(seed));
  std::set<std::string> expected;
  for (std::size_t whole = 0; whole <= 10; ++whole) {
    expected.insert(synced + std::string(whole, '2'));
    expected.insert(synced + std::string(whole, '2') + std::string(10 - whole, '0'));
  }
  EXPECT_EQ(states, expected);
}

TEST(Disk, WhatSurvivedAPowerCutSurvivesTheNext) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Disk disk;
    disk.create("/a")->bytes.assign(10, std::byte{1});
    disk.cut_power(seed);
    const std::vector<std::string> names = disk.list("/");
    const auto bytes = names.empty() ? std::vector<std::byte>() : disk.open("/a")->bytes;
    disk.cut_power(seed + 1);
    EXPECT_EQ(disk.list("/"), names);
    if (!names.empty()) {
      EXPECT_EQ(disk.open("/a")->bytes, bytes);
    }
  }
}

TEST(Disk, NamesThatWereNotSyncedSurviveAPowerCutDirectoryByDirectory) {
  std::set<std::vector<std::string>> outcomes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Disk disk;
    disk.make_directory("/d");
    disk.create("/old");
    disk.sync_directory("/");
    disk.rename("/old", "/new");
    disk.create("/d/x");
    disk.cut_power(seed);
    std::vector<std::string> names = disk.list("/");
    for (const std::string& name : disk.list("/d")) names.push_back("d/" + name);
    outcomes.insert(names);
  }
  EXPECT_EQ(outcomes, (std::set<std::vector<std::string>>{
                          {"d", "old"}, {"d", "new"}, {"d", "old", "d/x"}, {"d", "new", "d/x"}}));
}

TEST(Disk, NoSyncAfterAFailedOneMakesMoreOfTheFileDurable) {
  DiskFile file;
  file.bytes.resize(4);
  file.sync();
  file.bytes.resize(8);
  file.has_lost_pages = true;
  file.sync();
  EXPECT_EQ(file.durable_bytes, 4u);
}

}  // namespace
}  // namespace ddproof::sim
