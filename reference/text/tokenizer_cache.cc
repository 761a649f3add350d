#include "reference/text/tokenizer_cache.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "backends/api/error.h"

namespace ddproof {
namespace {

// A name of this rank's own until it is whole: nodes may share a disk although they were said not
// to.
void put(FileSystem& files, const std::string& directory, const std::string& path, int rank,
         const std::vector<std::byte>& bytes) {
  const std::string unfinished = fmt::format("{}.rank{}", path, rank);
  files.make_directory(directory);
  const std::unique_ptr<File> file = files.create(unfinished);
  file->append(bytes);
  file->sync();
  files.rename(unfinished, path);
  files.sync_directory(directory);
}

}  // namespace

WordPiece load_wordpiece(const GuardContext& context, GuardScope scope, FileSystem& files,
                         const TokenizerSource& source, const Fetch& fetch, CallSite site) {
  const std::string path = source.cache_dir + "/vocab.txt";
  const auto fill_cache = [&] {
    if (files.exists(path)) return;
    const std::vector<std::byte> bytes = fetch(source.url);
    parse_vocabulary(source.url, bytes);
    put(files, source.cache_dir, path, context.group != nullptr ? context.group->rank() : 0, bytes);
  };
  const auto build = [&] {
    return WordPiece(parse_vocabulary(path, read_file(files, path)), source.do_lower_case);
  };
  return main_process_first(context, scope, fill_cache, build, site);
}

}  // namespace ddproof
