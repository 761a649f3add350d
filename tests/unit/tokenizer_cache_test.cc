// The vocabulary is fetched as often as there are disks, over nodes and local ranks, and failures
// reach every rank.
#include "reference/text/tokenizer_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>

#include "backends/api/error.h"
#include "backends/registry/registry.h"
#include "tests/support/memory_files.h"

namespace ddproof {
namespace {

constexpr const char* kUrl = "file:///source/vocab.txt";

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Nodes with a disk each, or one disk for all; the source is on each of them.
class Cluster {
 public:
  Cluster(int nodes, int local_size, bool is_disk_shared,
          std::string_view vocabulary = "[UNK]\na\n")
      : nodes_(nodes), local_size_(local_size), is_disk_shared_(is_disk_shared) {
    disks_.resize(static_cast<std::size_t>(is_disk_shared ? 1 : nodes));
    for (auto& disk : disks_) {
      disk = std::make_unique<MemoryFiles>();
      disk->put("/source/vocab.txt", bytes_of(vocabulary));
    }
  }

  MemoryFiles& disk_of(int node) {
    return *disks_[static_cast<std::size_t>(is_disk_shared_ ? 0 : node)];
  }

  // What each rank says: the ids of "a b", or its error.
  std::map<int, std::string> load() {
    std::map<int, std::string> said;
    const int world_size = nodes_ * local_size_;
    WorldOptions options{.world_size = world_size};
    options.placement = place_in_blocks(world_size, local_size_);
    make_backend("sim")->run_world(options, [&](RankContext& context) {
      const int rank = context.group.rank();
      MemoryFiles& disk = disk_of(rank / local_size_);
      const Fetch fetch = [&](const std::string& url) {
        ++fetches;
        context.runtime.sleep_for(std::chrono::seconds(1));  // others could fetch meanwhile
        return fetch_url(disk)(url);
      };
      try {
        const WordPiece tokenizer =
            load_wordpiece({&context.group, rank % local_size_},
                           is_disk_shared_ ? GuardScope::kWorld : GuardScope::kNode, disk,
                           {.url = kUrl, .cache_dir = "cache"}, fetch);
        for (const std::int64_t id : tokenizer.encode("a b")) said[rank] += std::to_string(id);
      } catch (const DataError& error) {
        said[rank] = error.what();
      }
    });
    return said;
  }

  int fetches = 0;

 private:
  int nodes_;
  int local_size_;
  bool is_disk_shared_;
  std::vector<std::unique_ptr<MemoryFiles>> disks_;
};

TEST(TokenizerCache, FetchesOnceForEachDisk) {
  for (const int nodes : {1, 2, 3}) {
    for (const int local_size : {1, 2, 4}) {
      for (const bool is_disk_shared : {false, true}) {
        Cluster cluster(nodes, local_size, is_disk_shared);
        const auto said = cluster.load();
        EXPECT_EQ(cluster.fetches, is_disk_shared ? 1 : nodes) << nodes << " x " << local_size;
        EXPECT_EQ(static_cast<int>(said.size()), nodes * local_size);
        for (const auto& [rank, ids] : said) EXPECT_EQ(ids, "10") << rank;
      }
    }
  }
}

TEST(TokenizerCache, DoesNotFetchWhatItHas) {
  Cluster cluster(2, 2, false);
  cluster.load();
  cluster.load();
  EXPECT_EQ(cluster.fetches, 2);
}

TEST(TokenizerCache, LeavesNothingButTheVocabulary) {
  Cluster cluster(1, 2, true);
  cluster.load();
  EXPECT_EQ(cluster.disk_of(0).paths(),
            (std::set<std::string>{"/source/vocab.txt", "cache/vocab.txt"}));
}

TEST(TokenizerCache, ABadVocabularyFailsOnEveryRankAndIsNotCached) {
  Cluster cluster(2, 2, true, "a\nb\n");
  const auto said = cluster.load();
  ASSERT_EQ(said.size(), 4u);
  for (const auto& [rank, text] : said) {
    EXPECT_NE(text.find("file:///source/vocab.txt: found no [UNK] in 2 lines, expected the piece "
                        "for unknown words"),
              std::string::npos)
        << rank << ": " << text;
  }
  EXPECT_FALSE(cluster.disk_of(0).exists("cache/vocab.txt"));
}

// A write that fails leaves no vocabulary, so the next run fetches again.
TEST(TokenizerCache, AFullDiskIsNoHalfVocabulary) {
  for (int call = 0; call < 5; ++call) {
    Cluster cluster(1, 2, true);
    cluster.disk_of(0).die_after(call);
    cluster.load();
    cluster.disk_of(0).revive();
    for (const auto& [rank, ids] : cluster.load()) EXPECT_EQ(ids, "10") << call;
  }
}

TEST(TokenizerCache, WithoutAGroupThisProcessFetches) {
  MemoryFiles files;
  files.put("/source/vocab.txt", bytes_of("[UNK]\na\n"));
  const WordPiece tokenizer = load_wordpiece({}, GuardScope::kNode, files,
                                             {.url = kUrl, .cache_dir = "cache"}, fetch_url(files));
  EXPECT_EQ(tokenizer.size(), 2);
}

}  // namespace
}  // namespace ddproof
