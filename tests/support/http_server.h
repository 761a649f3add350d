// An HTTP server for a test, on a free port of this machine: answers every request with the same
// bytes, counts them, and ends with the object.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "backends/api/runtime.h"
#include "backends/store/asio.h"

namespace ddproof {

class HttpServer {
 public:
  // `answer` is sent as it is, then the connection is closed. Empty: nothing is ever answered.
  HttpServer(Runtime& runtime, std::string answer)
      : answer_(std::move(answer)),
        acceptor_(io_, Tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
    url_ = "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/vocab.txt";
    accept();
    task_ = runtime.spawn("http server", [this] { io_.run(); });
  }
  ~HttpServer() {
    io_.stop();
    task_->join();
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& url() const { return url_; }
  int requests() const { return requests_; }
  // Of the last request; ask for requests() first.
  std::string first_line() const { return line_; }

 private:
  struct Connection {
    explicit Connection(Tcp::socket accepted) : socket(std::move(accepted)) {}
    Tcp::socket socket;
    std::string request;
  };

  void accept() {
    acceptor_.async_accept([this](const ErrorCode& error, Tcp::socket socket) {
      if (error) return;
      read(std::make_shared<Connection>(std::move(socket)));
      accept();
    });
  }
  void read(const std::shared_ptr<Connection>& connection) {
    connection->request.resize(connection->request.size() + 1);
    asio::async_read(connection->socket, asio::buffer(&connection->request.back(), 1),
                     [this, connection](const ErrorCode& error, std::size_t) {
                       if (error) return;
                       if (!connection->request.ends_with("\r\n\r\n")) return read(connection);
                       line_ = connection->request.substr(0, connection->request.find('\r'));
                       ++requests_;
                       if (!answer_.empty())
                         write(connection);
                       else
                         silent_ = connection;
                     });
  }
  void write(const std::shared_ptr<Connection>& connection) {
    asio::async_write(connection->socket, asio::buffer(answer_),
                      [connection](const ErrorCode&, std::size_t) {});
  }

  std::string answer_;
  std::string url_;
  std::string line_;
  std::atomic<int> requests_ = 0;
  asio::io_context io_;
  Tcp::acceptor acceptor_;
  std::shared_ptr<Connection> silent_;  // kept open
  std::unique_ptr<Task> task_;
};

inline std::string http_answer(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

}  // namespace ddproof
