// The simulated transport against Gloo's own over loopback TCP: the same generated programs of
// sends and receives on both; every byte of every buffer and the outcome of every wait must agree.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "backends/local/os_runtime.h"
#include "simulator/random.h"
#include "tests/unit/sim_transport_world.h"

namespace ddproof {
namespace {

using BufferPtr = std::unique_ptr<gloo::transport::UnboundBuffer>;

constexpr std::array<std::size_t, 8> kSizes = {0, 1, 3, 8, 100, 4'096, 70'000, 300'000};

// A send and a receive. Where `sources` is not empty, the receive is one from any of those, and
// which of the slot's messages it gets is open.
struct Message {
  int from = 0;
  int to = 0;
  std::uint64_t slot = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;        // in the receiver's buffer, 2 * offset in the sender's
  bool to_the_end = false;       // of the buffer: without saying how many bytes
  bool is_aborted_once = false;  // both waits, before they succeed
  std::vector<int> sources;
};

struct TransportProgram {
  int ranks = 2;
  std::uint64_t seed = 0;
  std::vector<std::vector<Message>> rounds;  // in each, everybody posts, then waits
  int leaver = 0;                            // closes after the rounds, while others wait for it
};

// Numbers from one seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}
  int below(int bound) { return static_cast<int>(sim::below(bits_.next(), bound)); }
  int other_than(int rank, int ranks) { return (rank + 1 + below(ranks - 1)) % ranks; }

 private:
  sim::SplitMix64 bits_;
};

Message draw_message(Draw& draw, int ranks) {
  Message message;
  message.from = draw.below(ranks);
  message.to = draw.other_than(message.from, ranks);
  message.slot = draw.below(2) == 0 ? 7 : (std::uint64_t{8} << 40) + 7;
  message.bytes = kSizes[draw.below(kSizes.size())];
  message.offset = draw.below(3) * 5;
  message.to_the_end = draw.below(2) == 0;
  message.is_aborted_once = draw.below(4) == 0;
  return message;
}

// Messages of one size to one rank, which takes them from any of the others.
void add_race(Draw& draw, int ranks, std::uint64_t slot, std::vector<Message>& round) {
  Message message = draw_message(draw, ranks);
  message.slot = slot;
  if (message.bytes == 0) message.to_the_end = false;  // here Gloo refuses to mean 0 bytes by it
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != message.to) message.sources.push_back(rank);
  }
  for (int i = 1 + draw.below(4); i > 0; --i) {
    message.from = draw.other_than(message.to, ranks);
    round.insert(round.begin() + draw.below(static_cast<int>(round.size()) + 1), message);
  }
}

TransportProgram draw_program(std::uint64_t seed) {
  Draw draw(seed);
  TransportProgram program{.ranks = 2 + draw.below(3), .seed = seed};
  for (int number = 0; number < 4; ++number) {
    std::vector<Message> round;
    for (int i = draw.below(12); i > 0; --i) round.push_back(draw_message(draw, program.ranks));
    // Slots of their own: which message a receive from any gets may differ between the transports.
    for (int i = draw.below(3); i > 0; --i) {
      add_race(draw, program.ranks, 100 * (number + 1) + i, round);
    }
    program.rounds.push_back(round);
  }
  program.leaver = draw.below(program.ranks);
  return program;
}

std::uint8_t payload(std::uint64_t number, std::size_t i) {
  return static_cast<std::uint8_t>((number + 1) * 31 + i * (2 * number + 7));
}

// One rank's run of a program: what it saw, in words.
class Player {
 public:
  Player(const ContextPtr& context, const TransportProgram& program)
      : context_(context), program_(program), draw_(program.seed * 64 + context->rank) {}

  std::vector<std::string> play() {
    for (const auto& round : program_.rounds) play_round(round);
    if (context_->rank != program_.leaver) meet_the_end();
    return std::move(seen_);
  }

 private:
  struct Operation {
    const Message* message;
    bool is_send;
    std::vector<std::uint8_t> memory;
    BufferPtr buffer;
    int peer = -1;
  };

