// A transport without connections that tells what is done with it: how many waits have begun, and
// how often one with no time at all was made, which is how all connections are closed.
#pragma once

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/runtime.h"

namespace ddproof {

class ObservedDevice final : public gloo::transport::Device {
 public:
  explicit ObservedDevice(Runtime& runtime)
      : waits_(std::make_shared<Waits>(Waits{runtime.make_monitor()})) {}

  // Returns when `count` waits have begun, which nothing but an abort ends.
  void wait_for_waits(int count) {
    MonitorLock lock(*waits_->monitor);
    while (waits_->begun < count) waits_->monitor->wait(kForever, {"waits to begin", {}, {}});
  }
  int closed() const {
    MonitorLock lock(*waits_->monitor);
    return waits_->closed;
  }

  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    return std::make_shared<Context>(waits_, rank, size);
  }
  std::string str() const override { return "observed"; }
  const std::string& getPCIBusID() const override { return no_bus_; }

 private:
  struct Waits {
    std::unique_ptr<Monitor> monitor;  // guards all below, and the buffers
    int begun = 0;
    int closed = 0;
  };

  class Buffer final : public gloo::transport::UnboundBuffer {
   public:
    Buffer(std::shared_ptr<Waits> waits, void* data, std::size_t bytes)
        : UnboundBuffer(data, bytes), waits_(std::move(waits)) {}
    bool waitRecv(int*, std::chrono::milliseconds timeout) override { return wait(timeout, recv_); }
    bool waitSend(int*, std::chrono::milliseconds timeout) override { return wait(timeout, send_); }
    void abortWaitRecv() override { abort(recv_); }
    void abortWaitSend() override { abort(send_); }
    void send(int, std::uint64_t, std::size_t, std::size_t) override {}
    void recv(int, std::uint64_t, std::size_t, std::size_t) override {}
    void recv(std::vector<int>, std::uint64_t, std::size_t, std::size_t) override {}

   private:
    bool wait(std::chrono::milliseconds timeout, const bool& aborted) {
      MonitorLock lock(*waits_->monitor);
      if (timeout.count() == 0) {
        ++waits_->closed;
        throw gloo::IoException("no time");
      }
      ++waits_->begun;
      waits_->monitor->notify_all();
      while (!aborted) waits_->monitor->wait(kForever, {"an abort", {}, {}});
      return false;
    }
    void abort(bool& aborted) {
      MonitorLock lock(*waits_->monitor);
      aborted = true;
      waits_->monitor->notify_all();
    }
    std::shared_ptr<Waits> waits_;
    bool recv_ = false;  // aborted
    bool send_ = false;
  };

  class Context final : public gloo::transport::Context {
   public:
    Context(std::shared_ptr<Waits> waits, int rank, int size)
        : gloo::transport::Context(rank, size), waits_(std::move(waits)) {}
    std::unique_ptr<gloo::transport::Pair>& createPair(int) override {
      throw gloo::IoException("no pairs here");
    }
    std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(
        void* data, std::size_t bytes) override {
      return std::make_unique<Buffer>(waits_, data, bytes);
    }

   private:
    std::shared_ptr<Waits> waits_;
  };

  std::string no_bus_;
  std::shared_ptr<Waits> waits_;
};

}  // namespace ddproof
