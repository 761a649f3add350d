#include "reference/launch/starter.h"

#include <algorithm>
#include <string_view>

namespace ddproof {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string value_of(const Environment& environment, std::string_view name) {
  return environment.get(name).value_or("");
}

// A port that all ranks of a job find and other jobs do not: 15000 and the last four digits of the
// job's number, as PyTorch Lightning does under Slurm. Empty without a number.
std::string port_of_job(std::string job) {
  const auto end = std::ranges::find_if_not(job, is_digit);
  job.erase(end, job.end());
  if (job.empty()) return "";
  return std::to_string(15000 +
                        std::stoi(job.substr(job.size() - std::min<std::size_t>(4, job.size()))));
}

// An interactive step of Slurm is one shell, whatever was allocated.
bool is_interactive_slurm(const Environment& environment) {
  const std::string job = value_of(environment, "SLURM_JOB_NAME");
  return job == "bash" || job == "interactive";
}

Starter by_plain_variables(const Environment& environment) {
  Starter starter{.advice = "ddproof run and torchrun set it"};
  starter.name = "environment variables";
  if (environment.get("TORCHELASTIC_RUN_ID")) starter.name = "torchrun";
  if (environment.get("DDPROOF_RUN_ID")) starter.name = "ddproof run";
  return starter;
}

Starter by_slurm(const Environment& environment) {
  return {.name = "Slurm",
          .rank = "SLURM_PROCID",
          .world_size = "SLURM_NTASKS",
          .local_rank = "SLURM_LOCALID",
          .local_world_size = "",
          .master_addr = first_slurm_host(value_of(environment, "SLURM_JOB_NODELIST")),
          .master_port = port_of_job(value_of(environment, "SLURM_JOB_ID")),
          .advice = "srun sets it, or export it before srun"};
}

Starter by_open_mpi(const Environment& environment) {
  const bool is_one_node =
      environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment.get("OMPI_COMM_WORLD_SIZE");
  return {.name = "Open MPI",
          .rank = "OMPI_COMM_WORLD_RANK",
          .world_size = "OMPI_COMM_WORLD_SIZE",
          .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
          .local_world_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
          .master_addr = is_one_node ? "127.0.0.1" : "",
          .master_port = port_of_job(value_of(environment, "PMIX_NAMESPACE")),
          .advice = "mpirun sets it, or passes it on with -x NAME=VALUE"};
}

}  // namespace

std::optional<Starter> find_starter(const Environment& environment) {
  const auto has = [&](std::string_view name) { return environment.get(name).has_value(); };
  if (has("RANK") && has("WORLD_SIZE") && !has("LOCAL_RANK") && has("KUBERNETES_PORT")) {
    return Starter{.name = "Kubeflow",
                   .local_rank = "",
                   .local_world_size = "",
                   .advice = "the training operator sets it"};
  }
  if (has("RANK") || has("WORLD_SIZE") || has("LOCAL_RANK")) return by_plain_variables(environment);
  if (has("SLURM_PROCID") && has("SLURM_STEP_ID") && !is_interactive_slurm(environment)) {
    return by_slurm(environment);
  }
  if (has("OMPI_COMM_WORLD_RANK")) return by_open_mpi(environment);
  if (has("MV2_COMM_WORLD_RANK")) {
    return Starter{.name = "MVAPICH",
                   .rank = "MV2_COMM_WORLD_RANK",
                   .world_size = "MV2_COMM_WORLD_SIZE",
                   .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
                   .local_world_size = "MV2_COMM_WORLD_LOCAL_SIZE",
                   .advice = "mpirun sets it, or passes it on as NAME=VALUE"};
  }
  if (has("PMI_RANK")) {
    return Starter{.name = "PMI",
                   .rank = "PMI_RANK",
                   .world_size = "PMI_SIZE",
                   .local_rank = "MPI_LOCALRANKID",
                   .local_world_size = "MPI_LOCALNRANKS",
                   .advice = "mpiexec sets it, or passes it on with -env NAME VALUE"};
  }
  return std::nullopt;
}

std::string missed_starter(const Environment& environment) {
  const std::string tasks = value_of(environment, "SLURM_NTASKS");
  if (find_starter(environment) || tasks.empty() || tasks == "1") return "";
  return "SLURM_NTASKS is " + tasks +
         ", but srun did not start this process as one of them; start " + "it with srun";
}

std::string first_slurm_host(const std::string& list) {
  const auto bracket = list.find('[');
  const auto comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto close = list.find(']', bracket);
  if (close == std::string::npos) return "";
  const auto digits_end = list.find_first_not_of("0123456789", bracket + 1);
  if (digits_end == bracket + 1) return "";
  const auto after = std::min(list.find(',', close + 1), list.size());
  if (list.find('[', close + 1) < after) return "";  // two ranges in one name
  return list.substr(0, bracket) + list.substr(bracket + 1, digits_end - bracket - 1) +
         list.substr(close + 1, after - close - 1);
}

}  // namespace ddproof
