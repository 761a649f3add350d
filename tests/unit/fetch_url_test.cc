// Files and HTTP by URL, from a server on this machine; and the download guard over HTTP.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <string_view>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "reference/text/fetch.h"
#include "reference/text/tokenizer_cache.h"
#include "tests/support/http_server.h"
#include "tests/support/memory_files.h"

namespace ddproof {
namespace {

constexpr const char* kVocabulary = "[UNK]\nhello\n";

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Error>
std::string error_of(const std::string& url, Duration timeout = std::chrono::seconds(20)) {
  MemoryFiles files;
  try {
    fetch_url(files, timeout)(url);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string error_of_answer(const std::string& answer) {
  OsRuntime runtime;
  const HttpServer server(runtime, answer);
  const std::string error = error_of<DataError>(server.url());
  EXPECT_TRUE(error.starts_with(server.url() + ": ")) << error;
  return error.substr(std::min(error.size(), server.url().size() + 2));
}

TEST(FetchUrl, ReadsAFile) {
  MemoryFiles files;
  const auto bytes = std::as_bytes(std::span(std::string_view("abc")));
  files.put("/data/a.txt", {bytes.begin(), bytes.end()});
  EXPECT_EQ(text_of(fetch_url(files)("file:///data/a.txt")), "abc");
  EXPECT_EQ(error_of<DataError>("file:///data/a.txt"), "/data/a.txt: open: no such file");
}

TEST(FetchUrl, GetsOverHttp) {
  OsRuntime runtime;
  MemoryFiles files;
  const HttpServer server(runtime, http_answer("200 OK", kVocabulary));
  EXPECT_EQ(text_of(fetch_url(files)(server.url())), kVocabulary);
  EXPECT_EQ(server.requests(), 1);
  EXPECT_EQ(server.first_line(), "GET /vocab.txt HTTP/1.1");
}

// Beast's own limit is 8 MiB.
TEST(FetchUrl, GetsBodiesOfManyMebibytes) {
  OsRuntime runtime;
  MemoryFiles files;
  const HttpServer server(runtime, http_answer("200 OK", std::string(std::size_t{9} << 20, 'x')));
  EXPECT_EQ(fetch_url(files)(server.url()).size(), std::size_t{9} << 20);
}

TEST(FetchUrl, AnotherStatusIsAnError) {
  EXPECT_EQ(error_of_answer(http_answer("404 Not Found", "no")),
            "the server answers 404 Not Found, expected 200");
  EXPECT_EQ(error_of_answer(http_answer("302 Found", "")),
            "the server answers 302 Found, expected 200");
}

TEST(FetchUrl, ACutAnswerIsAnError) {
  const std::string whole = http_answer("200 OK", kVocabulary);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_TRUE(error_of_answer(whole.substr(0, size)).starts_with("while the answer is read: "))
        << size;
  }
}

TEST(FetchUrl, ABodyThatIsTooLargeIsAnError) {
  for (const char* begin_of_body : {"", "[UNK]"}) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n";
    EXPECT_EQ(error_of_answer(head + begin_of_body),
              "while the answer is read: body limit exceeded");
  }
}

TEST(FetchUrl, AServerThatSaysNothingIsAnErrorInTime) {
  OsRuntime runtime;
  const HttpServer server(runtime, "");
  EXPECT_EQ(error_of<DataError>(server.url(), std::chrono::milliseconds(500)),
            server.url() + ": no end after 0.5 s, while the answer is read");
}

TEST(FetchUrl, NobodyThereIsAnError) {
  std::string url;
  {
    OsRuntime runtime;
    url = HttpServer(runtime, "").url();
  }
  EXPECT_EQ(error_of<DataError>(url),
            url + ": while the server is connected to: Connection refused");
}

TEST(FetchUrl, RefusesWhatIsNoSuchUrl) {
  for (const std::string url :
       {"ftp://host/a", "http://host", "http:///a", "http://host:x/a", ""}) {
    EXPECT_EQ(error_of<ConfigError>(url),
              "source \"" + url + "\": expected file://PATH or http://HOST[:PORT]/PATH");
  }
}

// 2 nodes of 2 ranks: one download on a shared disk, two on private ones.
TEST(FetchUrl, TheGuardDownloadsOnceForEachDisk) {
  OsRuntime runtime;
  for (const bool is_disk_shared : {true, false}) {
    const HttpServer server(runtime, http_answer("200 OK", kVocabulary));
    std::array<MemoryFiles, 2> disks;
    WorldOptions options{.world_size = 4};
    options.placement = place_in_blocks(4, 2);
    std::atomic<int> built = 0;
    make_backend("sim")->run_world(options, [&](RankContext& context) {
      const int rank = context.group.rank();
      MemoryFiles& files = disks[is_disk_shared ? 0 : static_cast<std::size_t>(rank / 2)];
      const WordPiece tokenizer = load_wordpiece(
          {&context.group, rank % 2}, is_disk_shared ? GuardScope::kWorld : GuardScope::kNode,
          files, {.url = server.url(), .cache_dir = "cache"}, fetch_url(files));
      built += tokenizer.encode("Hello") == std::vector<std::int64_t>{1} ? 1 : 0;
    });
    EXPECT_EQ(server.requests(), is_disk_shared ? 1 : 2);
    EXPECT_EQ(built, 4);
  }
}

}  // namespace
}  // namespace ddproof
