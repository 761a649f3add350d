#include "backends/gloo/gloo_process_group.h"

#include <gloo/common/error.h>
#include <gloo/common/logging.h>
#include <gloo/context.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "backends/api/check.h"
#include "backends/gloo/operations.h"
#include "backends/membership/split.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

milliseconds to_gloo(Duration timeout) {
  if (timeout >= kGlooForever) return kGlooForever;
  return std::max(std::chrono::ceil<milliseconds>(timeout), milliseconds(1));
}

// Gloo prefixes its texts with "[file:line] ", which says nothing to our users.
std::string strip_position(const std::string& text) {
  const auto end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

Symptom symptom_of(const std::string& text, const Call& call) {
  const std::string detail = strip_position(text);
  const bool timed_out = detail.find("Timed out") != std::string::npos;
  const bool has_peer = is_point_to_point(call.op);
  return {.timed_out = timed_out,
          .detail = detail,
          .timeout = call.timeout,
          .call = call.describe(),
          .compares = call.on_behalf_of != nullptr && !has_peer,
          .peer = has_peer ? std::optional(call.peer) : std::nullopt};
}

// With one rank every operation is at most a copy of in to out.
void run_alone(const Call& call) {
  if (call.input.data() == call.output.data() || call.output.count() == 0) return;
  if (call.input.count() > 0)
    std::memmove(call.output.data(), call.input.data(), call.input.bytes());
}

struct CallScope {
  GlooConnection& connection;
  const Call& call;
  Payload& payload = connection.begin_call(call);
  bool completed = false;
  ~CallScope() { connection.end_call(call, completed); }
};

}  // namespace

Capabilities gloo_capabilities() {
  Capabilities result;
  result.ops = {{Op::kAllReduce,
                 "Gloo's bcube up to 1 MiB, its ring above; ours: average (its sum, divided), sums "
                 "of float16 and bfloat16, a tree for small min and max on many ranks"},
                {Op::kBroadcast, "Gloo's binomial tree"},
                {Op::kReduce,
                 "Gloo's ring, average and sums of halves as in all_reduce; partial sums of other "
                 "ranks go to scratch"},
                {Op::kAllGather, "Gloo's ring"},
                {Op::kReduceScatter, "all-reduce of a copy, then keep one part"},
                {Op::kGather, "Gloo's, straight to the root"},
                {Op::kScatter, "Gloo's, straight from the root"},
                {Op::kAllToAll, "Gloo's, pairwise"},
                {Op::kSend, "one Gloo message; waits for the matching recv"},
                {Op::kRecv, "one Gloo message"},
                {Op::kBarrier, "Gloo's dissemination barrier"},
                {Op::kMonitoredBarrier, "a message to rank 0 and one back"}};
  result.dtypes = every_dtype();
  result.reduce_ops = every_reduce_op();
  result.custom_elements = true;
  result.same_bits_every_run = true;
  result.same_bits_every_rank = true;
  return result;
}

GlooProcessGroup::GlooProcessGroup(std::unique_ptr<GlooConnection> connection, Runtime& runtime,
                                   GlooGroupOptions options)
    : ProcessGroup(connection->context()->rank, connection->context()->size,
                   options.default_timeout, options.name),
      connection_(std::move(connection)),
      runtime_(runtime),
      options_(std::move(options)),
      uncaught_at_start_(std::uncaught_exceptions()),
      queue_(runtime, options_.backend_name + " calls", *this,
             [this](const Call& call) { execute(call); }) {}

GlooProcessGroup::~GlooProcessGroup() {
  // Nobody will wait for the pending calls any more, and their peers may be gone.
  if (std::uncaught_exceptions() > uncaught_at_start_) leave("an exception ended its work");
}

WorkPtr GlooProcessGroup::submit(Call&& call) { return queue_.submit(std::move(call)); }

void GlooProcessGroup::execute(const Call& call) {
  // send and recv have the caller's tag, and their number differs between ranks.
  if (!is_point_to_point(call.op)) ++collectives_;
  if (size() == 1) return run_alone(call);
  const std::shared_ptr<gloo::Context>& context = connection_->context();
  const milliseconds timeout = to_gloo(call.timeout);
  try {
    CallScope scope{*connection_, call};
    const gloo_operations::Operation operation{
        context, runtime_,           call, scope.payload, static_cast<std::uint32_t>(collectives_),
        timeout, options_.all_reduce};
    if (!connection_->run_whole(operation)) gloo_operations::run(operation);
    scope.completed = true;
  } catch (const gloo_operations::FoundOut& found) {
    connection_->publish(found.finding);
    connection_->close();
    throw comm_error(*this, call, found.finding);
  } catch (const gloo::EnforceNotMet& error) {
    const Finding finding{CommErrorKind::kMismatch, {}, strip_position(error.what())};
    connection_->publish(finding);
    connection_->close();
    throw comm_error(*this, call, finding);
  } catch (const gloo::Exception& error) {
    fail(call, symptom_of(error.what(), call));
  }
}

void GlooProcessGroup::fail(const Call& call, const Symptom& symptom) {
  if (aborted_) {
    throw comm_error(*this, call, aborted_here());
  }
  connection_->close();
  throw comm_error(*this, call, connection_->explain(symptom));
}

void GlooProcessGroup::abort() { leave("it called abort"); }

void GlooProcessGroup::leave(const std::string& why) {
  if (aborted_.exchange(true)) return;
  queue_.fail_all(std::make_exception_ptr(comm_error(*this, aborted_here())));
  connection_->close();  // first: telling may take long, and nobody shall wait for it
  connection_->publish(rank_is_lost(rank(), why));
}

std::unique_ptr<ProcessGroup> GlooProcessGroup::split(int color, int key, CallSite site) {
  const std::vector<int> members = gather_part(*this, color, key, site);
  const std::string part = name_next_part(color);
  if (color < 0) return nullptr;
  const int my_rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  GlooGroupOptions options = options_;
  options.name = part;
  return std::make_unique<GlooProcessGroup>(
      connection_->connect_subgroup(part, members, my_rank, default_timeout()), runtime_, options);
}

}  // namespace ddproof
