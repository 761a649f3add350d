// A tokenizer whose vocabulary comes from elsewhere, fetched once for all ranks that share a disk.
//
//   WordPiece tokenizer = load_wordpiece(context, GuardScope::kNode, runtime.files(),
//                                        {.url = "file:///data/vocab.txt", .cache_dir = "cache"},
//                                        fetch_url(runtime.files()));
//
// The main process of each scope (main_process_first) fetches and checks the vocabulary unless it
// is in the cache, and puts it there in one step; then every rank builds its tokenizer from the
// cache. Threads: as the group's.
#pragma once

#include <string>

#include "reference/launch/main_process_first.h"
#include "reference/text/fetch.h"
#include "reference/text/wordpiece.h"

namespace ddproof {

struct TokenizerSource {
  std::string url;        // of a vocab.txt
  std::string cache_dir;  // made when it is not there; holds vocab.txt afterwards
  bool do_lower_case = true;
};

// A collective call where the context has a group. kWorld: all ranks share the disk that `files` is
// on, and one fetches; kNode: one a node.
// Throws on every rank what fetching, checking or writing threw on one, and DataError when the
// cache holds no usable vocabulary. A vocabulary that is not usable is never put into the cache.
WordPiece load_wordpiece(const GuardContext& context, GuardScope scope, FileSystem& files,
                         const TokenizerSource& source, const Fetch& fetch,
                         CallSite site = CallSite::current());

}  // namespace ddproof
