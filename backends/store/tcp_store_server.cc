#include "backends/store/tcp_store_server.h"

#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "backends/store/host_and_port.h"
#include "backends/store/store_session.h"

namespace ddproof {
namespace {

[[noreturn]] void cannot_listen(const TcpStoreServerOptions& options, const ErrorCode& error) {
  const std::string what =
      "store server: " + host_and_port(options.host.empty() ? "*" : options.host, options.port) +
      " ";
  if (error == asio::error::address_in_use) {
    const std::string holder = options.port_holder ? options.port_holder(options.port) : "";
    throw ResourceError(what + "is in use" + (holder.empty() ? "" : " by " + holder) +
                        "; choose another port, or 0 for any free one");
  }
  throw ResourceError(what + "cannot be listened on (" + error.message() +
                      "); choose an address of this machine and a port that this user may open");
}

// The endpoints to try, best first.
std::vector<Tcp::endpoint> endpoints_of(asio::io_context& io,
                                        const TcpStoreServerOptions& options) {
  if (options.host.empty()) {
    return {{Tcp::v6(), options.port}, {Tcp::v4(), options.port}};
  }
  ErrorCode error;
  Tcp::resolver resolver(io);
  const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                      Tcp::resolver::numeric_service, error);
  if (error) cannot_listen(options, error);
  std::vector<Tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  return endpoints;
}

ErrorCode listen(Tcp::acceptor& acceptor, const Tcp::endpoint& endpoint, bool everywhere) {
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (everywhere && endpoint.protocol() == Tcp::v6()) {
    acceptor.set_option(asio::ip::v6_only(false), error);  // IPv4 as well
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) acceptor.close();
  return error;
}

}  // namespace

class TcpStoreServer::Service {
 public:
  Service(Runtime& runtime, const TcpStoreServerOptions& options)
      : connections_max_(options.connections_max),
        shared_{
            {}, SessionCount(runtime), options.token, [&runtime] { return make_nonce(runtime); }},
        acceptor_(io_),
        pause_(io_) {
    require_token(options.token);
    ErrorCode error;
    for (const Tcp::endpoint& endpoint : endpoints_of(io_, options)) {
      error = listen(acceptor_, endpoint, options.host.empty());
      // Everywhere means IPv6 and IPv4: an address in use must not turn into IPv4 alone.
      if (!error || error == asio::error::address_in_use) break;
    }
    if (error) cannot_listen(options, error);
    accept();
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void run() { io_.run(); }
  void stop() { io_.stop(); }
  SessionCount& sessions() { return shared_.sessions; }

 private:
  void accept() {
    acceptor_.async_accept([this](const ErrorCode& error, Tcp::socket socket) {
      if (error) return accept_later();
      if (shared_.sessions.now() < connections_max_) {
        std::make_shared<StoreSession>(std::move(socket), shared_)->start();
      }
      accept();
    });
  }

  // Out of descriptors, most likely: new clients wait in the system's queue meanwhile.
  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](const ErrorCode&) { accept(); });
  }

  const int connections_max_;
  StoreSession::Shared shared_;
  // After the table in there: destroying the context destroys sessions, which cancel their waiters.
  asio::io_context io_{1};
  Tcp::acceptor acceptor_;
  asio::steady_timer pause_;
};

TcpStoreServer::TcpStoreServer(Runtime& runtime, const TcpStoreServerOptions& options)
    : runtime_(runtime),
      service_(std::make_unique<Service>(runtime, options)),
      port_(service_->port()) {
  task_ = runtime.spawn("store server", [this] { service_->run(); });
}

void TcpStoreServer::wait_for_clients_to_leave(Duration timeout) {
  service_->sessions().wait_for_none(deadline_after(runtime_.now(), timeout));
}

TcpStoreServer::~TcpStoreServer() {
  service_->stop();
  task_->join();
}

}  // namespace ddproof
