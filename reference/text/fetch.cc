#include "reference/text/fetch.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "backends/api/error.h"
#include "backends/store/asio.h"
// Beast after Asio: see there.
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace ddproof {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::string_view kFile = "file://";
constexpr std::string_view kHttp = "http://";
constexpr std::uint64_t kBodyBytesMax = std::uint64_t{64} << 20;

struct HttpPlace {
  std::string host;
  std::string port;
  std::string target;
};

std::optional<HttpPlace> parse(std::string_view url) {
  url.remove_prefix(kHttp.size());
  const std::size_t slash = url.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view authority = url.substr(0, slash);
  const std::size_t colon = authority.find(':');
  const std::string_view host = authority.substr(0, colon);
  const std::string_view port =
      colon == std::string_view::npos ? "80" : authority.substr(colon + 1);
  if (host.empty() || port.empty()) return std::nullopt;
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return HttpPlace{std::string(host), std::string(port), std::string(url.substr(slash))};
}

// One request and its response. Each step starts the next; the first error ends them.
class HttpGet {
 public:
  HttpGet(std::string url, const HttpPlace& place) : url_(std::move(url)) {
    request_ = {http::verb::get, place.target, 11};
    request_.set(http::field::host, place.host + ":" + place.port);
    request_.set(http::field::user_agent, "ddproof");
    request_.set(http::field::connection, "close");
    parser_.body_limit(kBodyBytesMax);
    resolver_.async_resolve(place.host, place.port, [this](const ErrorCode& error, auto found) {
      if (fails(error)) return;
      step_ = "the server is connected to";
      stream_.async_connect(found, [this](const ErrorCode& result, const Tcp::endpoint&) {
        if (!fails(result)) send();
      });
    });
  }

  std::string run(Duration timeout) {
    io_.run_for(timeout);
    if (!is_done_ && !error_) {
      throw DataError(fmt::format("{}: no end after {} s, while {}", url_,
                                  std::chrono::duration<double>(timeout).count(), step_));
    }
    if (error_) throw DataError(fmt::format("{}: while {}: {}", url_, step_, error_.message()));
    const auto& response = parser_.get();
    if (response.result() != http::status::ok) {
      throw DataError(fmt::format("{}: the server answers {} {}, expected 200", url_,
                                  response.result_int(), std::string(response.reason())));
    }
    return response.body();
  }

 private:
  bool fails(const ErrorCode& error) {
    error_ = error;
    return error.failed();
  }
  void send() {
    step_ = "the request is sent";
    http::async_write(stream_, request_, [this](const ErrorCode& error, std::size_t) {
      if (!fails(error)) receive();
    });
  }
  void receive() {
    step_ = "the answer is read";
    // The header by itself: Beast 1.74 forgets the body limit where both come at once.
    http::async_read_header(stream_, buffer_, parser_, [this](const ErrorCode& error, std::size_t) {
      if (fails(error)) return;
      http::async_read(stream_, buffer_, parser_,
                       [this](const ErrorCode& result, std::size_t) { is_done_ = !fails(result); });
    });
  }

  std::string url_;
  std::string_view step_ = "the name is resolved";
  bool is_done_ = false;
  ErrorCode error_;
  asio::io_context io_;
  Tcp::resolver resolver_{io_};
  beast::tcp_stream stream_{io_};
  http::request<http::empty_body> request_;
  http::response_parser<http::string_body> parser_;
  beast::flat_buffer buffer_;
};

}  // namespace

Fetch fetch_url(FileSystem& files, Duration timeout) {
  return [&files, timeout](const std::string& url) -> std::vector<std::byte> {
    if (url.starts_with(kFile)) return read_file(files, url.substr(kFile.size()));
    if (url.starts_with(kHttp)) {
      if (const std::optional<HttpPlace> place = parse(url)) {
        const std::string body = HttpGet(url, *place).run(timeout);
        const auto bytes = std::as_bytes(std::span(body));
        return {bytes.begin(), bytes.end()};
      }
    }
    throw ConfigError(
        fmt::format("source \"{}\": expected file://PATH or http://HOST[:PORT]/PATH", url));
  };
}

}  // namespace ddproof