  void play_round(const std::vector<Message>& round) {
    std::vector<Operation> operations;
    for (const Message& message : round) {
      ++message_count_;
      if (message.from == context_->rank) operations.push_back(post_send(message));
      if (message.to == context_->rank) operations.push_back(post_receive(message));
    }
    std::vector<std::size_t> order(operations.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[draw_.below(static_cast<int>(i))]);
    }
    for (const std::size_t i : order) wait(operations[i]);
    tell(operations);
  }

  Operation post_send(const Message& message) {
    Operation operation{&message, true, {}, nullptr};
    const std::size_t offset = 2 * message.offset;
    operation.memory.resize(offset + message.bytes + (message.to_the_end ? 0 : 3));
    for (std::size_t i = 0; i < message.bytes; ++i) {
      operation.memory[offset + i] = payload(message_count_, i);
    }
    make_buffer(operation);
    if (message.to_the_end) {
      operation.buffer->send(message.to, message.slot, offset);
    } else {
      operation.buffer->send(message.to, message.slot, offset, message.bytes);
    }
    return operation;
  }

  Operation post_receive(const Message& message) {
    Operation operation{&message, false, {}, nullptr};
    operation.memory.resize(message.offset + message.bytes + (message.to_the_end ? 0 : 3), 0xee);
    make_buffer(operation);
    const std::size_t bytes =
        message.to_the_end ? gloo::transport::UnboundBuffer::kUnspecifiedByteCount : message.bytes;
    if (message.sources.empty()) {
      operation.buffer->recv(message.from, message.slot, message.offset, bytes);
    } else {
      operation.buffer->recv(message.sources, message.slot, message.offset, bytes);
    }
    return operation;
  }

  void make_buffer(Operation& operation) {
    operation.buffer =
        context_->createUnboundBuffer(operation.memory.data(), operation.memory.size());
  }

  void wait(Operation& operation) {
    gloo::transport::UnboundBuffer& buffer = *operation.buffer;
    for (const bool is_aborted : {true, false}) {
      if (is_aborted && !operation.message->is_aborted_once) continue;
      if (is_aborted) operation.is_send ? buffer.abortWaitSend() : buffer.abortWaitRecv();
      const bool is_done =
          operation.is_send ? buffer.waitSend(&operation.peer) : buffer.waitRecv(&operation.peer);
      seen_.push_back(is_done ? "done" : "aborted");
    }
  }

  // Of the receives from any: each peer's messages came in order; the rest is open.
  void tell(const std::vector<Operation>& operations) {
    std::map<std::pair<std::uint64_t, int>, std::string> open;
    for (const Operation& operation : operations) {
      const std::string told =
          std::to_string(digest_of(std::as_bytes(std::span(operation.memory))));
      const bool is_open = !operation.is_send && !operation.message->sources.empty();
      if (is_open) {
        open[{operation.message->slot, operation.peer}] += " " + told;
      } else {
        seen_.push_back(std::to_string(operation.peer) + ": " + told);
      }
    }
    for (const auto& [key, told] : open) {
      seen_.push_back("any " + std::to_string(key.second) + ":" + told);
    }
  }

  void meet_the_end() {
    for (const bool is_send : {false, true}) {
      std::uint8_t byte = 0;
      try {
        const BufferPtr buffer = context_->createUnboundBuffer(&byte, 1);
        if (is_send) buffer->send(program_.leaver, 9);
        if (!is_send) buffer->recv(program_.leaver, 9);
        is_send ? buffer->waitSend() : buffer->waitRecv();
        seen_.push_back("no end");
      } catch (const gloo::IoException&) {
        seen_.push_back("connection closed");
      }
    }
  }

  const ContextPtr& context_;
  const TransportProgram& program_;
  Draw draw_;
  std::uint64_t message_count_ = 0;
  std::vector<std::string> seen_;
};

using ValuesSeen = std::vector<std::vector<std::string>>;  // by rank

ValuesSeen run_in_simulator(const TransportProgram& program, std::uint64_t seed) {
  ValuesSeen seen(program.ranks);
  World world({.ranks = program.ranks, .seed = seed, .jitter = 20'000});
  expect_all_returned(world.run(
      [&](const ContextPtr& context) { seen[context->rank] = Player(context, program).play(); }));
  return seen;
}

ValuesSeen run_over_tcp(const TransportProgram& program) {
  ValuesSeen seen(program.ranks);
  OsRuntime runtime;
  gloo::transport::tcp::attr address("127.0.0.1");
  gloo::rendezvous::HashStore store;
  std::vector<std::unique_ptr<Task>> ranks;
  for (int rank = 0; rank < program.ranks; ++rank) {
    ranks.push_back(runtime.spawn("rank", [&, rank] {
      auto device = gloo::transport::tcp::CreateDevice(address);
      const auto context = std::make_shared<gloo::rendezvous::Context>(rank, program.ranks);
      context->connectFullMesh(store, device);
      try {
        seen[rank] = Player(context, program).play();
      } catch (const std::exception& error) {
        seen[rank] = {error.what()};
      }
    }));
  }
  for (const auto& rank : ranks) rank->join();
  return seen;
}

TEST(SimTransport, DoesWhatGlooDoesOverTcp) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const TransportProgram program = draw_program(seed);
    const ValuesSeen expected = run_over_tcp(program);
    for (const std::uint64_t schedule : {1, 2, 3}) {
      EXPECT_EQ(run_in_simulator(program, schedule), expected) << "program " << seed;
    }
  }
}

}  // namespace
}  // namespace ddproof
