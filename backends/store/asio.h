// The one place that includes Boost.Asio. Asio 1.74 uses std::exchange without including it, so
// <utility> comes first (g++ 12, C++20).
#pragma once

#include <utility>

// Each context is run by one task, so Asio's fences order nothing; the thread sanitizer, which does
// not understand them, would refuse to compile.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace ddproof {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Tcp = boost::asio::ip::tcp;

}  // namespace ddproof
