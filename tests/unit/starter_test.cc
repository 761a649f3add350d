// Whose variables say the rank: each starter's own, and which of several counts.
#include "reference/launch/starter.h"

#include <gtest/gtest.h>

#include "backends/api/error.h"
#include "reference/launch/environment.h"
#include "tests/support/map_environment.h"
#include "tests/support/refusal.h"

namespace ddproof {
namespace {

using Set = MapEnvironment::Variables;

LaunchEnvironment read_all(const Set& variables) {
  return read_launch_environment(MapEnvironment(variables));
}

Set operator+(Set a, const Set& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

const Set kSlurm = {{"SLURM_PROCID", "5"},
                    {"SLURM_NTASKS", "8"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_JOB_ID", "1234567"},
                    {"SLURM_JOB_NAME", "train"},
                    {"SLURM_JOB_NODELIST", "node[007-008],login"}};
// As mpirun 4.1 sets them.
const Set kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "1466236929"},    {"PMIX_RANK", "1"}};
const Set kTorchrun = {
    {"RANK", "0"},        {"WORLD_SIZE", "1"},      {"LOCAL_RANK", "0"},
    {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "none"}};
const Set kMaster = {{"MASTER_ADDR", "b"}, {"MASTER_PORT", "3"}};

TEST(Starter, SlurmsVariablesGiveTheWorldAndWhereToMeet) {
  const LaunchEnvironment expected{.distributed = true,
                                   .rank = 5,
                                   .world_size = 8,
                                   .local_rank = 1,
                                   .local_world_size = 0,
                                   .master_addr = "node007",
                                   .master_port = 19567,
                                   .source = "Slurm"};
  EXPECT_EQ(read_all(kSlurm), expected);
  const LaunchEnvironment told = read_all(kSlurm + kMaster);
  EXPECT_EQ(told.master_addr, "b");
  EXPECT_EQ(told.master_port, 3);
}

TEST(Starter, ASlurmJobThatSrunDidNotStartIsOneProcess) {
  Set batch = kSlurm;
  batch.erase("SLURM_STEP_ID");
  for (const Set& variables : {batch, kSlurm + Set{{"SLURM_JOB_NAME", "bash"}},
                               kSlurm + Set{{"SLURM_JOB_NAME", "interactive"}}}) {
    const LaunchEnvironment alone = read_all(variables);
    EXPECT_FALSE(alone.distributed);
    EXPECT_EQ(alone.source, "nobody");
    EXPECT_EQ(alone.remark,
              "SLURM_NTASKS is 8, but srun did not start this process as one of them; start it "
              "with srun");
  }
  EXPECT_EQ(read_all(batch + Set{{"SLURM_NTASKS", "1"}}).remark, "");
}

TEST(Starter, OpenMpiOnOneNodeMeetsThere) {
  const LaunchEnvironment expected{.distributed = true,
                                   .rank = 1,
                                   .world_size = 2,
                                   .local_rank = 1,
                                   .local_world_size = 2,
                                   .master_addr = "127.0.0.1",
                                   .master_port = 21929,
                                   .source = "Open MPI"};
  EXPECT_EQ(read_all(kOpenMpi), expected);
}

TEST(Starter, OpenMpiOnSeveralNodesMustSayWhere) {
  const Set nodes = kOpenMpi + Set{{"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(refusal_of([&] { read_all(nodes); }),
            "environment variable MASTER_ADDR is not set; allowed: a host name, an IPv4 address or "
            "an IPv6 address, without a port; mpirun sets it, or passes it on with -x NAME=VALUE");
  EXPECT_EQ(read_all(nodes + kMaster).master_addr, "b");
}

TEST(Starter, OthersNeedAMaster) {
  const LaunchEnvironment mvapich = read_all(Set{{"MV2_COMM_WORLD_RANK", "2"},
                                                 {"MV2_COMM_WORLD_SIZE", "3"},
                                                 {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                                                 {"MV2_COMM_WORLD_LOCAL_SIZE", "1"}} +
                                             kMaster);
  EXPECT_EQ(mvapich.source, "MVAPICH");
  EXPECT_EQ(mvapich.rank, 2);
  const LaunchEnvironment pmi =
      read_all(Set{{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "2"}} + kMaster);
  EXPECT_EQ(pmi.source, "PMI");
  EXPECT_EQ(pmi.local_rank, 2);
  EXPECT_EQ(pmi.local_world_size, 0);
}

TEST(Starter, KubeflowHasOneRankInAPod) {
  const Set pod =
      Set{{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"KUBERNETES_PORT", "tcp://10.0.0.1:443"}} + kMaster;
  const LaunchEnvironment launch = read_all(pod);
  EXPECT_EQ(launch.source, "Kubeflow");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_world_size, 1);
  EXPECT_EQ(read_all(pod + Set{{"LOCAL_RANK", "1"}}).source, "environment variables");
}

TEST(Starter, TheMostSpecificOneCounts) {
  EXPECT_EQ(read_all(kSlurm + kOpenMpi + kTorchrun).source, "torchrun");
  EXPECT_EQ(read_all(kSlurm + kOpenMpi).source, "Slurm");
  EXPECT_EQ(read_all(kOpenMpi + Set{{"PMI_RANK", "0"}}).source, "Open MPI");
  EXPECT_FALSE(read_all(kOpenMpi + Set{{"LOCAL_RANK", "-1"}}).distributed);
}

// Under their own names, by the rules of RANK, WORLD_SIZE and LOCAL_RANK.
TEST(Starter, BadVariablesAreNamedAsTheStarterNamesThem) {
  const auto refused = [](const Set& variables) {
    return refusal_of([&] { read_all(variables); });
  };
  EXPECT_EQ(refused(kSlurm + Set{{"SLURM_PROCID", "8"}}),
            "environment variable SLURM_PROCID is \"8\"; allowed: a whole number from 0 to 7 "
            "(SLURM_NTASKS is 8)");
  Set without_size = kSlurm;
  without_size.erase("SLURM_NTASKS");
  EXPECT_EQ(
      refused(without_size),
      "environment variable SLURM_NTASKS is not set; allowed: a whole number from 1 to 32768; "
      "srun sets it, or export it before srun");
  EXPECT_EQ(refused(kSlurm + Set{{"SLURM_LOCALID", "x"}}),
            "environment variable SLURM_LOCALID is \"x\"; allowed: a whole number from 0 to 32767");
  EXPECT_EQ(refused(kOpenMpi + Set{{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}),
            "environment variable OMPI_COMM_WORLD_LOCAL_SIZE is \"1\"; allowed: 2 "
            "(OMPI_COMM_WORLD_LOCAL_RANK is 1, OMPI_COMM_WORLD_RANK is 1, OMPI_COMM_WORLD_SIZE is "
            "2)");
  EXPECT_EQ(refused(kSlurm + Set{{"SLURM_JOB_NODELIST", "node["}}),
            "environment variable MASTER_ADDR is not set; allowed: a host name, an IPv4 address or "
            "an IPv6 address, without a port; srun sets it, or export it before srun");
}

TEST(Starter, TheFirstHostOfASlurmList) {
  const std::map<std::string, std::string> table = {{"a", "a"},
                                                    {"a,b", "a"},
                                                    {"a5,b[1-2]", "a5"},
                                                    {"node[007-009,12],login", "node007"},
                                                    {"n[3]", "n3"},
                                                    {"rack[1-2]-gpu,x", "rack1-gpu"},
                                                    {"", ""},
                                                    {"a[1-2],b[3-4]", "a1"},
                                                    {"rack[1-2]node[3-4]", ""},
                                                    {"n[", ""},
                                                    {"n[1-2", ""},
                                                    {"n[]", ""},
                                                    {"n[x]", ""}};
  for (const auto& [list, host] : table) EXPECT_EQ(first_slurm_host(list), host) << list;
}

}  // namespace
}  // namespace ddproof
