// Runs calls one after another in a task of their own and hands out their Work: what makes a
// blocking library asynchronous. Used by every backend whose library blocks.
//
// Invariants: jobs run in submission order, one at a time. After a job failed, later jobs do not
// run: they fail with the same exception. What a job leaves behind that goes on by itself does not
// hold up the next one.
// Threads: submit() and fail_all() from any task of the rank; destroy from one of them.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "backends/api/work.h"

namespace ddproof {

class SerialQueue {
 public:
  using Execute = std::function<void(const Call&)>;
  // Executes the calls of one coalesce(), or one that is alone. What it returns goes on by itself:
  // the calls are done when that is. Null: they are done.
  using ExecuteTogether = std::function<WorkPtr(std::span<const Call* const>)>;

  // A job is execute(call); verdicts and errors name it as `group` and the call name themselves.
  // The task is started by the first submit(), and `group` is not used before. `name` appears in
  // traces.
  SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group, Execute execute);
  SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group,
              ExecuteTogether execute);
  // Runs what was submitted, then ends the task.
  ~SerialQueue();
  SerialQueue(const SerialQueue&) = delete;
  SerialQueue& operator=(const SerialQueue&) = delete;

  // Throws what Runtime::spawn() throws; nothing is queued then.
  WorkPtr submit(Call&& call);

  // Jobs that have not started, and all later ones, fail with `error`. The running job goes on.
  void fail_all(std::exception_ptr error);

 private:
  class Job;
  struct State;
  using Jobs = std::vector<std::shared_ptr<Job>>;
  SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group, Execute one_by_one,
              ExecuteTogether together);
  void run();
  // Under the lock, which it lets go while they run.
  void run(const Jobs& jobs);
  WorkPtr execute(const Jobs& jobs);

  Runtime& runtime_;
  std::string name_;
  const ProcessGroup& group_;
  Execute one_by_one_;  // or the other
  ExecuteTogether together_;
  std::shared_ptr<State> state_;
  std::unique_ptr<Task> task_;
};

}  // namespace ddproof
