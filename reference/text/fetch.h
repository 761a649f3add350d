// What a URL holds, from a file or over HTTP.
//
// HTTP is the real network's, whatever Runtime the ranks have: in a simulation it takes no virtual
// time. Threads: a Fetch may be called from any task; each call is on its own.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backends/api/files.h"
#include "backends/api/time.h"

namespace ddproof {

// Throws DataError, which begins with the URL, when it is not to be had, and ConfigError when it is
// no such URL.
using Fetch = std::function<std::vector<std::byte>(const std::string& url)>;

// Of file://PATH and http://HOST[:PORT]/PATH. HTTP is one GET of HTTP/1.1: everything but 200 is an
// error, redirections too, and so are a body that is cut, one of more than 64 MiB, and no end
// within `timeout`. Requires: `files` outlives it.
Fetch fetch_url(FileSystem& files, Duration timeout = std::chrono::seconds(60));

}  // namespace ddproof
