// GlooProcessGroup over a connection that only keeps a log.
#include "backends/gloo/gloo_process_group.h"

#include <gloo/context.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/local/os_runtime.h"

namespace ddproof {
namespace {

class LoggedConnection final : public GlooConnection {
 public:
  explicit LoggedConnection(std::vector<std::string>& log) : log_(log) {}
  const std::shared_ptr<gloo::Context>& context() override { return context_; }
  void close() override { log_.push_back("close"); }
  Finding explain(const Symptom&) override { return {}; }
  void publish(const Finding& finding) override { log_.push_back("publish: " + finding.what); }
  std::unique_ptr<GlooConnection> connect_subgroup(const std::string&, const std::vector<int>&, int,
                                                   Duration) override {
    return nullptr;
  }

 private:
  std::vector<std::string>& log_;
  std::shared_ptr<gloo::Context> context_ = std::make_shared<gloo::Context>(1, 2);
};

// Publishing asks the store, which may take long to answer or never do.
TEST(GlooProcessGroup, AbortClosesTheConnectionBeforeItPublishes) {
  OsRuntime runtime;
  std::vector<std::string> log;
  GlooProcessGroup group(std::make_unique<LoggedConnection>(log), runtime,
                         {.backend_name = "gloo", .capabilities = nullptr});
  group.abort();
  group.abort();
  EXPECT_EQ(log, (std::vector<std::string>{"close", "publish: rank 1 is lost (it called abort)"}));
}

}  // namespace
}  // namespace ddproof
