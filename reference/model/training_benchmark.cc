// Training speed of one device against PyTorch on one thread: the same models, batch sizes, data
// and optimizer, in alternating rounds of one run.
//
// PyTorch runs in a child process that answers requests over a pipe. OPENBLAS_CORETYPE is taken out
// of its environment, since some machines set it to a slower kernel than the one it would choose.
// Without PyTorch only this side is printed.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/os_measure.h"
#include "reference/compute/cpu.h"
#include "reference/model/loss.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"

namespace ddproof {
namespace {

constexpr int kRounds = 7;
constexpr double kRoundSeconds = 0.3;

// The child process. Where `python` cannot import torch, available() is false.
class PyTorch {
 public:
  explicit PyTorch(const char* python) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[1], STDIN_FILENO);
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      if (freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
      unsetenv("OPENBLAS_CORETYPE");
      execlp(python, python, DDPROOF_TRAINING_BENCHMARK_PY, static_cast<char*>(nullptr));
      _exit(127);
    }
    close(ends[1]);
    socket_ = fdopen(ends[0], "r+");
    const std::string greeting = read_line();
    if (greeting.rfind("ready ", 0) == 0) version_ = greeting.substr(6);
  }
  ~PyTorch() {
    if (socket_ != nullptr) fclose(socket_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  PyTorch(const PyTorch&) = delete;
  PyTorch& operator=(const PyTorch&) = delete;

  bool available() const { return !version_.empty(); }
  const std::string& version() const { return version_; }

  // Samples per second.
  double run(const std::string& model, std::int64_t batch, int steps) {
    std::fprintf(socket_, "%s %lld %d\n", model.c_str(), static_cast<long long>(batch), steps);
    std::fflush(socket_);
    return std::strtod(read_line().c_str(), nullptr);
  }

 private:
  std::string read_line() {
    char line[256] = "";
    if (fgets(line, sizeof line, socket_) == nullptr) return "";
    std::string text(line);
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  pid_t child_ = -1;
  FILE* socket_ = nullptr;
  std::string version_;
};

class Trainer {
 public:
  Trainer(const std::string& model, std::int64_t batch)
      : model_(make_model<float>(model, {}, 10, device_, 1)),
        optimizer_(model_->parameters(), {.lr = 0.01, .momentum = 0.9}),
        images_(device_, {batch, 1, 28, 28}) {
    for (std::int64_t i = 0; i < images_.count(); ++i) {
      const auto hash = static_cast<std::uint32_t>(i * 2654435761);
      images_.data()[i] = static_cast<float>(hash * 0x1p-32);
    }
    for (std::int64_t i = 0; i < batch; ++i) labels_.push_back(i % 10);
    run(3);
  }

  double run(int steps) {
    const double start = cpu_seconds();
    for (int i = 0; i < steps; ++i) {
      zero_grad(*model_);
      loss_.forward(model_->forward(images_), labels_);
      model_->backward(loss_.backward(), {});
      optimizer_.step();
    }
    return static_cast<double>(images_.size(0)) * steps / (cpu_seconds() - start);
  }

  Isa isa() const { return device_.isa(); }

 private:
  Cpu<float> device_;
  std::unique_ptr<Module<float>> model_;
  Sgd<float> optimizer_;
  SoftmaxCrossEntropy<float> loss_;
  Tensor<float> images_;
  std::vector<std::int64_t> labels_;
};

int steps_for(double samples_per_second, std::int64_t batch) {
  return std::max(
      1, static_cast<int>(kRoundSeconds * samples_per_second / static_cast<double>(batch)));
}

void compare(PyTorch* torch, const std::string& model, std::int64_t batch) {
  Trainer trainer(model, batch);
  const int steps = steps_for(trainer.run(2), batch);
  const int torch_steps = torch == nullptr ? 0 : steps_for(torch->run(model, batch, 2), batch);
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(trainer.run(steps));
    if (torch == nullptr) continue;
    theirs.push_back(torch->run(model, batch, torch_steps));
    ratios.push_back(ours.back() / theirs.back());
  }
  const Summary own = summarize(ours);
  std::printf("%-5s %5lld  %7.0f [%.0f, %.0f]", model.c_str(), static_cast<long long>(batch),
              own.median, own.min, own.max);
  if (torch != nullptr) {
    const Summary other = summarize(theirs);
    const Summary ratio = summarize(ratios);
    std::printf("  %7.0f [%.0f, %.0f]  %6.2f [%.2f, %.2f]", other.median, other.min, other.max,
                ratio.median, ratio.min, ratio.max);
  }
  std::printf("\n");
  std::fflush(stdout);
}

int benchmark_training() {
  // The first interpreter in PATH may lack the distribution's packages.
  std::unique_ptr<PyTorch> torch = std::make_unique<PyTorch>("python3");
  if (!torch->available()) torch = std::make_unique<PyTorch>("/usr/bin/python3");
  if (!torch->available()) torch.reset();
  std::printf(
      "training on one thread, kernels %s, %s\nsamples per second of CPU time: median of %d rounds "
      "[min, max]\n",
      std::string(to_string(best_isa())).c_str(),
      torch ? ("PyTorch " + torch->version()).c_str() : "PyTorch not found (install python3-torch)",
      kRounds);
  std::printf("model batch  ddproof%s\n", torch ? "  PyTorch  ratio" : "");
  for (const char* model : {"mlp", "cnn"}) {
    for (std::int64_t batch : {32, 64, 128}) compare(torch.get(), model, batch);
  }
  return 0;
}

}  // namespace
}  // namespace ddproof

int main() { return ddproof::benchmark_training(); }
