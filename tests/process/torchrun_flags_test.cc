// `ddproof run` with what torchrun's users give it: flags, PET_ variables, Python programs, log
// files, restarts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "backends/store/tcp_store_server.h"
#include "tests/process/launched.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(TorchrunFlags, BothSpellingsAndAllThatOneNodeNeedsAreTaken) {
  Launched run(run_command_line(
      {"--nnodes=1:1",
       "--nproc_per_node=2",
       "--node_rank",
       "0",
       "--rdzv_backend",
       "c10d",
       "--rdzv-endpoint=localhost:0",
       "--rdzv_id",
       "job",
       "--rdzv-conf",
       "timeout=900,join_timeout=600",
       "--max_restarts",
       "3",
       "--monitor-interval",
       "5",
       "--start_method",
       "fork",
       "--role",
       "trainer",
       "--local_ranks_filter",
       "1",
       "sh",
       "-c",
       "echo $TORCHELASTIC_RUN_ID $ROLE_NAME $TORCHELASTIC_MAX_RESTARTS $MASTER_ADDR"}));
  ASSERT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "[rank 1] job trainer 3 localhost\n");
}

TEST(TorchrunFlags, VariablesStandForFlagsThatAreNotGiven) {
  const LaunchedOptions variables{
      .environment = {"PET_NPROC_PER_NODE=2", "PET_STANDALONE=1", "PET_ROLE=variable"}};
  Launched run(run_command_line({"--role", "flag", "--", "sh", "-c", "echo $ROLE_NAME"}),
               variables);
  ASSERT_EQ(run.wait(), 0) << run.err();
  const auto lines = lines_of(run.out());
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()),
            (std::set<std::string>{"[rank 0] flag", "[rank 1] flag"}));
  Launched off(run_command_line({"--master-port", "0", "true"}),
               {.environment = {"PET_STANDALONE=0"}});
  EXPECT_EQ(off.wait(), 0) << off.err();
}

TEST(TorchrunFlags, ABadVariableIsNamed) {
  struct Row {
    const char* variable;
    const char* text;
  };
  for (const Row& row :
       {Row{"PET_MAX_RESTARTS=x",
            "--max-restarts: \"x\" is not allowed; allowed: a whole number from 0 to 1000000 "
            "(PET_MAX_RESTARTS in the environment) (see ddproof run --help)\n"},
        Row{"PET_STANDALONE=yes",
            "--standalone: \"yes\" is not allowed; allowed: 0 or 1 (PET_STANDALONE in the "
            "environment) (see ddproof run --help)\n"}}) {
    Launched run(run_command_line({"echo", "started"}), {.environment = {row.variable}});
    EXPECT_EQ(run.wait(), 2);
    EXPECT_EQ(run.err(), std::string("ddproof run: ") + row.text);
  }
}

TEST(TorchrunFlags, PythonProgramsStartAsUnderTorchrun) {
  const TemporaryFolder folder;
  const std::string script = folder.path() + "/script.py";
  write_text(script, "#!/bin/sh\necho shell\n");
  // What is called for python says how it was called.
  const std::string python = folder.path() + "/python";
  write_text(python, "#!/bin/sh\necho python \"$@\"\n");
  for (const std::string& path : {script, python}) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  const LaunchedOptions with_python{.environment = {"PYTHON_EXEC=" + python}};
  Launched as_script(run_command_line({"--standalone", script, "-x"}), with_python);
  EXPECT_EQ(as_script.wait(), 0) << as_script.err();
  EXPECT_EQ(as_script.out(), "[rank 0] python -u " + script + " -x\n");
  Launched as_module(run_command_line({"--standalone", "-m", "a.b", "-x"}), with_python);
  EXPECT_EQ(as_module.wait(), 0) << as_module.err();
  EXPECT_EQ(as_module.out(), "[rank 0] python -u -m a.b -x\n");
  Launched itself(run_command_line({"--standalone", "--no-python", script}), with_python);
  EXPECT_EQ(itself.wait(), 0) << itself.err();
  EXPECT_EQ(itself.out(), "[rank 0] shell\n");
}

