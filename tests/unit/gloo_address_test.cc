#include <gtest/gtest.h>

#include <map>

#include "backends/api/error.h"
#include "backends/gloo/tcp/address.h"

namespace ddproof {
namespace {

class FixedEnvironment : public Environment {
 public:
  FixedEnvironment(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}
  std::optional<std::string> get(std::string_view name) const override {
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::string> all() const override { return {}; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

ListenAddress chosen(std::map<std::string, std::string, std::less<>> values) {
  return choose_listen_address(FixedEnvironment(std::move(values)));
}

TEST(GlooAddress, AWorldOnThisMachineUsesLoopbackWithoutLookup) {
  EXPECT_EQ(chosen({}).host, "127.0.0.1");
  for (const char* master : {"", "localhost", "127.0.0.1", "127.1.2.3"}) {
    EXPECT_EQ(chosen({{"MASTER_ADDR", master}}).host, "127.0.0.1") << master;
  }
}

TEST(GlooAddress, TheInterfaceThatTheUserNamesWins) {
  const ListenAddress address =
      chosen({{"GLOO_SOCKET_IFNAME", "eth7"}, {"MASTER_ADDR", "10.0.0.1"}});
  EXPECT_EQ(address.interface, "eth7");
  EXPECT_EQ(address.host, "");
}

TEST(GlooAddress, ANameWithoutAnAddressIsRefusedAndNeverBecomesLoopback) {
  try {
    chosen({{"MASTER_ADDR", "no such host"}});
    FAIL();
  } catch (const ResourceError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("MASTER_ADDR is \"no such host\": no address found (")) << text;
    EXPECT_NE(text.find("GLOO_SOCKET_IFNAME"), std::string::npos);
  }
}

}  // namespace
}  // namespace ddproof
