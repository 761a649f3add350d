#include "reference/launch/agent.h"

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace ddproof {
namespace {

// A task beside the workers that waits for other nodes.
class Beside {
 public:
  // Runs `body` at once where nobody else can be waited for.
  Beside(Rounds& rounds, Workers& workers, Runtime& runtime, std::function<void()> body)
      : rounds_(rounds) {
    if (rounds.is_alone()) {
      body();
      is_over_ = true;
      return;
    }
    task_ = runtime.spawn("rendezvous", [this, &workers, body = std::move(body)] {
      struct Notice {
        Beside& beside;
        Workers& workers;
        ~Notice() {
          beside.is_over_ = true;
          workers.wake();
        }
      } const notice{*this, workers};
      body();
    });
  }
  // Only on the way of an exception it is not joined yet.
  ~Beside() {
    if (!task_) return;
    rounds_.cancel();
    try {
      task_->join();
    } catch (...) {
    }
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  bool is_over() const { return is_over_; }
  // Throws what the body threw.
  void join() {
    if (const auto task = std::exchange(task_, nullptr)) task->join();
  }

 private:
  Rounds& rounds_;
  std::atomic<bool> is_over_ = false;
  std::unique_ptr<Task> task_;
};

class Agent {
 public:
  Agent(Rounds& rounds, Workers& workers, Runtime& runtime)
      : rounds_(rounds), workers_(workers), runtime_(runtime) {}

  JobEnd run() {
    for (;;) {
      const auto round = join();
      if (!round) return end_;
      workers_.start(*round);
      if (!run_round()) return end_;
    }
  }

 private:
  // Empty: the job has ended, or we are told to end.
  std::optional<Round> join() {
    std::optional<RoundOutcome> outcome;
    Beside joining(rounds_, workers_, runtime_,
                   [&] { outcome = rounds_.join([this] { return workers_.open_meeting(); }); });
    if (is_told(workers_.attend([&] { return joining.is_over(); }), joining)) return std::nullopt;
    joining.join();
    if (!outcome->round) end_ = outcome->end;
    return outcome->round;
  }

  // False: we are told to end.
  bool run_round() {
    Beside watching(rounds_, workers_, runtime_, [this] {
      if (!rounds_.is_alone()) rounds_.wait_over();
    });
    const auto is_over = [&] { return watching.is_over() && !rounds_.is_alone(); };
    const WorkersEnd ended = workers_.run(
        is_over, [this](const JobEnd& first) { rounds_.fail(first.status, first.text); });
    if (is_told(ended, watching)) return false;
    if (ended.kind == WorkersEnd::Kind::kSucceeded) rounds_.succeed();
    if (is_told(workers_.attend([&] { return watching.is_over(); }), watching)) return false;
    watching.join();
    return true;
  }

  bool is_told(const WorkersEnd& ended, Beside& beside) {
    if (ended.kind != WorkersEnd::Kind::kTold) return false;
    rounds_.cancel();
    beside.join();
    rounds_.leave();
    end_ = ended.end;
    return true;
  }

  Rounds& rounds_;
  Workers& workers_;
  Runtime& runtime_;
  JobEnd end_;
};

}  // namespace

JobEnd run_agent(Rounds& rounds, Workers& workers, Runtime& runtime) {
  try {
    return Agent(rounds, workers, runtime).run();
  } catch (const std::exception&) {
    rounds.leave();
    throw;
  }
}

}  // namespace ddproof