TEST(TorchrunFlags, WorkersMayBeCountedByTheMachine) {
  Launched cpu(run_script({"--nproc-per-node", "cpu"}, "echo $WORLD_SIZE"));
  ASSERT_EQ(cpu.wait(), 0) << cpu.err();
  EXPECT_EQ(static_cast<long>(lines_of(cpu.out()).size()), sysconf(_SC_NPROCESSORS_ONLN));
  Launched gpu(run_script({"--nproc-per-node", "gpu"}, "echo $WORLD_SIZE"),
               {.environment = {"CUDA_VISIBLE_DEVICES=4,7,2"}});
  ASSERT_EQ(gpu.wait(), 0) << gpu.err();
  EXPECT_EQ(lines_of(gpu.out()).size(), 3u);
  Launched none(run_script({"--nproc-per-node", "gpu"}, "echo $WORLD_SIZE"),
                {.environment = {"CUDA_VISIBLE_DEVICES=-1"}});
  EXPECT_EQ(none.wait(), 2);
  EXPECT_EQ(none.err(),
            "ddproof run: --nproc-per-node gpu: this machine has no GPU; allowed: cpu, auto or a "
            "number\n");
}

TEST(TorchrunFlags, LogFilesStayAndTeedLinesAreShown) {
  const TemporaryFolder folder;
  Launched run(run_script({"--nproc-per-node", "11", "--log-dir", folder.path(), "--rdzv-id", "job",
                           "--redirects", "3", "--tee", "10:1"},
                          "echo out $RANK; echo err $RANK >&2"));
  ASSERT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "");  // redirects win, as said for all
  const std::set<std::string> runs = names_in(folder.path());
  ASSERT_EQ(runs.size(), 1u);
  const std::string attempt = folder.path() + "/" + *runs.begin() + "/attempt_0";
  EXPECT_EQ(run.err(),
            "ddproof run: the workers' files are in " + folder.path() + "/" + *runs.begin() + "\n");
  EXPECT_EQ(names_in(attempt).size(), 11u);
  EXPECT_EQ(text_of(attempt + "/10/stdout.log"), "out 10\n");
  EXPECT_EQ(text_of(attempt + "/3/stderr.log"), "err 3\n");
}

TEST(TorchrunFlags, AFailedWorkerStartsAllAgainWithANewStoreOnTheSamePort) {
  const TemporaryFolder folder;
  std::string port;
  {
    OsRuntime runtime;
    port = std::to_string(TcpStoreServer(runtime, {.host = "127.0.0.1"}).port());
  }
  Launched run(
      run_command_line({"--nproc-per-node", "3", "--max-restarts", "2", "--master-port", port, "--",
                        "sh", "-c",
                        "'" DDPROOF_RANK_PROGRAM "' && [ $TORCHELASTIC_RESTART_COUNT = 2 ]"}),
      {.environment = {"TMPDIR=" + folder.path()}});
  EXPECT_EQ(run.wait(), 0) << run.err();
  const auto lines = lines_of(run.out());
  EXPECT_EQ(lines.size(), 9u) << run.out();
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.ends_with("met 3 by ddproof run")) << line;
  }
  EXPECT_NE(run.err().find("ddproof run: starting all 3 workers again: restart 2 of 2\n"),
            std::string::npos)
      << run.err();
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{});
}

TEST(TorchrunFlags, TheLastLineHasTheMessageOfTheErrorFile) {
  const TemporaryFolder folder;
  Launched run(run_script({"--nproc-per-node", "2"},
                          "[ $RANK = 0 ] && exec sleep 1000; printf '%s' "
                          "'{\"message\": {\"message\": \"ValueError: no such label\", "
                          "\"extraInfo\": {}}}' > \"$TORCHELASTIC_ERROR_FILE\"; exit 1"),
               {.environment = {"TMPDIR=" + folder.path()}});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_TRUE(run.err().ends_with("exited with status 1: ValueError: no such label\n"))
      << run.err();
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{});
}

TEST(TorchrunFlags, WhateverAWorkerMakesOfItsErrorFileTheStatusIsItsOwn) {
  const TemporaryFolder folder;
  for (const char* make : {"mkfifo \"$F\"", "ln -s /dev/zero \"$F\"", "mkdir \"$F\"",
                           "mkdir -p \"$F/a\"", "head -c 3000000 /dev/zero > \"$F\""}) {
    Launched run(run_script({}, "F=$TORCHELASTIC_ERROR_FILE; " + std::string(make) + "; exit 7"),
                 {.environment = {"TMPDIR=" + folder.path()}});
    EXPECT_EQ(run.wait(), 7) << make << "\n" << run.err();
    EXPECT_NE(run.err().find("exited with status 7\n"), std::string::npos) << run.err();
  }
  EXPECT_EQ(names_in(folder.path()).size(), 1u) << "only a folder that is not empty stays";
}

}  // namespace
}  // namespace ddproof
