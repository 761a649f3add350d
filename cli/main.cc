// The ddproof program: finds the subcommand, runs it, and turns errors into one line and a status.
#include <exception>
#include <iomanip>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "backends/local/os_descriptors.h"
#include "backends/local/os_runtime.h"
#include "backends/local/os_signals.h"
#include "cli/subcommand.h"
#include "reference/launch/error_file.h"

namespace ddproof {
namespace {

// To add a subcommand: its row here, its function in subcommand.h, its file in CMakeLists.txt.
std::vector<Subcommand> subcommands() {
  return {
      {"backends", "print what each backend of this build can do", backends_command, ""},
      {"bench", "time collectives on a backend, in the columns of nccl-tests", bench_command,
       "lower --world-size or --max-bytes"},
      {"diff", "say where two event logs first differ", diff_command, ""},
      {"run", "start a program as the ranks of one world on this machine", run_command,
       "lower --nproc-per-node"},
      {"train", "train a model on one device or as the ranks of a world", train_command,
       "lower --world-size or --batch-size"},
      {"sampler", "print which samples each rank draws", sampler_command, "lower --length"},
      {"scenario", "run what files say that ranks do, and compare the verdict", scenario_command,
       "lower world_size or count in the files"},
      {"verify", "run the properties on a backend and say what holds", verify_command,
       "lower --world-size"},
  };
}

void print_help(std::ostream& out) {
  out << "ddproof: makes data-parallel training rank-proof\n\nUsage: ddproof SUBCOMMAND "
         "[FLAGS]\n\n";
  for (const Subcommand& command : subcommands()) {
    out << "  " << std::left << std::setw(12) << command.name << command.summary << "\n";
  }
  out << "\nddproof SUBCOMMAND --help explains one, ddproof --version prints the version.\nExit "
         "status: 0 holds, 1 a property failed, "
         "2 wrong use, 3 environment.\n";
}

Subcommand find_subcommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Subcommand& command : subcommands()) {
    if (command.name == name) return command;
    names.emplace_back(command.name);
  }
  throw ConfigError("unknown subcommand \"" + name + "\"" + did_you_mean(name, names) +
                    " (see ddproof --help)");
}

int report(const std::string& who, const char* what, ExitStatus status) {
  std::cerr << who << ": " << what << "\n";
  return status;
}

// std::length_error is what containers throw for a size that no memory holds.
int run_within_memory(const Subcommand& command, CommandContext& context) {
  std::string text = "not enough memory";
  if (*command.to_save_memory != 0) text += std::string("; ") + command.to_save_memory;
  try {
    return command.run(context);
  } catch (const std::bad_alloc&) {
    throw ResourceError(text);
  } catch (const std::length_error&) {
    throw ResourceError(text);
  }
}

// What a rank could not do is also told to who started it.
int run_as_worker(const std::string& who, const Subcommand& command, CommandContext& context) {
  try {
    return run_within_memory(command, context);
  } catch (const std::exception& error) {
    write_error_file(context.runtime, who + ": " + error.what());
    throw;
  }
}

int run_program(const std::vector<std::string>& words) {
  std::string who = "ddproof";
  try {
    if (words == std::vector<std::string>{"--version"}) {
      std::cout << "ddproof " DDPROOF_VERSION "\n";
      return kExitHolds;
    }
    if (words.empty() || words[0] == "--help" || words[0] == "-h") {
      print_help(words.empty() ? std::cerr : std::cout);
      return words.empty() ? kExitUsage : kExitHolds;
    }
    const Subcommand command = find_subcommand(words[0]);
    who += " " + words[0];
    OsRuntime runtime;
    CommandContext context{runtime, {words.begin() + 1, words.end()}, std::cout, std::cerr};
    return run_as_worker(who, command, context);
  } catch (const ConfigError& error) {
    return report(who, error.what(), kExitUsage);
  } catch (const std::exception& error) {
    return report(who, error.what(), kExitEnvironment);
  }
}

}  // namespace
}  // namespace ddproof

int main(int argc, char** argv) {
  ddproof::open_standard_descriptors();
  ddproof::make_file_size_limit_an_error();
  const int status = ddproof::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (std::cout.flush()) return status;
  std::cerr << "ddproof: the output could not be written (is the disk full?)\n";
  return status == ddproof::kExitHolds ? ddproof::kExitEnvironment : status;
}
