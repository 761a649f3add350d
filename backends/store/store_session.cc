#include "backends/store/store_session.h"

#include <utility>

#include "backends/api/error.h"
#include "backends/store/socket_options.h"

namespace ddproof {

using protocol::Operation;
using protocol::Request;
using protocol::Response;
using protocol::Status;

int SessionCount::now() const {
  MonitorLock lock(*monitor_);
  return count_;
}

void SessionCount::add(int difference) {
  MonitorLock lock(*monitor_);
  count_ += difference;
  if (count_ == 0) monitor_->notify_all();
}

void SessionCount::wait_for_none(TimePoint deadline) {
  MonitorLock lock(*monitor_);
  while (count_ > 0 && monitor_->wait(deadline, {"clients to leave the store", {}, {}})) {
  }
}

StoreSession::StoreSession(Tcp::socket socket, Shared& shared)
    : socket_(std::move(socket)), shared_(shared) {
  shared_.sessions.add(1);
}

StoreSession::~StoreSession() {
  if (waiting_) shared_.table.cancel(waiting_->waiter);
  shared_.sessions.add(-1);
}

void StoreSession::start() {
  set_socket_options(socket_);
  read_hello();
}

void StoreSession::read_hello() {
  asio::async_read(socket_, asio::buffer(hello_),
                   [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                     if (error) return self->end();
                     const auto theirs = protocol::parse_hello(self->hello_);
                     if (!theirs) return self->end();
                     self->answer_hello(*theirs);
                   });
}

void StoreSession::answer_hello(const protocol::Greeting& theirs) {
  const protocol::Greeting mine{.has_token = !shared_.token.empty()};
  hello_ = protocol::make_hello(mine);
  if (theirs == mine && mine.has_token) return exchange_nonces();
  refused_ = theirs != mine;
  output_.emplace_back(hello_.begin(), hello_.end());
  write_next();
}

void StoreSession::exchange_nonces() {
  server_nonce_ = shared_.make_nonce();
  asio::async_write(socket_, asio::buffer(hello_),
                    [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                      if (error) return self->end();
                      asio::async_read(self->socket_, asio::buffer(self->client_nonce_),
                                       [self](const ErrorCode& read_error, std::size_t) {
                                         if (read_error) return self->end();
                                         asio::async_write(
                                             self->socket_, asio::buffer(self->server_nonce_),
                                             [self](const ErrorCode& write_error, std::size_t) {
                                               if (write_error) return self->end();
                                               self->check_proof();
                                             });
                                       });
                    });
}

void StoreSession::check_proof() {
  asio::async_read(socket_, asio::buffer(proof_),
                   [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                     const auto proof_of = [&](StoreSide side) {
                       return make_proof(self->shared_.token, side, self->client_nonce_,
                                         self->server_nonce_);
                     };
                     if (error || !is_same(proof_of(StoreSide::kClient), self->proof_))
                       return self->end();
                     const Proof mine = proof_of(StoreSide::kServer);
                     self->output_.emplace_back(mine.begin(), mine.end());
                     self->write_next();
                   });
}

void StoreSession::read_request() {
  // A client that does not read its answers is not read from, either.
  if (reading_ || (!output_.empty() && !waiting_)) return;
  reading_ = true;
  asio::async_read(socket_, asio::buffer(size_),
                   [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                     if (error) return self->end();
                     if (protocol::decode_size(self->size_) > protocol::kBodyBytesMax) {
                       return self->end();
                     }
                     self->read_body();
                   });
}

void StoreSession::read_body() {
  body_.resize(protocol::decode_size(size_));
  asio::async_read(socket_, asio::buffer(body_),
                   [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                     if (error) return self->end();
                     self->reading_ = false;
                     const auto request = protocol::decode_request(self->body_);
                     self->body_ = {};
                     if (!request) return self->end();
                     self->handle(*request);
                   });
}

void StoreSession::handle(const Request& request) {
  if (waiting_ && request.operation != Operation::kCancel) return end();
  switch (request.operation) {
    case Operation::kGoodbye: wills_.clear(); return end();
    case Operation::kCancel: cancel_wait(); break;
    default:
      try {
        if (request.operation == Operation::kGet || request.operation == Operation::kWait ||
            request.operation == Operation::kWaitAny) {
          begin_wait(request);
        } else {
          respond(execute(request));
        }
      } catch (const ConfigError& error) {
        respond({.status = Status::kRefused, .value = error.what()});
      }
  }
  read_request();
}

Response StoreSession::execute(const Request& request) {
  if (request.operation == Operation::kNumKeys) return {.number = shared_.table.num_keys()};
  require_keys(request.keys);
  const std::string& key = request.keys[0];
  switch (request.operation) {
    case Operation::kSet: shared_.table.set(key, request.value); return {};
    case Operation::kTryGet: {
      auto value = shared_.table.try_get(key);
      if (!value) return {.status = Status::kMissing};
      return {.value = std::move(*value)};
    }
    case Operation::kMultiGet: return {.values = shared_.table.multi_get(request.keys)};
    case Operation::kAdd: return {.number = shared_.table.add(key, request.delta)};
    case Operation::kCompareSet:
      return {.value = shared_.table.compare_set(key, request.expected, request.value)};
    case Operation::kAppend: shared_.table.append(key, request.value); return {};
    case Operation::kCheck: return {.number = shared_.table.check(request.keys) ? 1 : 0};
    case Operation::kRemove: return {.number = shared_.table.remove(key) ? 1 : 0};
    case Operation::kSetLastWill:
      require_value(key, request.value);
      wills_.insert_or_assign(key, request.value);
      return {};
    default:
      throw ConfigError("store: operation " + std::to_string(static_cast<int>(request.operation)) +
                        " is unknown");
  }
}

void StoreSession::begin_wait(const Request& request) {
  require_keys(request.keys);
  waiting_ = Waiting{request.keys, 0};
  const bool wants_value = request.operation == Operation::kGet;
  const auto wait_for = request.operation == Operation::kWaitAny ? KeyValueTable::WaitFor::kAny
                                                                 : KeyValueTable::WaitFor::kAll;
  // The waiter must not keep the session alive: its end cancels the waiter.
  const auto answer = [this, wants_value] {
    std::string value = wants_value ? *shared_.table.try_get(waiting_->keys[0]) : "";
    waiting_.reset();
    respond({.value = std::move(value)});
  };
  const auto waiter = shared_.table.when_present(request.keys, answer, wait_for);
  if (waiting_) waiting_->waiter = waiter;
}

void StoreSession::cancel_wait() {
  if (!waiting_) return;  // its answer is on the way
  shared_.table.cancel(waiting_->waiter);
  const std::string missing = shared_.table.first_missing(waiting_->keys).value_or("");
  waiting_.reset();
  respond({.status = Status::kCancelled, .value = missing});
}

void StoreSession::respond(const Response& response) {
  output_.push_back(protocol::encode(response));
  if (output_.size() == 1) write_next();
}

void StoreSession::write_next() {
  asio::async_write(socket_, asio::buffer(output_.front()),
                    [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                      if (error) return self->end();
                      self->output_.pop_front();
                      if (!self->output_.empty()) return self->write_next();
                      if (self->refused_) return self->end();
                      self->read_request();
                    });
}

void StoreSession::end() {
  if (waiting_) {
    shared_.table.cancel(waiting_->waiter);
    waiting_.reset();
  }
  for (const auto& [key, value] : std::exchange(wills_, {})) shared_.table.set(key, value);
  ErrorCode ignored;
  socket_.close(ignored);
}

}  // namespace ddproof
